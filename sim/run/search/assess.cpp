// SPDX-License-Identifier: MIT
#include "sim/run/search/assess.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity.h"
#include "sim/replay/input_queue.h"
#include "sim/replay/lower_bound.h"
#include "sim/run/energy.h"
#include "sim/run/evaluate.h"
#include "sim/run/memory_need.h"

namespace convoy::inline search {
namespace {

std::string bound_text(const LowerBound& bound, const Machine& machine) {
  if (bound.input_wait_s > 0)
    return fmt::format("at least {} a step, {} of it waiting for its images", format_time(bound.step_time_s),
                       format_time(bound.input_wait_s));
  if (bound.link)
    return fmt::format("at least {} a step: from {} on {} of {} have to cross",
                       format_time(bound.step_time_s), format_time(bound.link->free_until_s),
                       machine.links[bound.link->link].name, format_bytes(bound.link->bytes));
  if (bound.step_time_s == 0) return "nothing is known of its step beforehand";
  const std::string computing =
      bound.critical_compute_s > 0
          ? fmt::format(", {} of them computing", format_time(bound.critical_compute_s))
          : "";
  return fmt::format("at least {} a step{}, even if no message had to wait for another",
                     format_time(bound.step_time_s), computing);
}

double an_image(double amount, double images) { return images > 0 ? amount / images : amount; }

}  // namespace

Assessment assess(const PreparedRun& run) {
  Assessment assessment;
  assessment.label = run.strategy;
  assessment.images = run.plan.images;
  LowerBound bound = lower_bound(run.plan, run.machine, run.cost);
  if (run.plan.service()) bound.step_time_s *= 1 - measurements_differ;
  assessment.step_bound_s = bound.step_time_s;
  if (run.plan.input && !run.plan.service())
    assessment.input_step_s = step_with_input_s(*run.plan.input, 1, 0);
  for (const double running_s : bound.running_s)
    assessment.running_s = std::max(assessment.running_s, running_s);
  assessment.bound_text = bound_text(bound, run.machine);
  assessment.energy_bound_j =
      step_energy_j(run.machine, bound.step_time_s, busy_power_w(run.plan, run.machine, run.cost),
                    [&](std::size_t d) { return bound.running_s.empty() ? 0 : bound.running_s[d]; });
  assessment.price_usd_per_h = price_usd_per_h(run.machine);
  if (run.samples) assessment.samples = static_cast<double>(*run.samples);
  const MemoryNeed need = memory_need(run);
  assessment.peak_bytes = need.peak.bytes;
  assessment.process_bytes = need.process.bytes;
  assessment.fullest = need.process_device;
  assessment.fullest_size_bytes = need.process.of_bytes;
  assessment.fits = need.process.fits();
  return assessment;
}

Rank rank_of(Objective objective, const RunResult& result) {
  const double time_s = an_image(result.step_time_s, result.global_batch);
  switch (objective) {
    case Objective::step_time:
    case Objective::throughput:
      return {time_s, time_s};
    case Objective::cost:
      return {result.cost_usd_per_epoch.value_or(0), time_s};
    case Objective::energy:
      return {an_image(result.energy_j, result.global_batch), time_s};
    case Objective::memory:
      return {result.peak_memory_bytes, time_s};
  }
  return {};
}

Rank best_rank(Objective objective, const Assessment& assessment) {
  const double time_s = an_image(assessment.step_bound_s, assessment.images);
  switch (objective) {
    case Objective::step_time:
    case Objective::throughput:
      return {time_s, time_s};
    case Objective::cost:
      return {*assessment.price_usd_per_h * *assessment.samples * time_s / 3600, time_s};
    case Objective::energy:
      return {an_image(assessment.energy_bound_j, assessment.images), time_s};
    case Objective::memory:
      return {assessment.peak_bytes, time_s};
  }
  return {};
}

}  // namespace convoy::search
