// SPDX-License-Identifier: MIT
#include "tests/prove/plan_mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "sim/prove/happens_before.h"

namespace convoy::lab {
namespace {

/// A task, by role and number.
struct TaskAt {
  std::size_t role;
  TaskId task;
};

template <class Wanted>
std::vector<TaskAt> tasks_of(const Plan& plan, Wanted wanted) {
  std::vector<TaskAt> found;
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    for (TaskId t = 0; t < plan.roles[r].program.size(); ++t)
      if (wanted(plan.roles[r].program[t])) found.push_back({r, t});
  return found;
}

Task& at(Plan& plan, const TaskAt& task) { return plan.roles[task.role].program[task.task]; }

std::string name_at(Plan& plan, const TaskAt& task) {
  return fmt::format("{}: {}", plan.roles[task.role].name, at(plan, task).name);
}

bool is_sum(const Plan& plan, const Task& task) {
  return task.kind == Task::Kind::collective && plan.communications[task.comm].meaning != no_meaning;
}

/// Patterns that some message of the plan uses.
std::vector<std::uint32_t> used_patterns(const Plan& plan, bool of_collectives) {
  std::vector<std::uint32_t> used;
  for (const Role& role : plan.roles)
    for (const Task& task : role.program)
      if (task.kind != Task::Kind::compute && (task.kind == Task::Kind::collective) == of_collectives)
        used.push_back(plan.communications[task.comm].pattern);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

std::string drop_message(Plan& plan, Dice& dice) {
  std::vector<std::uint32_t> used = used_patterns(plan, dice.coin());
  if (used.empty()) return "";
  const std::uint32_t of = dice.one_of(used);
  Pattern& pattern = plan.patterns[of];
  if (pattern.rounds.empty()) return "";
  Round& round =
      pattern.rounds[static_cast<std::size_t>(dice.between(0, static_cast<int>(pattern.rounds.size()) - 1))];
  if (pattern.groups.size() > 1) {
    pattern.groups.erase(pattern.groups.begin() +
                         dice.between(0, static_cast<int>(pattern.groups.size()) - 1));
    return fmt::format("a group of pattern {}", of);
  }
  if (round.pairs.empty()) return "";
  const int pair = dice.between(0, static_cast<int>(round.pairs.size()) - 1);
  round.pairs.erase(round.pairs.begin() + pair);
  if (round.fractions.size() > 1) round.fractions.erase(round.fractions.begin() + pair);
  return fmt::format("message {} of pattern {}", pair, of);
}

void erase_task(Plan& plan, const TaskAt& task) {
  std::vector<Task>& program = plan.roles[task.role].program;
  const std::vector<TaskId> instead = program[task.task].after;
  program.erase(program.begin() + task.task);
  for (Task& other : program) {
    std::vector<TaskId> after;
    for (const TaskId before : other.after) {
      if (before == task.task)
        after.insert(after.end(), instead.begin(), instead.end());
      else
        after.push_back(before > task.task ? before - 1 : before);
    }
    other.after = std::move(after);
  }
}

std::string drop_task(Plan& plan, Dice& dice) {
  const std::vector<TaskAt> found =
      tasks_of(plan, [](const Task& task) { return task.kind != Task::Kind::compute; });
  if (found.empty()) return "";
  const TaskAt task = dice.one_of(found);
  const std::string name = name_at(plan, task);
  if (at(plan, task).kind == Task::Kind::collective && dice.coin()) {  // by all members
    const CommId comm = at(plan, task).comm;
    for (std::size_t r = 0; r < plan.roles.size(); ++r)
      for (TaskId t = static_cast<TaskId>(plan.roles[r].program.size()); t-- > 0;)
        if (const Task& of = plan.roles[r].program[t]; of.kind == Task::Kind::collective && of.comm == comm)
          erase_task(plan, {r, t});
  } else {
    erase_task(plan, task);
  }
  return name;
}

std::string change_rounds(Plan& plan, Dice& dice, bool lose) {
  const std::vector<std::uint32_t> used = used_patterns(plan, true);
  if (used.empty()) return "";
  const std::uint32_t of = dice.one_of(used);
  std::vector<Round>& rounds = plan.patterns[of].rounds;
  if (rounds.empty()) return "";
  const int round = dice.between(0, static_cast<int>(rounds.size()) - 1);
  if (Round& chosen = rounds[static_cast<std::size_t>(round)]; !lose)
    ++chosen.repeat;
  else if (chosen.repeat > 1)
    --chosen.repeat;
  else
    rounds.erase(rounds.begin() + round);
  return fmt::format("round {} of pattern {}", round, of);
}

std::string repeat_collective(Plan& plan, Dice& dice) {
  const std::vector<TaskAt> found = tasks_of(plan, [&](const Task& task) { return is_sum(plan, task); });
  if (found.empty()) return "";
  const CommId comm = at(plan, dice.one_of(found)).comm;
  plan.communications.push_back(plan.communications[comm]);
  for (Role& role : plan.roles)
    for (TaskId t = 0; t < role.program.size(); ++t)
      if (role.program[t].kind == Task::Kind::collective && role.program[t].comm == comm) {
        Task again = role.program[t];
        again.comm = static_cast<CommId>(plan.communications.size() - 1);
        again.after.push_back(t);
        role.program.push_back(std::move(again));
        break;
      }
  return plan.communications[comm].name;
}

/// With its bytes.
std::string change_bucket(Plan& plan, const TrainingGraph& graph, Dice& dice, bool lose) {
  std::vector<BucketMeaning>& buckets = plan.meaning->buckets;
  if (buckets.empty() || (!lose && buckets.size() < 2)) return "";
  const int from = dice.between(0, static_cast<int>(buckets.size()) - 1);
  std::vector<std::size_t>& tensors = buckets[static_cast<std::size_t>(from)].parameters;
  const int tensor = dice.between(0, static_cast<int>(tensors.size()) - 1);
  const std::size_t parameter = tensors[static_cast<std::size_t>(tensor)];
  const std::size_t changed =
      lose ? static_cast<std::size_t>(from) : (static_cast<std::size_t>(from) + 1) % buckets.size();
  if (lose)
    tensors.erase(tensors.begin() + tensor);
  else
    buckets[changed].parameters.push_back(parameter);
  const double bytes =
      buckets[changed].element_bytes * static_cast<double>(graph.parameters[parameter].elements);
  for (Communication& comm : plan.communications)
    if (comm.meaning != no_meaning && plan.meaning->communications[comm.meaning].bucket == changed)
      comm.bytes += lose ? -bytes : bytes;
  return fmt::format("parameter {} of bucket {}", parameter, from);
}

std::string lose_result(Plan& plan, Dice& dice) {
  std::vector<CommMeaning*> found;
  for (CommMeaning& carries : plan.meaning->communications)
    if (!carries.results.empty()) found.push_back(&carries);
  if (found.empty()) return "";
  std::vector<CommMeaning::Result>& results = dice.one_of(found)->results;
  results.erase(results.begin() + dice.between(0, static_cast<int>(results.size()) - 1));
  return "of a message";
}

/// A compute task's operation of the graph: not of a device that has nothing of it to do.
PlanOp* pick_op(Plan& plan, Dice& dice, std::size_t& index, Task*& of) {
  const auto is_of_graph = [&](const PlanOp& op) {
    const bool has_work =
        op.work.flops_per_image + op.work.flops_fixed + op.work.bytes_per_image + op.work.bytes_fixed > 0;
    return has_work && op.meaning != no_meaning &&
           plan.meaning->operations[op.meaning].operation != no_meaning;
  };
  const std::vector<TaskAt> found = tasks_of(
      plan, [&](const Task& task) { return std::any_of(task.ops.begin(), task.ops.end(), is_of_graph); });
  if (found.empty()) return nullptr;
  of = &at(plan, dice.one_of(found));
  std::vector<std::size_t> ops;
  for (std::size_t i = 0; i < of->ops.size(); ++i)
    if (is_of_graph(of->ops[i])) ops.push_back(i);
  index = dice.one_of(ops);
  return &of->ops[index];
}

std::string drop_operation(Plan& plan, Dice& dice) {
  std::size_t index = 0;
  Task* task = nullptr;
  const PlanOp* op = pick_op(plan, dice, index, task);
  if (!op) return "";
  const std::string name = op->name;
  task->ops.edit().erase(task->ops.begin() + static_cast<std::ptrdiff_t>(index));
  return name;
}

/// Only waits without which something may come in another order.
std::string remove_wait(Plan& plan, Dice& dice) {
  const std::vector<TaskAt> found = tasks_of(plan, [](const Task& task) { return !task.after.empty(); });
  for (int tries = 0; tries < 20 && !found.empty(); ++tries) {
    const TaskAt task = dice.one_of(found);
    Role& role = plan.roles[task.role];
    const RoleOrder before(role);
    std::vector<TaskId>& after = role.program[task.task].after;
    const int wait = dice.between(0, static_cast<int>(after.size()) - 1);
    const TaskId removed = after[static_cast<std::size_t>(wait)];
    after.erase(after.begin() + wait);
    const RoleOrder now(role);
    if (now.begins != before.begins || now.ends != before.ends)
      return fmt::format("{} for {}", name_at(plan, task), role.program[removed].name);
    after.insert(after.begin() + wait, removed);
  }
  return "";
}

std::string move_border(Plan& plan, Dice& dice) {
  std::size_t index = 0;
  Task* task = nullptr;
  PlanOp* op = pick_op(plan, dice, index, task);
  if (!op || plan.meaning->operations[op->meaning].images.count == 0) return "";
  ImageRange& images = plan.meaning->operations[op->meaning].images;
  if (dice.coin())
    images.first += dice.coin() ? 1 : -1;
  else
    op->images = images.count += dice.coin() ? 1 : -1;
  return op->name;
}

std::string change_bytes(Plan& plan, Dice& dice) {
  std::vector<Communication*> found;
  for (Communication& comm : plan.communications)
    if (comm.meaning != no_meaning && comm.bytes > 0) {
      const CommMeaning& carries = plan.meaning->communications[comm.meaning];
      // How many gradients the largest are, only compression knows.
      if (carries.bucket == no_meaning || plan.meaning->buckets[carries.bucket].element_bytes > 0)
        found.push_back(&comm);
    }
  if (found.empty()) return "";
  Communication& comm = *dice.one_of(found);
  comm.bytes += dice.coin() ? 4 : -4;
  return comm.name;
}

std::string swap_lanes(Plan& plan, Dice& dice) {
  for (const std::uint32_t of : used_patterns(plan, false)) {
    std::vector<std::vector<EndpointId>>& groups = plan.patterns[of].groups;
    if (groups.size() < 2 || dice.coin()) continue;
    std::swap(groups[0].back(), groups[1].back());
    return fmt::format("pattern {}", of);
  }
  return "";
}

std::string repeat_micro_batch(Plan& plan, Dice& dice) {
  std::size_t index = 0;
  Task* task = nullptr;
  const PlanOp* op = pick_op(plan, dice, index, task);
  if (!op) return "";
  OpMeaning& means = plan.meaning->operations[op->meaning];
  for (const OpMeaning& other : plan.meaning->operations)
    if (other.operation == means.operation && other.micro_batch != means.micro_batch && !means.is_dropped) {
      means.micro_batch = other.micro_batch;
      means.images = other.images;
      return op->name;
    }
  return "";
}

/// Of the memory that the graph's operations need: activations.
std::string free_early(Plan& plan, Dice& dice) {
  Role& role = dice.one_of(std::vector<Role*>{&plan.roles.front(), &plan.roles.back()})[0];
  std::vector<PlanOp*> ops;
  for (Task& task : role.program)
    for (PlanOp& op : task.ops) ops.push_back(&op);
  std::vector<std::size_t> frees;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (!ops[i]->frees.empty() && ops[i]->frees.back().memory_class == MemoryClass::activations)
      frees.push_back(i);
  if (frees.empty()) return "";
  const std::size_t last = dice.one_of(frees);
  const MemoryDelta freed = ops[last]->frees.back();
  if (std::any_of(ops[last]->allocates.begin(), ops[last]->allocates.end(),
                  [&](const MemoryDelta& made) { return made.bytes == freed.bytes; }))
    return "";  // what it may be that goes
  ops[last]->frees.pop_back();
  ops[last - 1]->frees.push_back(freed);
  return fmt::format("before {}", ops[last]->name);
}

template <class Do>
void for_each_op(Plan& plan, Do act) {
  for (Role& role : plan.roles)
    for (Task& task : role.program)
      for (PlanOp& op : task.ops)
        if (op.meaning != no_meaning) act(op, plan.meaning->operations[op.meaning]);
}

std::string drop_update(Plan& plan, const TrainingGraph& graph, Dice& dice) {
  const auto updates = [&](const PlanOp& op) {
    const OpMeaning* means = meaning_in_graph(*plan.meaning, op);
    return means && graph.operations[means->operation].phase == Phase::update
               ? graph.operations[means->operation].layer
               : no_meaning;
  };
  std::vector<std::uint32_t> layers;
  for_each_op(plan, [&](const PlanOp& op, const OpMeaning&) {
    if (updates(op) != no_meaning) layers.push_back(updates(op));
  });
  if (layers.empty()) return "";  // servers update
  const std::uint32_t layer = dice.one_of(layers);
  for (Role& role : plan.roles) {
    std::vector<std::pair<Task*, std::size_t>> found;
    for (Task& task : role.program)
      for (std::size_t i = 0; i < task.ops.size(); ++i)
        if (updates(task.ops[i]) == layer) found.emplace_back(&task, i);
    if (found.empty()) continue;
    const auto [task, index] = found.back();
    task->ops.edit().erase(task->ops.begin() + static_cast<std::ptrdiff_t>(index));
  }
  return graph.model.layers[layer].name;
}

/// Of plans that give all devices equally many.
std::string take_image(Plan& plan) {
  double images = 0;
  bool equal = true;
  const auto look = [&](const OpMeaning& means) {
    if (means.images.count == 0) return;
    equal = equal && (images == 0 || images == means.images.count);
    images = means.images.count;
  };
  for_each_op(plan, [&](const PlanOp&, const OpMeaning& means) { look(means); });
  if (!equal || images < 2) return "";
  const double left = (images - 1) / images;
  const auto shrink = [&](ImageRange& range) { range = {range.first * left, range.count * left}; };
  for_each_op(plan, [&](PlanOp& op, OpMeaning& means) {
    if (means.images.count > 0) op.images *= left;
    shrink(means.images);
  });
  for (CommMeaning& carries : plan.meaning->communications) shrink(carries.images);
  for (Communication& comm : plan.communications)
    if (comm.meaning != no_meaning && plan.meaning->communications[comm.meaning].images.count > 0)
      comm.bytes *= left;
  plan.images *= left;
  return fmt::format("{} images in place of {}", images - 1, images);
}

std::string change_work(Plan& plan, Dice& dice) {
  std::size_t index = 0, other_index = 0;
  Task *task = nullptr, *other_task = nullptr;
  PlanOp* op = pick_op(plan, dice, index, task);
  const PlanOp* other = pick_op(plan, dice, other_index, other_task);
  if (!op || op->operation == PlanOp::of_plan || other->operation == PlanOp::of_plan) return "";
  if (dice.coin()) {
    if (op->operation == other->operation) return "";
    op->operation = other->operation;
  } else {
    if (op->work.phase == Phase::update || op->work == other->work) return "";
    op->work = other->work;
  }
  return op->name;
}

std::string repeat_message(Plan& plan) {
  for (const std::uint32_t of : used_patterns(plan, false)) {
    Pattern& pattern = plan.patterns[of];
    if (pattern.groups.size() < 2) continue;
    std::vector<EndpointId> all;
    for (const std::vector<EndpointId>& group : pattern.groups)
      all.insert(all.end(), group.begin(), group.end());
    pattern.rounds[0].pairs.assign(pattern.groups.size(), {0, 1});
    pattern.groups = {all};
    return fmt::format("pattern {}", of);
  }
  return "";
}

std::string swap_copies(Plan& plan, Dice& dice) {
  using Act = OpMeaning::Act;
  std::vector<std::pair<PlanOp*, PlanOp*>> found;
  for (Role& role : plan.roles) {
    std::map<std::pair<std::uint32_t, Act>, PlanOp*> acts;  // by bucket
    for (Task& task : role.program)
      for (PlanOp& op : task.ops)
        if (op.meaning != no_meaning)
          if (const OpMeaning& means = plan.meaning->operations[op.meaning]; means.act != Act::compute)
            acts[{means.bucket, means.act}] = &op;
    for (const auto& [of, op] : acts)
      if (of.second == Act::compress || of.second == Act::decompress)
        if (const auto copy = acts.find({of.first, of.second == Act::compress ? Act::fill : Act::empty});
            copy != acts.end())
          found.emplace_back(op, copy->second);
  }
  if (found.empty()) return "";
  const auto [op, copy] = dice.one_of(found);
  std::swap(*op, *copy);
  return op->name;
}

/// Of stages that recompute: a pass' results are sent when the next task that computes is over.
std::string send_late(Plan& plan, Dice& dice) {
  const auto drops = [&](const Task& task) {
    return std::any_of(task.ops.begin(), task.ops.end(), [&](const PlanOp& op) {
      return op.meaning != no_meaning && plan.meaning->operations[op.meaning].is_dropped;
    });
  };
  const auto computes = [](const Task& task) { return task.kind == Task::Kind::compute; };
  std::vector<std::pair<TaskAt, TaskId>> found;  // a send, and the next task that computes
  for (const TaskAt& at : tasks_of(plan, [](const Task& task) { return task.kind == Task::Kind::send; })) {
    const std::vector<Task>& program = plan.roles[at.role].program;
    const auto next = std::find_if(program.begin() + at.task, program.end(), computes);
    if (next != program.end() && !program[at.task].after.empty() &&
        drops(program[program[at.task].after.front()]))
      found.emplace_back(at, static_cast<TaskId>(next - program.begin()));
  }
  if (found.empty()) return "";
  const auto [send, next] = dice.one_of(found);
  const std::string name = name_at(plan, send);
  Task moved = at(plan, send);
  erase_task(plan, send);
  moved.after = {next - 1};
  std::vector<Task>& program = plan.roles[send.role].program;
  for (Task& other : program)
    for (TaskId& before : other.after)
      if (before >= next) ++before;
  program.insert(program.begin() + next, std::move(moved));
  return name;
}

}  // namespace

std::string change(Plan& plan, const TrainingGraph& graph, PlanMutant mutant, Dice& dice) {
  plan.meaning = std::make_shared<Meaning>(*plan.meaning);
  switch (mutant) {
    case PlanMutant::message_dropped:
      return drop_message(plan, dice);
    case PlanMutant::send_dropped:
      return drop_task(plan, dice);
    case PlanMutant::round_too_few:
      return change_rounds(plan, dice, true);
    case PlanMutant::bucket_twice:
      return repeat_collective(plan, dice);
    case PlanMutant::tensor_twice:
      return change_bucket(plan, graph, dice, false);
    case PlanMutant::gradient_lost:
      return change_bucket(plan, graph, dice, true);
    case PlanMutant::result_lost:
      return lose_result(plan, dice);
    case PlanMutant::operation_dropped:
      return drop_operation(plan, dice);
    case PlanMutant::wait_removed:
      return remove_wait(plan, dice);
    case PlanMutant::border_off_by_one:
      return move_border(plan, dice);
    case PlanMutant::bytes_off_by_one:
      return change_bytes(plan, dice);
    case PlanMutant::lanes_swapped:
      return swap_lanes(plan, dice);
    case PlanMutant::micro_batch_twice:
      return repeat_micro_batch(plan, dice);
    case PlanMutant::freed_early:
      return free_early(plan, dice);
    case PlanMutant::update_dropped:
      return drop_update(plan, graph, dice);
    case PlanMutant::one_image_less:
      return take_image(plan);
    case PlanMutant::work_changed:
      return change_work(plan, dice);
    case PlanMutant::message_twice:
      return repeat_message(plan);
    case PlanMutant::copies_swapped:
      return swap_copies(plan, dice);
    case PlanMutant::round_too_many:
      return change_rounds(plan, dice, false);
    case PlanMutant::sent_late:
      return send_late(plan, dice);
  }
  return "";
}

bool frees_gradients_early(const Role& role, Task& task, const PlanOp& op) {
  return op.name.rfind("free gradients", 0) == 0 &&
         std::erase_if(task.after, [&](TaskId before) {
           return role.program[before].kind == Task::Kind::collective;
         }) > 0;
}

bool makes_gradients_late(const Role&, const Task&, PlanOp& op) {
  const auto of_gradients = [](const MemoryDelta& delta) {
    return delta.memory_class == MemoryClass::gradients;
  };
  std::erase_if(op.allocates, of_gradients);
  std::copy_if(op.frees.begin(), op.frees.end(), std::back_inserter(op.allocates), of_gradients);
  return std::any_of(op.frees.begin(), op.frees.end(), of_gradients);
}

}  // namespace convoy::lab
