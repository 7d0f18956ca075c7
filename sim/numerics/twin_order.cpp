// SPDX-License-Identifier: MIT
#include "sim/numerics/twin_order.h"

#include <algorithm>
#include <map>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace convoy::inline numerics {
namespace {

constexpr std::uint32_t no_group = 0xffffffff;

/// Events as numbers, with what each waits for.
class EventGraph {
 public:
  EventGraph(const Plan& plan, const Machine& machine, const std::vector<PatternEnds>& ends,
             const ReplayResult& replayed)
      : plan_(plan), ends_(ends), first_(machine.endpoint_count(), 0) {
    for (std::uint32_t r = 0; r < plan.roles.size(); ++r)
      for (const EndpointId e : plan.roles[r].members) add_member(r, e, replayed);
    for (std::uint32_t r = 0; r < plan.roles.size(); ++r)
      for (const EndpointId e : plan.roles[r].members) add_waits(r, e);
  }

  std::vector<TwinEvent> sorted() {
    using Ready = std::tuple<double, std::size_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (std::size_t n = 0; n < events_.size(); ++n)
      if (waits_[n] == 0) ready.emplace(times_s_[n], n);
    std::vector<TwinEvent> order;
    while (!ready.empty()) {
      const std::size_t n = std::get<1>(ready.top());
      ready.pop();
      order.push_back(events_[n]);
      for (const std::size_t next : next_[n])
        if (--waits_[next] == 0) ready.emplace(times_s_[next], next);
    }
    if (order.size() < events_.size()) throw std::runtime_error("tasks of the plan wait for each other");
    return order;
  }

 private:
  std::size_t begin_of(EndpointId e, TaskId t) const { return first_[e] + 2 * t; }
  std::size_t end_of(EndpointId e, TaskId t) const { return first_[e] + 2 * t + 1; }

  void add_member(std::uint32_t r, EndpointId e, const ReplayResult& replayed) {
    first_[e] = events_.size();
    const std::vector<TaskTimes>& times = replayed.timelines[replayed.timeline_of[e]].tasks;
    for (TaskId t = 0; t < plan_.roles[r].program.size(); ++t)
      for (const bool begins : {true, false}) {
        const Task& task = plan_.roles[r].program[t];
        events_.push_back({e, r, t, begins});
        times_s_.push_back(begins ? times[t].start_s : times[t].end_s);
        if (begins && (task.kind == Task::Kind::send || task.kind == Task::Kind::collective))
          starts_[{task.comm, e}] = begin_of(e, t);
      }
    next_.resize(events_.size());
    waits_.resize(events_.size(), 0);
  }

  void wait(std::size_t n, std::size_t for_event) {
    next_[for_event].push_back(n);
    ++waits_[n];
  }

  void add_waits(std::uint32_t r, EndpointId e) {
    std::map<int, TaskId> last;  // by stream
    for (TaskId t = 0; t < plan_.roles[r].program.size(); ++t) {
      const Task& task = plan_.roles[r].program[t];
      wait(end_of(e, t), begin_of(e, t));
      for (const TaskId before : task.after) wait(begin_of(e, t), end_of(e, before));
      if (task.stream != Task::no_stream) {
        if (const auto earlier = last.find(task.stream); earlier != last.end())
          wait(begin_of(e, t), end_of(e, earlier->second));
        last[task.stream] = t;
      }
      if (task.kind == Task::Kind::compute) continue;
      const std::uint32_t pattern = plan_.communications[task.comm].pattern;
      if (task.kind == Task::Kind::receive)
        for (const EndpointId sender : ends_[pattern].senders[e]) wait_for_start(end_of(e, t), task, sender);
      if (task.kind == Task::Kind::collective)
        for (const EndpointId other : plan_.patterns[pattern].groups[ends_[pattern].group[e]])
          wait_for_start(end_of(e, t), task, other);
    }
  }
  void wait_for_start(std::size_t n, const Task& task, EndpointId of) {
    if (const auto start = starts_.find({task.comm, of}); start != starts_.end()) wait(n, start->second);
  }

  const Plan& plan_;
  const std::vector<PatternEnds>& ends_;
  std::vector<std::size_t> first_;  ///< by endpoint: the beginning of its first task
  std::vector<TwinEvent> events_;
  std::vector<double> times_s_;
  std::vector<std::vector<std::size_t>> next_;
  std::vector<std::uint32_t> waits_;
  std::map<std::pair<CommId, EndpointId>, std::size_t> starts_;
};

}  // namespace

PatternEnds::PatternEnds(const Pattern& pattern, std::size_t endpoints)
    : senders(endpoints), group(endpoints, no_group) {
  std::vector<bool> known(endpoints, false);
  for (std::uint32_t g = 0; g < pattern.groups.size(); ++g) {
    const std::vector<EndpointId>& members = pattern.groups[g];
    for (const EndpointId e : members) group[e] = g;
    for (const Round& round : pattern.rounds)
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double) {
        const EndpointId receiver = members[to];
        senders[receiver].push_back(members[from]);
        if (!known[receiver]) receivers.push_back(receiver);
        known[receiver] = true;
      });
  }
}

std::vector<TwinEvent> twin_order(const Plan& plan, const Machine& machine,
                                  const std::vector<PatternEnds>& ends, const ReplayResult& replayed) {
  return EventGraph(plan, machine, ends, replayed).sorted();
}

}  // namespace convoy::numerics
