// SPDX-License-Identifier: MIT
#include "strategies/hypergraph/node_meaning.h"

#include <algorithm>
#include <memory>

namespace convoy::inline strategies {
namespace {

/// The channels of the blocks that each part has, by this rule.
template <class Has>
PartLayout nodes_where(const std::vector<NodeBlock>& blocks, std::uint32_t count, Has has) {
  PartLayout layout(count);
  for (std::uint32_t p = 0; p < count; ++p) {
    std::vector<IndexRange>& channels = layout[p].channels.emplace();
    for (const NodeBlock& block : blocks) {
      if (!has(p, block)) continue;
      if (!channels.empty() && channels.back().end == block.begin)
        channels.back().end = block.end;
      else
        channels.push_back({block.begin, block.end});
    }
  }
  return layout;
}

}  // namespace

void NodeMeaning::begin() {
  const std::vector<NodeLayer>& layers = shares_.layers();
  work_.meaning = std::make_shared<Meaning>();
  work_.meaning->has_images.assign(shares_.count(), false);
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    const NodeLayer& node = layers[i];
    if (node.reads_image && !node.forward) work_.meaning->image_views.push_back({node.model_layer, owned(i)});
    for (std::uint32_t p = 0; p < shares_.count() && node.reads_image && node.forward; ++p)
      if (shares_.share(i, p) > 0) work_.meaning->has_images[p] = true;
    work_.meaning->layouts.push_back(
        nodes_where(node.blocks, shares_.count(),
                    [&](std::uint32_t p, const NodeBlock& b) { return shares_.owns(p, b); }));
    work_.meaning->layouts.push_back(
        nodes_where(node.blocks, shares_.count(),
                    [&](std::uint32_t p, const NodeBlock& b) { return shares_.reads(p, b); }));
  }
}

void NodeMeaning::of_kernel(PlanOp& op, std::uint32_t i, OpId id) {
  OpMeaning meaning;
  meaning.operation = id;
  if (i < shares_.graph().model.layers.size()) meaning.layout = owned(i);
  work_.mean(op, meaning);
}

void NodeMeaning::of_sum(PlanOp& op, std::uint32_t i, bool own) {
  OpMeaning meaning;
  meaning.act = OpMeaning::Act::add;
  meaning.layer = shares_.layers()[i].model_layer;
  meaning.layout = own ? owned(i) : read(i);
  work_.mean(op, meaning);
}

/// The operation that makes the gradient of layer j's output: of its reader, or of who reads a reader that
/// hands gradients on; with several readers, the last sum.
OpId NodeMeaning::gradient_made_for(std::uint32_t j) const {
  if (const std::vector<OpId> sums = shares_.sums_of(j); !sums.empty()) return sums.back();
  const std::vector<NodeLayer>& layers = shares_.layers();
  for (std::uint32_t i = j + 1; i < layers.size(); ++i)
    for (const NodeLayer::Input& input : layers[i].inputs) {
      if (input.layer != j) continue;
      for (const OpId id : layers[i].backward)
        if (shares_.graph().operations[id].phase == Phase::data_gradient && !shares_.is_sum(id)) return id;
      return gradient_made_for(i);
    }
  return no_meaning;
}

/// The operation that makes a layer's output, or that of which it is a view; of a view of the image: none.
OpId NodeMeaning::made_by(std::uint32_t i) const {
  const NodeLayer& node = shares_.layers()[i];
  if (node.forward) return *node.forward;
  const LayerIndex input = shares_.graph().model.layers[i].inputs.front();
  return input == image_input ? no_meaning : made_by(static_cast<std::uint32_t>(input));
}

CommMeaning NodeMeaning::of_message(std::uint32_t j, bool forward) const {
  CommMeaning meaning;
  if (!work_.meaning) return meaning;
  const std::vector<NodeLayer>& layers = shares_.layers();
  const OpId operation = forward ? made_by(layers[j].model_layer) : gradient_made_for(j);
  meaning.kind = forward ? CommMeaning::Kind::results : CommMeaning::Kind::parts;
  if (operation == no_meaning && !forward) return meaning;
  meaning.results = {
      {operation, layers[j].model_layer, forward ? owned(j) : read(j), forward ? read(j) : owned(j)}};
  return meaning;
}

}  // namespace convoy::strategies
