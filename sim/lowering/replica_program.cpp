// SPDX-License-Identifier: MIT
#include "sim/lowering/replica_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "sim/lowering/plan_ops.h"

namespace convoy {
namespace {

constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// Losses and gradient sums have a layer, but do not read its parameters.
bool reads_parameters(const TrainingGraph& graph, const StageOp& op) {
  if (op.op == StageOp::none) return false;
  const Operation& operation = graph.operations[op.op];
  return operation.reader == Operation::no_reader && operation.work.kind != KernelKind::softmax_loss;
}

}  // namespace

ReplicaProgram::ReplicaProgram(const TrainingGraph& graph, const Stage& stage, GroupSync& group, Role& role,
                               int stream, std::vector<Pass> passes)
    : graph_(graph),
      stage_(stage),
      group_(group),
      role_(role),
      stream_(stream),
      passes_(std::move(passes)),
      tasks_(role) {
  group_.begin_role();
  if (group_.zero() >= 2) find_first_gradients();
  if (group_.zero() == 3) find_uses();
  if (!uses_.empty()) begin();
}

const std::vector<StageOp>& ReplicaProgram::operations(const Pass& pass) const {
  if (pass.recomputes) return pass.backward ? stage_.full_backward : stage_.light_forward;
  return pass.backward ? stage_.backward : stage_.forward;
}

// ZeRO's stages 2 and 3.

void ReplicaProgram::find_first_gradients() {
  first_gradient_.assign(graph_.operations.size(), none);
  last_gradient_ = first_gradient_;
  for (std::size_t b = 0; b < group_.buckets().size(); ++b) {
    const Bucket& bucket = group_.buckets()[b];
    OpId first = bucket.ready;
    for (const std::size_t p : bucket.parameters) first = std::min(first, graph_.parameters[p].gradient);
    first_gradient_[first] = b;
    last_gradient_[bucket.ready] = b;
  }
}

void ReplicaProgram::find_uses() {
  std::vector<std::size_t> bucket_of_layer(graph_.model.layers.size(), none);
  for (std::size_t b = 0; b < group_.buckets().size(); ++b)
    for (const std::size_t p : group_.buckets()[b].parameters)
      bucket_of_layer[graph_.parameters[p].layer] = b;
  for (std::size_t pass = 0; pass < passes_.size(); ++pass) {
    const std::vector<StageOp>& ops = operations(passes_[pass]);
    Use use{none, 0, 0, pass};
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::size_t bucket =
          reads_parameters(graph_, ops[i]) ? bucket_of_layer[graph_.operations[ops[i].op].layer] : none;
      if (bucket != none && use.bucket != none && use.bucket != bucket) {
        uses_.push_back(use);
        use = {bucket, i, i, pass};
      }
      if (bucket != none) use.bucket = bucket;
      use.last = i;
    }
    if (use.bucket != none) uses_.push_back(use);
  }
}

/// The buckets that are used first are gathered before anything else.
void ReplicaProgram::begin() {
  const std::size_t first = std::min(depth(), uses_.size());
  for (std::size_t u = 0; u < first; ++u) add_gather_buffer(u);
  const TaskId task = tasks_.close("begin");
  for (std::size_t u = 0; u < first; ++u) gather(u, task);
}

void ReplicaProgram::add_gather_buffer(std::size_t use) {
  const std::size_t bucket = uses_[use].bucket;
  tasks_.add_memory(memory_op(fmt::format("buffer of bucket {}", bucket),
                              {{MemoryClass::weights, group_.buckets()[bucket].bytes}}, {}));
}

void ReplicaProgram::gather(std::size_t use, TaskId after) {
  const Use& of = uses_[use];
  const Pass& pass = passes_[of.pass];
  gathers_.push_back(
      group_.add(role_, stream_, GroupSync::Kind::all_gather,
                 fmt::format("bucket {} for {}{}", of.bucket, operations(pass)[of.first].name, pass.suffix),
                 group_.buckets()[of.bucket].bytes, {after}));
}

void ReplicaProgram::scatter(std::size_t bucket, TaskId after) {
  scatters_.push_back(group_.add(role_, stream_, GroupSync::Kind::reduce_scatter,
                                 fmt::format("bucket {}{}", bucket, passes_[pass_].suffix),
                                 group_.buckets()[bucket].bytes, {after}));
  scattered_.push_back(bucket);
  if (!group_.how().overlap) release();
}

PlanOp ReplicaProgram::freed_gradients() {
  const std::size_t bucket = scattered_[released_++];
  return memory_op(fmt::format("free gradients of bucket {}", bucket), {},
                   {{MemoryClass::gradients, group_.buckets()[bucket].bytes}});
}

/// The gradients of the oldest bucket that is still whole go when its sums are there.
void ReplicaProgram::release() {
  tasks_.wait_for(scatters_[released_]);
  tasks_.add_memory(freed_gradients());
}

