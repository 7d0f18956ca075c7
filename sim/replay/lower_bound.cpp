// SPDX-License-Identifier: MIT
#include "sim/replay/lower_bound.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/plan/repetition.h"
#include "sim/plan/validate.h"
#include "sim/replay/executor.h"
#include "sim/replay/flows.h"
#include "sim/replay/fold.h"
#include "sim/replay/folded_flows.h"
#include "sim/replay/input_queue.h"
#include "sim/replay/repeated_services.h"

namespace convoy::inline replays {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// The earliest time at which a communication can begin, and the least time for which its receivers compute
/// after it.
struct Window {
  double head_s = never, tail_s = never;
};

/// By task of a class: compute time on the longest path from its end to the end of the program.
std::vector<double> tails_s(const Role& role, const Timeline& timeline) {
  const std::vector<Task>& program = role.program;
  std::vector<double> tails(program.size(), 0.0);
  std::vector<std::optional<TaskId>> next_on(role.streams.size());
  for (std::size_t i = program.size(); i-- > 0;) {
    const Task& task = program[i];
    const auto id = static_cast<TaskId>(i);
    if (task.stream != Task::no_stream) {
      std::optional<TaskId>& next = next_on[static_cast<std::size_t>(task.stream)];
      const auto own_s = [&](TaskId t) {
        return program[t].kind == Task::Kind::compute ? timeline.tasks[t].end_s - timeline.tasks[t].start_s
                                                      : 0;
      };
      if (next) tails[i] = std::max(tails[i], tails[*next] + own_s(*next));
      next = id;
    }
    const double through_s =
        tails[i] +
        (task.kind == Task::Kind::compute ? timeline.tasks[i].end_s - timeline.tasks[i].start_s : 0);
    for (const TaskId before : task.after) tails[before] = std::max(tails[before], through_s);
  }
  return tails;
}

/// By communication.
std::vector<Window> windows(const Plan& plan, const Execution& execution) {
  std::vector<Window> result(plan.communications.size());
  for (const Timeline& timeline : execution.timelines) {
    const Role& role = plan.roles[timeline.role];
    const std::vector<double> tails = tails_s(role, timeline);
    for (TaskId t = 0; t < role.program.size(); ++t) {
      const Task& task = role.program[t];
      if (task.kind == Task::Kind::compute) continue;
      Window& window = result[task.comm];
      if (task.kind != Task::Kind::receive)
        window.head_s =
            std::min(window.head_s, timeline.tasks[t].start_s + plan.communications[task.comm].overhead_s);
      if (task.kind != Task::Kind::send) window.tail_s = std::min(window.tail_s, tails[t]);
    }
  }
  return result;
}

/// Adds up what is listed for each link: links in ascending order, and the loads of each from the least on, so that
/// sums are the same in whatever order the list is. It takes no time for links that a list has not.
class SumsByLink {
 public:
  explicit SumsByLink(std::size_t links) : place_(links) {}

  std::vector<std::pair<std::uint32_t, double>> of(
      const std::vector<std::pair<std::uint32_t, double>>& loads) {
    std::vector<std::uint32_t> used;
    for (const auto& [link, load] : loads)
      if (place_[link]++ == 0) used.push_back(link);
    std::sort(used.begin(), used.end());
    std::uint32_t places = 0;
    for (const std::uint32_t link : used) places += std::exchange(place_[link], places);
    std::vector<double> by_link(places);
    for (const auto& [link, load] : loads) by_link[place_[link]++] = load;
    std::vector<std::pair<std::uint32_t, double>> sums;
    auto begin = by_link.begin();
    for (const std::uint32_t link : used) {
      const auto end = by_link.begin() + std::exchange(place_[link], 0);
      std::sort(begin, end);
      sums.emplace_back(link, std::accumulate(std::next(begin), end, *begin));
      begin = end;
    }
    return sums;
  }

