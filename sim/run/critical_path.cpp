// SPDX-License-Identifier: MIT
#include "sim/run/critical_path.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace convoy::inline runs {
namespace {

/// A task of an endpoint.
struct At {
  EndpointId endpoint = 0;
  TaskId task = 0;
};

class Walk {
 public:
  Walk(const Plan& plan, const ReplayResult& replayed) : plan_(plan), replayed_(replayed) {
    for (std::uint32_t r = 0; r < plan.roles.size(); ++r) {
      const std::vector<Task>& program = plan.roles[r].program;
      for (TaskId t = 0; t < program.size(); ++t)
        if (program[t].kind != Task::Kind::compute)
          task_of_.emplace(std::tuple(r, program[t].comm, program[t].kind), t);
    }
  }

  std::vector<std::set<TaskId>> path() const {
    std::vector<std::set<TaskId>> critical(replayed_.timelines.size());
    for (std::optional<At> at = last(); at; at = before(*at))
      if (!critical[replayed_.timeline_of[at->endpoint]].insert(at->task).second) break;
    return critical;
  }

 private:
  bool has_times(EndpointId endpoint) const {
    return replayed_.timeline_of[endpoint] != ReplayResult::no_timeline;
  }
  const Timeline& timeline(EndpointId endpoint) const {
    return replayed_.timelines[replayed_.timeline_of[endpoint]];
  }
  const Role& role(EndpointId endpoint) const { return plan_.roles[timeline(endpoint).role]; }
  double end_s(const At& at) const { return timeline(at.endpoint).tasks[at.task].end_s; }

  void keep_later(std::optional<At>& best, const At& other) const {
    if (!best || end_s(other) > end_s(*best)) best = other;
  }

  std::optional<At> last() const {
    std::optional<At> best;
    for (const Timeline& each : replayed_.timelines)
      for (TaskId t = 0; t < each.tasks.size(); ++t) keep_later(best, {each.representative, t});
    return best;
  }

  /// What ended last of what a task waits for on its own endpoint.
  std::optional<At> local(const At& at) const {
    const std::vector<Task>& program = role(at.endpoint).program;
    const Task& task = program[at.task];
    std::optional<At> best;
    for (const TaskId other : task.after) keep_later(best, {at.endpoint, other});
    if (task.stream == Task::no_stream) return best;
    for (TaskId other = at.task; other-- > 0;)
      if (program[other].stream == task.stream) {
        keep_later(best, {at.endpoint, other});
        break;
      }
    return best;
  }

  std::optional<At> before(const At& at) const {
    const Task& task = role(at.endpoint).program[at.task];
    std::optional<At> best = local(at);
    if (task.kind != Task::Kind::collective && task.kind != Task::Kind::receive) return best;
    const Pattern& pattern = plan_.patterns[plan_.communications[task.comm].pattern];
    for (const std::vector<EndpointId>& group : pattern.groups) {
      if (std::find(group.begin(), group.end(), at.endpoint) == group.end()) continue;
      const auto wait_for = [&](EndpointId member) {
        const std::optional<At> part = part_of(member, task.comm, Task::Kind::collective);
        if (!part) return;
        if (const std::optional<At> ready = local(*part)) keep_later(best, *ready);
      };
      if (plan_.communications[task.comm].purpose == CommPurpose::neighbours)
        for (const Round& round : pattern.rounds)
          round.for_each_message([&](std::uint32_t from, std::uint32_t to, double) {
            if (group[to] == at.endpoint) wait_for(group[from]);
          });
      else if (task.kind == Task::Kind::collective)
        for (const EndpointId member : group) wait_for(member);
      else
        for (const Round& round : pattern.rounds)
          round.for_each_message([&](std::uint32_t from, std::uint32_t to, double) {
            if (group[to] != at.endpoint) return;
            if (const std::optional<At> sent = part_of(group[from], task.comm, Task::Kind::send))
              keep_later(best, *sent);
          });
    }
    return best;
  }

  std::optional<At> part_of(EndpointId endpoint, CommId comm, Task::Kind kind) const {
    if (!has_times(endpoint)) return std::nullopt;
    const auto found = task_of_.find({timeline(endpoint).role, comm, kind});
    if (found == task_of_.end()) return std::nullopt;
    return At{endpoint, found->second};
  }

  const Plan& plan_;
  const ReplayResult& replayed_;
  std::map<std::tuple<std::uint32_t, CommId, Task::Kind>, TaskId> task_of_;
};

}  // namespace

std::vector<std::set<TaskId>> critical_path(const Plan& plan, const ReplayResult& replayed) {
  if (plan.service() || plan.endless()) return std::vector<std::set<TaskId>>(replayed.timelines.size());
  return Walk(plan, replayed).path();
}

}  // namespace convoy::runs
