// SPDX-License-Identifier: MIT
// Zoltan PHG on the graph as a hypergraph: it balances work and sends few bytes, each output once to each
// part, and knows no direction.
#include "strategies/partition/method.h"
#include "strategies/partition/units.h"
#include "strategies/partition/zoltan/zoltan_partition.h"

namespace convoy::inline partition {

PartitionAnswer partition_zoltan(const PartitionTask& task) {
  constexpr double tolerance = 0.03;  // as METIS has it
  if (task.parts == 1) return {Placement(task.dag.size()), std::nullopt};
  Placement placement = partition_by_zoltan(hypergraph_of(task.dag), task.parts, tolerance);
  collocate(task.dag, message_costs(task.dag, task.link), task.parts, placement);
  return {std::move(placement), std::nullopt};
}

}  // namespace convoy::partition
