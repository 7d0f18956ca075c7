// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace convoy::inline models {

/// Whether a TensorProto's `data_type` is one of floating-point numbers.
bool is_onnx_float(std::int64_t data_type);

/// Numbers of a TensorProto's `raw_data`: little endian, as this machine is taken to be. None of types that
/// shapes are not written in, half precision among them.
std::vector<double> decode_onnx_data(std::string_view raw, std::int64_t data_type);

}  // namespace convoy::models
