// SPDX-License-Identifier: MIT
#include "sim/lowering/replica_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
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
                               Role& role, int stream, std::vector<Pass> passes, PassMessages* messages,
                               Meaning* meaning)
    : graph_(graph),
      stage_(stage),
      groups_(std::move(groups)),
      role_(role),
      stream_(stream),
      passes_(std::move(passes)),
      messages_(messages),
      meaning_(meaning),
      tasks_(role) {
  for (GroupSync* group : groups_) group->begin_role();
  find_buckets();
  for (const GroupBucket& of : buckets_)
    role_.resident_bytes[static_cast<std::size_t>(MemoryClass::gradients)] +=
        of.group->compressor().residual_bytes(of.bytes());
  if (zero() >= 2) find_first_gradients();
  if (zero() == 3) find_uses();
  if (!uses_.empty()) begin();
}

int ReplicaProgram::zero() const {
  int zero = 0;
  for (const GroupSync* group : groups_) zero = std::max(zero, group->zero());
  return zero;
}

/// A recomputing stage's backward pass ends as the other one does. Placed operations need not be in the graph's
/// order, so that any of a bucket's gradients may be the last.
void ReplicaProgram::find_buckets() {
  const std::size_t count = stage_.backward.size();
  std::vector<std::size_t> after(graph_.operations.size(), count);  // count: it runs elsewhere
  for (std::size_t i = 0; i < count; ++i)
    if (stage_.backward[i].op != StageOp::none) after[stage_.backward[i].op] = count - 1 - i;
  for (GroupSync* group : groups_)
    for (std::size_t b = 0; b < group->buckets().size(); ++b) {
      std::size_t last = count;
      for (const std::size_t p : group->buckets()[b].parameters)
        last = std::min(last, after[graph_.parameters[p].gradient]);
      buckets_.push_back({group, b, last == count ? 0 : last});
    }
  std::stable_sort(buckets_.begin(), buckets_.end(),
                   [](const GroupBucket& a, const GroupBucket& b) { return a.after > b.after; });
}

const std::vector<StageOp>& ReplicaProgram::operations(const Pass& pass) const {
  if (pass.recomputes) return pass.backward ? stage_.full_backward : stage_.light_forward;
  return pass.backward ? stage_.backward : stage_.forward;
}

// ZeRO's stages 2 and 3.

void ReplicaProgram::find_first_gradients() {
  whole_.resize(buckets_.size());
  first_gradient_.assign(graph_.operations.size(), none);
  last_gradient_ = first_gradient_;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b].bucket();
    OpId first = bucket.ready;
    for (const std::size_t p : bucket.parameters)
      first = std::min(first, graph_.parameters[p].first_gradient);
    first_gradient_[first] = b;
    last_gradient_[bucket.ready] = b;
  }
}

void ReplicaProgram::find_uses() {
  std::vector<std::size_t> bucket_of_layer(graph_.model.layers.size(), none);
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    for (const std::size_t p : buckets_[b].bucket().parameters)
      bucket_of_layer[graph_.parameters[p].layer] = b;
  for (std::size_t i = 0; i < bucket_of_layer.size(); ++i)
    if (const Layer& layer = graph_.model.layers[i]; layer.shares())
      bucket_of_layer[i] = bucket_of_layer[static_cast<std::size_t>(layer.weights_of)];
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
  tasks_.add_unnamed(memory_op(fmt::format("buffer of bucket {}", bucket), {}, {}));
  gathered_.push_back(tasks_.hold({MemoryClass::weights, buckets_[bucket].bytes()}));
  tasks_.use(gathered_[use]);
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
  scattered_.push_back({bucket, whole_[bucket]});
  if (!how().overlap) release();
}

void ReplicaProgram::free_gradients() {
  const Scattered& oldest = scattered_[released_++];
  tasks_.add_unnamed(memory_op(fmt::format("free gradients of bucket {}", oldest.bucket), {}, {}));
  tasks_.use(oldest.gradients);
}

