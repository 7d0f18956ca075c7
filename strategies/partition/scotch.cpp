// SPDX-License-Identifier: MIT
// Scotch 7 (Pellegrini, Roman: Scotch, HPCN Europe 1996), default strategy.
#include <scotch.h>

#include <cstdint>
#include <cstdio>  // scotch.h uses FILE
#include <memory>
#include <stdexcept>

#include "strategies/partition/method.h"
#include "strategies/partition/undirected.h"

namespace convoy {

static_assert(sizeof(SCOTCH_Num) == sizeof(std::int32_t), "UndirectedGraph has 32-bit rows");

PartitionAnswer partition_scotch(const PartitionTask& task) {
  Placement placement(task.dag.size());
  if (task.parts == 1) return {std::move(placement), std::nullopt};
  const UndirectedGraph rows = undirected(task.dag);
  SCOTCH_randomSeed(1);
  SCOTCH_randomReset();
  SCOTCH_Graph graph;
  SCOTCH_Strat strategy;
  SCOTCH_graphInit(&graph);
  SCOTCH_stratInit(&strategy);
  const std::unique_ptr<SCOTCH_Graph, decltype(&SCOTCH_graphExit)> graph_owner(&graph, &SCOTCH_graphExit);
  const std::unique_ptr<SCOTCH_Strat, decltype(&SCOTCH_stratExit)> strategy_owner(&strategy,
                                                                                  &SCOTCH_stratExit);
  std::vector<SCOTCH_Num> part(task.dag.size());
  if (SCOTCH_graphBuild(&graph, 0, static_cast<SCOTCH_Num>(task.dag.size()), rows.begin.data(), nullptr,
                        rows.node_weights.data(), nullptr, static_cast<SCOTCH_Num>(rows.neighbours.size()),
                        rows.neighbours.data(), rows.edge_weights.data()) != 0 ||
      SCOTCH_graphPart(&graph, static_cast<SCOTCH_Num>(task.parts), &strategy, part.data()) != 0)
    throw std::runtime_error("Scotch cannot partition this graph");
  for (NodeId v = 0; v < task.dag.size(); ++v) placement[v] = static_cast<Part>(part[v]);
  return {std::move(placement), std::nullopt};
}

}  // namespace convoy
