// SPDX-License-Identifier: MIT
// Which of a file's inputs is the image, and which are weights.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/onnx/onnx_import.h"

namespace convoy::inline models {

/// What some node reads as a weight: files without initialisers list their weights among the inputs.
std::set<std::string> OnnxImport::weight_slots() const {
  static constexpr std::array<std::string_view, 9> with_weights{
      "Conv",   "ConvTranspose",      "Gemm",
      "MatMul", "BatchNormalization", "InstanceNormalization",
      "PRelu",  "LayerNormalization", "GroupNormalization"};
  // Biases and scales of elementwise operators: one-sided shapes that no image has.
  static constexpr std::array<std::string_view, 4> with_either{"Add", "Mul", "Sub", "Div"};
  static constexpr std::size_t least_image_rank = 4;
  std::set<std::string> slots;
  std::map<std::string, std::size_t> rank;
  for (const OnnxValueInfo& input : graph_.inputs)
    if (input.dims) rank[input.name] = input.dims->size();
  for (const OnnxNode& node : graph_.nodes) {
    const std::ptrdiff_t first = std::min<std::ptrdiff_t>(1, std::ssize(node.inputs));
    if (std::find(with_weights.begin(), with_weights.end(), node.op) != with_weights.end())
      slots.insert(node.inputs.begin() + first, node.inputs.end());
    if (std::find(with_either.begin(), with_either.end(), node.op) != with_either.end())
      for (const std::string& input : node.inputs)
        if (const auto found = rank.find(input); found != rank.end() && found->second < least_image_rank)
          slots.insert(input);
  }
  return slots;
}

void OnnxImport::read_image() {
  std::vector<const OnnxValueInfo*> images;
  for (const OnnxValueInfo& input : graph_.inputs)
    if (values_.count(input.name) == 0) images.push_back(&input);
  if (images.size() > 1)
    std::erase_if(images, [&, slots = weight_slots()](const OnnxValueInfo* input) {
      if (!input->dims || !count_of(*input->dims) || slots.count(input->name) == 0) return false;
      OnnxValue value;
      value.dims = *input->dims;
      value.is_float = true;
      value.weight = input->name;
      values_[input->name] = std::move(value);
      return true;
    });
  if (images.size() != 1) {
    std::string names;
    for (std::size_t i = 0; i < std::min<std::size_t>(images.size(), 4); ++i)
      names += fmt::format("{}'{}'", i ? ", " : ": ", shortened(images[i]->name));
    throw InputError({file_, 0, 0},
                     fmt::format("needs one input, the images; it has {}{}", images.size(), names));
  }
  OnnxDims dims = images[0]->dims.value_or(OnnxDims{-1});
  batch_ = !dims.empty() && dims[0] > 0 ? dims[0] : 1;
  if (options_.input) {
    dims = *options_.input;
    dims.insert(dims.begin(), batch_);
  }
  if (!dims.empty()) dims[0] = batch_;
  const std::optional<std::int64_t> count = count_of(dims);
  if (dims.size() < 2 || dims.size() > 8 || !count || *count == 0)
    throw InputError(
        {file_, 0, 0},
        fmt::format("input '{}' has no fixed size of an image; give it, such as {{onnx: FILE, input: "
                    "[3, 224, 224]}}",
                    shortened(images[0]->name)));
  model_.input = Shape(dims.begin() + 1, dims.end());
  OnnxValue image;
  image.dims = dims;
  image.is_float = true;
  image.layer = image_input;
  values_[images[0]->name] = std::move(image);
}

}  // namespace convoy::models
