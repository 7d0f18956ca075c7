// SPDX-License-Identifier: MIT
#include "sim/prove/prove_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace convoy::inline prove {
namespace {

constexpr std::size_t at(MemoryClass memory_class) { return static_cast<std::size_t>(memory_class); }

/// What the graph's buffers need on a device that runs whole operations.
class MemoryProver {
 public:
  MemoryProver(const Plan& plan, const Role& role, const TrainingGraph& graph,
               const std::vector<std::vector<std::uint32_t>>& used_by)
      : plan_(plan), role_(role), meaning_(*plan.meaning), graph_(graph), used_by_(used_by) {
    for (TaskId t = 0; t < role.program.size(); ++t)
      for (const PlanOp& op : role.program[t].ops) ops_.push_back({t, &op});
  }

  std::vector<NeededBytes> needed(const RoleOrder& order) {
    find_lives();
    std::vector<NeededBytes> result;
    for (const auto& [of, life] : lives_)
      result.push_back({life.first, life.last, graph_.buffers[std::get<0>(of)].memory_class, life.bytes});
    add_scattered(plan_, role_, order, graph_, result);
    return result;
  }

 private:
  struct Op {
    TaskId task;
    const PlanOp* op;
  };
  struct Life {
    std::size_t first, last;
    double bytes;
  };
  /// Of which operations' outputs the role receives a view, which may be a part of the output.
  std::vector<bool> find_received_views() const {
    std::vector<bool> is_view(graph_.operations.size(), false);
    for (const Task& task : role_.program) {
      if (task.kind != Task::Kind::receive) continue;
      const CommMeaning& carries = meaning_.communications[plan_.communications[task.comm].meaning];
      for (const CommMeaning::Result& result : carries.results)
        if (graph_.operations[result.operation].layer != result.layer) is_view[result.operation] = true;
    }
    return is_view;
  }

  /// What a stage drops and makes again lives twice, but for what it has received.
  void find_lives() {
    std::vector<bool> is_run(graph_.operations.size(), false);
    for (const Op& op : ops_)
      if (const OpMeaning* means = meaning_in_graph(meaning_, *op.op)) is_run[means->operation] = true;
    const std::vector<bool> is_view = find_received_views();
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const OpMeaning* means = meaning_in_graph(meaning_, *ops_[i].op);
      if (!means) continue;
      for (const std::uint32_t b : used_by_[means->operation]) {
        const Buffer& buffer = graph_.buffers[b];
        // A gradient that several stages add to may lie in the place of any part of it.
        if (buffer.role == BufferRole::output_gradient &&
            !std::all_of(buffer.uses.begin(), buffer.uses.end(), [&](OpId op) { return is_run[op]; }))
          continue;
        // Of a tensor made elsewhere, views are here each by itself, for as long as they are read.
        if (!is_run[buffer.born] &&
            std::any_of(buffer.uses.begin(), buffer.uses.end(), [&](OpId op) { return is_view[op]; }))
          continue;
        const bool first_time = means->is_dropped && is_run[buffer.born];
        const double bytes =
            buffer.bytes_per_image * ops_[i].op->images + static_cast<double>(buffer.bytes_fixed);
        lives_.try_emplace({b, means->micro_batch, first_time}, Life{i, i, bytes}).first->second.last = i;
      }
    }
  }

  const Plan& plan_;
  const Role& role_;
  const Meaning& meaning_;
  const TrainingGraph& graph_;
  const std::vector<std::vector<std::uint32_t>>& used_by_;  ///< by operation: buffers
  std::vector<Op> ops_;
  std::map<std::tuple<std::uint32_t, std::int64_t, bool>, Life> lives_;
};

}  // namespace

void add_scattered(const Plan& plan, const Role& role, const RoleOrder& order, const TrainingGraph& graph,
                   std::vector<NeededBytes>& needed) {
  const Meaning& meaning = *plan.meaning;
  std::vector<std::pair<TaskId, const OpMeaning*>> ops;
  for (TaskId t = 0; t < role.program.size(); ++t)
    for (const PlanOp& op : role.program[t].ops) ops.emplace_back(t, meaning_in_graph(meaning, op));
  const auto makes_gradient = [&](const OpMeaning* means, std::uint32_t bucket) {
    const std::vector<std::size_t>& of = meaning.buckets[bucket].parameters;
    return means && std::any_of(of.begin(), of.end(), [&](std::size_t p) {
             return graph.parameters[p].first_gradient == means->operation;
           });
  };
  std::map<std::uint32_t, std::size_t> from;  // by bucket: the first operation that belongs to its next sum
  for (TaskId t = 0; t < role.program.size(); ++t) {
    if (role.program[t].kind != Task::Kind::collective) continue;
    const Communication& comm = plan.communications[role.program[t].comm];
    const CommMeaning& carries = meaning.communications[comm.meaning];
    if (carries.kind != CommMeaning::Kind::scatter || meaning.buckets[carries.bucket].zero < 2) continue;
    std::size_t& first = from[carries.bucket];
    while (first < ops.size() && !makes_gradient(ops[first].second, carries.bucket)) ++first;
    if (first == ops.size()) continue;
    std::size_t last = first;
    while (last + 1 < ops.size() && !order.precedes(t, ops[last].first)) ++last;
    needed.push_back({first, last, MemoryClass::gradients, comm.bytes});
    while (first < ops.size() && order.precedes(ops[first].first, t)) ++first;
  }
}

void check_held(const Role& role, const std::vector<NeededBytes>& needed, const Machine& machine) {
  constexpr double rounding = 1e-6;
  std::size_t count = 0;
  for (const Task& task : role.program) count += task.ops.size();
  std::vector<StateBytes> begins(count, StateBytes{}), ends = begins;
  StateBytes most{}, held{}, need{};
  for (const NeededBytes& of : needed) {
    begins[of.first][at(of.memory_class)] += of.bytes;
    ends[of.last][at(of.memory_class)] += of.bytes;
    most[at(of.memory_class)] += of.bytes;
  }
  std::size_t i = 0;
  for (TaskId t = 0; t < role.program.size(); ++t)
    for (const PlanOp& op : role.program[t].ops) {
      for (const MemoryDelta& delta : op.allocates) held[at(delta.memory_class)] += delta.bytes;
      for (std::size_t c = 0; c < memory_class_count; ++c) {
        need[c] += begins[i][c];
        if (held[c] < need[c] - rounding * (1 + need[c]))
          throw Refuted(
              fmt::format("{}: when {} runs, {} bytes of {} are held, and what it or a later "
                          "operation reads has {}",
                          name_of(role, t, machine), op.name, held[c], memory_class_names[c], need[c]));
        need[c] -= ends[i][c];
      }
      for (const MemoryDelta& delta : op.frees) held[at(delta.memory_class)] -= delta.bytes;
      ++i;
    }
  for (std::size_t c = 0; c < memory_class_count; ++c)
    if (std::abs(held[c]) > rounding * (1 + most[c]))
      throw Refuted(fmt::format("{}: {} bytes of {} are {} at the end of the step", name_of(role, machine),
                                std::abs(held[c]), memory_class_names[c],
                                held[c] > 0 ? "still held" : "freed twice"));
}

void prove_memory(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                  const HappensBefore& order) {
  std::vector<std::vector<std::uint32_t>> used_by(graph.operations.size());
  for (std::uint32_t b = 0; b < graph.buffers.size(); ++b)
    for (const OpId op : graph.buffers[b].uses) used_by[op].push_back(b);
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    check_held(plan.roles[r], MemoryProver(plan, plan.roles[r], graph, used_by).needed(order.of(r)), machine);
}

}  // namespace convoy::prove
