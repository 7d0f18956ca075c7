// SPDX-License-Identifier: MIT
#include "models/static_plan.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

namespace convoy::inline models {
namespace {

class BlockPool {
 public:
  std::size_t take(double bytes) {
    const auto above = free_.lower_bound({bytes, 0});
    if (above != free_.end() && above->first <= bytes * match_range) return reuse(above, bytes);
    if (above != free_.begin() && std::prev(above)->first >= bytes / match_range)
      return reuse(std::prev(above), bytes);
    sizes_.push_back(bytes);
    return sizes_.size() - 1;
  }
  void give_back(std::size_t block) { free_.emplace(sizes_[block], block); }
  double bytes() const { return std::accumulate(sizes_.begin(), sizes_.end(), 0.0); }

 private:
  static constexpr double match_range = 16;
  using Free = std::set<std::pair<double, std::size_t>>;

  std::size_t reuse(Free::iterator entry, double bytes) {
    const std::size_t block = entry->second;
    sizes_[block] = std::max(sizes_[block], bytes);
    free_.erase(entry);
    return block;
  }

  std::vector<double> sizes_;  ///< by block
  Free free_;                  ///< size and block
};

/// Calls begin(buffer) and end(buffer) in the order in which operations allocate and free.
template <class Begin, class End>
void walk(const TrainingGraph& graph, Begin begin, End end) {
  std::vector<std::vector<std::size_t>> born(graph.operations.size()), dies(graph.operations.size());
  for (std::size_t b = 0; b < graph.buffers.size(); ++b) {
    born[graph.buffers[b].born].push_back(b);
    dies[graph.buffers[b].dies].push_back(b);
  }
  for (std::size_t op = 0; op < graph.operations.size(); ++op) {
    for (const std::size_t b : born[op]) begin(b);
    for (const std::size_t b : dies[op]) end(b);
  }
}

}  // namespace

double planned_bytes(const TrainingGraph& graph) {
  BlockPool pool;
  std::vector<std::size_t> block(graph.buffers.size());
  walk(
      graph, [&](std::size_t b) { block[b] = pool.take(graph.buffers[b].bytes_per_image); },
      [&](std::size_t b) { pool.give_back(block[b]); });
  return pool.bytes();
}

double live_bytes(const TrainingGraph& graph) {
  double live = 0, most = 0;
  walk(
      graph, [&](std::size_t b) { most = std::max(most, live += graph.buffers[b].bytes_per_image); },
      [&](std::size_t b) { live -= graph.buffers[b].bytes_per_image; });
  return most;
}

}  // namespace convoy::models