 private:
  std::vector<std::uint32_t> place_;  ///< by link; all 0 between calls
};

/// The load of the representative of a link class: by pattern, as a share of a communication's bytes.
std::vector<std::vector<std::pair<std::uint32_t, double>>> loads(const Plan& plan, const FlowTable& table,
                                                                 const Folding& folding) {
  std::vector<std::vector<std::pair<std::uint32_t, double>>> by_pattern(plan.patterns.size());
  for (std::uint32_t c = 0; c < folding.flow_class_count(); ++c) {
    const Flow& flow = folding.flow(table, c);
    const std::uint32_t pattern = table.groups[folding.path(table, c).group].pattern;
    const double share = flow.fraction * plan.patterns[pattern].rounds[flow.round].repeat;
    if (share == 0) continue;
    for (const LinkUse& use : folding.route(c))
      by_pattern[pattern].emplace_back(use.link, share * use.multiplicity);
  }
  SumsByLink sums(folding.links.size());
  for (auto& of_pattern : by_pattern) of_pattern = sums.of(of_pattern);
  return by_pattern;
}

/// Raises the bound to that of the most loaded link.
void bound_by_links(const Plan& plan, const Machine& machine, const FlowTable& table, const Folding& folding,
                    const Execution& execution, LowerBound& bound) {
  const std::vector<Window> window = windows(plan, execution);
  std::vector<CommId> latest_first;
  for (CommId c = 0; c < plan.communications.size(); ++c)
    if (plan.communications[c].bytes > 0 && window[c].head_s < never) latest_first.push_back(c);
  std::stable_sort(latest_first.begin(), latest_first.end(),
                   [&](CommId a, CommId b) { return window[a].head_s > window[b].head_s; });
  const auto load = loads(plan, table, folding);
  // Those that are left out begin later than the ones that stand for them.
  const std::vector<double> times = times_of_communications(plan);
  struct Set {
    double bytes = 0, tail_s = never;
  };
  std::vector<Set> sets(folding.links.size());
  for (const CommId c : latest_first)
    for (const auto& [link, share] : load[plan.communications[c].pattern]) {
      Set& set = sets[link];
      set.bytes += times[c] * share * plan.communications[c].bytes;
      set.tail_s = std::min(set.tail_s, window[c].tail_s);
      const LinkId representative = folding.links[link];
      const double at_least_s = window[c].head_s + set.bytes / bandwidth_Bps(machine, table, representative) +
                                (set.tail_s < never ? set.tail_s : 0);
      if (at_least_s <= bound.step_time_s) continue;
      bound.step_time_s = at_least_s;
      if (representative >= machine.links.size()) continue;
      bound.link = FullLink{representative, set.bytes, window[c].head_s};
    }
}

}  // namespace

LowerBound lower_bound(const Plan& plan, const Machine& machine, const CostModel& cost) {
  LowerBound bound;
  if (plan.endless() && plan.input)
    bound.step_time_s = bound.input_wait_s = step_with_input_s(*plan.input, 1, 0);
  if (plan.endless() || (plan.service() && plan.service()->quorum > 0)) return bound;
  if (plan.service() && !are_clients_alone(*plan.service()))
    return lower_bound(with_clients_alone(plan), machine, cost);
  validate(plan, machine);
  const FoldedFlows flows = folded_flows(plan, machine);
  const FlowTable& table = flows.table();
  const Folding& folding = flows.folding();
  const Execution execution =
      execute({plan, machine, cost, table, flows.one_by_one(), folding}, {.contention = Contention::none});
  if (execution.periods_missing > 0)
    return lower_bound(with_more_listed(plan, execution.periods_missing), machine, cost);
  bound.step_time_s = execution.end_s;
  if (plan.service()) return bound;
  for (const Execution::Usage& usage : execution.usage)
    if (usage.end_s == execution.end_s)
      bound.critical_compute_s = std::max(bound.critical_compute_s, usage.times.compute_s);
  bound.running_s.assign(machine.devices.size(), 0.0);
  for (std::size_t d = 0; d < machine.devices.size(); ++d)
    if (folding.endpoint_class[d] != Folding::none)
      bound.running_s[d] = execution.usage[folding.endpoint_class[d]].times.running_s();
  bound_by_links(plan, machine, table, folding, execution, bound);
  if (plan.input) {
    const double with_input_s = step_with_input_s(*plan.input, plan.steps, bound.step_time_s);
    bound.input_wait_s = with_input_s - bound.step_time_s;
    bound.step_time_s = with_input_s;
  }
  for (double* each : {&bound.step_time_s, &bound.critical_compute_s, &bound.input_wait_s})
    *each /= plan.steps;
  for (double& running_s : bound.running_s) running_s /= plan.steps;
  if (bound.link) bound.link->bytes /= plan.steps, bound.link->free_until_s /= plan.steps;
  return bound;
}

}  // namespace convoy::replays
