// SPDX-License-Identifier: MIT
#include "sim/run/chosen_algorithms.h"

#include <algorithm>
#include <map>

#include "sim/collectives/table.h"
#include "sim/lowering/gradient_sync.h"

namespace convoy::inline runs {
std::vector<std::string> chosen_algorithms(const Strategy& strategy, const Plan& plan,
                                           const Machine& machine) {
  const GradientSync* sums = strategy.sums();
  if (sums == nullptr || !sums->algorithm.is_auto()) return {};
  std::map<std::pair<std::uint32_t, double>, std::string> known;  // by pattern and bytes
  std::map<std::string, double> bytes_by;
  for (const Communication& communication : plan.communications) {
    const Pattern& pattern = plan.patterns[communication.pattern];
    if (communication.purpose == CommPurpose::other || communication.purpose == CommPurpose::neighbours ||
        pattern.groups.empty() || pattern.groups.front().size() < 2)
      continue;
    std::string& name = known[{communication.pattern, communication.bytes}];
    if (name.empty()) {
      std::vector<EndpointId> ranks = pattern.groups.front();
      std::sort(ranks.begin(), ranks.end());
      name = chosen_algorithm(sums->algorithm, ranks, machine, communication.bytes, sums->rings,
                              communication.purpose == CommPurpose::half);
    }
    bytes_by[name] += communication.bytes;
  }
  std::vector<std::pair<double, std::string>> ordered;
  for (const auto& [name, bytes] : bytes_by) ordered.emplace_back(-bytes, name);
  std::sort(ordered.begin(), ordered.end());
  std::vector<std::string> names;
  for (auto& [bytes, name] : ordered) names.push_back(std::move(name));
  return names;
}

}  // namespace convoy::runs
