// SPDX-License-Identifier: MIT
// Reads the protobuf encoding field by field, so that weights are skipped and not loaded. Field numbers are
// those of onnx.proto, IR version 8 (ONNX 1.12).
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/wire_format_lite.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "models/onnx/onnx_data.h"
#include "models/onnx/onnx_graph.h"
#include "sim/base/input_error.h"
#include "sim/base/input_file.h"

namespace convoy::inline models {
namespace {

namespace io = google::protobuf::io;
using google::protobuf::internal::WireFormatLite;

constexpr std::size_t max_items = 100'000;           // nodes, initialisers
constexpr std::size_t max_kept_bytes = 128u << 20u;  // of everything that is kept, with its overhead

class Parser {
 public:
  Parser(io::ZeroCopyInputStream& stream, int size, const std::string& file) : in_(&stream), file_(file) {
    in_.SetTotalBytesLimit(std::numeric_limits<int>::max());
    in_.PushLimit(size);
  }

  OnnxGraph model() {
    OnnxGraph graph;
    bool has_graph = false;
    fields([&](int field) {
      if (field == 7) {
        has_graph = true;
        message([&](int inner) { return graph_field(inner, graph); });
      } else if (field == 8) {
        opset(graph);
      } else {
        return false;
      }
      return true;
    });
    if (!has_graph) fail("is no ONNX file: it has no graph");
    return graph;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError({file_, 0, 0}, what); }
  [[noreturn]] void cut() const { fail("is cut off, or no ONNX file"); }

  void keep(std::size_t bytes) {
    kept_ += bytes;
    if (kept_ > max_kept_bytes) fail("describes more than is read: 128 MiB without the weights");
  }

  /// Fields up to the end of the message; those that `take(field number)` does not take are skipped.
  template <typename Take>
  void fields(Take take) {
    while (const std::uint32_t tag = in_.ReadTag()) {
      tag_ = tag;
      if (!take(WireFormatLite::GetTagFieldNumber(tag)) && !WireFormatLite::SkipField(&in_, tag)) cut();
    }
    if (in_.BytesUntilLimit() != 0) cut();
  }

  bool is(WireFormatLite::WireType type) const { return WireFormatLite::GetTagWireType(tag_) == type; }

  int length() {
    std::uint32_t size = 0;
    if (!is(WireFormatLite::WIRETYPE_LENGTH_DELIMITED) || !in_.ReadVarint32(&size)) cut();
    if (size > static_cast<std::uint32_t>(std::max(0, in_.BytesUntilLimit()))) cut();
    return static_cast<int>(size);
  }

  template <typename Take>
  void message(Take take) {
    keep(64);
    const auto limit = in_.PushLimit(length());
    fields(take);
    in_.PopLimit(limit);
  }

  std::string string() {
    const int size = length();
    keep(static_cast<std::size_t>(size) + sizeof(std::string));
    std::string text;
    if (!in_.ReadString(&text, size)) cut();
    return text;
  }

  std::int64_t varint() {
    std::uint64_t value = 0;
    if (!is(WireFormatLite::WIRETYPE_VARINT) || !in_.ReadVarint64(&value)) cut();
    return static_cast<std::int64_t>(value);
  }

