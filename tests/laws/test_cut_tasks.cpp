// SPDX-License-Identifier: MIT
// Where a task ends and the next one begins is a matter of writing: a plan whose tasks are cut in two takes
// as long, bytes and memory included. What is carried from task to task must not be lost on the way: the
// host's issue queue, memory, a stop.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/plan/validate.h"
#include "tests/laws/changed_plans.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// With what the framework costs the host, which lab::Experiment leaves out.
CostModel with_software(const Experiment& experiment) {
  return CostModel(Software(experiment.graph().options));
}

/// Where `task` may be cut: behind one of its operations, or anywhere in a host's time.
bool can_be_cut(const Task& task) {
  return task.kind == Task::Kind::compute && (task.ops.size() > 1 || task.seconds > 0);
}

std::pair<Task, Task> cut(const Task& task, Dice& dice) {
  Task first = task, second = task;
  first.name += " (1)";
  second.name += " (2)";
  const auto at = task.ops.empty() ? 0 : dice.between(1, static_cast<int>(task.ops.size()) - 1);
  first.ops.resize(static_cast<std::size_t>(at));
  std::vector<PlanOp>& rest = second.ops.edit();
  rest.erase(rest.begin(), rest.begin() + at);
  first.seconds = task.seconds * 0.3;
  second.seconds = task.seconds - first.seconds;
  second.begins_step = false;
  return {first, second};
}

/// Most tasks in two, the second one after the first one.
/// @return how many were cut
int cut_tasks(Plan& plan, Dice& dice) {
  int count = 0;
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r) {
    std::vector<Task> program;
    std::vector<TaskId> last_part;  // by task as it was
    for (Task task : plan.roles[r].program) {
      for (TaskId& before : task.after) before = last_part[before];
      if (can_be_cut(task) && dice.between(0, 3) > 0) {
        auto [first, second] = cut(task, dice);
        program.push_back(first);
        second.after = {static_cast<TaskId>(program.size() - 1)};
        program.push_back(second);
        ++count;
      } else {
        program.push_back(std::move(task));
      }
      last_part.push_back(static_cast<TaskId>(program.size() - 1));
    }
    plan.roles[r].program = std::move(program);
    if (auto* endless = std::get_if<EndlessRun>(&plan.course))
      for (std::vector<EndlessRun::End>& step : endless->steps)
        for (EndlessRun::End& end : step)
          if (end.role == r) end.task = last_part[end.task];
  }
  return count;
}

}  // namespace

TEST_CASE("cutting tasks in two changes no time, no bytes and no memory") {
  int cuts = 0, waits = 0;
  for_random_plans(8, [&](const Experiment& experiment, Dice& dice) {
    const CostModel cost = with_software(experiment);
    const ReplayResult whole = replay(experiment.plan(), experiment.machine(), cost, {});
    Plan plan = experiment.plan();
    cuts += cut_tasks(plan, dice);
    validate(plan, experiment.machine());
    check_follows(whole, replay(plan, experiment.machine(), cost, {}));
    for (const EndpointUsage usage : whole.endpoints) waits += usage.issue_wait_s > 0 ? 1 : 0;
  });
  CHECK(cuts > 200);
  CHECK(waits > 50);  // of devices for the hosts that issue
}

TEST_CASE("cutting tasks in two changes nothing where devices stop and go on") {
  for_random_plans(4, [&](const Experiment& experiment, Dice& dice) {
    if (experiment.plan().endless()) return;
    const CostModel cost = with_software(experiment);
    const double step_s = replay(experiment.plan(), experiment.machine(), cost, {}).step_time_s;
    ReplayOptions options;
    for (EndpointId d = 0; d < experiment.machine().devices.size(); ++d) {
      const double at_s = step_s * dice.between(1, 9) / 10;
      options.disturbances.stops.push_back({at_s, d, at_s + step_s * dice.between(1, 5) / 10});
    }
    Plan plan = experiment.plan();
    cut_tasks(plan, dice);
    check_follows(replay(experiment.plan(), experiment.machine(), cost, options),
                  replay(plan, experiment.machine(), cost, options));
  });
}
