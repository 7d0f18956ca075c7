// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/sharded_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "sim/lowering/buckets.h"
#include "sim/lowering/plan_ops.h"
#include "sim/lowering/worker_program.h"

namespace convoy {
namespace {

constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// Consecutive operations, first to last, in which no other bucket's parameters than these are read.
struct Use {
  std::size_t bucket;
  OpId first, last;
};

/// What buckets of whole layers are to the operations of a step.
struct BucketUses {
  std::vector<Use> uses;
  std::vector<OpId> first_gradient;  ///< by bucket: the operation that makes its first gradient
};

BucketUses find_uses(const TrainingGraph& graph, const std::vector<Bucket>& buckets) {
  BucketUses result;
  std::vector<std::size_t> bucket_of_layer(graph.model.layers.size(), none);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    OpId first = buckets[b].ready;
    for (const std::size_t p : buckets[b].parameters) {
      bucket_of_layer[graph.parameters[p].layer] = b;
      first = std::min(first, graph.parameters[p].gradient);
    }
    result.first_gradient.push_back(first);
  }
  bool forward = true;
  for (OpId id = 0; id < graph.operations.size(); ++id) {
    const Operation& op = graph.operations[id];
    if (op.phase == Phase::update) continue;
    // Losses and gradient sums have a layer, but do not read its parameters.
    const bool reads = op.reader == Operation::no_reader && op.work.kind != KernelKind::softmax_loss;
    const std::size_t bucket = reads ? bucket_of_layer[op.layer] : none;
    const bool turns = std::exchange(forward, forward && op.phase == Phase::forward && !op.again) != forward;
    if (result.uses.empty() || turns) result.uses.push_back({none, id, id});
    if (bucket != none && result.uses.back().bucket != none && result.uses.back().bucket != bucket)
      result.uses.push_back({bucket, id, id});
    if (bucket != none) result.uses.back().bucket = bucket;
    result.uses.back().last = id;
  }
  return result;
}

/// Communications and patterns of a plan whose roles all use the same communications in the same order.
class Messages {
 public:
  Messages(const AllReduceOptions& options, const Machine& machine, Plan& plan)
      : options_(options), machine_(machine), plan_(plan), ranks_(machine.devices.size()) {
    for (EndpointId d = 0; d < ranks_.size(); ++d) ranks_[d] = d;
    const std::string reason = why_no_scatter(options.algorithm, ranks_, machine);
    if (!reason.empty())
      throw InputError(options.algorithm_pos,
                       fmt::format("strategy.algorithm: with zero: {}, {}", options.zero, reason));
  }

  void begin_role() { next_ = 0; }

  /// Appends a task of the next communication to a role's program.
  TaskId add(Role& role, std::string name, double bytes, bool gather, std::vector<TaskId> after) {
    if (next_ == plan_.communications.size())
      plan_.communications.push_back(
          {name, pattern(bytes, gather), bytes, options_.fidelity, machine_.collective_overhead_s});
    const TaskId task = add_message(role, Task::Kind::collective, std::move(name), next_++, std::move(after));
    role.program[task].stream = communication_stream;
    return task;
  }

 private:
  std::uint32_t pattern(double bytes, bool gather) {
    const CollectiveAlgorithm& algorithm = collective(options_.algorithm);
    const std::pair key{gather && !algorithm.same_half, algorithm.by_bytes ? bytes : 0};
    const auto [it, fresh] = patterns_.emplace(key, static_cast<std::uint32_t>(plan_.patterns.size()));
    if (fresh)
      plan_.patterns.push_back((gather ? all_gather_pattern : reduce_scatter_pattern)(
          options_.algorithm, ranks_, machine_, bytes, options_.rings));
    return it->second;
  }

  const AllReduceOptions& options_;
  const Machine& machine_;
  Plan& plan_;
  std::vector<EndpointId> ranks_;
  std::map<std::pair<bool, double>, std::uint32_t> patterns_;
  CommId next_ = 0;
};

/// A role's program in stages 2 and 3, operation by operation.
class ProgramWriter {
 public:
  ProgramWriter(const AllReduceOptions& options, const TrainingGraph& graph,
                const std::vector<Bucket>& buckets, const BucketUses& uses, Messages& messages, Role& role)
      : options_(options),
        graph_(graph),
        buckets_(buckets),
        uses_(uses),
        messages_(messages),
        role_(role),
        plan_op_(graph),
        use_count_(options.zero == 3 ? uses.uses.size() * static_cast<std::size_t>(options.micro_batches)
                                     : 0) {}

