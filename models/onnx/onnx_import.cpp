// SPDX-License-Identifier: MIT
#include "models/onnx/onnx_import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/shapes.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline models {
namespace {

constexpr std::size_t max_onnx_layers = 100'000;
constexpr std::size_t max_rank = 32;
constexpr std::size_t max_kept_values = 4'000'000;
constexpr std::int64_t oldest_opset = 7, newest_opset = 17;
constexpr std::size_t max_layer_name = 200, max_unknown_outputs = 64;
constexpr std::size_t max_name = 60;  // of names in messages

bool is_onnx(const OnnxNode& node) { return node.domain.empty() || node.domain == "ai.onnx"; }

}  // namespace

std::string shortened(const std::string& name) {
  return name.size() <= max_name ? name : fmt::format("{}...", std::string_view(name).substr(0, max_name));
}

OnnxImport::OnnxImport(OnnxGraph graph, std::string file, const OnnxOptions& options)
    : graph_(std::move(graph)), file_(std::move(file)), options_(options) {
  model_.cross_entropy_loss = options.cross_entropy_loss;
}

void OnnxImport::fail(const OnnxNode& node, const std::string& message) const {
  const std::string& name = node.name.empty() && !node.outputs.empty() ? node.outputs.front() : node.name;
  throw InputError({file_, 0, 0},
                   fmt::format("node '{}' ({}): {}", shortened(name), shortened(node.op), message));
}

const OnnxValue* OnnxImport::find(const OnnxNode& node, std::size_t input) const {
  if (input >= node.inputs.size() || node.inputs[input].empty()) return nullptr;
  const auto it = values_.find(node.inputs[input]);
  if (it == values_.end())
    fail(node, fmt::format("reads '{}', which nothing before it makes, or which cannot be computed here",
                           shortened(node.inputs[input])));
  return &it->second;
}

const OnnxValue& OnnxImport::value(const OnnxNode& node, std::size_t input) const {
  const OnnxValue* found = find(node, input);
  if (!found) fail(node, fmt::format("its input {} is missing", input));
  return *found;
}

const OnnxValue& OnnxImport::result(const OnnxNode& node, std::size_t input) const {
  const OnnxValue& found = value(node, input);
  if (!found.is_result()) fail(node, fmt::format("its input {} is a constant", input));
  return found;
}

const OnnxValue& OnnxImport::weight(const OnnxNode& node, std::size_t input) const {
  const OnnxValue& found = value(node, input);
  if (found.is_result())
    fail(node, fmt::format("its input {} is computed by the network, not a weight", input));
  return found;
}

std::vector<std::int64_t> OnnxImport::integers(const OnnxNode& node, std::string_view attribute,
                                               std::size_t input) const {
  const OnnxValue* given = find(node, input);
  if (!given) return node.integers(attribute);
  if (!given->values) fail(node, fmt::format("its '{}' are not known before the network runs", attribute));
  std::vector<std::int64_t> result;
  for (const double number : *given->values) result.push_back(to_integer(number));
  return result;
}

std::size_t OnnxImport::readers(const std::string& name) const {
  const auto it = readers_.find(name);
  return it == readers_.end() ? 0 : it->second;
}

Shape OnnxImport::per_image(const OnnxNode& node, const OnnxDims& dims) const {
  const std::optional<std::int64_t> count = count_of(dims);
  if (!count || *count == 0 || *count % batch_ != 0)
    fail(node, fmt::format("a result [{}] is no batch of {} images", fmt::join(dims, ", "), batch_));
  Shape shape(dims);
  if (shape.empty()) return {1};
  if (shape.front() % batch_ != 0) return {*count / batch_};
  if (shape.front() == batch_ && shape.size() > 1)
    shape.erase(shape.begin());
  else
    shape.front() /= batch_;
  return shape;
}

