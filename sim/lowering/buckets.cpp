// SPDX-License-Identifier: MIT
#include "sim/lowering/buckets.h"

#include <algorithm>
#include <numeric>

namespace convoy {
namespace {

std::vector<Bucket> fill(const TrainingGraph& graph, double bucket_bytes, const std::vector<double>& elements,
                         bool by_layer) {
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
    const bool full = buckets.empty() || buckets.back().bytes >= bucket_bytes;
    if (full && !(by_layer && !buckets.empty() && buckets.back().ready == graph.parameters[p].gradient))
      buckets.emplace_back();
    Bucket& bucket = buckets.back();
    bucket.bytes += element * elements[p];
    bucket.ready = std::max(bucket.ready, graph.parameters[p].gradient);
    bucket.parameters.push_back(p);
  }
  return buckets;
}

std::vector<double> all_elements(const TrainingGraph& graph) {
  std::vector<double> elements;
  for (const Parameter& parameter : graph.parameters)
    elements.push_back(static_cast<double>(parameter.elements));
  return elements;
}

}  // namespace

std::vector<Bucket> fill_buckets(const TrainingGraph& graph, double bucket_bytes) {
  return fill(graph, bucket_bytes, all_elements(graph), false);
}

std::vector<Bucket> fill_buckets_of(const TrainingGraph& graph, double bucket_bytes,
                                    const std::vector<double>& elements) {
  return fill(graph, bucket_bytes, elements, false);
}

std::vector<Bucket> fill_buckets_by_layer(const TrainingGraph& graph, double bucket_bytes) {
  return fill(graph, bucket_bytes, all_elements(graph), true);
}

std::vector<Bucket> bucket_per_tensor(const TrainingGraph& graph) { return fill_buckets(graph, 0); }

}  // namespace convoy