  /// Forward and backward of all micro-batches, and the update.
  void write(double images, double devices) {
    if (use_count_ > 0) {
      std::vector<PlanOp> buffers;
      for (std::size_t u = 0; u < std::min(depth(), use_count_); ++u) buffers.push_back(gather_buffer(u));
      const TaskId begin = add_compute(role_, "begin", std::move(buffers), {});
      for (std::size_t u = 0; u < std::min(depth(), use_count_); ++u) gather(u, begin);
    }
    for (std::int64_t m = 0; m < options_.micro_batches; ++m)
      micro_batch(images, options_.micro_batches > 1 ? fmt::format(" #{}", m) : "");
    if (!task_.ops.empty()) close();
    std::vector<TaskId> before = scatters_;
    before.push_back(compute_);
    const TaskId update = add_update(role_, graph_, std::move(before), 1 / devices);
    std::vector<PlanOp>& ops = role_.program[update].ops;
    for (; released_ < scatters_.size(); ++released_) ops.insert(ops.begin(), free_gradients(released_));
    if (options_.zero == 3) return;
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      messages_.add(role_, fmt::format("all-gather bucket {}", b), buckets_[b].bytes, true, {update});
  }

 private:
  /// Buckets of parameters, and of gradients, that may be there at a time.
  std::size_t depth() const { return options_.overlap ? 2 : 1; }

  void micro_batch(double images, const std::string& suffix) {
    std::size_t bucket = 0;  // whose gradients are made next
    for (OpId id = 0; id < graph_.operations.size(); ++id) {
      if (graph_.operations[id].phase == Phase::update) continue;
      const bool gathered = use_count_ > 0;
      if (gathered && id == use().first) wait_for(gathers_[use_]);
      PlanOp op = plan_op_(id, images, graph_.operations[id].name + suffix);
      if (bucket < buckets_.size() && id == uses_.first_gradient[bucket]) {
        if (options_.overlap && scatters_.size() >= depth()) release();
        op.allocates.push_back({MemoryClass::gradients, buckets_[bucket].bytes});
      }
      const bool scatter = bucket < buckets_.size() && id == buckets_[bucket].ready;
      const bool last_use = gathered && id == use().last;
      if (last_use) op.frees.push_back({MemoryClass::weights, buckets_[use().bucket].bytes});
      last_op_ = op.name;
      task_.ops.push_back(std::move(op));
      const bool more = last_use && use_ + depth() < use_count_;
      if (more) task_.ops.push_back(gather_buffer(use_ + depth()));
      if (scatter || more) {
        const TaskId done = close();
        if (scatter) scatter_gradients(bucket++, suffix, done);
        if (more) gather(use_ + depth(), done);
      }
      if (last_use) ++use_;
    }
  }

  void scatter_gradients(std::size_t bucket, const std::string& suffix, TaskId after) {
    scatters_.push_back(messages_.add(role_, fmt::format("reduce-scatter bucket {}{}", bucket, suffix),
                                      buckets_[bucket].bytes, false, {after}));
    scattered_.push_back(bucket);
    if (!options_.overlap) release();
  }

  const Use& use(std::size_t u) const { return uses_.uses[u % uses_.uses.size()]; }
  const Use& use() const { return use(use_); }

  PlanOp gather_buffer(std::size_t u) const {
    return memory_op(fmt::format("buffer of bucket {}", use(u).bucket),
                     {{MemoryClass::weights, buckets_[use(u).bucket].bytes}}, {});
  }
  PlanOp free_gradients(std::size_t scatter) const {
    const std::size_t bucket = scattered_[scatter];
    return memory_op(fmt::format("free gradients of bucket {}", bucket), {},
                     {{MemoryClass::gradients, buckets_[bucket].bytes}});
  }

  void gather(std::size_t u, TaskId after) {
    const std::string suffix = options_.micro_batches > 1 ? fmt::format(" #{}", u / uses_.uses.size()) : "";
    gathers_.push_back(messages_.add(role_,
                                     fmt::format("all-gather bucket {} for {}{}", use(u).bucket,
                                                 graph_.operations[use(u).first].name, suffix),
                                     buckets_[use(u).bucket].bytes, true, {after}));
  }

  /// The gradients of the oldest bucket that is still whole go when its sums are there.
  void release() {
    wait_for(scatters_[released_]);
    task_.ops.push_back(free_gradients(released_++));
  }

