// SPDX-License-Identifier: MIT
#include "strategies/hypergraph/node_hypergraph.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "models/tensor_bytes.h"
#include "sim/lowering/graph_index.h"

namespace convoy::inline strategies {
namespace {

constexpr std::size_t max_pins = 20'000'000;
constexpr std::int64_t max_automatic_blocks = 256;

struct Range {
  std::int64_t begin, end;
};

/// The kinds whose channels are made of the inputs' channels of the same number, where there are as many. A
/// kind that is neither among them nor told by a rule of its own does not compile.
template <class Kind>
concept SameChannels = std::is_same_v<Kind, Pool> || std::is_same_v<Kind, AdaptiveAvgPool> ||
    std::is_same_v<Kind, Dropout> || std::is_same_v<Kind, Add> || std::is_same_v<Kind, Multiply> ||
    std::is_same_v<Kind, Scale> || std::is_same_v<Kind, Upsample> || std::is_same_v<Kind, Pad> ||
    std::is_same_v<Kind, Reshape> || std::is_same_v<Kind, Elementwise> ||
    std::is_same_v<Kind, FrozenBatchNorm> || std::is_same_v<Kind, ClassToken> ||
    std::is_same_v<Kind, PositionEmbedding> || std::is_same_v<Kind, Pool3d>;

/// The kinds whose channels are each made of all channels of the inputs.
template <class Kind>
concept AllChannels =
    std::is_same_v<Kind, Linear> || std::is_same_v<Kind, Custom> || std::is_same_v<Kind, ChannelShuffle> ||
    std::is_same_v<Kind, RoiAlign> || std::is_same_v<Kind, SideInput> || std::is_same_v<Kind, DetectionLoss>;

/// Convolutions, of any number of axes.
template <class Kind>
concept Convolution = std::is_same_v<Kind, Conv2d> || std::is_same_v<Kind, ConvTranspose2d> ||
    std::is_same_v<Kind, Conv3d> || std::is_same_v<Kind, ConvTranspose3d>;

/// Which channels of input `k` channels begin ... end - 1 of a layer's output read.
class ReadRule {
 public:
  ReadRule(const Model& model, const Layer& layer, std::size_t k) : layer_(layer), k_(k) {
    for (const LayerIndex input : layer.inputs) inputs_.push_back(model.shape_of(input).front());
    in_ = inputs_[k];
    out_ = layer.output.front();
  }

  Range operator()(Range r) const {
    return std::visit([&](const auto& kind) { return clip(reads(kind, r)); }, layer_.kind);
  }

  /// Every channel reads its own part of the input and nothing else.
  bool channelwise() const {
    return std::visit([&](const auto& kind) { return follows(kind); }, layer_.kind);
  }

 private:
  static constexpr Range nothing{0, 0};
  Range all() const { return {0, in_}; }
  Range same(Range r) const { return in_ == out_ ? r : all(); }
  Range clip(Range r) const { return {std::max<std::int64_t>(r.begin, 0), std::min(r.end, in_)}; }
  /// Output channels in equal groups, of which each reads one group of the input.
  Range of_groups(std::int64_t groups, Range r) const {
    const std::int64_t outputs = out_ / groups, inputs = in_ / groups;
    return {r.begin / outputs * inputs, ((r.end - 1) / outputs + 1) * inputs};
  }

