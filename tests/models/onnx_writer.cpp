// SPDX-License-Identifier: MIT
#include "tests/models/onnx_writer.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <fstream>
#include <map>
#include <stdexcept>

namespace convoy {

struct OnnxWriter::Proto {
  onnx::ModelProto model;
  onnx::GraphProto& graph() { return *model.mutable_graph(); }
};

OnnxWriter::OnnxWriter(std::int64_t opset) : proto_(std::make_unique<Proto>()) {
  proto_->model.set_ir_version(7);
  proto_->model.add_opset_import()->set_version(opset);
  proto_->graph().set_name("test");
}
OnnxWriter::OnnxWriter(OnnxWriter&&) noexcept = default;
OnnxWriter::~OnnxWriter() = default;

std::string OnnxWriter::input(const std::string& name, const std::vector<std::int64_t>& dims) {
  onnx::ValueInfoProto& info = *proto_->graph().add_input();
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t size : dims)
    if (auto& dim = *tensor.mutable_shape()->add_dim(); size < 0)
      dim.set_dim_param("open");
    else
      dim.set_dim_value(size);
  return name;
}

std::string OnnxWriter::weight(const std::string& name, const std::vector<std::int64_t>& dims, bool data) {
  onnx::TensorProto& tensor = *proto_->graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  std::size_t count = 1;
  for (const std::int64_t size : dims) {
    tensor.add_dims(size);
    count *= static_cast<std::size_t>(size);
  }
  if (data)
    tensor.set_raw_data(std::string(4 * count, '\0'));
  else
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  return name;
}

std::string OnnxWriter::integers(const std::vector<std::int64_t>& values, bool scalar) {
  onnx::TensorProto& tensor = *proto_->graph().add_initializer();
  tensor.set_name(fmt::format("c{}", ++count_));
  tensor.set_data_type(onnx::TensorProto::INT64);
  if (!scalar) tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (const std::int64_t value : values) tensor.add_int64_data(value);
  return tensor.name();
}

std::string OnnxWriter::number(float value) {
  const std::string name = numbers({value});
  proto_->graph().mutable_initializer(proto_->graph().initializer_size() - 1)->clear_dims();
  return name;
}

std::string OnnxWriter::numbers(const std::vector<float>& values) {
  onnx::TensorProto& tensor = *proto_->graph().add_initializer();
  tensor.set_name(fmt::format("c{}", ++count_));
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (const float value : values) tensor.add_float_data(value);
  return tensor.name();
}

std::string OnnxWriter::node(const std::string& op, const std::vector<std::string>& inputs,
                             const Attributes& attributes, std::size_t outputs, const std::string& domain) {
  onnx::NodeProto& node = *proto_->graph().add_node();
  node.set_op_type(op);
  node.set_domain(domain);
  for (const std::string& name : inputs) node.add_input(name);
  const std::string first = fmt::format("v{}", ++count_);
  for (std::size_t i = 0; i < outputs; ++i) node.add_output(i ? fmt::format("{}.{}", first, i) : first);
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    if (const auto* i = std::get_if<std::int64_t>(&value)) attribute.set_i(*i);
    if (const auto* f = std::get_if<double>(&value)) attribute.set_f(static_cast<float>(*f));
    if (const auto* s = std::get_if<std::string>(&value)) attribute.set_s(*s);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
      for (const std::int64_t i : *list) attribute.add_ints(i);
    if (const auto* list = std::get_if<std::vector<double>>(&value))
      for (const double f : *list) attribute.add_floats(static_cast<float>(f));
  }
  return first;
}

void OnnxWriter::output(const std::string& name) { proto_->graph().add_output()->set_name(name); }

std::string OnnxWriter::bytes() const { return proto_->model.SerializeAsString(); }

void OnnxWriter::save(const std::string& file) const { std::ofstream(file, std::ios::binary) << bytes(); }

namespace {

/// For each layer, the batch normalization that alone reads it, where it is a convolution; else -1.
std::vector<LayerIndex> normalization_after(const Model& model) {
  std::vector<std::vector<LayerIndex>> readers(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    for (const LayerIndex input : model.layers[i].inputs)
      if (input != image_input)
        readers[static_cast<std::size_t>(input)].push_back(static_cast<LayerIndex>(i));
  std::vector<LayerIndex> result(model.layers.size(), -1);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (!std::holds_alternative<Conv2d>(model.layers[i].kind) || readers[i].size() != 1) continue;
    const auto* norm =
        std::get_if<Normalization>(&model.layers[static_cast<std::size_t>(readers[i][0])].kind);
    if (norm && norm->over == Normalization::Over::batch) result[i] = readers[i][0];
  }
  return result;
}

/// The nodes of one layer as PyTorch writes them for operator set 13.
struct LayerWriter {
  OnnxWriter& onnx;
  const Layer& layer;
  const std::vector<std::string>& in;
  Shape in_shape;
  bool data;
  std::string folded = {};  ///< of a convolution that batch normalization is folded into: its tensors' name

