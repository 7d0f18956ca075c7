// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "strategies/partition/dag.h"
#include "strategies/partition/schedule.h"

namespace convoy::inline partition {

/// What a partitioner is to solve.
struct PartitionTask {
  const Dag& dag;
  Part parts = 1;  ///< >= 1
  PartLink link;
  std::optional<double> memory_bytes;  ///< of each part; none: no limit
  std::uint64_t seed = 1;              ///< of methods that draw
  bool refine = true;                  ///< pardnn: with its refinement phase
};

/// What it answers.
struct PartitionAnswer {
  Placement placement;
  std::optional<Schedule> schedule;  ///< its own order, where that is not the order of readiness
  std::optional<Schedule> ready = std::nullopt;  ///< in the order of readiness, where it has been found
};

/// A row of the table of methods.
struct PartitionMethod {
  std::string_view name, summary;
  bool draws;  ///< depends on the seed
  PartitionAnswer (*run)(const PartitionTask& task);
  bool (*is_there)() = nullptr;  ///< whether this build has it; null: always
  bool available() const { return !is_there || is_there(); }
};
const std::vector<PartitionMethod>& partition_methods();
/// nullptr where there is none of that name.
const PartitionMethod* find_partition_method(std::string_view name);

// The methods, in files of their names.
PartitionAnswer partition_pardnn(const PartitionTask& task);
PartitionAnswer partition_pardnn_published(const PartitionTask& task);  ///< without the phases that are ours
PartitionAnswer partition_linear_clustering(const PartitionTask& task);
PartitionAnswer partition_heft(const PartitionTask& task);
PartitionAnswer partition_cpop(const PartitionTask& task);
PartitionAnswer partition_etf(const PartitionTask& task);  ///< m-ETF with memory_bytes
PartitionAnswer partition_sct(const PartitionTask& task);  ///< m-SCT with memory_bytes
PartitionAnswer partition_metis(const PartitionTask& task);
PartitionAnswer partition_scotch(const PartitionTask& task);
PartitionAnswer partition_zoltan(const PartitionTask& task);  ///< @throws std::runtime_error: not there
PartitionAnswer partition_dfs(const PartitionTask& task);
PartitionAnswer partition_random(const PartitionTask& task);
PartitionAnswer partition_round_robin(const PartitionTask& task);
PartitionAnswer partition_best(const PartitionTask& task);

}  // namespace convoy::partition
