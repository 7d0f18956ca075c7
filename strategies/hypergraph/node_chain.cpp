// SPDX-License-Identifier: MIT
#include "strategies/hypergraph/node_chain.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "sim/lowering/plan_ops.h"

namespace convoy::inline search {
namespace {

/// Whether every output channel of the operation's layer is made of all channels of its inputs.
bool is_dense(const Model& model, const Operation& operation) {
  if (operation.again || operation.reader != Operation::no_reader) return false;
  if (operation.phase != Phase::forward && operation.phase != Phase::data_gradient) return false;
  const Layer& layer = model.layers[operation.layer];
  if (std::holds_alternative<Linear>(layer.kind))
    return operation.work.kind == KernelKind::matmul && layer.output.size() == 1;
  return is_convolution(layer) && operation.work.kind == KernelKind::convolution &&
         operation.work.groups <= 1;
}

/// Of the part of a dense operation that has most channels. Nothing is known of how much of the inputs it
/// reads: none is counted.
double largest_part_s(const CostTable& table, const Operation& operation, double images, std::int64_t parts) {
  const std::int64_t channels = table.graph().model.layers[operation.layer].output.front();
  double least_s = std::numeric_limits<double>::infinity();
  for (std::int64_t own = (channels + parts - 1) / parts; own <= channels; ++own) {
    const Work part = part_of(operation.work, 0, static_cast<double>(own) / static_cast<double>(channels), 0);
    for (const auto& [type, speed] : table.kinds())
      least_s =
          std::min(least_s, table.cost().time_s(part, images, table.machine().device_types[type]) / speed);
  }
  return least_s;
}

}  // namespace

double node_chain_s(const CostTable& table, double images, std::int64_t parts) {
  const std::vector<Operation>& operations = table.graph().operations;
  std::vector<double> ends_s(operations.size(), 0.0);
  double longest_s = 0;
  for (std::size_t o = 0; o < operations.size(); ++o) {
    const Operation& operation = operations[o];
    for (const OpId input : operation.inputs) ends_s[o] = std::max(ends_s[o], ends_s[input]);
    if (is_dense(table.graph().model, operation))
      ends_s[o] += largest_part_s(table, operation, images, parts);
    longest_s = std::max(longest_s, ends_s[o]);
  }
  return longest_s;
}

}  // namespace convoy::search
