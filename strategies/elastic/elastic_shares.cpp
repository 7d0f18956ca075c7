// SPDX-License-Identifier: MIT
#include "strategies/elastic/elastic_shares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace convoy::inline strategies {
namespace {

/// `whole` in `parts` numbers that differ by one at most, the greater ones first.
std::vector<std::int64_t> split_evenly(std::int64_t whole, std::int64_t parts) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(parts), whole / parts);
  for (std::int64_t i = 0; i < whole % parts; ++i) ++result[static_cast<std::size_t>(i)];
  return result;
}

struct Level {
  double fixed = 0, per_image = 0;  ///< bytes
};

}  // namespace

std::int64_t largest_micro_batch(const TrainingGraph& graph, const DeviceType& type) {
  const auto resident = graph.resident_bytes();
  const double room_bytes =
      type.memory_bytes - type.reserved_bytes - std::accumulate(resident.begin(), resident.end(), 0.0);
  // Memory while operation i runs: what was born before or in it and dies in it or later. An update's buffers
  // do not grow with the batch.
  std::vector<Level> born(graph.operations.size()), died(graph.operations.size());
  const auto add = [&](Level& level, const Buffer& buffer) {
    const bool of_update = graph.operations[buffer.born].phase == Phase::update;
    level.fixed += static_cast<double>(buffer.bytes_fixed) + (of_update ? buffer.bytes_per_image : 0);
    level.per_image += of_update ? 0 : buffer.bytes_per_image;
  };
  for (const Buffer& buffer : graph.buffers) {
    add(born[buffer.born], buffer);
    add(died[buffer.dies], buffer);
  }
  constexpr double no_limit = static_cast<double>(std::numeric_limits<std::int32_t>::max());
  double most = no_limit;
  Level live;
  for (std::size_t op = 0; op < graph.operations.size(); ++op) {
    live.fixed += born[op].fixed;
    live.per_image += born[op].per_image;
    const double left = room_bytes - live.fixed;
    if (left < 0) return 0;
    if (live.per_image > 0) most = std::min(most, std::floor(left / live.per_image));
    live.fixed -= died[op].fixed;
    live.per_image -= died[op].per_image;
  }
  return room_bytes < 0 ? 0 : static_cast<std::int64_t>(most);
}

DealtBatch deal_coarse(std::int64_t global_batch, std::uint32_t devices, std::int64_t micro_batch) {
  DealtBatch dealt(devices);
  std::size_t next = 0;
  for (std::int64_t left = global_batch; left > 0; left -= micro_batch, next = (next + 1) % devices)
    dealt[next].push_back(std::min(left, micro_batch));
  return dealt;
}

DealtBatch deal_uniform(std::int64_t global_batch, std::uint32_t devices, std::int64_t micro_batch) {
  DealtBatch dealt;
  for (const std::int64_t share : split_evenly(global_batch, devices))
    dealt.push_back(share == 0 ? std::vector<std::int64_t>{}
                               : split_evenly(share, (share + micro_batch - 1) / micro_batch));
  return dealt;
}

}  // namespace convoy::strategies
