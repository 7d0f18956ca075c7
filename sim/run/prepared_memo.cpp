// SPDX-License-Identifier: MIT
#include "sim/run/prepared_memo.h"

#include <algorithm>
#include <functional>

namespace convoy::inline runs {

std::size_t PreparedKey::hash() const {
  std::size_t hash = std::hash<const TrainingGraph*>{}(run->graph.get());
  const auto add = [&hash](double number) { hash = hash_with(hash, std::hash<double>{}(number)); };
  for (const Role& role : run->plan.roles) hash = hash_with(hash, role.program.hash());
  for (const Communication& communication : run->plan.communications) add(communication.bytes);
  for (const Pattern& pattern : run->plan.patterns) hash = hash_with(hash, pattern.rounds.size());
  for (const Device& device : run->machine.devices) add(device.speed);
  for (const Link& link : run->machine.links) add(link.bandwidth_Bps), add(link.latency_s);
  return hash;
}

std::size_t PreparedKey::weight() const {
  std::size_t weight = run->machine.endpoint_count() + run->machine.links.size();
  for (const Role& role : run->plan.roles) weight += role.program.size();
  for (const Pattern& pattern : run->plan.patterns)
    for (const Round& round : pattern.rounds) weight += round.pairs.size();
  return weight;
}

bool may_come_again(const PreparedRun& run) {
  return std::ranges::all_of(run.plan.roles, [](const Role& role) { return role.program.is_shared(); });
}

}  // namespace convoy::runs