  /// A repeated number, packed or not: `read` reads one and hands it over.
  template <typename Read>
  void numbers(Read read) {
    if (!is(WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) return read();
    const auto limit = in_.PushLimit(length());
    while (in_.BytesUntilLimit() > 0) read();
    in_.PopLimit(limit);
  }
  void integers(std::vector<double>& to, std::size_t most) {
    numbers([&] {
      std::uint64_t value = 0;
      if (!in_.ReadVarint64(&value)) cut();
      add(to, static_cast<double>(static_cast<std::int64_t>(value)), most);
    });
  }
  void floats(std::vector<double>& to, std::size_t most) {
    numbers([&] {
      std::uint32_t bits = 0;
      if (!in_.ReadLittleEndian32(&bits)) cut();
      add(to, static_cast<double>(WireFormatLite::DecodeFloat(bits)), most);
    });
  }
  void doubles(std::vector<double>& to, std::size_t most) {
    numbers([&] {
      std::uint64_t bits = 0;
      if (!in_.ReadLittleEndian64(&bits)) cut();
      add(to, WireFormatLite::DecodeDouble(bits), most);
    });
  }
  /// Beyond `most` numbers only the fact that there are more is kept.
  void add(std::vector<double>& to, double value, std::size_t most) {
    if (to.size() > most) return;
    keep(sizeof value);
    to.push_back(value);
  }

  void opset(OnnxGraph& graph) {
    std::string domain;
    std::int64_t version = 0;
    message([&](int field) {
      if (field == 1) return domain = string(), true;
      if (field == 2) return version = varint(), true;
      return false;
    });
    if (domain.empty() || domain == "ai.onnx") graph.opset = version;
  }

  bool graph_field(int field, OnnxGraph& graph) {
    if (graph.nodes.size() > max_items || graph.initialisers.size() > max_items)
      fail(fmt::format("has more than {} nodes or initialisers", max_items));
    switch (field) {
      case 1:
        graph.nodes.push_back(node());
        return true;
      case 5:
        graph.initialisers.push_back(tensor());
        return true;
      case 11:
        graph.inputs.push_back(value_info());
        return true;
      case 12:
        graph.outputs.push_back(value_info());
        return true;
      case 13:
        graph.values.push_back(value_info());
        return true;
      default:
        return false;
    }
  }

  OnnxNode node() {
    OnnxNode node;
    message([&](int field) {
      switch (field) {
        case 1:
          return node.inputs.push_back(string()), true;
        case 2:
          return node.outputs.push_back(string()), true;
        case 3:
          return node.name = string(), true;
        case 4:
          return node.op = string(), true;
        case 5:
          return node.attributes.push_back(attribute()), true;
        case 7:
          return node.domain = string(), true;
        default:
          return false;
      }
    });
    return node;
  }

  OnnxAttribute attribute() {
    keep(sizeof(OnnxAttribute));
    OnnxAttribute attribute;
    message([&](int field) {
      std::vector<double> one;
      switch (field) {
        case 1:
          return attribute.name = string(), true;
        case 2:
          floats(one, 1);
          break;
        case 3:
          integers(one, 1);
          break;
        case 4:
          return attribute.text = string(), true;
        case 5:
          return attribute.tensor = tensor(), true;
        case 7:
          return floats(attribute.numbers, OnnxTensor::max_values), true;
        case 8:
          return integers(attribute.numbers, OnnxTensor::max_values), true;
        default:
          return false;
      }
      if (!one.empty()) attribute.number = one.front();
      return true;
    });
    return attribute;
  }

  OnnxTensor tensor() {
    keep(sizeof(OnnxTensor));
    OnnxTensor tensor;
    std::int64_t type = 0;
    std::vector<double> values, dims;
    std::string raw;
    message([&](int field) {
      switch (field) {
        case 1:
          return integers(dims, 64), true;
        case 2:
          return type = varint(), true;
        case 4:
          return floats(values, OnnxTensor::max_values), true;
        case 5:
        case 7:
        case 11:
          return integers(values, OnnxTensor::max_values), true;
        case 8:
          return tensor.name = string(), true;
        case 9: {
          const int size = length();
          if (static_cast<std::size_t>(size) > 8 * OnnxTensor::max_values)
            return in_.Skip(size) || (cut(), false);
          keep(static_cast<std::size_t>(size));
          return in_.ReadString(&raw, size) || (cut(), false);
        }
        case 10:
          return doubles(values, OnnxTensor::max_values), true;
        default:
          return false;
      }
    });
    double count = 1;
    for (const double size : dims) {
      tensor.dims.push_back(to_integer(size));
      count *= size;
    }
    tensor.is_float = is_onnx_float(type);
    if (values.empty()) values = decode_onnx_data(raw, type);
    if (static_cast<double>(values.size()) == count && values.size() <= OnnxTensor::max_values)
      tensor.values = std::move(values);
    return tensor;
  }

  OnnxValueInfo value_info() {
    keep(sizeof(OnnxValueInfo));
    OnnxValueInfo info;
    const auto dimension = [&](int field) {  // TensorShapeProto.dim
      if (field != 1) return false;
      keep(sizeof(std::int64_t));
      info.dims->push_back(-1);
      message([&](int inner) {
        if (inner != 1) return false;
        info.dims->back() = varint();
        return true;
      });
      return true;
    };
    const auto shape = [&](int field) {  // TypeProto.Tensor.shape
      if (field != 2) return false;
      info.dims.emplace();
      message(dimension);
      return true;
    };
    const auto type = [&](int field) {
      return field == 1 && (message(shape), true);
    };  // TypeProto.tensor_type
    message([&](int field) {
      if (field == 1) return info.name = string(), true;
      return field == 2 && (message(type), true);
    });
    return info;
  }

  io::CodedInputStream in_;
  std::string file_;
  std::uint32_t tag_ = 0;
  std::size_t kept_ = 0;
};

}  // namespace

OnnxGraph parse_onnx(std::string_view bytes, const std::string& file) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw InputError({file, 0, 0}, "is larger than 2 GiB");
  const int size = static_cast<int>(bytes.size());
  io::ArrayInputStream stream(bytes.data(), size);
  return Parser(stream, size, file).model();
}

OnnxGraph load_onnx(const std::string& file) {
  const int descriptor = open_input_descriptor(file);
  if (descriptor < 0) throw InputError({file, 0, 0}, fmt::format("cannot be read: {}", std::strerror(errno)));
  io::FileInputStream stream(descriptor);
  stream.SetCloseOnDelete(true);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    throw InputError({file, 0, 0}, "is no file");
  if (status.st_size > std::numeric_limits<int>::max())
    throw InputError({file, 0, 0}, "is larger than 2 GiB");
  return Parser(stream, static_cast<int>(status.st_size), file).model();
}

}  // namespace convoy::models