  using List = std::vector<std::int64_t>;
  static List pair(Size2 size) { return {size.h, size.w}; }
  static List pads(Size2 size) { return {size.h, size.w, size.h, size.w}; }
  std::string parameter(const char* name, const List& dims) const {
    return onnx.weight(fmt::format("{}.{}", layer.name, name), dims, data);
  }

  std::string operator()(const Conv2d& conv) const {
    const List dims{conv.out_channels, in_shape[0] / conv.groups, conv.kernel.h, conv.kernel.w};
    std::vector<std::string> inputs{in[0]};
    if (!folded.empty()) {
      inputs.push_back(onnx.weight(folded + "0", dims, data));
      inputs.push_back(onnx.weight(folded + "1", {conv.out_channels}, data));
    } else {
      inputs.push_back(parameter("weight", dims));
      if (conv.bias) inputs.push_back(parameter("bias", {conv.out_channels}));
    }
    return onnx.node("Conv", inputs,
                     {{"dilations", pair(conv.dilation)},
                      {"group", conv.groups},
                      {"kernel_shape", pair(conv.kernel)},
                      {"pads", pads(conv.padding)},
                      {"strides", pair(conv.stride)}});
  }
  std::string operator()(const ConvTranspose2d& conv) const {
    std::vector<std::string> inputs{in[0], parameter("weight", {in_shape[0], conv.out_channels / conv.groups,
                                                                conv.kernel.h, conv.kernel.w})};
    if (conv.bias) inputs.push_back(parameter("bias", {conv.out_channels}));
    return onnx.node("ConvTranspose", inputs,
                     {{"dilations", pair(conv.dilation)},
                      {"group", conv.groups},
                      {"pads", pads(conv.padding)},
                      {"strides", pair(conv.stride)},
                      {"output_padding", pair(conv.output_padding)}});
  }
  std::string operator()(const Linear& linear) const {
    std::vector<std::string> inputs{in[0], parameter("weight", {linear.out_features, in_shape[0]})};
    if (linear.bias) inputs.push_back(parameter("bias", {linear.out_features}));
    return onnx.node("Gemm", inputs, {{"transB", std::int64_t{1}}});
  }
  std::string operator()(const Normalization& norm) const {
    const std::string w = parameter("weight", {in_shape[0]}), b = parameter("bias", {in_shape[0]});
    if (norm.over == Normalization::Over::batch)
      return onnx.node(
          "BatchNormalization",
          {in[0], w, b, parameter("running_mean", {in_shape[0]}), parameter("running_var", {in_shape[0]})},
          {{"training_mode", std::int64_t{1}}}, 3);
    throw std::logic_error("not exported: " + layer.name);
  }
  std::string operator()(const LocalResponseNorm& norm) const {
    return onnx.node("LRN", {in[0]}, {{"size", norm.size}});
  }
  std::string operator()(const Activation& activation) const {
    switch (activation.function) {
      case Activation::Function::relu:
        return onnx.node("Relu", in);
      case Activation::Function::relu6:
        return onnx.node("Clip", {in[0], onnx.number(0), onnx.number(6)});
      case Activation::Function::silu:
        return onnx.node("Mul", {in[0], onnx.node("Sigmoid", in)});
      case Activation::Function::hardswish:  // as operator sets below 14 need
        return onnx.node("Mul", {in[0], onnx.node("HardSigmoid", in, {{"alpha", 1.0 / 6}})});
      case Activation::Function::hardsigmoid:
        return onnx.node("HardSigmoid", in, {{"alpha", 1.0 / 6}});
      case Activation::Function::sigmoid:
        return onnx.node("Sigmoid", in);
      case Activation::Function::tanh:
        return onnx.node("Tanh", in);
      case Activation::Function::leaky_relu:
        return onnx.node("LeakyRelu", in);
      case Activation::Function::softmax:
        return onnx.node("Softmax", in);
      case Activation::Function::gelu: {
        const std::string erf = onnx.node("Erf", {onnx.node("Div", {in[0], onnx.number(1.41421356f)})});
        const std::string product = onnx.node("Mul", {in[0], onnx.node("Add", {erf, onnx.number(1)})});
        return onnx.node("Mul", {product, onnx.number(0.5f)});
      }
    }
    return {};
  }
  std::string operator()(const Pool& pool) const {
    return onnx.node(pool.mode == Pool::Mode::max ? "MaxPool" : "AveragePool", in,
                     {{"kernel_shape", pair(pool.kernel)},
                      {"strides", pair(pool.stride)},
                      {"pads", pads(pool.padding)},
                      {"ceil_mode", std::int64_t{pool.ceil}}});
  }
  std::string operator()(const AdaptiveAvgPool& pool) const {
    if (pool.size == Size2{1, 1}) return onnx.node("GlobalAveragePool", in);
    const List kernel{in_shape[1] / pool.size.h, in_shape[2] / pool.size.w};
    return onnx.node("AveragePool", in, {{"kernel_shape", kernel}, {"strides", kernel}});
  }
  std::string operator()(const Dropout& dropout) const {
    return onnx.node("Dropout", {in[0], onnx.number(static_cast<float>(dropout.rate))});
  }
  std::string operator()(const Flatten&) const {
    return onnx.node("Flatten", in, {{"axis", std::int64_t{1}}});
  }
  std::string operator()(const Concat&) const { return onnx.node("Concat", in, {{"axis", std::int64_t{1}}}); }
  std::string operator()(const Slice& slice) const {
    return onnx.node("Slice",
                     {in[0], onnx.integers({slice.first}), onnx.integers({slice.last}), onnx.integers({1})});
  }
  /// As PyTorch does: sizes taken from the tensor, then two reshapes about a transpose.
  std::string operator()(const ChannelShuffle& shuffle) const {
    const std::string sizes = onnx.node("Shape", in);
    const std::string batch =
        onnx.node("Unsqueeze", {onnx.node("Gather", {sizes, onnx.integers({0}, true)}), onnx.integers({0})});
    const auto shape = [&](const List& rest) {
      return onnx.node("Concat", {batch, onnx.integers(rest)}, {{"axis", std::int64_t{0}}});
    };
    const std::string apart = onnx.node(
        "Reshape", {in[0], shape({shuffle.groups, in_shape[0] / shuffle.groups, in_shape[1], in_shape[2]})});
    const std::string turned = onnx.node("Transpose", {apart}, {{"perm", List{0, 2, 1, 3, 4}}});
    return onnx.node("Reshape", {turned, shape({-1, in_shape[1], in_shape[2]})});
  }
  std::string operator()(const Add&) const {
    std::string sum = in[0];
    for (std::size_t i = 1; i < in.size(); ++i) sum = onnx.node("Add", {sum, in[i]});
    return sum;
  }
  std::string operator()(const Multiply&) const { return onnx.node("Mul", in); }
  std::string operator()(const Scale&) const {
    return onnx.node("Mul", {in[0], parameter("weight", {in_shape[0], 1, 1})});
  }
  std::string operator()(const Upsample& upsample) const {
    const auto scale = static_cast<float>(upsample.scale);
    return onnx.node("Resize", {in[0], "", onnx.numbers({1, 1, scale, scale})});
  }
  std::string operator()(const Reshape& reshape) const {
    List shape{0};
    shape.insert(shape.end(), reshape.output.begin(), reshape.output.end());
    return onnx.node("Reshape", {in[0], onnx.integers(shape)});
  }
  template <typename Other>
  std::string operator()(const Other&) const {
    throw std::logic_error("not exported: " + layer.name);
  }
};

}  // namespace

