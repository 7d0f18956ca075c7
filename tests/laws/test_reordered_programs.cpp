// SPDX-License-Identifier: MIT
// A program is an order only where it says so: tasks that neither share a stream nor wait for one another may
// be written in any order, except sends whose messages go over one connection in order.
#include <doctest/doctest.h>

#include <map>

#include "sim/plan/validate.h"
#include "tests/laws/changed_plans.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

bool is_in_order(const Plan& plan, const Task& task) {
  return task.kind == Task::Kind::send && plan.patterns[plan.communications[task.comm].pattern].in_order;
}

/// Tasks of `program` in a random order in which every task stands behind those that it waits for.
std::vector<TaskId> random_order(const Plan& plan, const std::vector<Task>& program, Dice& dice) {
  constexpr int in_order_sends = Task::no_stream - 1;
  std::vector<std::vector<TaskId>> followers(program.size());
  std::vector<std::size_t> waits(program.size(), 0);
  std::map<int, TaskId> last_of_stream;
  for (TaskId id = 0; id < program.size(); ++id) {
    std::vector<TaskId> before = program[id].after;
    const int stream = is_in_order(plan, program[id]) ? in_order_sends : program[id].stream;
    if (stream != Task::no_stream) {
      if (const auto last = last_of_stream.find(stream); last != last_of_stream.end())
        before.push_back(last->second);
      last_of_stream[stream] = id;
    }
    for (const TaskId other : before) followers[other].push_back(id);
    waits[id] = before.size();
  }
  std::vector<TaskId> ready, order;
  for (TaskId id = 0; id < program.size(); ++id)
    if (waits[id] == 0) ready.push_back(id);
  while (!ready.empty()) {
    std::swap(ready[static_cast<std::size_t>(dice.between(0, static_cast<int>(ready.size()) - 1))],
              ready.back());
    const TaskId next = ready.back();
    ready.pop_back();
    order.push_back(next);
    for (const TaskId follower : followers[next])
      if (--waits[follower] == 0) ready.push_back(follower);
  }
  return order;
}

/// @return whether anything stands elsewhere now
bool reorder_programs(Plan& plan, Dice& dice) {
  bool changed = false;
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r) {
    const std::vector<Task> before = plan.roles[r].program;
    const std::vector<TaskId> order = random_order(plan, before, dice);
    std::vector<TaskId> place(before.size());
    for (TaskId id = 0; id < order.size(); ++id) place[order[id]] = id;
    for (TaskId id = 0; id < order.size(); ++id) {
      Task& task = plan.roles[r].program[id] = before[order[id]];
      for (TaskId& other : task.after) other = place[other];
      changed = changed || order[id] != id;
    }
    if (auto* endless = std::get_if<EndlessRun>(&plan.course))
      for (std::vector<EndlessRun::End>& step : endless->steps)
        for (EndlessRun::End& end : step)
          if (end.role == r) end.task = place[end.task];
  }
  return changed;
}

}  // namespace

TEST_CASE("programs written in another order that keeps streams and dependencies take as long") {
  int changed = 0;
  for_random_plans(8, [&](const Experiment& experiment, Dice& dice) {
    Plan plan = experiment.plan();
    if (!reorder_programs(plan, dice)) return;
    ++changed;
    validate(plan, experiment.machine());
    check_follows(experiment.run(), replay(plan, experiment.machine(), experiment.cost(), {}));
  });
  CHECK(changed > 50);
}
