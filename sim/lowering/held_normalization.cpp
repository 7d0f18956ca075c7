// SPDX-License-Identifier: MIT
#include "sim/lowering/held_normalization.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "sim/lowering/grouped_launch.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
namespace {

/// W over the time of backward between two normalizations: least squares over InceptionV3 and ResNet-50 in
/// half precision on 2, 4 and 8 devices of one host (tf_cnn_benchmarks; role fit of
/// results/published/scaling_transports.yaml), TensorFlow 1.15 on RTX 2080 Ti, and TensorFlow 2.3 on A100 and
/// 2.2 on RTX 2080 Ti.
double spread_of_arrivals(Framework framework) { return framework == Framework::tensorflow1 ? 1.52 : 1.94; }

bool are_held(const GroupSync& group, const TrainingGraph& graph, const Machine& machine) {
  const TrainingOptions& options = graph.options;
  return one_process_overlaps(group, graph, machine) && options.layout == Layout::nhwc &&
         element_bytes(options.precision) == 2;
}

bool is_normalization_backward(const Work& work) {
  return work.kind == KernelKind::normalization && work.phase == Phase::data_gradient;
}

/// A program put together anew, task by task: a collective stands behind the task that completes its
/// gradients, so that what comes after that task can wait for it.
class HeldProgram {
 public:
  explicit HeldProgram(const std::vector<Task>& old) : old_(old), now_(old.size(), none) {
    for (TaskId t = 0; t < old.size(); ++t)
      if (old[t].kind == Task::Kind::collective) collectives_.push_back(t);
  }

  /// A task of the old program that computes; its operations are added one by one.
  void begin(TaskId t) {
    task_ = renumbered(t);
    task_.ops.clear();
  }
  void add(PlanOp op) { task_.ops.push_back(std::move(op)); }
  void end(TaskId t) {
    now_[t] = append(std::move(task_));
    for (; next_ < collectives_.size() && is_complete(old_[collectives_[next_]]); ++next_) {
      const TaskId collective = collectives_[next_];
      now_[collective] = append(renumbered(collective));
      sent_.push_back(now_[collective]);
    }
  }

  /// What is added from here on waits for the collectives that have been sent since the last call. Returns
  /// the last of them.
  std::optional<CommId> wait_for_sent() {
    if (sent_.empty()) return std::nullopt;
    const CommId last = program_[sent_.back()].comm;
    Task rest;
    rest.name = task_.name + ", held";
    rest.after = std::exchange(sent_, {});
    if (task_.ops.empty())
      rest.after.insert(rest.after.end(), task_.after.begin(), task_.after.end());
    else
      append(std::move(task_));
    task_ = std::move(rest);
    return last;
  }

  std::vector<Task> finish() { return std::move(program_); }

 private:
  static constexpr TaskId none = std::numeric_limits<TaskId>::max();

  bool is_complete(const Task& collective) const {
    return std::all_of(collective.after.begin(), collective.after.end(),
                       [&](TaskId before) { return now_[before] != none; });
  }
  Task renumbered(TaskId t) const {
    Task task = old_[t];
    for (TaskId& before : task.after) before = now_[before];
    return task;
  }
  TaskId append(Task task) {
    program_.push_back(std::move(task));
    return static_cast<TaskId>(program_.size() - 1);
  }

  const std::vector<Task>& old_;
  std::vector<TaskId> now_;          ///< by task of the old program: its number in the new one
  std::vector<TaskId> collectives_;  ///< of the old program
  std::size_t next_ = 0;             ///< of these, the first that has not been sent
  std::vector<TaskId> sent_;         ///< in the new program
  std::vector<Task> program_;
  Task task_;
};

}  // namespace

void hold_normalizations(Plan& plan, Role& role, const GroupSync& group, const TrainingGraph& graph,
                         const Machine& machine, const CostModel& cost, const DeviceType& type) {
  if (!are_held(group, graph, machine)) return;
  const double devices = group.members();
  const double wait = spread_of_arrivals(graph.options.framework) * (devices - 1) / (devices + 1);
  HeldProgram held(role.program);
  double since_s = 0;  // time of backward since the normalization before
  for (TaskId t = 0; t < role.program.size(); ++t) {
    if (role.program[t].kind == Task::Kind::collective) continue;
    held.begin(t);
    for (const PlanOp& op : role.program[t].ops) {
      if (is_normalization_backward(op.work)) {
        if (const std::optional<CommId> comm = held.wait_for_sent()) {
          double& overhead_s = plan.communications[*comm].overhead_s;
          overhead_s = std::max(overhead_s, machine.collective_overhead_s + wait * since_s);
        }
        since_s = 0;
      }
      if (op.work.phase != Phase::forward) since_s += cost.time_s(op.work, op.images, type);
      held.add(op);
    }
    held.end(t);
  }
  role.program = held.finish();
}

}  // namespace convoy::lowering
