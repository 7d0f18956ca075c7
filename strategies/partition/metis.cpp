// SPDX-License-Identifier: MIT
// METIS 5.1, k-way (Karypis, Kumar: A fast and high quality multilevel scheme for partitioning irregular
// graphs, SIAM J. Sci. Comput. 20(1), 1998). It balances work and cuts few bytes, and knows no direction.
#include <metis.h>

#include <stdexcept>

#include "strategies/partition/method.h"
#include "strategies/partition/undirected.h"
#include "strategies/partition/units.h"

namespace convoy::inline partition {

static_assert(sizeof(idx_t) == sizeof(std::int32_t), "UndirectedGraph has 32-bit rows");

PartitionAnswer partition_metis(const PartitionTask& task) {
  Placement placement(task.dag.size());
  if (task.parts == 1) return {std::move(placement), std::nullopt};
  UndirectedGraph graph = undirected(task.dag);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  idx_t nodes = static_cast<idx_t>(task.dag.size()), constraints = 1, parts = static_cast<idx_t>(task.parts),
        cut = 0;
  std::vector<idx_t> part(task.dag.size());
  const int status = METIS_PartGraphKway(&nodes, &constraints, graph.begin.data(), graph.neighbours.data(),
                                         graph.node_weights.data(), nullptr, graph.edge_weights.data(),
                                         &parts, nullptr, nullptr, options, &cut, part.data());
  if (status == METIS_ERROR_MEMORY) throw std::bad_alloc();
  if (status != METIS_OK) throw std::runtime_error("METIS cannot partition this graph");
  for (NodeId v = 0; v < task.dag.size(); ++v) placement[v] = static_cast<Part>(part[v]);
  collocate(task.dag, message_costs(task.dag, task.link), task.parts, placement);
  return {std::move(placement), std::nullopt};
}

}  // namespace convoy::partition
