// SPDX-License-Identifier: MIT
#include "sim/replay/repeated_services.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "sim/replay/service_run.h"

namespace convoy::inline replays {
namespace {

/// Half of the 1 % that is claimed: who ends at the first interval that is narrow enough ends too often at one that is so by
/// chance.
constexpr double wanted_precision = 0.005;
/// Of all clients together and in either direction, that measurements of one length may take: a fraction of a second of simulation.
constexpr double affordable_messages = 1 << 17;
constexpr double student_t = 2.365;  // 97.5 %, 8 measurements less the mean
constexpr std::uint32_t longer = 4;  // than those before

void add(const std::vector<double>& from, double weight, std::vector<double>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += weight * from[i];
}

/// The mean of executions of one folding, but for the timelines, which are the first one's, and the largest staleness.
Execution mean_of(std::vector<Execution> executions) {
  const double weight = 1 / static_cast<double>(executions.size());
  Execution mean = std::move(executions.front());
  const auto scale = [&](std::vector<double>& values) {
    for (double& value : values) value *= weight;
  };
  mean.end_s *= weight;
  mean.input_wait_s *= weight;
  for (Execution::Usage& usage : mean.usage) usage = {usage.times * weight, usage.end_s * weight};
  for (std::vector<double>* values : {&mean.link_busy_s, &mean.port_busy_s, &mean.pace}) scale(*values);
  if (mean.staleness) mean.staleness->mean *= weight;
  for (std::size_t e = 1; e < executions.size(); ++e) {
    const Execution& one = executions[e];
    mean.end_s += weight * one.end_s;
    mean.input_wait_s += weight * one.input_wait_s;
    for (std::size_t c = 0; c < mean.usage.size(); ++c)
      mean.usage[c] = {mean.usage[c].times + one.usage[c].times * weight,
                       mean.usage[c].end_s + weight * one.usage[c].end_s};
    add(one.link_busy_s, weight, mean.link_busy_s);
    add(one.port_busy_s, weight, mean.port_busy_s);
    add(one.pace, weight, mean.pace);
    if (!mean.staleness) continue;
    mean.staleness->mean += weight * one.staleness->mean;
    mean.staleness->max = std::max(mean.staleness->max, one.staleness->max);
    mean.staleness->max_lead = std::max(mean.staleness->max_lead, one.staleness->max_lead);
  }
  return mean;
}

/// Half of the 95 % interval of the mean step, as a share of it.
double doubt_of(const std::vector<Execution>& executions) {
  const auto count = static_cast<double>(executions.size());
  double mean_s = 0, variance = 0;
  for (const Execution& one : executions) mean_s += one.end_s / count;
  for (const Execution& one : executions)
    variance += (one.end_s - mean_s) * (one.end_s - mean_s) / (count - 1);
  return mean_s > 0 ? student_t * std::sqrt(variance / count) / mean_s : 0;
}

/// Its engine is gone when the next measurement begins: with NetworkModel::simgrid there can be one at a time.
/// @param steps to which those that were measured are added
Execution measure(const FoldedPlan& folded, const Surroundings& surroundings, const Measurement& measurement,
                  double& steps) {
  ServiceRun run(folded, surroundings, measurement);
  Execution execution = run.run();
  steps += static_cast<double>(run.steps_measured());
  return execution;
}

}  // namespace

Plan with_clients_alone(const Plan& plan) {
  Plan alone = plan;
  alone.service()->max_lead = Service::unbounded;
  alone.service()->compute_spread = alone.service()->step_jitter = 0;
  return alone;
}

bool are_clients_alone(const Service& service) {
  return service.max_lead == Service::unbounded && !service.is_random();
}

Execution run_service(const FoldedPlan& folded, const Surroundings& surroundings) {
  const Service& service = *folded.plan.service();
  double steps = 0;
  std::vector<Execution> executions{measure(folded, surroundings, {}, steps)};
  if (!is_measured_repeatedly(service)) return std::move(executions.front());
  Surroundings unlogged = surroundings;
  unlogged.service_log = nullptr;
  Measurement measurement{.begin_within_s = executions.front().end_s};
  const double messages_a_step = static_cast<double>(service.exchanges.size());
  double doubt = 0;
  while (true) {
    while (executions.size() < measurements) {
      measurement.number = executions.size();
      executions.push_back(measure(folded, unlogged, measurement, steps));
    }
    doubt = doubt_of(executions);
    if (doubt <= wanted_precision || longer * steps * messages_a_step > affordable_messages) break;
    measurement.longer *= longer;
    executions.clear();
    steps = 0;
  }
  Execution mean = mean_of(std::move(executions));
  mean.doubt = doubt;
  const Plan alone = with_clients_alone(folded.plan);
  const FoldedPlan folded_alone{
      alone,          folded.machine,     folded.cost, folded.table, folded.one_by_one,
      folded.folding, folded.cost_of_role};
  mean.least_s = ServiceRun(folded_alone, {.contention = Contention::none}).run().end_s;
  return mean;
}

}  // namespace convoy::replays