  template <Convolution Kind>
  Range reads(const Kind& conv, Range r) const {
    return of_groups(conv.groups, r);
  }
  template <AllChannels Kind>
  Range reads(const Kind&, Range) const {
    return all();
  }
  /// Its offsets and factors are read whole.
  Range reads(const DeformConv2d& conv, Range r) const { return k_ == 0 ? of_groups(conv.groups, r) : all(); }
  Range reads(const Attention& attention, Range r) const { return of_groups(attention.heads, r); }
  Range reads(const Normalization& norm, Range r) const {
    if (norm.over == Normalization::Over::group) return of_groups(norm.groups, r);
    return norm.over == Normalization::Over::layer ? all() : r;
  }
  Range reads(const LocalResponseNorm& norm, Range r) const {
    return {r.begin - norm.size / 2, r.end + norm.size / 2};
  }
  Range reads(const Activation& activation, Range r) const {
    return activation.function == Activation::Function::softmax ? all() : r;
  }
  Range reads(const Concat& concat, Range r) const {
    if (concat.axis != 0) return same(r);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < k_; ++i) offset += inputs_[i];
    if (r.end <= offset || r.begin >= offset + in_) return nothing;
    return {r.begin - offset, r.end - offset};
  }
  Range reads(const Slice& slice, Range r) const {
    if (slice.axis != 0) return same(r);
    return {slice.first + r.begin * slice.step, slice.first + (r.end - 1) * slice.step + 1};
  }
  Range reads(const Flatten&, Range r) const { return of_groups(in_, r); }
  Range reads(const Transpose& transpose, Range r) const { return keeps_channels(transpose) ? r : all(); }
  Range reads(const MatMul&, Range r) const { return multiplies_by_channel() ? r : all(); }
  template <SameChannels Kind>
  Range reads(const Kind&, Range r) const {
    return same(r);
  }

  bool keeps_channels(const Transpose& transpose) const { return transpose.axes.front() == 0 && in_ == out_; }
  /// A matrix a channel; of two single matrices a row of the product reads the same row of the first.
  bool multiplies_by_channel() const { return in_ == out_ && (layer_.output.size() > 2 || k_ == 0); }

  template <Convolution Kind>
  bool follows(const Kind& conv) const {
    return conv.groups > 1 && conv.groups == in_;
  }
  template <AllChannels Kind>
  bool follows(const Kind&) const {
    return false;
  }
  bool follows(const DeformConv2d&) const { return false; }
  bool follows(const Attention&) const { return false; }
  bool follows(const Concat& concat) const { return concat.axis != 0 && in_ == out_; }
  bool follows(const Slice& slice) const { return slice.axis != 0 && in_ == out_; }
  bool follows(const LocalResponseNorm&) const { return false; }
  bool follows(const Flatten&) const { return true; }
  bool follows(const Normalization& norm) const { return norm.over == Normalization::Over::batch; }
  bool follows(const Activation& activation) const {
    return activation.function != Activation::Function::softmax;
  }
  bool follows(const Transpose& transpose) const { return keeps_channels(transpose); }
  bool follows(const MatMul&) const { return multiplies_by_channel(); }
  template <SameChannels Kind>
  bool follows(const Kind&) const {
    return in_ == out_;
  }

  const Layer& layer_;
  std::size_t k_;
  std::vector<std::int64_t> inputs_;
  std::int64_t in_ = 0, out_ = 0;
};

class HypergraphBuilder {
 public:
  HypergraphBuilder(const TrainingGraph& graph, const Granularity& granularity, std::uint32_t parts,
                    double epsilon)
      : graph_(graph), tensor_bytes_(graph), index_(graph), granularity_(granularity), parts_(parts) {
    const std::size_t n = graph.model.layers.size();
    result_.layers.resize(n);
    for (std::uint32_t i = 0; i < n; ++i) describe(i);
    for (std::uint32_t i = 0; i < n; ++i)
      if (index_.loss_forward(i)) add_loss(i);
    count_flops();
    double total = 0;
    for (const double flops : flops_) total += flops;
    block_flops_ = total / parts * epsilon / 4;
  }

  NodeHypergraph build() {
    const std::size_t n = graph_.model.layers.size();
    for (std::uint32_t i = 0; i < n; ++i) cut_layer(i);
    for (std::uint32_t i = static_cast<std::uint32_t>(n); i < result_.layers.size(); ++i) place_loss(i);
    for (std::uint32_t i = 0; i < result_.layers.size(); ++i) weigh_and_read(i);
    add_nets();
    return std::move(result_);
  }

 private:
  const Layer& layer(std::uint32_t i) const { return graph_.model.layers[i]; }

