// SPDX-License-Identifier: MIT
#include "sim/run/export/chakra_trace.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <iterator>
#include <map>
#include <ostream>
#include <string_view>
#include <vector>

#include "sim/results/json_writer.h"
#include "sim/run/export/rank_programs.h"
#include "sim/run/output_folder.h"

namespace convoy::inline runs {
namespace {

namespace fs = std::filesystem;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// Numbers of chakra_et.proto.
enum class NodeNumber : std::uint8_t { compute = 4, send = 5, receive = 6, collective = 7 };
constexpr std::array<std::int64_t, 3> comm_type_numbers{0, 2, 7};  ///< by CollectiveType
constexpr std::string_view schema_version = "0.0.4";
constexpr const char* groups_file = "comm_groups.json";

/// A protobuf message that grows field by field.
class Message {
 public:
  Message& number(int field, std::uint64_t value) {
    tag(field, WireFormatLite::WIRETYPE_VARINT);
    varint(value);
    return *this;
  }
  Message& real(int field, double value) {
    tag(field, WireFormatLite::WIRETYPE_FIXED64);
    std::array<std::uint8_t, 8> bytes{};
    CodedOutputStream::WriteLittleEndian64ToArray(std::bit_cast<std::uint64_t>(value), bytes.data());
    text_.append(bytes.begin(), bytes.end());
    return *this;
  }
  Message& text(int field, std::string_view value) {
    tag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
    delimited(value);
    return *this;
  }
  Message& numbers(int field, const std::vector<std::uint32_t>& values) {
    if (values.empty()) return *this;
    Message packed;
    for (const std::uint32_t value : values) packed.varint(value);
    return text(field, packed.text_);
  }
  /// The message as an element of a file.
  void append_to(std::string& file) const {
    Message framed;
    framed.delimited(text_);
    file += framed.text_;
  }
  const std::string& bytes() const { return text_; }

 private:
  void tag(int field, WireFormatLite::WireType type) { varint(WireFormatLite::MakeTag(field, type)); }
  void varint(std::uint64_t value) {
    std::array<std::uint8_t, 10> bytes{};
    const std::uint8_t* const end = CodedOutputStream::WriteVarint64ToArray(value, bytes.data());
    text_.append(static_cast<const std::uint8_t*>(bytes.data()), end);
  }
  void delimited(std::string_view value) {
    varint(value.size());
    text_ += value;
  }

  std::string text_;
};

/// A message with attributes, in the field that Node and GlobalMetadata have for them.
class WithAttributes {
 public:
  WithAttributes(Message& message, int field) : message_(message), field_(field) {}
  void real(std::string_view name, double value) { add(Message().text(1, name).real(3, value)); }
  void int32(std::string_view name, std::uint64_t value) { add(Message().text(1, name).number(7, value)); }
  void int64(std::string_view name, std::uint64_t value) { add(Message().text(1, name).number(9, value)); }
  void uint64(std::string_view name, std::uint64_t value) { add(Message().text(1, name).number(13, value)); }
  void truth(std::string_view name, bool value) { add(Message().text(1, name).number(27, value)); }
  void text(std::string_view name, std::string_view value) { add(Message().text(1, name).text(29, value)); }

 private:
  void add(const Message& attribute) { message_.text(field_, attribute.bytes()); }

  Message& message_;
  int field_;
};

class ChakraWriter {
 public:
  ChakraWriter(const Plan& plan, const Machine& machine, const CostModel& cost, std::string path)
      : plan_(plan),
        machine_(machine),
        ranks_(plan, machine, cost, RankPrograms::Collectives::known),
        path_(std::move(path)),
        groups_of_(plan.patterns.size()) {}

  void write() {
    for (const RankProgram& program : ranks_.programs()) write(program);
    write_file(fmt::format("{}/{}", path_, groups_file), [&](std::ostream& out) {
      JsonWriter json(out);
      json.begin_object();
      for (const std::vector<std::uint32_t>* group : names_in_order()) {
        json.key(name_of_.at(*group));
        json.begin_array(JsonWriter::Style::compact);
        for (const std::uint32_t rank : *group) json.value(static_cast<std::int64_t>(rank));
        json.end_array();
      }
      json.end_object();
      json.raw("\n");
    });
  }