/// The gradients of the oldest bucket that is still whole go when its sums are there.
void ReplicaProgram::release() {
  tasks_.wait_for(scatters_[released_]);
  free_gradients();
}

bool ReplicaProgram::is_last_use(std::size_t position) const {
  return use_ < uses_.size() && uses_[use_].pass == pass_ && uses_[use_].last == position;
}

void ReplicaProgram::before(std::size_t position, const StageOp& op) {
  if (use_ < uses_.size() && uses_[use_].pass == pass_ && uses_[use_].first == position)
    tasks_.wait_for(gathers_[use_]);
  const bool begins = op.op != StageOp::none && first_gradient_[op.op] != none;
  if (begins && how().overlap && scatters_.size() >= depth()) release();
}

/// Of the operation at `position`, which was added last.
void ReplicaProgram::use_buffers(std::size_t position, const StageOp& op) {
  if (is_last_use(position)) tasks_.use(gathered_[use_]);
  if (op.op == StageOp::none || first_gradient_[op.op] == none) return;
  const std::size_t bucket = first_gradient_[op.op];
  whole_[bucket] = tasks_.hold({MemoryClass::gradients, buckets_[bucket].bytes()});
  tasks_.use(whole_[bucket]);
}

void ReplicaProgram::after(std::size_t position, const StageOp& op) {
  const bool last_use = is_last_use(position);
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

/// Whether buckets are sent while the pass goes on.
bool ReplicaProgram::sends_during(const Pass& pass) const {
  return pass.completes && zero() < 2 && !groups_.empty() && how().overlap;
}

TaskId ReplicaProgram::next_pass(const std::vector<TaskId>& after, std::string task) {
  const Pass& pass = passes_[pass_];
  for (const TaskId before : after) tasks_.wait_for(before);
  if (!pass.backward)
    for (const TaskId gathered : std::exchange(renewed_, {})) tasks_.wait_for(gathered);
  const bool cut = sends_during(pass);
  if (cut) ready_.clear();
  next_operations(pass, 0, operations(pass).size());
  ++pass_;
  if (!pass.completes && task.empty()) return 0;
  if (pass.completes && zero() < 2 && !cut)
    for (std::size_t b = 0; b < buckets_.size(); ++b) prepare_message(b);
  if (cut && ready_.size() < buckets_.size())
    throw std::logic_error(fmt::format("a backward pass completes {} of {} buckets of gradients",
                                       ready_.size(), buckets_.size()));
  const TaskId last = tasks_.close(std::move(task));
  if (pass.completes) completed_ = last;
  return last;
}

void ReplicaProgram::next_operations(const Pass& pass, std::size_t first, std::size_t end) {
  const bool sharded = zero() >= 2, cut = sends_during(pass);
  const std::vector<StageOp>& ops = operations(pass);
  for (std::size_t i = first; i < end; ++i) {
    if (messages_) messages_->before(pass, i, tasks_);
    if (sharded) before(i, ops[i]);
    PlanOp op = plan_op(ops[i], pass.images, pass.suffix);
    if (ops[i].op == StageOp::none)
      tasks_.add_unnamed(std::move(op));
    else
      tasks_.add(std::move(op));
    if (meaning_) mean_pass(pass, ops[i], i);
    if (sharded) use_buffers(i, ops[i]);
    if (messages_) messages_->after(pass, i, tasks_);
    if (sharded) this->after(i, ops[i]);
    if (cut) complete_buckets(ops.size() - 1 - i);
  }
}

void ReplicaProgram::end_passes() {
  if (!how().overlap)
    for (std::size_t b = 0; b < buckets_.size(); ++b) prepare_message(b);
  else if (ready_.size() < buckets_.size())
    throw std::logic_error(
        fmt::format("passes complete {} of {} buckets of gradients", ready_.size(), buckets_.size()));
  completed_ = tasks_.close();
}

/// Of the operation at `position` of a pass, which was added last.
void ReplicaProgram::mean_pass(const Pass& pass, const StageOp& op, std::size_t position) {
  OpMeaning meaning;
  meaning.operation = op.op;  // none: memory only
  meaning.micro_batch = pass.micro_batch;
  meaning.images = {pass.first_image, op.images.value_or(pass.images)};
  meaning.pass = static_cast<std::uint32_t>(pass_);
  meaning.is_dropped = pass.recomputes && !pass.backward;
  if (is_last_use(position)) {
    const GroupBucket& bucket = buckets_[uses_[use_].bucket];
    meaning.forgets = bucket.group->meaning_of(bucket.index);
  }
  if (messages_) messages_->mean(pass, position, meaning);
  tasks_.mean(*meaning_, meaning);
}

/// Of the operation that was added last.
void ReplicaProgram::mean_bucket(OpMeaning::Act act, std::size_t bucket) {
  if (!meaning_) return;
  OpMeaning meaning;
  meaning.act = act;
  meaning.bucket = buckets_[bucket].group->meaning_of(buckets_[bucket].index);
  tasks_.mean(*meaning_, meaning);
}

/// What a device does before it sends a bucket's gradients. What is compressed is the filled bucket, as
/// DistributedDataParallel hands it to its hooks.
void ReplicaProgram::prepare_message(std::size_t bucket) {
  const GroupBucket& of = buckets_[bucket];
  compressed_.resize(buckets_.size());
  if (of.group->is_copied(of.bucket())) {
    tasks_.add_unnamed(
        elementwise_op(fmt::format("bucket {} filled", bucket), of.bytes() / 4, 2 * of.bytes()));
    mean_bucket(OpMeaning::Act::fill, bucket);
  }
  const Compressor& compressor = of.group->compressor();
  if (!compressor.active()) return;
  const LowRankBucket* factors = low_rank(of);
  compressed_[bucket] = factors ? factors->add_first(tasks_, fmt::format("message {}", bucket))
                                : compressor.add_compression(tasks_, bucket, of.bytes());
  mean_bucket(OpMeaning::Act::compress, bucket);
}

const LowRankBucket* ReplicaProgram::low_rank(const GroupBucket& of) const {
  return of.group->low_rank().empty() ? nullptr : &of.group->low_rank()[of.index];
}

/// Of a bucket's first message, as all members have it.
double ReplicaProgram::message_bytes(const GroupBucket& of) const {
  if (const LowRankBucket* factors = low_rank(of)) return factors->first_bytes();
  return of.group->compressor().sent_bytes(of.bytes()) *
         (is_gathered(how().compression) ? of.group->members() : 1.0);
}

/// Of those whose gradients are there when so many operations of the pass are left.
void ReplicaProgram::complete_buckets(std::size_t left) {
  const std::size_t first = ready_.size();
  std::size_t end = first;
  while (end < buckets_.size() && buckets_[end].after == left) prepare_message(end++);
  if (end > first) ready_.resize(end, tasks_.close());
}

/// By bucket: the task by which all members know that its gradients are complete, one for each cycle. Empty
/// without cycles.
std::vector<TaskId> ReplicaProgram::agreements(const std::string& suffix) {
  std::vector<TaskId> agreed;
  if (how().cycle_s == 0) return agreed;
  for (std::size_t b = 0; b < buckets_.size();) {
    std::size_t end = b + 1;
    while (end < buckets_.size() && buckets_[end].bucket().cycle == buckets_[b].bucket().cycle) ++end;
    const GroupBucket& last = buckets_[end - 1];
    agreed.resize(end, last.group->add_agreement(role_, stream_ + 1, last.index, suffix,
                                                 how().overlap ? ready_[end - 1] : completed_));
    b = end;
  }
  return agreed;
}

void ReplicaProgram::sum_buckets(std::vector<TaskId>& before_update, const std::string& suffix) {
  const bool gathers = is_gathered(how().compression);
  const GroupSync::Kind kind = zero() > 0 ? GroupSync::Kind::reduce_scatter
                               : gathers  ? GroupSync::Kind::all_gather
                                          : GroupSync::Kind::all_reduce;
  const std::vector<TaskId> agreed = agreements(suffix);
  std::vector<TaskId> summed;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const GroupBucket& of = buckets_[b];
    const TaskId after = !agreed.empty() ? agreed[b] : how().overlap ? ready_[b] : completed_;
    summed.push_back(of.group->add(role_, stream_, kind, of.index, suffix, message_bytes(of), {after}));
  }
  before_update.insert(before_update.end(), summed.begin(), summed.end());
  sum_factors(summed, suffix);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Compressor& compressor = buckets_[b].group->compressor();
    if (!compressor.active()) continue;
    if (const LowRankBucket* factors = low_rank(buckets_[b])) {
      const std::string message = fmt::format("message {}", b);
      tasks_.wait_for(summed[b]);
      factors->add_decompression(tasks_, compressed_[b], message);
      mean_bucket(OpMeaning::Act::decompress, b);
      before_update.push_back(tasks_.close(message + " decompressed"));
      continue;
    }
    before_update.push_back(
        compressor.add_decompression(tasks_, compressed_[b], b, buckets_[b].bytes(), summed[b]));
    mean_bucket(OpMeaning::Act::decompress, b);
  }
}

