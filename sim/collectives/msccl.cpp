// SPDX-License-Identifier: MIT
#include "sim/collectives/msccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "topologies/xml_file.h"

namespace convoy::inline collectives {
namespace {

constexpr std::int64_t most_gpus = 4096, most_counted = 1 << 16;

std::int64_t whole(const XmlElement& element, const char* attribute, std::int64_t least, std::int64_t most) {
  const double value = element.number(attribute);
  if (value != std::floor(value) || value < static_cast<double>(least) || value > static_cast<double>(most))
    element.fail(
        fmt::format("{}: expected a whole number from {} to {}, found {:g}", attribute, least, most, value));
  return static_cast<std::int64_t>(value);
}

/// When something happens: messages of a level start together, after what GPUs do for themselves in it.
struct Time {
  std::int64_t level = 0, inside = 0;
  auto operator<=>(const Time&) const = default;
};

/// What a type of step does; all that receive get it into slots of their own first.
struct StepType {
  std::string_view name;
  bool receives, adds, stores, sends;
};
constexpr std::array<StepType, 6> transfers{{{"s", false, false, false, true},
                                             {"r", true, false, true, false},
                                             {"rcs", true, false, true, true},
                                             {"rrc", true, true, true, false},
                                             {"rrs", true, true, false, true},
                                             {"rrcs", true, true, true, true}}};

struct BlockStep {
  const XmlElement* xml;
  std::optional<std::pair<std::size_t, std::size_t>> waits_for;  ///< block and step of the same GPU
  std::optional<Time> done;
};
struct Block {
  std::size_t gpu;
  std::int64_t to, from, channel;
  std::vector<BlockStep> steps;
  std::size_t next = 0;
  Time free;  ///< its next step begins no earlier
};
/// Sent, and where it waits for its receiver.
struct Sent {
  std::int64_t level, slot, count;
};

class Importer {
 public:
  explicit Importer(const XmlElement& algorithm) : xml_(algorithm) {
    if (xml_.name != "algo") xml_.fail(fmt::format("expected <algo>, found <{}>", xml_.name));
    if (xml_.text("coll") != "allreduce")
      xml_.fail(fmt::format("coll: only allreduce can be read, found '{}'", xml_.text("coll")));
    gpus_ = whole(xml_, "ngpus", 1, most_gpus);
    chunks_ = whole(xml_, "nchunksperloop", 1, most_counted);
    in_place_ = xml_.text_or("inplace", "0") == "1";
    read_blocks();
  }

  YamlNode schedule() {
    run();
    if (!in_place_)
      for (std::int64_t gpu = 0; gpu < gpus_; ++gpu)
        add({last_ + 1, 0}, false, xml_, gpu, gpu, slot_of_output(0), 0, chunks_, false);
    YamlNode made = mapping(xml_);
    put(made, "schedule", scalar(xml_.text_or("name", "MSCCL"), true));
    YamlNode ranks = mapping(xml_);
    put(ranks, "least", number(gpus_));
    put(ranks, "most", number(gpus_));
    put(made, "ranks", std::move(ranks));
    put(made, "chunks", number(chunks_));
    std::int64_t scratch = 0;
    for (const std::int64_t slots : slots_) scratch = std::max(scratch, slots - chunks_);
    put(made, "scratch", number(scratch));
    YamlNode rounds = list(xml_);
    for (auto& [when, sends] : moves_) {
      YamlNode round = mapping(xml_);
      put(round, "send", std::move(sends));
      rounds.items.push_back(std::move(round));
    }
    put(made, "rounds", std::move(rounds));
    return made;
  }

 private:
  // Nodes of YAML with places of XML.

  static YamlNode list(const XmlElement& at) {
    YamlNode node;
    node.kind = YamlNode::Kind::sequence;
    node.pos = node.key_pos = at.pos;
    return node;
  }
  static YamlNode mapping(const XmlElement& at) {
    YamlNode node = list(at);
    node.kind = YamlNode::Kind::mapping;
    return node;
  }
  static YamlNode scalar(std::string text, bool quoted) {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.scalar = std::move(text);
    node.quoted = quoted;
    return node;
  }
  static YamlNode number(std::int64_t value) { return scalar(fmt::format("{}", value), false); }
  static void put(YamlNode& map, const char* key, YamlNode value) {
    if (value.pos.line == 0) value.pos = value.key_pos = map.pos;
    map.entries.emplace_back(key, std::move(value));
  }

  // Reading.