std::string OnnxImport::name_of(const OnnxNode& node, const std::vector<const OnnxValue*>& weights,
                                std::string_view suffix) {
  std::string name;
  // "layer1.0.conv1.weight" names its layer better than "Conv_3"; "onnx::Conv_497" does not.
  if (!weights.empty() && weights[0]->weight.ends_with(".weight") &&
      weights[0]->weight.find(':') == std::string::npos)
    name = weights[0]->weight.substr(0, weights[0]->weight.size() - 7);
  else
    name = !node.name.empty()                                  ? node.name
           : !node.outputs.empty() && !node.outputs[0].empty() ? node.outputs[0]
                                                               : node.op;
  while (name.starts_with('/')) name.erase(0, 1);
  for (char& c : name)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) c = '_';
  if (name.size() > max_layer_name) name.resize(max_layer_name);  // a model has many copies of it
  if (name.empty()) name = node.op.substr(0, max_layer_name);
  name += suffix;
  const int count = ++names_[name];
  return count == 1 ? name : fmt::format("{}#{}", name, count);
}

LayerIndex OnnxImport::emit(const OnnxNode& node, LayerKind kind, std::vector<LayerIndex> inputs,
                            const std::vector<const OnnxValue*>& weights, std::string_view suffix) {
  if (model_.layers.size() >= max_onnx_layers)
    fail(node, fmt::format("the model has more than {} layers", max_onnx_layers));
  Layer layer;
  layer.name = name_of(node, weights, suffix);
  layer.kind = std::move(kind);
  layer.inputs = std::move(inputs);
  layer.pos = {file_, 0, 0};
  std::vector<Shape> shapes;
  for (const LayerIndex input : layer.inputs) shapes.push_back(model_.shape_of(input));
  infer_shape(layer, shapes);
  // A constant that a layer before has as its parameter is not another one.
  std::vector<ParameterTensor> own;
  std::set<LayerIndex> owners;
  const auto index = static_cast<LayerIndex>(model_.layers.size());
  for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
    const auto used =
        i < weights.size() ? weights_used_.emplace(weights[i]->weight, index).first : weights_used_.end();
    if (used == weights_used_.end() || used->second == index)
      own.push_back(layer.parameters[i]);
    else
      owners.insert(used->second);
  }
  if (own.empty() && owners.size() == 1 &&
      model_.layers[static_cast<std::size_t>(*owners.begin())].parameters == layer.parameters) {
    layer.weights_of = *owners.begin();
    layer.shared_elements = layer.parameter_elements();
  }
  layer.parameters = std::move(own);
  parameters_ += layer.parameter_elements();
  macs_ += layer.macs;
  if (parameters_ > YamlMap::max_integer || macs_ > YamlMap::max_integer)
    fail(node, "up to here the model has more than 2^53 parameters or multiply-adds");
  model_.layers.push_back(std::move(layer));
  return static_cast<LayerIndex>(model_.layers.size() - 1);
}

OnnxValue OnnxImport::output_of(LayerIndex layer) const {
  OnnxValue value;
  value.dims = model_.shape_of(layer);
  value.dims.insert(value.dims.begin(), batch_);
  value.is_float = true;
  value.layer = layer;
  return value;
}

OnnxValue OnnxImport::view(const OnnxNode& node, const OnnxValue& from, const OnnxDims& dims,
                           std::string_view suffix) {
  OnnxValue result = from;
  const Shape shape = per_image(node, dims);
  result.dims = dims;
  if (shape == model_.shape_of(from.layer)) return result;
  if (shape.size() == 1)
    result.layer = emit(node, Flatten{}, {from.layer}, {}, suffix);
  else
    result.layer = emit(node, Reshape{shape}, {from.layer}, {}, suffix);
  return result;
}

void OnnxImport::define(const OnnxNode& node, std::size_t output, OnnxValue value) {
  if (output >= node.outputs.size() || node.outputs[output].empty()) return;
  if (value.dims.size() > max_rank) fail(node, fmt::format("its result has more than {} axes", max_rank));
  if (value.values) kept_values_ += value.values->size();
  if (kept_values_ > max_kept_values) fail(node, "too many values to compute before the network runs");
  if (!value.is_result()) value.weight = node.outputs[output];
  values_[node.outputs[output]] = std::move(value);
}