  void wait_for(TaskId before) {
    if (!task_.ops.empty()) close();
    task_.after.push_back(before);
  }

  TaskId close() {
    std::string name =
        last_op_.empty() ? task_.ops.back().name : "compute up to " + std::exchange(last_op_, {});
    compute_ = add_compute(role_, std::move(name), std::move(task_.ops), std::move(task_.after));
    task_ = Task{};
    return compute_;
  }

  const AllReduceOptions& options_;
  const TrainingGraph& graph_;
  const std::vector<Bucket>& buckets_;
  const BucketUses& uses_;
  Messages& messages_;
  Role& role_;
  PlanOps plan_op_;
  std::size_t use_count_;  ///< over all micro-batches; stage 3
  std::size_t use_ = 0;    ///< under way
  Task task_;              ///< being written
  std::string last_op_;    ///< of the graph in it
  TaskId compute_ = 0;     ///< the last that was
  std::vector<TaskId> gathers_, scatters_;
  std::vector<std::size_t> scattered_;  ///< by reduce-scatter: its bucket
  std::size_t released_ = 0;            ///< reduce-scatters whose buckets' gradients are free again
};

/// A role's program in stage 1: that of an all-reduce, in two halves.
void write_stage_1(const AllReduceOptions& options, const TrainingGraph& graph,
                   const std::vector<Bucket>& buckets, double images, double devices, Messages& messages,
                   Role& role) {
  std::vector<OpId> cuts;
  if (options.overlap)
    for (const Bucket& bucket : buckets) cuts.push_back(bucket.ready);
  const ForwardBackward compute = add_forward_backward(role, graph, images, options.micro_batches, cuts);
  std::vector<TaskId> before{compute.last};
  for (std::size_t b = 0; b < buckets.size(); ++b)
    before.push_back(messages.add(role, fmt::format("reduce-scatter bucket {}", b), buckets[b].bytes, false,
                                  {options.overlap ? compute.task_of[b] : compute.last}));
  const TaskId update = add_update(role, graph, std::move(before), 1 / devices);
  for (std::size_t b = 0; b < buckets.size(); ++b)
    messages.add(role, fmt::format("all-gather bucket {}", b), buckets[b].bytes, true, {update});
}

}  // namespace

Plan plan_sharded(const AllReduceOptions& options, const StrategyInput& input) {
  const auto devices = static_cast<double>(input.machine.devices.size());
  const std::vector<Bucket> buckets = options.zero == 1
                                          ? fill_buckets(input.graph, options.bucket_bytes)
                                          : fill_buckets_by_layer(input.graph, options.bucket_bytes);
  const BucketUses uses = find_uses(input.graph, buckets);
  Plan plan;
  Messages messages(options, input.machine, plan);
  for (const ReplicaClass& replica : share_batch(input, options.shares)) {
    plan.images += static_cast<double>(replica.images) * static_cast<double>(replica.devices.size());
    Role role = replica_role(input, replica, true);
    const double reserved = role.resident_bytes[static_cast<std::size_t>(MemoryClass::reserved)];
    role.resident_bytes = sharded_resident_bytes(input.graph, options.zero, devices);
    role.resident_bytes[static_cast<std::size_t>(MemoryClass::reserved)] = reserved;
    const double images = micro_batch_images(input, replica, options.micro_batches);
    messages.begin_role();
    if (options.zero == 1)
      write_stage_1(options, input.graph, buckets, images, devices, messages, role);
    else
      ProgramWriter(options, input.graph, buckets, uses, messages, role).write(images, devices);
    plan.roles.push_back(std::move(role));
  }
  return plan;
}

std::array<double, memory_class_count> sharded_resident_bytes(const TrainingGraph& graph, int stage,
                                                              double devices) {
  std::array<double, memory_class_count> bytes = graph.resident_bytes();
  double& weights = bytes[static_cast<std::size_t>(MemoryClass::weights)];
  const double computed_with = graph.gradient_bytes();  // the rest are fp32 copies, which the optimizer uses
  weights = stage == 3 ? weights / devices : computed_with + (weights - computed_with) / devices;
  if (stage >= 2) bytes[static_cast<std::size_t>(MemoryClass::gradients)] /= devices;
  bytes[static_cast<std::size_t>(MemoryClass::optimizer)] /= devices;
  return bytes;
}

}  // namespace convoy