  void read_blocks() {
    std::int64_t scratch = 0;
    std::vector<std::vector<const XmlElement*>> of_gpu(static_cast<std::size_t>(gpus_));
    for (const XmlElement& gpu : xml_.children) {
      if (gpu.name != "gpu") gpu.fail(fmt::format("expected <gpu>, found <{}>", gpu.name));
      const auto id = static_cast<std::size_t>(whole(gpu, "id", 0, gpus_ - 1));
      if (!of_gpu[id].empty()) gpu.fail(fmt::format("there is a GPU {} already", id));
      scratch = std::max(scratch, gpu.find("s_chunks") ? whole(gpu, "s_chunks", 0, most_counted) : 0);
      for (const XmlElement& block : gpu.children) of_gpu[id].push_back(&block);
    }
    scratch_ = scratch;
    slots_.assign(static_cast<std::size_t>(gpus_), chunks_ + scratch_ + (in_place_ ? 0 : chunks_));
    for (std::size_t gpu = 0; gpu < of_gpu.size(); ++gpu) {
      std::map<std::int64_t, std::size_t> by_id;
      const std::size_t first = blocks_.size();
      for (const XmlElement* xml : of_gpu[gpu]) {
        if (xml->name != "tb") xml->fail(fmt::format("expected <tb>, found <{}>", xml->name));
        if (!by_id.emplace(whole(*xml, "id", 0, most_counted), blocks_.size()).second)
          xml->fail("there is a block of this id already");
        blocks_.push_back({gpu,
                           whole(*xml, "send", -1, gpus_ - 1),
                           whole(*xml, "recv", -1, gpus_ - 1),
                           whole(*xml, "chan", 0, most_counted),
                           {},
                           0,
                           {}});
      }
      for (std::size_t b = first; b < blocks_.size(); ++b)
        read_steps(*of_gpu[gpu][b - first], by_id, blocks_[b]);
      for (std::size_t b = first; b < blocks_.size(); ++b)
        for (const BlockStep& step : blocks_[b].steps)
          if (step.waits_for && step.waits_for->second >= blocks_[step.waits_for->first].steps.size())
            step.xml->fail("deps: that block has no such step");
    }
  }

  static void read_steps(const XmlElement& xml, const std::map<std::int64_t, std::size_t>& by_id,
                         Block& block) {
    for (const XmlElement& step : xml.children) {
      if (step.name != "step") step.fail(fmt::format("expected <step>, found <{}>", step.name));
      if (whole(step, "s", 0, most_counted) != static_cast<std::int64_t>(block.steps.size()))
        step.fail(fmt::format("s: steps are numbered in order; expected {}", block.steps.size()));
      BlockStep read{&step, {}, {}};
      if (const std::int64_t id = whole(step, "depid", -1, most_counted); id >= 0) {
        const auto other = by_id.find(id);
        if (other == by_id.end()) step.fail(fmt::format("depid: this GPU has no block {}", id));
        read.waits_for = {other->second, static_cast<std::size_t>(whole(step, "deps", 0, most_counted))};
      }
      block.steps.push_back(read);
    }
  }

  std::int64_t slot_of_output(std::int64_t offset) const {
    return in_place_ ? offset : chunks_ + scratch_ + offset;
  }
  std::int64_t slot(const XmlElement& step, const char* buffer, const char* offset,
                    std::int64_t count) const {
    const std::string& name = step.text(buffer);
    const bool is_scratch = name == "s";
    if (!is_scratch && name != "i" && name != "o")
      step.fail(fmt::format("{}: expected i, o or s, found '{}'", buffer, name));
    const std::int64_t at = whole(step, offset, 0, (is_scratch ? scratch_ : chunks_) - count);
    return is_scratch ? chunks_ + at : name == "o" ? slot_of_output(at) : at;
  }

  // Going through the blocks.

  void run() {
    std::size_t left = 0;
    for (const Block& block : blocks_) left += block.steps.size();
    for (bool moves = true; moves && left > 0;) {
      moves = false;
      for (Block& block : blocks_)
        while (block.next < block.steps.size() && is_done(block, block.steps[block.next])) {
          ++block.next;
          --left;
          moves = true;
        }
    }
    for (const Block& block : blocks_)
      if (block.next < block.steps.size())
        block.steps[block.next].xml->fail("waits for a step or a message that never comes");
  }