void OnnxImport::elementwise(const OnnxNode& node, const OnnxDims& dims, bool keeps_inputs) {
  std::vector<LayerIndex> inputs;
  std::vector<const OnnxValue*> weights;
  Elementwise kind;
  kind.keeps_inputs = keeps_inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxValue* input = find(node, i);
    if (!input) continue;
    if (input->is_result())
      inputs.push_back(input->layer);
    else if (input->is_float && input->count() > 1 && weights_used_.count(input->weight) == 0)
      weights.push_back(input);
  }
  if (inputs.empty()) fail(node, "reads nothing that the network computes");
  // What is combined with the image itself (its mean, its deviation) is not learned.
  if (inputs != std::vector<LayerIndex>{image_input})
    for (const OnnxValue* weight : weights)
      if (weights_used_.emplace(weight->weight, static_cast<LayerIndex>(model_.layers.size())).second &&
          kind.parameters <= YamlMap::max_integer)
        kind.parameters += weight->count();
  kind.output = per_image(node, dims);
  OnnxValue value;
  value.dims = dims;
  value.is_float = true;
  value.layer = emit(node, std::move(kind), std::move(inputs));
  define(node, 0, std::move(value));
}

void OnnxImport::unknown(const OnnxNode& node) {
  if (node.op == "If" || node.op == "Loop" || node.op == "Scan" || node.op == "LSTM" || node.op == "GRU" ||
      node.op == "RNN")
    fail(node, "control flow and recurrent layers cannot be read");
  if (node.outputs.size() > max_unknown_outputs) fail(node, "is not known, and has too many outputs");
  ++unknown_[is_onnx(node) ? node.op : node.domain + "." + node.op];
  OnnxDims dims;
  for (std::size_t i = 0; i < node.inputs.size() && dims.empty(); ++i)
    if (const OnnxValue* input = find(node, i); input && input->is_result()) dims = input->dims;
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const auto stated = stated_.find(node.outputs[o]);
    if (node.outputs[o].empty() || (o > 0 && readers(node.outputs[o]) == 0)) continue;
    OnnxNode one = node;
    one.outputs = {node.outputs[o]};
    elementwise(one, stated == stated_.end() ? dims : stated->second, true);
  }
}

void OnnxImport::read_constants() {
  for (OnnxTensor& tensor : graph_.initialisers) {
    OnnxValue value;
    if (!count_of(tensor.dims))
      throw InputError({file_, 0, 0},
                       fmt::format("initialiser '{}' has no possible shape", shortened(tensor.name)));
    value.dims = std::move(tensor.dims);
    value.values = std::move(tensor.values);
    value.is_float = tensor.is_float;
    value.weight = tensor.name;
    values_[tensor.name] = std::move(value);
  }
  for (const OnnxNode& node : graph_.nodes)
    for (const std::string& input : node.inputs) ++readers_[input];
  for (const OnnxValueInfo& output : graph_.outputs) outputs_[output.name] = true;
  for (const std::vector<OnnxValueInfo>* list : {&graph_.values, &graph_.outputs})
    for (const OnnxValueInfo& info : *list) {
      if (!info.dims || info.dims->empty()) continue;
      OnnxDims dims = *info.dims;
      if (dims.front() <= 0) dims.front() = 1;  // the batch
      const std::optional<std::int64_t> count = count_of(dims);
      if (count && *count > 0 && dims.size() <= max_rank) stated_[info.name] = dims;
    }
}

void OnnxImport::constant_node(const OnnxNode& node) {
  OnnxValue value;
  for (const OnnxAttribute& attribute : node.attributes) {
    if (attribute.name == "value" && attribute.tensor) {
      value.dims = attribute.tensor->dims;
      value.values = attribute.tensor->values;
      value.is_float = attribute.tensor->is_float;
    } else if (attribute.number) {
      value.values = std::vector<double>{*attribute.number};
      value.is_float = attribute.name == "value_float";
    } else if (!attribute.numbers.empty()) {
      value.dims = {static_cast<std::int64_t>(attribute.numbers.size())};
      if (attribute.numbers.size() <= OnnxTensor::max_values) value.values = attribute.numbers;
      value.is_float = attribute.name == "value_floats";
    }
  }
  if (!count_of(value.dims)) fail(node, "has no possible shape");
  define(node, 0, std::move(value));
}

