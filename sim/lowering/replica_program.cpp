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

ReplicaProgram::ReplicaProgram(const TrainingGraph& graph, const Stage& stage, std::vector<GroupSync*> groups,
                               Role& role, int stream, std::vector<Pass> passes, PassMessages* messages)
    : graph_(graph),
      stage_(stage),
      groups_(std::move(groups)),
      role_(role),
      stream_(stream),
      passes_(std::move(passes)),
      messages_(messages),
      tasks_(role) {
  for (GroupSync* group : groups_) group->begin_role();
  find_buckets();
  if (zero() >= 2) find_first_gradients();
  if (zero() == 3) find_uses();
  if (!uses_.empty()) begin();
}

int ReplicaProgram::zero() const {
  int zero = 0;
  for (const GroupSync* group : groups_) zero = std::max(zero, group->zero());
  return zero;
}

/// A recomputing stage's backward pass ends as the other one does.
void ReplicaProgram::find_buckets() {
  std::vector<std::size_t> after(graph_.operations.size(), 0);
  for (std::size_t i = 0; i < stage_.backward.size(); ++i)
    if (stage_.backward[i].op != StageOp::none) after[stage_.backward[i].op] = stage_.backward.size() - 1 - i;
  for (GroupSync* group : groups_)
    for (std::size_t b = 0; b < group->buckets().size(); ++b)
      buckets_.push_back({group, b, after[group->buckets()[b].ready]});
  std::stable_sort(buckets_.begin(), buckets_.end(),
                   [](const GroupBucket& a, const GroupBucket& b) { return a.after > b.after; });
}

const std::vector<StageOp>& ReplicaProgram::operations(const Pass& pass) const {
  if (pass.recomputes) return pass.backward ? stage_.full_backward : stage_.light_forward;
  return pass.backward ? stage_.backward : stage_.forward;
}

// ZeRO's stages 2 and 3.

void ReplicaProgram::find_first_gradients() {
  first_gradient_.assign(graph_.operations.size(), none);
  last_gradient_ = first_gradient_;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b].bucket();
    OpId first = bucket.ready;
    for (const std::size_t p : bucket.parameters) first = std::min(first, graph_.parameters[p].gradient);
    first_gradient_[first] = b;
    last_gradient_[bucket.ready] = b;
  }
}

void ReplicaProgram::find_uses() {
  std::vector<std::size_t> bucket_of_layer(graph_.model.layers.size(), none);
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    for (const std::size_t p : buckets_[b].bucket().parameters)
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
                              {{MemoryClass::weights, buckets_[bucket].bytes()}}, {}));
}

void ReplicaProgram::gather(std::size_t use, TaskId after) {
  const Use& of = uses_[use];
  const Pass& pass = passes_[of.pass];
  const GroupBucket& bucket = buckets_[of.bucket];
  gathers_.push_back(bucket.group->add(role_, stream_, GroupSync::Kind::all_gather, bucket.index,
                                       fmt::format(" for {}{}", operations(pass)[of.first].name, pass.suffix),
                                       bucket.bytes(), {after}));
}

void ReplicaProgram::scatter(std::size_t bucket, TaskId after) {
  const GroupBucket& of = buckets_[bucket];
  scatters_.push_back(of.group->add(role_, stream_, GroupSync::Kind::reduce_scatter, of.index,
                                    passes_[pass_].suffix, of.bytes(), {after}));
  scattered_.push_back(bucket);
  if (!how().overlap) release();
}