void ReplicaProgram::before(std::size_t position, const StageOp& op, PlanOp& made) {
  const bool uses = use_ < uses_.size() && uses_[use_].pass == pass_;
  if (uses && uses_[use_].first == position) tasks_.wait_for(gathers_[use_]);
  if (uses && uses_[use_].last == position)
    made.frees.push_back({MemoryClass::weights, group_.buckets()[uses_[use_].bucket].bytes});
  if (op.op == StageOp::none || first_gradient_[op.op] == none) return;
  if (group_.how().overlap && scatters_.size() >= depth()) release();
  made.allocates.push_back({MemoryClass::gradients, group_.buckets()[first_gradient_[op.op]].bytes});
}

void ReplicaProgram::after(std::size_t position, const StageOp& op) {
  const bool last_use = use_ < uses_.size() && uses_[use_].pass == pass_ && uses_[use_].last == position;
  const bool more = last_use && use_ + depth() < uses_.size();
  const std::size_t bucket = op.op == StageOp::none ? none : last_gradient_[op.op];
  if (more) add_gather_buffer(use_ + depth());
  if (bucket != none || more) {
    const TaskId done = tasks_.close();
    if (bucket != none) scatter(bucket, done);
    if (more) gather(use_ + depth(), done);
  }
  if (last_use) ++use_;
}

// Passes and updates.

TaskId ReplicaProgram::next_pass(const std::vector<TaskId>& after, std::string task) {
  const Pass& pass = passes_[pass_];
  for (const TaskId before : after) tasks_.wait_for(before);
  const bool sharded = group_.zero() >= 2;
  const bool cut = pass.completes && !sharded && group_.how().overlap;
  const std::vector<Bucket>& buckets = group_.buckets();
  if (cut) ready_.clear();
  const std::vector<StageOp>& ops = operations(pass);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    PlanOp op = plan_op(ops[i], pass.images, pass.suffix);
    if (sharded) before(i, ops[i], op);
    tasks_.add(std::move(op));
    if (sharded) this->after(i, ops[i]);
    while (cut && ready_.size() < buckets.size() && buckets[ready_.size()].ready == ops[i].op)
      ready_.push_back(tasks_.close());
  }
  ++pass_;
  if (!pass.completes && task.empty()) return 0;
  const TaskId last = tasks_.close(std::move(task));
  if (pass.completes) completed_ = last;
  return last;
}

void ReplicaProgram::sum_buckets(std::vector<TaskId>& before_update, const std::string& suffix) {
  const std::vector<Bucket>& buckets = group_.buckets();
  const Compressor& compressor = group_.compressor();
  const bool gathers = group_.how().compression.kind == Compression::Kind::top_k;
  const GroupSync::Kind kind = group_.zero() > 0 ? GroupSync::Kind::reduce_scatter
                               : gathers         ? GroupSync::Kind::all_gather
                                                 : GroupSync::Kind::all_reduce;
  std::vector<TaskId> summed;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const TaskId ready = group_.how().overlap ? ready_[b] : completed_;
    compressor.add_compression(role_, ready, b, buckets[b].bytes);
    if (group_.is_copied(buckets[b]))
      role_.program[ready].ops.push_back(
          elementwise_op(fmt::format("bucket {} filled", b), buckets[b].bytes / 4, 2 * buckets[b].bytes));
    summed.push_back(group_.add(role_, stream_, kind, fmt::format("bucket {}{}", b, suffix),
                                compressor.sent_bytes(buckets[b].bytes) * (gathers ? group_.members() : 1.0),
                                {ready}));
  }
  before_update.insert(before_update.end(), summed.begin(), summed.end());
  for (std::size_t b = 0; compressor.active() && b < buckets.size(); ++b)
    before_update.push_back(compressor.add_decompression(role_, b, buckets[b].bytes, summed[b]));
}

void ReplicaProgram::update(const std::string& suffix) {
  const std::vector<Bucket>& buckets = group_.buckets();
  if (passes_.empty()) {
    completed_ = tasks_.close();
    ready_.assign(buckets.size(), completed_);
  }
  const bool sharded = group_.zero() >= 2;
  std::vector<TaskId> before;
  std::vector<PlanOp> ops;
  if (sharded) {
    before = scatters_;
    before.push_back(completed_);
    while (released_ < scatters_.size()) ops.push_back(freed_gradients());
  } else {
    before = {completed_};
    sum_buckets(before, suffix);
    for (std::size_t b = 0; b < buckets.size(); ++b)
      if (group_.is_copied(buckets[b]))
        ops.push_back(
            elementwise_op(fmt::format("bucket {} emptied", b), buckets[b].bytes / 4, 2 * buckets[b].bytes));
  }
  const double share = group_.zero() > 0 ? 1 / group_.members() : 1;
  for (const StageOp& op : stage_.update) {
    ops.push_back(plan_op(op, 1, suffix));
    ops.back().work = share_of_update(op.work, share);
  }
  const TaskId update = add_compute(role_, "update" + suffix, std::move(ops), std::move(before));
  if (group_.zero() != 1 && group_.zero() != 2) return;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    group_.add(role_, stream_, GroupSync::Kind::all_gather, fmt::format("bucket {}", b), buckets[b].bytes,
               {update});
}

}  // namespace convoy