/// Second factors of all buckets that have any, each as soon as the sum of its first factors is there and
/// the device is done with the bucket before.
/// @param summed by bucket: the task by which all that was sent of it so far has been summed
void ReplicaProgram::sum_factors(std::vector<TaskId>& summed, const std::string& suffix) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const LowRankBucket* factors = low_rank(buckets_[b]);
    if (factors == nullptr || factors->second_bytes() == 0) continue;
    const TaskId made = factors->add_second(tasks_, compressed_[b], fmt::format("message {}", b), summed[b]);
    mean_bucket(OpMeaning::Act::factor, b);
    summed[b] = buckets_[b].group->add(role_, stream_, GroupSync::Kind::all_reduce_factors, buckets_[b].index,
                                       ", second factors" + suffix, factors->second_bytes(), {made});
  }
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
  const bool sharded = zero() >= 2;
  if (passes_.empty()) {
    for (std::size_t b = 0; b < buckets_.size() && !sharded; ++b) prepare_message(b);
    completed_ = tasks_.close();
    ready_.assign(buckets_.size(), completed_);
  }
  std::vector<TaskId> before = scatters_;
  before.push_back(completed_);
  if (!sharded) sum_buckets(before, suffix);
  for (const TaskId task : before) tasks_.wait_for(task);
  while (released_ < scatters_.size()) free_gradients();
  if (!sharded)
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      if (const double bytes = buckets_[b].bytes(); buckets_[b].group->is_copied(buckets_[b].bucket())) {
        tasks_.add_unnamed(elementwise_op(fmt::format("bucket {} emptied", b), bytes / 4, 2 * bytes));
        mean_bucket(OpMeaning::Act::empty, b);
      }
  const std::vector<double> shares = updated_shares();
  for (std::size_t i = 0; i < stage_.update.size(); ++i) {
    const StageOp& op = stage_.update[i];
    PlanOp made = plan_op(op, 1, suffix);
    if (op.op != StageOp::none) made.work = share_of_update(op.work, shares[graph_.operations[op.op].layer]);
    tasks_.add(std::move(made));
    if (!meaning_) continue;
    OpMeaning meaning;
    meaning.operation = op.op;
    meaning.pass = static_cast<std::uint32_t>(pass_);
    if (messages_) messages_->mean_update(i, meaning);
    tasks_.mean(*meaning_, meaning);
  }
  const TaskId update = tasks_.close("update" + suffix);
  if (zero() != 1 && zero() != 2) return;
  for (const GroupBucket& of : buckets_)
    renewed_.push_back(
        of.group->add(role_, stream_, GroupSync::Kind::all_gather, of.index, "", of.bytes(), {update}));
}

}  // namespace convoy::lowering
