// SPDX-License-Identifier: MIT
#include "strategies/partition/method.h"
#include "strategies/partition/zoltan/zoltan_partition.h"

namespace convoy::inline partition {

const std::vector<PartitionMethod>& partition_methods() {
  static const std::vector<PartitionMethod> table{
      {"pardnn", "linear clusters mapped by slack, refinement, memory phase (Qararyah et al. 2021)", false,
       &partition_pardnn},
      {"pardnn_published", "as pardnn, without our refinement and our cut by memory", false,
       &partition_pardnn_published},
      {"linear_clustering", "longest ways as clusters, the largest to the least loaded part", false,
       &partition_linear_clustering},
      {"heft", "earliest finish in the order of upward rank", false, &partition_heft},
      {"cpop", "as heft, with the critical path on one part", false, &partition_cpop},
      {"etf", "what can start first, where it can; with --memory m-ETF: where there is room", false,
       &partition_etf},
      {"sct", "as etf, an operation's favourite reader before others on its part; with --memory m-SCT", false,
       &partition_sct},
      {"metis", "METIS, k-way: least cut under balance, directions unknown to it", false, &partition_metis},
      {"scotch", "Scotch: least cut under balance, directions unknown to it", false, &partition_scotch},
      {"zoltan", "Zoltan's hypergraph partitioner: least bytes sent under balance, directions unknown to it",
       false, &partition_zoltan, &have_zoltan},
      {"dfs", "blocks of equal work in depth-first order", false, &partition_dfs},
      {"random", "each operation to a part drawn at random", true, &partition_random},
      {"round_robin", "operation by operation in turn", false, &partition_round_robin},
      {"best", "the shortest of all of the above and of one part alone", true, &partition_best},
  };
  return table;
}

const PartitionMethod* find_partition_method(std::string_view name) {
  for (const PartitionMethod& method : partition_methods())
    if (method.name == name) return &method;
  return nullptr;
}

}  // namespace convoy::partition
