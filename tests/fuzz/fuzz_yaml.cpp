// SPDX-License-Identifier: MIT
// libFuzzer target: any text is a model or an InputError, and a model trains.
#include <cstddef>
#include <cstdint>
#include <string>

#include "models/summary.h"
#include "sim/base/input_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const convoy::YamlNode node =
        convoy::parse_yaml(std::string(reinterpret_cast<const char*>(data), size), "fuzz.yaml");
    if (node.find("file") || node.find("onnx")) return 0;  // other files are no part of the input
    const convoy::Model model = convoy::read_model(node);
    if (model.layers.size() <= 5000) convoy::summarize(model);  // `repeat` makes large models of few bytes
  } catch (const convoy::InputError&) {
  }
  return 0;
}