  /// Does a step where what it waits for is there.
  bool is_done(Block& block, BlockStep& step) {
    const XmlElement& xml = *step.xml;
    Time at = block.free;
    if (step.waits_for) {
      const std::optional<Time>& before = blocks_[step.waits_for->first].steps[step.waits_for->second].done;
      if (!before) return false;
      at = std::max(at, *before);
    }
    const std::string& name = xml.text("type");
    const std::int64_t gpu = static_cast<std::int64_t>(block.gpu);
    const std::int64_t count = name == "nop" ? 0 : whole(xml, "cnt", 1, most_counted);
    const auto source = [&] { return slot(xml, "srcbuf", "srcoff", count); };
    const auto target = [&] { return slot(xml, "dstbuf", "dstoff", count); };
    if (name == "cpy" || name == "re") {
      add(at, false, xml, gpu, gpu, source(), target(), count, name == "re");
      ++at.inside;
    } else if (name != "nop") {
      const auto* type = std::find_if(transfers.begin(), transfers.end(),
                                      [&](const StepType& of) { return of.name == name; });
      if (type == transfers.end())
        xml.fail(fmt::format("type: expected s, r, rcs, rrc, rrs, rrcs, cpy, re or nop, found '{}'", name));
      std::int64_t held = type->receives ? 0 : source();
      if (type->receives) {
        const std::optional<Sent> sent = received(block, xml, count);
        if (!sent) return false;
        at = std::max(at, Time{sent->level + 1, 0});
        held = sent->slot;
        if (type->adds) {
          add(at, false, xml, gpu, gpu, source(), held, count, true);
          ++at.inside;
        }
        if (type->stores) {
          add(at, false, xml, gpu, gpu, held, target(), count, false);
          ++at.inside;
        }
      }
      if (type->sends) {
        send(block, xml, at.level, held, count);
        at = {at.level + 1, 0};
      }
    }
    step.done = block.free = at;
    last_ = std::max(last_, at.level);
    return true;
  }

  std::optional<Sent> received(const Block& block, const XmlElement& xml, std::int64_t count) {
    if (block.from < 0) xml.fail("receives in a block with recv=\"-1\"");
    std::vector<Sent>& sent = sent_[{block.from, static_cast<std::int64_t>(block.gpu), block.channel}];
    std::size_t& taken = taken_[{block.from, static_cast<std::int64_t>(block.gpu), block.channel}];
    if (taken == sent.size()) return std::nullopt;
    if (sent[taken].count != count)
      xml.fail(fmt::format("cnt: receives {} chunks where {} are sent", count, sent[taken].count));
    return sent[taken++];
  }

  void send(const Block& block, const XmlElement& xml, std::int64_t level, std::int64_t from,
            std::int64_t count) {
    if (block.to < 0) xml.fail("sends in a block with send=\"-1\"");
    std::int64_t& slots = slots_[static_cast<std::size_t>(block.to)];
    const auto gpu = static_cast<std::int64_t>(block.gpu);
    sent_[{gpu, block.to, block.channel}].push_back({level, slots, count});
    add({level, 0}, true, xml, gpu, block.to, from, slots, count, false);
    slots += count;
  }

  /// @param message else what a GPU does for itself
  void add(Time when, bool message, const XmlElement& xml, std::int64_t from, std::int64_t to,
           std::int64_t slot, std::int64_t into, std::int64_t count, bool adds) {
    YamlNode move = mapping(xml);
    put(move, "from", number(from));
    put(move, "to", number(to));
    put(move, "chunk", number(slot));
    if (count != 1) put(move, "count", number(count));
    if (into != slot) put(move, "into", number(into));
    put(move, "op", scalar(adds ? "reduce" : "copy", false));
    auto [it, fresh] =
        moves_.try_emplace({when.level, message ? 1 : 0, message ? 0 : when.inside}, list(xml_));
    it->second.items.push_back(std::move(move));
  }

  const XmlElement& xml_;
  std::int64_t gpus_ = 0, chunks_ = 0, scratch_ = 0, last_ = 0;
  bool in_place_ = false;
  std::vector<Block> blocks_;
  std::vector<std::int64_t> slots_;  ///< of each GPU, so far
  /// By sender, receiver and channel.
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::vector<Sent>> sent_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::size_t> taken_;
  /// By level, what GPUs do for themselves before messages, and within a level.
  std::map<std::tuple<std::int64_t, int, std::int64_t>, YamlNode> moves_;
};

}  // namespace

YamlNode read_msccl(const std::string& file) {
  const XmlElement xml = load_xml(file);
  return Importer(xml).schedule();
}

}  // namespace convoy::collectives
