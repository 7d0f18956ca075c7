// SPDX-License-Identifier: MIT
#include "models/onnx/onnx_data.h"

#include <cstring>

namespace convoy::inline models {
namespace {

/// TensorProto.DataType of onnx.proto.
enum DataType {
  float32 = 1,
  uint8,
  int8,
  uint16,
  int16,
  int32,
  int64,
  text,
  boolean,
  float16,
  float64,
  uint32,
  uint64,
  bfloat16 = 16
};

template <typename Number>
std::vector<double> decode_as(std::string_view raw) {
  std::vector<double> values(raw.size() / sizeof(Number));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Number number;
    std::memcpy(&number, raw.data() + i * sizeof number, sizeof number);
    values[i] = static_cast<double>(number);
  }
  return values;
}

}  // namespace

bool is_onnx_float(std::int64_t data_type) {
  return data_type == float32 || data_type == float16 || data_type == float64 || data_type == bfloat16;
}

std::vector<double> decode_onnx_data(std::string_view raw, std::int64_t data_type) {
  switch (data_type) {
    case float32:
      return decode_as<float>(raw);
    case float64:
      return decode_as<double>(raw);
    case int64:
      return decode_as<std::int64_t>(raw);
    case int32:
      return decode_as<std::int32_t>(raw);
    case uint8:
    case boolean:
      return decode_as<std::uint8_t>(raw);
    case int8:
      return decode_as<std::int8_t>(raw);
    default:
      return {};
  }
}

}  // namespace convoy::models
