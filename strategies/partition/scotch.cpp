// SPDX-License-Identifier: MIT
// Scotch 7 (Pellegrini, Roman: Scotch, HPCN Europe 1996), default strategy.
#include <scotch.h>

#include <cstdint>
#include <cstdio>  // scotch.h uses FILE
#include <memory>
#include <stdexcept>

#include "strategies/partition/method.h"
#include "strategies/partition/undirected.h"
#include "strategies/partition/units.h"

namespace convoy::inline partition {

static_assert(sizeof(SCOTCH_Num) == sizeof(std::int32_t), "UndirectedGraph has 32-bit rows");

PartitionAnswer partition_scotch(const PartitionTask& task) {
  Placement placement(task.dag.size());
  if (task.parts == 1) return {std::move(placement), std::nullopt};
  const UndirectedGraph rows = undirected(task.dag);
  // One thread with a generator of its own: Scotch otherwise answers differently from call to call.
  SCOTCH_Context context;
  SCOTCH_Graph graph, bound;
  SCOTCH_Strat strategy;
  SCOTCH_contextInit(&context);
  SCOTCH_graphInit(&graph);
  SCOTCH_graphInit(&bound);
  SCOTCH_stratInit(&strategy);
  const std::unique_ptr<SCOTCH_Context, decltype(&SCOTCH_contextExit)> context_owner(&context,
                                                                                     &SCOTCH_contextExit);
  const std::unique_ptr<SCOTCH_Graph, decltype(&SCOTCH_graphExit)> graph_owner(&graph, &SCOTCH_graphExit);
  const std::unique_ptr<SCOTCH_Strat, decltype(&SCOTCH_stratExit)> strategy_owner(&strategy,
                                                                                  &SCOTCH_stratExit);
  const std::unique_ptr<SCOTCH_Graph, decltype(&SCOTCH_graphExit)> bound_owner(&bound, &SCOTCH_graphExit);
  std::vector<SCOTCH_Num> part(task.dag.size());
  if (SCOTCH_graphBuild(&graph, 0, static_cast<SCOTCH_Num>(task.dag.size()), rows.begin.data(), nullptr,
                        rows.node_weights.data(), nullptr, static_cast<SCOTCH_Num>(rows.neighbours.size()),
                        rows.neighbours.data(), rows.edge_weights.data()) != 0 ||
      SCOTCH_contextOptionSetNum(&context, SCOTCH_OPTIONNUMDETERMINISTIC, 1) != 0 ||
      SCOTCH_contextThreadSpawn(&context, 1, nullptr) != 0 || SCOTCH_contextRandomClone(&context) != 0 ||
      SCOTCH_contextBindGraph(&context, &graph, &bound) != 0 ||
      (SCOTCH_contextRandomSeed(&context, 1), SCOTCH_contextRandomReset(&context), false) ||
      SCOTCH_graphPart(&bound, static_cast<SCOTCH_Num>(task.parts), &strategy, part.data()) != 0)
    throw std::runtime_error("Scotch cannot partition this graph");
  for (NodeId v = 0; v < task.dag.size(); ++v) placement[v] = static_cast<Part>(part[v]);
  collocate(task.dag, message_costs(task.dag, task.link), task.parts, placement);
  return {std::move(placement), std::nullopt};
}

}  // namespace convoy::partition
