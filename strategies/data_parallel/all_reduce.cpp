// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/all_reduce.h"

#include <fmt/format.h>

#include <limits>

#include "strategies/collectives.h"
#include "strategies/data_parallel/buckets.h"
#include "strategies/replicas.h"
#include "strategies/worker_program.h"

namespace convoy {
namespace {

constexpr double default_bucket_bytes =
    25.0 * 1024 * 1024;  // PyTorch DistributedDataParallel, bucket_cap_mb=25
constexpr int communication_stream = 1;

struct AllReduceOptions {
  AllReduceAlgorithm algorithm;
  RingOrder rings;
  double bucket_bytes;
  bool overlap;
  Fidelity fidelity;
  Shares shares;
  std::int64_t micro_batches;
};

class AllReduce : public Strategy {
 public:
  explicit AllReduce(const AllReduceOptions& options) : options_(options) {}

  std::string label() const override {
    return fmt::format("{} all-reduce{}",
                       all_reduce_algorithm_names[static_cast<std::size_t>(options_.algorithm)],
                       options_.overlap ? "" : ", no overlap");
  }

  std::string_view refuses_recomputation() const override { return {}; }

  Plan plan(const StrategyInput& input) const override {
    Plan plan;
    const std::vector<ReplicaClass> replicas = share_batch(input, options_.shares);
    const std::vector<Bucket> buckets = fill_buckets(input.graph, options_.bucket_bytes);
    const bool alone = input.machine.devices.size() == 1;
    if (!alone) add_communications(plan, input, buckets);
    for (const ReplicaClass& replica : replicas) {
      plan.images += static_cast<double>(replica.images) * static_cast<double>(replica.devices.size());
      plan.roles.push_back(worker(input, replica, alone ? std::vector<Bucket>{} : buckets));
    }
    return plan;
  }

 private:
  void add_communications(Plan& plan, const StrategyInput& input, const std::vector<Bucket>& buckets) const {
    std::vector<EndpointId> ranks(input.machine.devices.size());
    for (EndpointId d = 0; d < ranks.size(); ++d) ranks[d] = d;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      // Only `auto` may choose another algorithm for another size.
      if (b == 0 ||
          (options_.algorithm == AllReduceAlgorithm::automatic && buckets[b].bytes != buckets[b - 1].bytes))
        plan.patterns.push_back(
            all_reduce_pattern(options_.algorithm, ranks, input.machine, buckets[b].bytes, options_.rings));
      plan.communications.push_back({fmt::format("all-reduce bucket {}", b),
                                     static_cast<std::uint32_t>(plan.patterns.size() - 1), buckets[b].bytes,
                                     options_.fidelity, input.machine.collective_overhead_s});
    }
  }

  Role worker(const StrategyInput& input, const ReplicaClass& replica,
              const std::vector<Bucket>& buckets) const {
    const bool dealt = input.batch.dealt.has_value();
    if (!dealt && replica.images % options_.micro_batches != 0)
      throw InputError(input.batch.pos,
                       fmt::format("training: {} images a device do not divide into {} micro-batches",
                                   replica.images, options_.micro_batches));
    Role role = replica_role(input, replica, true, input.machine.devices.size());
    std::vector<OpId> cuts;
    if (options_.overlap)
      for (const Bucket& bucket : buckets) cuts.push_back(bucket.ready);
    const ForwardBackward compute =
        dealt ? add_forward_backward(role, input.graph, replica.micro_batches, cuts)
              : add_forward_backward(role, input.graph,
                                     static_cast<double>(replica.images / options_.micro_batches),
                                     options_.micro_batches, cuts);
    std::vector<TaskId> before_update{compute.last};
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      Task task;
      task.kind = Task::Kind::collective;
      task.name = fmt::format("all-reduce bucket {}", b);
      task.stream = communication_stream;
      task.after = {options_.overlap ? compute.task_of[b] : compute.last};
      task.comm = static_cast<CommId>(b);
      before_update.push_back(static_cast<TaskId>(role.program.size()));
      role.program.push_back(std::move(task));
    }
    add_update(role, input.graph, std::move(before_update));
    return role;
  }

  AllReduceOptions options_;
};

}  // namespace

std::unique_ptr<Strategy> read_all_reduce(YamlMap& map) {
  AllReduceOptions options{};
  options.algorithm =
      static_cast<AllReduceAlgorithm>(map.choice_or("algorithm", all_reduce_algorithm_names, 0));
  options.rings = static_cast<RingOrder>(map.choice_or("rings", {"mesh", "in_order"}, 0));
  options.overlap = map.flag_or("overlap", true);
  options.bucket_bytes =
      map.quantity_or("bucket", Dimension::bytes,
                      options.overlap ? default_bucket_bytes : std::numeric_limits<double>::infinity(), true);
  options.fidelity = static_cast<Fidelity>(map.choice_or("fidelity", {"auto", "chunk", "fluid"}, 0));
  options.shares = static_cast<Shares>(map.choice_or("shares", shares_names, 0));
  options.micro_batches = map.integer_or("micro_batches", 1, 1, 1'000'000);
  return std::make_unique<AllReduce>(options);
}

}  // namespace convoy
