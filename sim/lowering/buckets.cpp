// SPDX-License-Identifier: MIT
#include "sim/lowering/buckets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace convoy::inline lowering {
namespace {

/// The ends of cycles, of which the last is half a cycle after the last gradient.
class CycleEnds {
 public:
  CycleEnds(const TrainingGraph& graph, const std::vector<double>& elements, const BucketCycles& cycles)
      : cycles_(cycles) {
    if (!active()) return;
    double last_s = 0;
    for (std::size_t p = 0; p < elements.size(); ++p)
      if (elements[p] > 0) last_s = std::max(last_s, cycles.made_s[graph.parameters[p].gradient]);
    end_s_ = last_s + cycles.length_s / 2;
  }
  bool active() const { return cycles_.length_s > 0; }
  /// Of the cycle in which the operation ends, counted from the last one.
  std::uint32_t of(OpId gradient) const {
    return active() ? static_cast<std::uint32_t>(
                          std::floor((end_s_ - cycles_.made_s[gradient]) / cycles_.length_s))
                    : 0;
  }
  /// From the end of the operation to that of its cycle.
  double wait_s(OpId gradient) const {
    return active() ? end_s_ - of(gradient) * cycles_.length_s - cycles_.made_s[gradient] : 0;
  }

 private:
  const BucketCycles& cycles_;
  double end_s_ = 0;  ///< of the last one
};

}  // namespace

std::vector<Bucket> fill_buckets_of(const TrainingGraph& graph, double bucket_bytes,
                                    const std::vector<double>& elements, bool whole_layers,
                                    double first_bytes, const BucketCycles& cycles) {
  std::vector<std::size_t> order(graph.parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::reverse(order.begin(), order.end());  // within one operation, the last tensor of the layer first
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return graph.parameters[a].gradient < graph.parameters[b].gradient;
  });
  const double element = element_bytes(graph.options.precision);
  const CycleEnds ends(graph, elements, cycles);
  std::vector<Bucket> buckets;
  for (const std::size_t p : order) {
    if (elements[p] == 0) continue;
    const double most_bytes = buckets.size() == 1 && first_bytes > 0 ? first_bytes : bucket_bytes;
    const std::uint32_t cycle = ends.of(graph.parameters[p].gradient);
    const bool full = buckets.empty() || buckets.back().bytes >= most_bytes || buckets.back().cycle != cycle;
    if (full && !(whole_layers && !buckets.empty() && buckets.back().ready == graph.parameters[p].gradient))
      buckets.emplace_back();
    Bucket& bucket = buckets.back();
    bucket.bytes += element * elements[p];
    bucket.ready = std::max(bucket.ready, graph.parameters[p].gradient);
    bucket.parameters.push_back(p);
    bucket.cycle = cycle;
    bucket.wait_s = ends.wait_s(bucket.ready);
  }
  return buckets;
}

std::vector<Bucket> fill_buckets(const TrainingGraph& graph, double bucket_bytes) {
  std::vector<double> elements;
  for (const Parameter& parameter : graph.parameters)
    elements.push_back(static_cast<double>(parameter.elements));
  return fill_buckets_of(graph, bucket_bytes, elements);
}

std::vector<Bucket> bucket_per_tensor(const TrainingGraph& graph) { return fill_buckets(graph, 0); }

}  // namespace convoy::lowering