OnnxWriter exported(const Model& model, std::int64_t batch, bool data, Folding folding) {
  OnnxWriter onnx(13);
  std::vector<std::int64_t> dims = model.input;
  dims.insert(dims.begin(), batch);
  const std::string image = onnx.input("image", dims);
  std::vector<std::string> names;
  std::vector<bool> read(model.layers.size()), gone(model.layers.size());
  const std::vector<LayerIndex> norms = normalization_after(model);
  for (const Layer& layer : model.layers) {
    std::vector<std::string> in;
    for (const LayerIndex input : layer.inputs) {
      in.push_back(input == image_input ? image : names[static_cast<std::size_t>(input)]);
      if (input != image_input) read[static_cast<std::size_t>(input)] = true;
    }
    const std::size_t i = names.size();
    if (gone[i]) {
      names.push_back(in[0]);
      continue;
    }
    std::string folded;
    if (folding != Folding::none && norms[i] >= 0) {
      gone[static_cast<std::size_t>(norms[i])] = true;
      folded = fmt::format("{}{}_", folding == Folding::pytorch ? "onnx::Conv_" : "fused_", i);
    }
    names.push_back(
        std::visit(LayerWriter{onnx, layer, in, model.shape_of(layer.inputs[0]), data, folded}, layer.kind));
  }
  for (std::size_t i = 0; i < read.size(); ++i)
    if (!read[i]) onnx.output(names[i]);
  return onnx;
}

}  // namespace convoy