PlanOp ReplicaProgram::freed_gradients() {
  const std::size_t bucket = scattered_[released_++];
  return memory_op(fmt::format("free gradients of bucket {}", bucket), {},
                   {{MemoryClass::gradients, buckets_[bucket].bytes()}});
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
    made.frees.push_back({MemoryClass::weights, buckets_[uses_[use_].bucket].bytes()});
  if (op.op == StageOp::none || first_gradient_[op.op] == none) return;
  if (how().overlap && scatters_.size() >= depth()) release();
  made.allocates.push_back({MemoryClass::gradients, buckets_[first_gradient_[op.op]].bytes()});
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
  const bool sharded = zero() >= 2;
  const bool cut = pass.completes && !sharded && how().overlap;
  if (cut) ready_.clear();
  const std::vector<StageOp>& ops = operations(pass);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (messages_) messages_->before(pass, i, tasks_);
    PlanOp op = plan_op(ops[i], pass.images, pass.suffix);
    if (sharded) before(i, ops[i], op);
    if (ops[i].op == StageOp::none)
      tasks_.add_memory(std::move(op));
    else
      tasks_.add(std::move(op));
    if (messages_) messages_->after(pass, i, tasks_);
    if (sharded) this->after(i, ops[i]);
    while (cut && ready_.size() < buckets_.size() && buckets_[ready_.size()].after == ops.size() - 1 - i)
      ready_.push_back(tasks_.close());
  }
  ++pass_;
  if (!pass.completes && task.empty()) return 0;
  const TaskId last = tasks_.close(std::move(task));
  if (pass.completes) completed_ = last;
  return last;
}

void ReplicaProgram::sum_buckets(std::vector<TaskId>& before_update, const std::string& suffix) {
  const bool gathers = how().compression.kind == Compression::Kind::top_k;
  const GroupSync::Kind kind = zero() > 0 ? GroupSync::Kind::reduce_scatter
                               : gathers  ? GroupSync::Kind::all_gather
                                          : GroupSync::Kind::all_reduce;
  std::vector<TaskId> summed;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const GroupBucket& of = buckets_[b];
    const Compressor& compressor = of.group->compressor();
    const TaskId ready = how().overlap ? ready_[b] : completed_;
    compressor.add_compression(role_, ready, b, of.bytes());
    if (of.group->is_copied(of.bucket()))
      role_.program[ready].ops.push_back(
          elementwise_op(fmt::format("bucket {} filled", b), of.bytes() / 4, 2 * of.bytes()));
    summed.push_back(of.group->add(role_, stream_, kind, of.index, suffix,
                                   compressor.sent_bytes(of.bytes()) * (gathers ? of.group->members() : 1.0),
                                   {ready}));
  }
  before_update.insert(before_update.end(), summed.begin(), summed.end());
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if (const Compressor& compressor = buckets_[b].group->compressor(); compressor.active())
      before_update.push_back(compressor.add_decompression(role_, b, buckets_[b].bytes(), summed[b]));
}

/// By layer: of its parameters, as much as ZeRO leaves each replica to update.
std::vector<double> ReplicaProgram::updated_shares() const {
  std::vector<double> shares(graph_.model.layers.size(), 1.0);
  for (const GroupBucket& of : buckets_)
    for (const std::size_t p : of.bucket().parameters)
      if (of.group->zero() > 0) shares[graph_.parameters[p].layer] = 1 / of.group->members();
  return shares;
}

void ReplicaProgram::update(const std::string& suffix) {
  if (passes_.empty()) {
    completed_ = tasks_.close();
    ready_.assign(buckets_.size(), completed_);
  }
  std::vector<TaskId> before;
  std::vector<PlanOp> ops;
  if (zero() >= 2) {
    before = scatters_;
    before.push_back(completed_);
    while (released_ < scatters_.size()) ops.push_back(freed_gradients());
  } else {
    before = {completed_};
    sum_buckets(before, suffix);
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      if (const double bytes = buckets_[b].bytes(); buckets_[b].group->is_copied(buckets_[b].bucket()))
        ops.push_back(elementwise_op(fmt::format("bucket {} emptied", b), bytes / 4, 2 * bytes));
  }
  const std::vector<double> shares = updated_shares();
  for (const StageOp& op : stage_.update) {
    ops.push_back(plan_op(op, 1, suffix));
    ops.back().work = share_of_update(op.work, shares[graph_.operations[op.op].layer]);
  }
  const TaskId update = add_compute(role_, "update" + suffix, std::move(ops), std::move(before));
  if (zero() != 1 && zero() != 2) return;
  for (const GroupBucket& of : buckets_)
    of.group->add(role_, stream_, GroupSync::Kind::all_gather, of.index, "", of.bytes(), {update});
}

}  // namespace convoy
