// SPDX-License-Identifier: MIT
#include "sim/plan/repetition.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace convoy::inline plans {
namespace {

/// Makes the number of its micro-batch in a name (" #3", at the end or before a comma) so much larger.
void renumber(std::string& name, std::int64_t more) {
  const std::size_t mark = name.rfind(" #");
  if (mark == std::string::npos || more == 0) return;
  const std::size_t begin = mark + 2;
  std::size_t end = begin;
  while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
  if (end == begin || (end < name.size() && name[end] != ',')) return;
  std::int64_t number = 0;
  std::from_chars(name.data() + begin, name.data() + end, number);
  name.replace(begin, end - begin, std::to_string(number + more));
}

/// Lists more periods of every program of a plan.
class Listing {
 public:
  Listing(Plan plan, std::uint32_t periods) : plan_(std::move(plan)), periods_(periods) {
    for (CommId c = 0; c < plan_.communications.size(); ++c) known_.emplace(plan_.communications[c].name, c);
  }

  Plan make() {
    std::map<const Task*, std::vector<std::size_t>> roles_of;  // by program, which roles share
    for (std::size_t r = 0; r < plan_.roles.size(); ++r)
      if (plan_.roles[r].repeats) roles_of[plan_.roles[r].program.get().data()].push_back(r);
    for (const auto& [program, roles] : roles_of) {
      SharedList<Task> longer = std::move(plan_.roles[roles.front()].program);
      for (const std::size_t r : roles) plan_.roles[r].program.clear();
      list_more(*plan_.roles[roles.front()].repeats, longer.edit());
      for (const std::size_t r : roles) plan_.roles[r].program = longer;
    }
    for (Role& role : plan_.roles) {
      if (!role.repeats) continue;
      role.repeats->listed += periods_;
      role.repeats->left_out -= periods_;
      if (role.repeats->left_out == 0) role.repeats.reset();
    }
    return std::move(plan_);
  }

 private:
  void list_more(const RepeatedTasks& repeats, std::vector<Task>& program) {
    std::vector<Task> rest(std::move_iterator(program.begin() + repeats.end()),
                           std::move_iterator(program.end()));
    program.resize(repeats.end());
    program.reserve(program.size() + std::size_t{periods_} * repeats.tasks + rest.size());
    for (std::uint32_t period = 1; period <= periods_; ++period)
      for (TaskId t = repeats.end() - repeats.tasks; t < repeats.end(); ++t)
        program.push_back(later(program[t], repeats, period));
    for (Task& task : rest) program.push_back(later(std::move(task), repeats, periods_));
  }

  /// What a task does so many periods later.
  Task later(Task task, const RepeatedTasks& repeats, std::uint32_t periods) {
    const std::int64_t micro_batches = repeats.micro_batches * periods;
    renumber(task.name, micro_batches);
    for (TaskId& before : task.after) before += repeats.tasks * periods;
    task.micro_batches_later += micro_batches;
    if (task.kind != Task::Kind::compute) task.comm = later(task.comm, micro_batches);
    return task;
  }

  /// Sender and receiver find the same communication by its name.
  CommId later(CommId comm, std::int64_t micro_batches) {
    std::string name = plan_.communications[comm].name;
    renumber(name, micro_batches);
    const auto [it, fresh] = known_.try_emplace(name, static_cast<CommId>(plan_.communications.size()));
    if (fresh) {
      Communication another = plan_.communications[comm];
      another.name = std::move(name);
      plan_.communications.push_back(std::move(another));
    }
    return it->second;
  }

  Plan plan_;
  std::uint32_t periods_;
  std::map<std::string, CommId> known_;
};

bool rotates(const Pattern& pattern) {
  return std::any_of(pattern.rounds.begin(), pattern.rounds.end(),
                     [](const Round& round) { return round.rotation.has_value(); });
}

}  // namespace

const RepeatedTasks* left_out(const Plan& plan) {
  for (const Role& role : plan.roles)
    if (role.repeats) return &*role.repeats;
  return nullptr;
}

bool leaves_only_computing_out(const Plan& plan) {
  return left_out(plan) != nullptr && std::ranges::all_of(plan.roles, [](const Role& role) {
           return !role.repeats ||
                  (role.repeats->tasks == 1 && role.program[role.repeats->first].kind == Task::Kind::compute);
         });
}

std::vector<double> times_of_communications(const Plan& plan) {
  std::vector<double> times(plan.communications.size(), 1.0);
  for (const Role& role : plan.roles) {
    if (!role.repeats) continue;
    for (TaskId t = role.repeats->end() - role.repeats->tasks; t < role.repeats->end(); ++t)
      if (const Task& task = role.program[t];
          task.kind == Task::Kind::send || task.kind == Task::Kind::collective)
        times[task.comm] = role.times(t);
  }
  return times;
}

std::vector<double> step_bytes(const Plan& plan) {
  std::vector<double> bytes(plan.patterns.size(), 0.0);
  const std::vector<double> times = times_of_communications(plan);
  for (CommId c = 0; c < plan.communications.size(); ++c) {
    const Communication& comm = plan.communications[c];
    if (plan.endless())
      bytes[comm.pattern] = comm.bytes * plan.endless()->uses_per_step[comm.pattern];
    else
      bytes[comm.pattern] += times[c] * comm.bytes / plan.steps;
  }
  return bytes;
}

std::string name_of(const Task& task, const PlanOp& op) {
  std::string name = op.name;
  renumber(name, task.micro_batches_later);
  return name;
}

Plan with_more_listed(Plan plan, std::uint64_t periods) {
  const RepeatedTasks* repeats = left_out(plan);
  if (repeats == nullptr || periods == 0) return plan;
  const std::uint64_t more = std::min(periods, repeats->left_out);
  return Listing(std::move(plan), static_cast<std::uint32_t>(more)).make();
}

Plan with_all_listed(Plan plan) {
  for (Pattern& pattern : plan.patterns) {
    if (!rotates(pattern)) continue;
    std::vector<Round> rounds;
    for (const Round& round : pattern.rounds) {
      std::vector<Round> listed = round.listed();
      std::move(listed.begin(), listed.end(), std::back_inserter(rounds));
    }
    pattern.rounds = std::move(rounds);
  }
  return with_more_listed(std::move(plan), std::numeric_limits<std::uint64_t>::max());
}

bool lists_all(const Plan& plan) {
  return left_out(plan) == nullptr && std::none_of(plan.patterns.begin(), plan.patterns.end(), rotates);
}

}  // namespace convoy::plans