 private:
  /// What members have in common is made once: nodes, and between them steps with peers.
  void write(const RankProgram& program) {
    struct Piece {
      std::string nodes;
      bool communicates = false;  ///< the step `id` comes then
      std::uint64_t id = 0;
    };
    std::vector<Piece> pieces(1);
    WholeTimes micros(1e6);
    for (std::uint64_t id = 0; id < program.steps.size(); ++id) {
      const RankStep& step = program.steps[id];
      if (step.kind == RankStep::Kind::issue || step.kind == RankStep::Kind::compute ||
          step.kind == RankStep::Kind::join) {
        append(computing(program, id, micros.next(step.queue, step.seconds)), pieces.back().nodes);
      } else {
        pieces.back().communicates = true;
        pieces.back().id = id;
        pieces.emplace_back();
      }
    }
    for (const EndpointId member : program.members) {
      std::string file;
      append(metadata(member), file);
      for (const Piece& piece : pieces) {
        file += piece.nodes;
        if (piece.communicates) append(communicating(program, piece.id, member), file);
      }
      write_file(fmt::format("{}/trace.{}.et", path_, ranks_.rank_of(member)), [&](std::ostream& out) {
        out.write(file.data(), static_cast<std::streamsize>(file.size()));
      });
    }
  }

  static void append(const Message& message, std::string& file) { message.append_to(file); }

  Message metadata(EndpointId member) const {
    Message message;
    message.text(1, schema_version);
    WithAttributes attributes(message, 2);
    attributes.text("endpoint", machine_.endpoint_name(member));
    attributes.real("steps", plan_.steps);
    return message;
  }

  /// All that a node waits for is in data_deps: simulators that read no others keep the order, too.
  static Message node(const RankProgram& program, std::uint64_t id, NodeNumber type,
                      const std::string& name) {
    const RankStep& step = program.steps[id];
    Message message;
    if (id > 0) message.number(1, id);
    message.text(2, name).number(3, static_cast<std::uint64_t>(type));
    std::vector<std::uint32_t> issued;
    std::copy_if(step.after.begin(), step.after.end(), std::back_inserter(issued),
                 [&](std::uint32_t before) { return program.steps[before].kind == RankStep::Kind::issue; });
    return message.numbers(4, issued).numbers(5, step.after);
  }

  static Message computing(const RankProgram& program, std::uint64_t id, std::uint64_t micros) {
    const RankStep& step = program.steps[id];
    const char* const what = step.kind == RankStep::Kind::issue  ? "issue "
                             : step.kind == RankStep::Kind::join ? "join "
                                                                 : "";
    Message message = node(program, id, NodeNumber::compute, fmt::format("{}{}", what, step.name));
    if (micros > 0) message.number(7, micros);
    WithAttributes attributes(message, 10);
    attributes.truth("is_cpu_op", step.on_host);
    if (!step.on_host) {
      attributes.int64("num_ops", static_cast<std::uint64_t>(std::llround(step.flops)));
      attributes.uint64("tensor_size", static_cast<std::uint64_t>(std::llround(step.bytes)));
    }
    attributes.real("duration_s", step.seconds);
    return message;
  }

