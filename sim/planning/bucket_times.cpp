// SPDX-License-Identifier: MIT
#include "sim/planning/bucket_times.h"

#include <algorithm>
#include <memory>

#include "sim/lowering/plan_ops.h"
#include "sim/planning/sum_time.h"
#include "sim/run/search/search_spec.h"
#include "strategies/strategy.h"

namespace convoy::inline planning {
namespace {

std::optional<GradientSync> bucketing_of(const YamlNode& strategy) {
  if (strategy.find("micro_batches") || !sums_on_devices(strategy)) return std::nullopt;
  const GradientSync sums = *read_strategy(strategy)->sums();
  GradientSync bucketing;
  bucketing.bucket_bytes = sums.bucket_bytes;
  bucketing.bucket_given = sums.bucket_given;
  bucketing.first_bucket_bytes = sums.first_bucket_bytes;
  bucketing.overlap = sums.overlap;
  return bucketing;
}

}  // namespace

std::vector<GradientSync> bucketings_of(const PlanSpec& spec, const ServerTable& servers) {
  std::vector<YamlNode> strategies = spec.strategies;
  if (strategies.empty())  // those of two servers of any kind, which fill their buckets as those of others do
    strategies = usual_candidates(read_cluster(cluster_node(spec, {{servers.begin()->first, 2}})));
  std::vector<GradientSync> all;
  for (const YamlNode& strategy : strategies)
    if (const std::optional<GradientSync> own = bucketing_of(strategy);
        own && std::find(all.begin(), all.end(), *own) == all.end())
      all.push_back(*own);
  return all;
}

std::optional<std::size_t> find_bucketing(const std::vector<GradientSync>& all, const YamlNode& strategy) {
  const std::optional<GradientSync> own = bucketing_of(strategy);
  const auto found = own ? std::find(all.begin(), all.end(), *own) : all.end();
  return found == all.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - all.begin()));
}

std::vector<BucketTimes> bucket_times(const std::vector<GradientSync>& bucketings, const PreparedRun& run,
                                      const std::vector<double>& done_s) {
  const TrainingGraph& graph = *run.graph;
  const Device& device = run.machine.devices[0];
  Replicated parameters{{{0, 1}}, {}};  // on any two devices
  for (const Parameter& parameter : graph.parameters)
    parameters.elements.push_back(static_cast<double>(parameter.elements));
  const double all_s = *std::max_element(done_s.begin(), done_s.end());
  std::vector<BucketTimes> times;
  for (std::size_t b = 0; b < bucketings.size(); ++b)
    for (const Bucket& bucket : buckets_of(bucketings[b], graph, parameters)) {
      const PlanOp copy = elementwise_op("copy", bucket.bytes / 4, 2 * bucket.bytes);
      const double copy_s =
          bucket.parameters.size() > 1
              ? run.cost.time_s(copy.work, copy.images, run.machine.device_types[device.type]) / device.speed
              : 0;
      times.push_back({static_cast<std::int64_t>(b), bucket.bytes,
                       bucketings[b].overlap ? done_s[bucket.ready] : all_s, copy_s});
    }
  return times;
}

}  // namespace convoy::planning
