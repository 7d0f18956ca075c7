// SPDX-License-Identifier: MIT
// fuzz_seeds DIR MODEL...: writes ONNX exports of zoo models, without weights, to begin fuzzing with.
#include <string>

#include "models/model.h"
#include "tests/models/onnx_writer.h"

int main(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    convoy::YamlNode name;
    name.kind = convoy::YamlNode::Kind::scalar;
    name.scalar = argv[i];
    convoy::exported(convoy::read_model(name), i % 2 ? -1 : 2, false)
        .save(std::string(argv[1]) + "/" + argv[i] + ".onnx");
  }
}