void OnnxImport::convert(const OnnxNode& node) {
  if (node.op == "Constant") return constant_node(node);
  bool computed = false;
  std::vector<const OnnxConstant*> constants;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto it = values_.find(node.inputs[i]);
    constants.push_back(it == values_.end() ? nullptr : &it->second);
    computed = computed || (it != values_.end() && it->second.is_result());
    if (it == values_.end() && !node.inputs[i].empty() && !computed && i == 0)
      return;  // not known: nor is this
  }
  if (node.op == "Shape" || node.op == "Size") computed = false;
  if (!computed) {
    std::optional<OnnxConstant> folded = fold(node, constants);
    if (!folded || !count_of(folded->dims)) return;  // an error where something reads it
    OnnxValue value;
    static_cast<OnnxConstant&>(value) = std::move(*folded);
    return define(node, 0, std::move(value));
  }
  if (convert_onnx_compute(*this, node) || convert_onnx_arithmetic(*this, node) ||
      convert_onnx_view(*this, node) || convert_onnx_size(*this, node))
    return;
  unknown(node);
}

/// Drops layers that no output of the file depends on, such as those that shapes alone were taken from.
void OnnxImport::keep_what_outputs_need() {
  std::vector<bool> needed(model_.layers.size());
  for (const auto& [name, is] : outputs_)
    if (const auto it = values_.find(name); it != values_.end() && it->second.layer >= 0)
      needed[static_cast<std::size_t>(it->second.layer)] = true;
  std::vector<LayerIndex> place(model_.layers.size());
  for (std::size_t i = needed.size(); i-- > 0;)
    if (needed[i])
      for (const LayerIndex input : model_.layers[i].inputs)
        if (input != image_input) needed[static_cast<std::size_t>(input)] = true;
  std::vector<Layer> kept;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i]) continue;
    place[i] = static_cast<LayerIndex>(kept.size());
    for (LayerIndex& input : model_.layers[i].inputs)
      if (input != image_input) input = place[static_cast<std::size_t>(input)];
    kept.push_back(std::move(model_.layers[i]));
  }
  model_.layers = std::move(kept);
  if (model_.layers.empty())
    throw InputError({file_, 0, 0}, "no output of the file is computed from its input");
}

Model OnnxImport::run() {
  if (graph_.opset < oldest_opset)
    throw InputError({file_, 0, 0}, fmt::format("uses operator set {}; {} to {} can be read", graph_.opset,
                                                oldest_opset, newest_opset));
  if (graph_.opset > newest_opset)
    model_.warnings.push_back(
        fmt::format("{}: uses operator set {}, newer than {}: operators may have other meanings", file_,
                    graph_.opset, newest_opset));
  fuse_onnx_patterns(graph_);
  if (options_.restore_batch_norm) folded_ = folded_convolutions(graph_);
  if (!folded_.empty())
    model_.warnings.push_back(fmt::format(
        "{}: the export folded batch normalization into {} convolutions; it is put back for training (onnx: "
        "{{file: FILE, batch_norm: keep_folded}} leaves them as they are)",
        file_, folded_.size()));
  read_constants();
  read_image();
  for (const OnnxNode& node : graph_.nodes) convert(node);
  keep_what_outputs_need();
  for (const auto& [op, count] : unknown_)
    model_.warnings.push_back(fmt::format("{}: operator '{}' ({}) is not known and taken as elementwise",
                                          file_, shortened(op),
                                          count == 1 ? "once" : fmt::format("{} times", count)));
  return std::move(model_);
}

Model import_onnx(OnnxGraph graph, const std::string& file, const OnnxOptions& options) {
  return OnnxImport(std::move(graph), file, options).run();
}

}  // namespace convoy::models