  void describe(std::uint32_t i) {
    NodeLayer& node = result_.layers[i];
    node.model_layer = i;
    node.channels = layer(i).output.front();
    node.bytes = tensor_bytes_(static_cast<LayerIndex>(i));
    const std::vector<LayerIndex>& inputs = layer(i).inputs;
    node.reads_image = std::find(inputs.begin(), inputs.end(), image_input) != inputs.end();
    node.gradient = index_.needs_gradient(i);
    node.forward = index_.forward(i);
    node.backward = index_.sums(i);
    for (const std::optional<OpId>& op : {index_.data_gradient(i), index_.weight_gradient(i)})
      if (op) node.backward.push_back(*op);
    node.update = index_.update(i);
  }

  /// The loss of an output is a layer that reads it.
  void add_loss(std::uint32_t output) {
    NodeLayer loss;
    loss.model_layer = output;
    loss.inputs.push_back({output, {}});
    loss.forward = index_.loss_forward(output);
    loss.gradient = true;
    if (const std::optional<OpId> op = index_.loss_data_gradient(output)) loss.backward.push_back(*op);
    result_.layers.push_back(std::move(loss));
  }

  void count_flops() {
    for (const NodeLayer& node : result_.layers) {
      double flops = 0;
      for (const std::optional<OpId>& op : {node.forward, node.update})
        if (op) flops += graph_.operations[*op].work.flops_per_image;
      for (const OpId op : node.backward) flops += graph_.operations[op].work.flops_per_image;
      flops_.push_back(flops);
    }
  }

  std::uint32_t new_vertex(std::uint32_t i) {
    result_.graph.weight.push_back(0);
    result_.graph.layer.push_back(i);
    return static_cast<std::uint32_t>(result_.graph.weight.size() - 1);
  }

  std::int64_t block_count(std::uint32_t i) const {
    const std::int64_t channels = result_.layers[i].channels;
    switch (granularity_.kind) {
      case Granularity::Kind::layer:
        return 1;
      case Granularity::Kind::channel:
        return channels;
      case Granularity::Kind::channels:
        return (channels + granularity_.size - 1) / granularity_.size;
      case Granularity::Kind::automatic:
        break;
    }
    const std::int64_t parts = parts_;
    const double wanted = block_flops_ > 0 ? std::ceil(flops_[i] / block_flops_) : 1;
    const auto blocks = static_cast<std::int64_t>(std::min<double>(max_automatic_blocks, wanted));
    return std::min(channels, std::max<std::int64_t>(1, (blocks + parts - 1) / parts) * parts);
  }

  void cut_evenly(std::uint32_t i) {
    NodeLayer& node = result_.layers[i];
    const std::int64_t count = block_count(i);
    for (std::int64_t b = 0; b < count; ++b)
      node.blocks.push_back({b * node.channels / count, (b + 1) * node.channels / count, new_vertex(i), {}});
  }

  /// The blocks of input k, in as many channels as this layer makes of them.
  void follow(std::uint32_t i, std::size_t k) {
    NodeLayer& node = result_.layers[i];
    const NodeLayer& input = result_.layers[static_cast<std::size_t>(layer(i).inputs[k])];
    const std::int64_t scale = node.channels / input.channels;
    for (const NodeBlock& block : input.blocks)
      node.blocks.push_back({block.begin * scale, block.end * scale, block.vertex, {}});
  }

  void cut_layer(std::uint32_t i) {
    const std::vector<LayerIndex>& inputs = layer(i).inputs;
    NodeLayer& node = result_.layers[i];
    for (const LayerIndex input : inputs)
      if (input != image_input) node.inputs.push_back({static_cast<std::uint32_t>(input), {}});
    if (node.inputs.size() < inputs.size()) return cut_evenly(i);
    if (const auto* concat = std::get_if<Concat>(&layer(i).kind); concat && concat->axis == 0)
      return concatenate(i);
    if (const auto* slice = std::get_if<Slice>(&layer(i).kind); slice && slice->axis == 0 && slice->step == 1)
      return take(i, *slice);
    // A layer with several inputs (the sum at the end of a residual block) follows the one made last.
    const std::size_t last =
        static_cast<std::size_t>(std::max_element(inputs.begin(), inputs.end()) - inputs.begin());
    if (ReadRule(graph_.model, layer(i), last).channelwise()) return follow(i, last);
    cut_evenly(i);
  }

