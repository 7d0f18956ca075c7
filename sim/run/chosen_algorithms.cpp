// SPDX-License-Identifier: MIT
#include "sim/run/chosen_algorithms.h"

#include <algorithm>
#include <map>

#include "sim/collectives/table.h"

namespace convoy::inline runs {
namespace {

bool says(const YamlNode& strategy, std::string_view key, std::string_view text) {
  const YamlNode* value = strategy.find(key);
  return value && value->kind == YamlNode::Kind::scalar && value->scalar == text;
}

}  // namespace

std::vector<std::string> chosen_algorithms(const YamlNode& strategy, const Plan& plan,
                                           const Machine& machine) {
  if (!says(strategy, "algorithm", "auto")) return {};
  const RingOrder order = says(strategy, "rings", "in_order") ? RingOrder::in_order : RingOrder::mesh;
  std::map<std::pair<std::uint32_t, double>, std::string> known;  // by pattern and bytes
  std::map<std::string, double> bytes_by;
  for (const Communication& communication : plan.communications) {
    const bool whole = communication.name.starts_with("all-reduce");
    const bool half =
        communication.name.starts_with("reduce-scatter") || communication.name.starts_with("all-gather");
    const Pattern& pattern = plan.patterns[communication.pattern];
    if ((!whole && !half) || pattern.groups.empty() || pattern.groups.front().size() < 2) continue;
    std::string& name = known[{communication.pattern, communication.bytes}];
    if (name.empty()) {
      std::vector<EndpointId> ranks = pattern.groups.front();
      std::sort(ranks.begin(), ranks.end());
      name = chosen_algorithm(ranks, machine, communication.bytes, order, half);
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
