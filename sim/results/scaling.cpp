// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <string>

#include "sim/results/coordinates.h"
#include "sim/results/sweep_results.h"

namespace convoy::inline results {
namespace {

/// What the point of a run has in common with those with which it is compared.
std::string group_of(const RunFigures& run) {
  std::string key = run.words.model + '\n' + run.words.device_type;
  for (const auto& [path, value] : run.point) {
    if (path == "cluster" || path == "strategy" || path.starts_with("strategy.") || counts_devices(path))
      continue;
    key += '\n' + path + '=' + to_flow(value);
  }
  return key;
}

struct Group {
  std::int64_t fewest = 0, most = 0;
  double best = 0;  ///< images/s per device, among the runs with the fewest devices
};

}  // namespace

std::vector<double> scaling_efficiency(const SweepResults& results) {
  const auto per_device = [](const RunFigures& run) {
    return run.throughput_images_per_s / static_cast<double>(run.devices);
  };
  std::map<std::string, Group> groups;
  for (const RunFigures& run : results.runs) {
    Group& group = groups[group_of(run)];
    if (group.most == 0 || run.devices < group.fewest) group.fewest = run.devices, group.best = 0;
    group.most = std::max(group.most, run.devices);
    if (run.devices == group.fewest) group.best = std::max(group.best, per_device(run));
  }
  if (std::none_of(groups.begin(), groups.end(), [](auto& g) { return g.second.most > g.second.fewest; }))
    return {};
  std::vector<double> result;
  for (const RunFigures& run : results.runs) result.push_back(per_device(run) / groups[group_of(run)].best);
  return result;
}

}  // namespace convoy::results
