// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/all_reduce.h"

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "sim/collectives/table.h"
#include "sim/lowering/buckets.h"
#include "sim/lowering/compression.h"
#include "sim/lowering/plan_ops.h"
#include "sim/lowering/worker_program.h"
#include "strategies/data_parallel/all_reduce_options.h"
#include "strategies/data_parallel/sharded_states.h"
#include "strategies/replicas.h"

namespace convoy {
namespace {

constexpr double default_bucket_bytes =
    25.0 * 1024 * 1024;  // PyTorch DistributedDataParallel, bucket_cap_mb=25

class AllReduce : public Strategy {
 public:
  explicit AllReduce(const AllReduceOptions& options) : options_(options) {}

  std::string label() const override {
    return fmt::format("{} all-reduce{}{}{}", collective(options_.algorithm).name,
                       options_.zero > 0 ? fmt::format(", ZeRO-{}", options_.zero) : "",
                       label_of(options_.compression), options_.overlap ? "" : ", no overlap");
  }

  std::string_view refuses_recomputation() const override { return {}; }

  Plan steady_plan(const StrategyInput& input) const override {
    const bool alone = input.machine.devices.size() == 1;
    if (options_.zero > 0 && !alone && !input.graph.parameters.empty()) return plan_sharded(options_, input);
    Plan plan;
    const std::vector<ReplicaClass> replicas = share_batch(input, options_.shares);
    const std::vector<Bucket> buckets =
        alone ? std::vector<Bucket>{} : fill_buckets(input.graph, options_.bucket_bytes);
    const Compressor compressor(options_.compression, input.graph, input.machine.devices.size());
    add_communications(plan, input, buckets, compressor);
    for (const ReplicaClass& replica : replicas) {
      plan.images += static_cast<double>(replica.images) * static_cast<double>(replica.devices.size());
      plan.roles.push_back(worker(input, replica, buckets, compressor));
    }
    return plan;
  }

 private:
  void add_communications(Plan& plan, const StrategyInput& input, const std::vector<Bucket>& buckets,
                          const Compressor& compressor) const {
    std::vector<EndpointId> ranks(input.machine.devices.size());
    for (EndpointId d = 0; d < ranks.size(); ++d) ranks[d] = d;
    // Everyone needs everyone's choice of gradients: they are gathered, not summed on the way.
    const bool gathers = options_.compression.kind == Compression::Kind::top_k;
    const std::string reason =
        gathers && !buckets.empty() ? why_no_scatter(options_.algorithm, ranks, input.machine) : "";
    if (!reason.empty())
      throw InputError(options_.algorithm_pos,
                       fmt::format("strategy.algorithm: with compression: top_k, {}", reason));
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const double bytes = compressor.sent_bytes(buckets[b].bytes) * (gathers ? ranks.size() : 1.0);
      if (b == 0 || (collective(options_.algorithm).by_bytes && bytes != plan.communications[b - 1].bytes))
        plan.patterns.push_back((gathers ? all_gather_pattern : all_reduce_pattern)(
            options_.algorithm, ranks, input.machine, bytes, options_.rings));
      plan.communications.push_back({fmt::format("{} bucket {}", gathers ? "all-gather" : "all-reduce", b),
                                     static_cast<std::uint32_t>(plan.patterns.size() - 1), bytes,
                                     options_.fidelity, input.machine.collective_overhead_s});
    }
  }

  Role worker(const StrategyInput& input, const ReplicaClass& replica, const std::vector<Bucket>& buckets,
              const Compressor& compressor) const {
    const bool dealt = input.batch.dealt.has_value();
    const double images = dealt ? 0 : micro_batch_images(input, replica, options_.micro_batches);
    Role role = replica_role(input, replica, true);
    std::vector<OpId> cuts;
    if (options_.overlap)
      for (const Bucket& bucket : buckets) cuts.push_back(bucket.ready);
    const ForwardBackward compute =
        dealt ? add_forward_backward(role, input.graph, replica.micro_batches, cuts)
              : add_forward_backward(role, input.graph, images, options_.micro_batches, cuts);
    std::vector<TaskId> before_update{compute.last};
    const bool copies = copies_into_buckets(input);
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const TaskId ready = options_.overlap ? compute.task_of[b] : compute.last;
      compressor.add_compression(role, ready, b, buckets[b].bytes);
      if (copies && buckets[b].parameters.size() > 1)
        add_copy(role.program[ready], b, buckets[b].bytes, "filled");
      Task task;
      task.kind = Task::Kind::collective;
      task.name =
          fmt::format("{} bucket {}",
                      options_.compression.kind == Compression::Kind::top_k ? "all-gather" : "all-reduce", b);
      task.stream = communication_stream;
      task.after = {ready};
      task.comm = static_cast<CommId>(b);
      before_update.push_back(static_cast<TaskId>(role.program.size()));
      role.program.push_back(std::move(task));
    }
    if (compressor.active())
      for (std::size_t b = 0; b < buckets.size(); ++b)
        before_update.push_back(
            compressor.add_decompression(role, b, buckets[b].bytes, before_update[b + 1]));
    const TaskId update = add_update(role, input.graph, std::move(before_update));
    if (copies)
      for (std::size_t b = buckets.size(); b-- > 0;)
        if (buckets[b].parameters.size() > 1) add_copy(role.program[update], b, buckets[b].bytes, "emptied");
    return role;
  }

  /// PyTorch's DistributedDataParallel and Horovod copy gradients into a bucket (divided by the number of
  /// replicas) and back (DDP: gradient_as_bucket_view=False, its default). Software that an ideal fabric has
  /// none of.
  bool copies_into_buckets(const StrategyInput& input) const {
    return !input.machine.transport.ideal() && input.machine.devices.size() > 1;
  }

  static void add_copy(Task& task, std::size_t bucket, double bytes, const char* what) {
    const auto at = what == std::string_view("emptied") ? task.ops.begin() : task.ops.end();
    task.ops.insert(at, elementwise_op(fmt::format("bucket {} {}", bucket, what), bytes / 4, 2 * bytes));
  }

  AllReduceOptions options_;
};

}  // namespace

std::unique_ptr<Strategy> read_all_reduce(YamlMap& map) {
  AllReduceOptions options;
  options.algorithm =
      static_cast<AllReduceAlgorithm>(map.choice_or("algorithm", all_reduce_algorithm_names(), 0));
  options.algorithm_pos = map.pos("algorithm");
  options.rings = static_cast<RingOrder>(map.choice_or("rings", {"mesh", "in_order"}, 0));
  options.overlap = map.flag_or("overlap", true);
  options.zero = static_cast<int>(map.integer_or("zero", 0, 0, 3));
  options.bucket_bytes = map.quantity_or(
      "bucket", Dimension::bytes,
      options.overlap || options.zero >= 2 ? default_bucket_bytes : std::numeric_limits<double>::infinity(),
      true);
  options.fidelity = static_cast<Fidelity>(map.choice_or("fidelity", {"auto", "chunk", "fluid"}, 0));
  options.shares = static_cast<Shares>(map.choice_or("shares", shares_names, 0));
  options.micro_batches = map.integer_or("micro_batches", 1, 1, 1'000'000);
  options.compression = read_compression(map);
  if (options.zero > 0 && options.compression.kind != Compression::Kind::none)
    map.fail("compression",
             "goes with zero: 0, whose gradients are summed whole on every device; leave out one of the two");
  return std::make_unique<AllReduce>(options);
}

}  // namespace convoy
