// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes are a model or an InputError, and a model trains.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "models/onnx/onnx_import.h"
#include "models/summary.h"
#include "sim/base/input_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    convoy::summarize(convoy::import_onnx(convoy::parse_onnx(bytes, "fuzz.onnx"), "fuzz.onnx", {}));
  } catch (const convoy::InputError&) {
  }
  return 0;
}