  Message communicating(const RankProgram& program, std::uint64_t id, EndpointId member) {
    const RankStep& step = program.steps[id];
    const Communication& comm = plan_.communications[step.comm];
    const NodeNumber type = step.kind == RankStep::Kind::collective ? NodeNumber::collective
                            : step.kind == RankStep::Kind::send     ? NodeNumber::send
                                                                    : NodeNumber::receive;
    Message message = node(program, id, type, std::string(step.name));
    WithAttributes attributes(message, 10);
    attributes.truth("is_cpu_op", false);
    if (type == NodeNumber::collective) {
      const CollectiveType collective = *collective_type(plan_, comm);
      const std::vector<EndpointId>& group = group_of(comm.pattern, member);
      attributes.int64("comm_type",
                       static_cast<std::uint64_t>(comm_type_numbers[static_cast<std::size_t>(collective)]));
      // What a member puts in: of a gather its part.
      const double parts = collective == CollectiveType::all_gather ? static_cast<double>(group.size()) : 1.0;
      attributes.int64("comm_size", whole_bytes(comm.bytes / parts));
      attributes.text("pg_name", name_of(group));
      attributes.int32("comm_tag", step.comm);
    } else {
      const RankMessage& own = ranks_.messages(comm.pattern, member)[step.message];
      const std::uint32_t rank = ranks_.rank_of(member), peer = ranks_.rank_of(own.peer);
      attributes.int32("comm_src", own.sends ? rank : peer);
      attributes.int32("comm_dst", own.sends ? peer : rank);
      attributes.int32("comm_tag", step.comm);
      attributes.int64("comm_size", ranks_.message_bytes(step, member));
    }
    if (step.delay_s > 0) attributes.real("delay_s", step.delay_s);
    return message;
  }

  /// The members of the pattern's group that the member is in.
  const std::vector<EndpointId>& group_of(std::uint32_t pattern, EndpointId member) {
    std::vector<std::uint32_t>& group = groups_of_[pattern];
    const auto& groups = plan_.patterns[pattern].groups;
    if (group.empty()) {
      group.resize(machine_.endpoint_count());
      for (std::uint32_t g = 0; g < groups.size(); ++g)
        for (const EndpointId e : groups[g]) group[e] = g;
    }
    return groups[group[member]];
  }

  /// Names are numbers from 1 on: so ASTRA-sim reads them.
  const std::string& name_of(const std::vector<EndpointId>& group) {
    std::string& name = name_of_group_[group.data()];
    if (!name.empty()) return name;
    std::vector<std::uint32_t> ranks;
    for (const EndpointId e : group) ranks.push_back(ranks_.rank_of(e));
    std::sort(ranks.begin(), ranks.end());
    const auto known = name_of_.emplace(std::move(ranks), std::to_string(name_of_.size() + 1)).first;
    return name = known->second;
  }

  std::vector<const std::vector<std::uint32_t>*> names_in_order() const {
    std::vector<const std::vector<std::uint32_t>*> result(name_of_.size());
    for (const auto& [ranks, name] : name_of_) result[std::stoul(name) - 1] = &ranks;
    return result;
  }

  const Plan& plan_;
  const Machine& machine_;
  RankPrograms ranks_;
  std::string path_;
  std::vector<std::vector<std::uint32_t>> groups_of_;  ///< by pattern and endpoint; empty: not needed yet
  std::map<std::vector<std::uint32_t>, std::string> name_of_;  ///< by the ranks of a group
  std::map<const EndpointId*, std::string> name_of_group_;     ///< by the list of its members
};

bool is_trace_name(const std::string& name) {
  if (name == groups_file) return true;
  if (!name.starts_with("trace.") || !name.ends_with(".et") || name.size() < 10) return false;
  const std::string_view rank = std::string_view(name).substr(6, name.size() - 9);
  return rank.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

void check_chakra_folder(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    const fs::path above = fs::absolute(path).lexically_normal().parent_path();
    if (!fs::is_directory(above, error))
      throw OutputError(fmt::format("{}: cannot be made: {} is not a folder", path, above.string()));
    return;
  }
  if (!fs::is_directory(path, error)) throw OutputError(fmt::format("{}: is not a folder", path));
  for (const auto& entry : fs::directory_iterator(path))
    if (!is_trace_name(entry.path().filename()))
      throw OutputError(fmt::format("{}: holds other files than traces ({}); choose another folder", path,
                                    entry.path().filename().string()));
}

void write_chakra_traces(const Plan& plan, const Machine& machine, const CostModel& cost,
                         const std::string& path) {
  check_chakra_folder(path);
  std::error_code error;
  fs::create_directory(path, error);
  if (error) throw OutputError(fmt::format("{}: cannot be made: {}", path, error.message()));
  for (const auto& entry : fs::directory_iterator(path)) fs::remove(entry.path(), error);
  ChakraWriter(plan, machine, cost, path).write();
}

}  // namespace convoy::runs
