// SPDX-License-Identifier: MIT
// Kim, Browne: A general approach to mapping of parallel computation upon multiprocessor architectures,
// ICPP 1988: the longest way is a cluster, then the longest way of what is left, and so on.
#include <algorithm>
#include <numeric>

#include "strategies/partition/longest_first.h"
#include "strategies/partition/method.h"
#include "strategies/partition/units.h"

namespace convoy::inline partition {

PartitionAnswer partition_linear_clustering(const PartitionTask& task) {
  const Dag& dag = task.dag;
  const std::vector<double> message = message_costs(dag, task.link), level = bottom_levels(dag, message);
  const auto starts = longest_first(dag.order(), [&](NodeId v) { return level[v]; });

  constexpr std::uint32_t none = 0xffffffff;
  std::vector<std::uint32_t> cluster(dag.size(), none);
  std::vector<double> work;
  for (const NodeId start : starts) {
    if (cluster[start] != none) continue;
    work.push_back(0);
    for (NodeId v = start; v != dag.size();) {
      cluster[v] = static_cast<std::uint32_t>(work.size() - 1);
      work.back() += dag.time_us(v);
      NodeId next = dag.size();
      for (const NodeId w : dag.children(v))
        if (cluster[w] == none && (next == dag.size() || level[w] > level[next])) next = w;
      v = next;
    }
  }

  std::vector<std::uint32_t> by_work(work.size());
  std::iota(by_work.begin(), by_work.end(), 0);
  std::stable_sort(by_work.begin(), by_work.end(), [&](auto a, auto b) { return work[a] > work[b]; });
  std::vector<Part> part_of(work.size());
  std::vector<double> load(task.parts);
  for (const std::uint32_t c : by_work) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += work[c];
    part_of[c] = static_cast<Part>(least - load.begin());
  }
  Placement placement(dag.size());
  for (NodeId v = 0; v < dag.size(); ++v) placement[v] = part_of[cluster[v]];
  collocate(dag, message, task.parts, placement);
  return {std::move(placement), std::nullopt};
}

}  // namespace convoy::partition