  void concatenate(std::uint32_t i) {
    std::int64_t offset = 0;
    for (const LayerIndex index : layer(i).inputs) {
      const NodeLayer& input = result_.layers[static_cast<std::size_t>(index)];
      for (const NodeBlock& block : input.blocks)
        result_.layers[i].blocks.push_back({block.begin + offset, block.end + offset, block.vertex, {}});
      offset += input.channels;
    }
  }

  void take(std::uint32_t i, const Slice& slice) {
    for (const NodeBlock& block : result_.layers[static_cast<std::size_t>(layer(i).inputs.front())].blocks) {
      const std::int64_t begin = std::max(block.begin, slice.first), end = std::min(block.end, slice.last);
      if (begin < end)
        result_.layers[i].blocks.push_back({begin - slice.first, end - slice.first, block.vertex, {}});
    }
  }

  /// With the first block of the output that it reads.
  void place_loss(std::uint32_t i) {
    const NodeLayer& output = result_.layers[result_.layers[i].inputs.front().layer];
    result_.layers[i].blocks.push_back({0, 1, output.blocks.front().vertex, {}});
  }

  void weigh_and_read(std::uint32_t i) {
    NodeLayer& node = result_.layers[i];
    for (const NodeBlock& block : node.blocks)
      result_.graph.weight[block.vertex] += flops_[i] * node.share(block);
    const bool loss = i >= graph_.model.layers.size();
    std::size_t index = 0;
    for (NodeLayer::Input& input : node.inputs) {
      while (!loss && layer(i).inputs[index] != static_cast<LayerIndex>(input.layer)) ++index;
      NodeLayer& from = result_.layers[input.layer];
      for (const NodeBlock& block : node.blocks) {
        const Range range = loss ? Range{0, from.channels}
                                 : ReadRule(graph_.model, layer(i), index)({block.begin, block.end});
        const auto first = std::find_if(from.blocks.begin(), from.blocks.end(),
                                        [&](const NodeBlock& b) { return b.end > range.begin; });
        auto end = first;
        for (; end != from.blocks.end() && end->begin < range.end; ++end) {
          if (end->vertex == block.vertex) continue;
          end->readers.push_back(block.vertex);
          if (++pins_ > max_pins) throw std::length_error("more than 20 million pins");
        }
        input.reads.emplace_back(static_cast<std::uint32_t>(first - from.blocks.begin()),
                                 static_cast<std::uint32_t>(end - from.blocks.begin()));
      }
      ++index;
    }
  }

  void add_nets() {
    for (NodeLayer& node : result_.layers)
      for (NodeBlock& block : node.blocks) {
        std::sort(block.readers.begin(), block.readers.end());
        block.readers.erase(std::unique(block.readers.begin(), block.readers.end()), block.readers.end());
        if (block.readers.empty()) continue;
        Hypergraph::Net net{(node.gradient ? 2 : 1) * node.bytes * node.share(block), {block.vertex}};
        net.pins.insert(net.pins.end(), block.readers.begin(), block.readers.end());
        result_.graph.nets.push_back(std::move(net));
      }
  }

  const TrainingGraph& graph_;
  const TensorBytes tensor_bytes_;
  const GraphIndex index_;
  const Granularity& granularity_;
  std::uint32_t parts_;
  double block_flops_ = 0;
  std::vector<double> flops_;  ///< by node layer: of an image, without update
  std::size_t pins_ = 0;
  NodeHypergraph result_;
};

}  // namespace

NodeHypergraph make_hypergraph(const TrainingGraph& graph, const Granularity& granularity,
                               std::uint32_t parts, double epsilon) {
  return HypergraphBuilder(graph, granularity, parts, epsilon).build();
}

}  // namespace convoy::strategies
