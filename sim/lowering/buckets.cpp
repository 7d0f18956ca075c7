// SPDX-License-Identifier: MIT
#include "sim/lowering/buckets.h"

#include <algorithm>
#include <numeric>

namespace convoy::inline lowering {
std::vector<Bucket> fill_buckets_of(const TrainingGraph& graph, double bucket_bytes,
                                    const std::vector<double>& elements, bool whole_layers,
                                    double first_bytes) {
  std::vector<std::size_t> order(graph.parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::reverse(order.begin(), order.end());  // within one operation, the last tensor of the layer first
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return graph.parameters[a].gradient < graph.parameters[b].gradient;
  });
  const double element = element_bytes(graph.options.precision);
  std::vector<Bucket> buckets;
  for (const std::size_t p : order) {
    if (elements[p] == 0) continue;
    const double most_bytes = buckets.size() == 1 && first_bytes > 0 ? first_bytes : bucket_bytes;
    const bool full = buckets.empty() || buckets.back().bytes >= most_bytes;
    if (full && !(whole_layers && !buckets.empty() && buckets.back().ready == graph.parameters[p].gradient))
      buckets.emplace_back();
    Bucket& bucket = buckets.back();
    bucket.bytes += element * elements[p];
    bucket.ready = std::max(bucket.ready, graph.parameters[p].gradient);
    bucket.parameters.push_back(p);
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
