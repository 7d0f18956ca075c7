// SPDX-License-Identifier: MIT
#include "sim/replay/step_run.h"

#include <algorithm>
#include <utility>

#include "sim/plan/repetition.h"
#include "sim/replay/link_conflicts.h"
#include "sim/replay/lone_messages.h"

namespace convoy::inline replays {
namespace {

/// Communications that have their links to themselves are one delay, unless something else may use the links,
/// or the caller wants to see the messages.
std::unique_ptr<UncontendedCollectives> uncontended_collectives(const FoldedPlan& folded,
                                                                const Surroundings& surroundings,
                                                                const LinkClock& clock) {
  if (folded.plan.endless() || surroundings.contention == Contention::none ||
      surroundings.network_model == NetworkModel::simgrid || !surroundings.disturbances.empty())
    return nullptr;
  return std::make_unique<UncontendedCollectives>(folded, clock);
}

/// Links are then not told of messages before their time.
bool reads_clocks_between_periods(const Plan& plan) {
  return left_out(plan) != nullptr && !leaves_only_computing_out(plan);
}

/// By pattern; empty: of none. Where links are not shared, every message is foreseen.
std::vector<bool> foreseen_messages(const FoldedPlan& folded, const Surroundings& surroundings,
                                    bool sees_lone_messages) {
  if (surroundings.contention == Contention::none) return folded.one_by_one;
  if (!sees_lone_messages || reads_clocks_between_periods(folded.plan)) return {};
  return has_lone_messages(folded);
}

}  // namespace

StepRun::StepRun(const FoldedPlan& folded, const Surroundings& surroundings)
    : ProgramRunner(folded, surroundings),
      uncontended_(uncontended_collectives(folded, surroundings, link_clock_)),
      messages_(folded.plan, folded.table, folded.one_by_one, folded.folding, engine_, transfers_, *this,
                uncontended_.get(),
                uncontended_ ? has_links_for_itself(folded.plan, folded.machine, folded.table)
                             : std::vector<bool>(),
                foreseen_messages(folded, surroundings, uncontended_ != nullptr)) {
  if (plan_.endless()) watch_.emplace(*plan_.endless(), folding_);
  if (reads_clocks_between_periods(plan_)) periods_.emplace(plan_, folding_);
}

Execution StepRun::run() {
  for (std::uint32_t c = 0; c < class_count(); ++c) begin(c);
  drain();
  engine_.run();
  require_finished();
  Execution execution;
  for (std::uint32_t c = 0; c < class_count(); ++c) {
    double end_s = 0;
    for (const TaskTimes& times : timelines_[c].tasks) end_s = std::max(end_s, times.end_s);
    execution.usage.push_back({without_slowdown(c, progress_[c].clock.times()), end_s});
    execution.end_s = std::max(execution.end_s, end_s);
  }
  messages_.count_uncontended(link_clock_);
  link_clock_.take_foreseen();
  execution.link_busy_s = link_clock_.link_busy_s(engine_.now_s());
  execution.port_busy_s = link_clock_.port_busy_s(engine_.now_s());
  execution.pace.assign(class_count(), 1);
  execution.timelines = std::move(timelines_);
  if (watch_) show_one_step(execution);
  if (periods_)
    periods_->add_left_out(
        readings_without_slowdown(), [&](std::uint32_t c, TaskId t) { return issued_s(c, t); }, execution);
  return execution;
}

void StepRun::task_ended(std::uint32_t c, TaskId t) {
  if (watch_ && watch_->ends_step(role_of(c), t)) watch_->keep(readings());
  if (periods_ && periods_->ends_period(c, t)) periods_->keep(readings_without_slowdown());
}

Readings StepRun::readings_without_slowdown() {
  Readings result = readings();
  for (std::uint32_t c = 0; c < class_count(); ++c) result.times[c] = without_slowdown(c, result.times[c]);
  return result;
}

/// For an endless run: the mean over a steady stretch.
void StepRun::show_one_step(Execution& execution) const {
  const auto [open, close, steps] = watch_->steady();
  const auto of_step = [&](const std::vector<double>& from, const std::vector<double>& to) {
    std::vector<double> result;
    for (std::size_t i = 0; i < from.size(); ++i) result.push_back((to[i] - from[i]) / steps);
    return result;
  };
  execution.end_s = (close.now_s - open.now_s) / steps;
  for (std::uint32_t c = 0; c < class_count(); ++c)
    execution.usage[c] = {without_slowdown(c, (close.times[c] - open.times[c]) * (1 / steps)),
                          execution.end_s};
  execution.link_busy_s = of_step(open.link_busy_s, close.link_busy_s);
  execution.port_busy_s = of_step(open.port_busy_s, close.port_busy_s);
}

}  // namespace convoy::replays
