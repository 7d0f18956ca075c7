// SPDX-License-Identifier: MIT
#include "sim/run/simulate.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/lowering/service_rule.h"
#include "sim/plan/repetition.h"
#include "sim/run/evaluate.h"
#include "sim/run/timeline.h"
#include "sim/run/trace.h"

namespace convoy::inline runs {

namespace {

/// Servers seldom take messages wholly in order, nor push asynchronous workers wholly apart: the interval of
/// workers without a common step reaches to messages that share links fairly.
void widen_to_fair_shares(const PreparedRun& run, RunResult& result) {
  const bool in_order = std::any_of(run.plan.patterns.begin(), run.plan.patterns.end(),
                                    [](const Pattern& pattern) { return pattern.in_order; });
  if (!run.plan.service() || !in_order || !result.interval) return;
  PreparedRun fair = run;
  fair.plan = shared_fairly(std::move(fair.plan));
  fair.on_ideal_network = nullptr;
  widen_interval(result, simulate(fair, false).result);
}

/// Whether its plans repeat tasks that they do not list.
bool leaves_tasks_out(const PreparedRun& run) {
  if (!run.phased) return !lists_all(run.plan);
  return std::ranges::any_of(run.phased->phases,
                             [](const RunPhase& phase) { return !lists_all(phase.plan); });
}

}  // namespace

PreparedRun with_every_task(PreparedRun run) {
  if (!leaves_tasks_out(run)) return run;
  run.plan = with_all_listed(std::move(run.plan));
  if (!run.phased) return run;
  PhasedRun phased = *run.phased;
  for (RunPhase& phase : phased.phases) phase.plan = with_all_listed(std::move(phase.plan));
  run.phased = std::make_shared<const PhasedRun>(std::move(phased));
  return run;
}

ReplayResult replay_of(const PreparedRun& run) {
  return replay(run.plan, run.machine, run.cost, {true, run.network_model});
}

RunOutput output_of(const PreparedRun& run, const ReplayResult& replayed, bool with_trace) {
  std::vector<StepRange> ranges;
  for (const Doubt& doubt : run.doubts) ranges.push_back(step_range_s(run, doubt, replayed));
  RunOutput output{evaluate(run, replayed, ranges), {}};
  if (run.on_ideal_network) widen_interval(output.result, simulate(*run.on_ideal_network, false).result);
  widen_to_fair_shares(run, output.result);
  if (run.phased)
    add_timeline(run, replayed, with_trace, output);
  else if (with_trace)
    output.trace = trace_of(run.plan, run.machine, run.cost, replayed);
  keep_largest(output.trace);
  return output;
}

RunOutput simulate(const PreparedRun& run, bool with_trace) {
  if (with_trace && leaves_tasks_out(run)) return simulate(with_every_task(run), with_trace);
  return output_of(run, replay_of(run), with_trace);
}

}  // namespace convoy::runs
