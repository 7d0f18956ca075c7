// SPDX-License-Identifier: MIT
#include "tests/extending/dealt_layout.h"

namespace convoy {
namespace {

bool fits(const Layer& layer) {
  const auto* conv = std::get_if<Conv2d>(&layer.kind);
  return (conv && conv->groups == 1) || std::holds_alternative<Linear>(layer.kind);
}

LayerSharding annotate(const LayerInGroup& of) {
  std::vector<std::uint32_t> owner;  // of each output channel
  for (std::int64_t c = 0; c < of.layer.output.front(); ++c)
    owner.push_back(static_cast<std::uint32_t>(static_cast<std::size_t>(c) % of.devices));
  LayerSharding sharding;
  // A device needs all of the input, and has a part of the sum that is the input's gradient.
  sharding.inputs.assign(of.inputs.size(),
                         {{Sharding::Over::replicate}, {Sharding::Over::partial}, std::nullopt});
  sharding.output = {Sharding::Over::channel,
                     std::make_shared<Shards>(shards_of(std::move(owner), of.devices))};
  sharding.output_gradient = sharding.output;
  sharding.splits_weights = true;
  return sharding;
}

}  // namespace

LayoutEntry dealt_layout() { return {"dealt", &fits, &annotate}; }

}  // namespace convoy
