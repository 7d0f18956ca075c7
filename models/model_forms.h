// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "models/model.h"
#include "models/onnx/onnx_import.h"
#include "sim/base/keys.h"

namespace convoy::inline models {

// The forms in which a mapping says what a model is, each with the table of its keys.

/// A model written out: a file of the zoo, a file of one's own, or inline. Its nodes are the mapping's.
struct WrittenModel {
  std::string name;
  Shape input;
  bool cross_entropy_loss = false;
  const YamlNode* parameters = nullptr;
  std::optional<std::string> blocks_from;  ///< path of a file with a mapping `blocks`
  const YamlNode* blocks = nullptr;
  const YamlNode* layers = nullptr;
};
const Keys<WrittenModel>& written_model_keys();

/// A model of the zoo or of a file; the mapping's other keys are values of its parameters.
struct NamedModel {
  std::string name;  ///< of the zoo, or the file's path
  std::optional<Shape> input;
};
const Keys<NamedModel>& zoo_model_keys();
const Keys<NamedModel>& file_model_keys();

struct OnnxModel {
  std::string file;
  OnnxOptions options;
};
const Keys<OnnxModel>& onnx_model_keys();

/// A network of measured layers.
struct ProfiledModel {
  std::string file;
  std::string name;
};
const Keys<ProfiledModel>& profiled_model_keys();

}  // namespace convoy::models
