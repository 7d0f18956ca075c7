// SPDX-License-Identifier: MIT
// Work that is placed on several devices, in micro-batches and several times side by side.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/input_error.h"
#include "sim/plan/validate.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

const std::string placed_model =
    "{name: two, input: [3, 16, 16], loss: cross_entropy, layers: ["
    "{name: conv1, kind: conv2d, out_channels: 16, kernel: 3, padding: 1}, {name: relu1, kind: relu},"
    "{name: conv2, kind: conv2d, out_channels: 32, kernel: 3, padding: 1}, {name: relu2, kind: relu},"
    "{name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}";
constexpr double placed_bandwidth_Bps = 10e9, placed_latency_s = 5e-6;

lab::Experiment placed(const std::string& kind, int devices, const std::string& keys = "",
                       std::int64_t batch = 16) {
  return lab::Experiment(placed_model, lab::star(devices, "10GB/s", "5us"), "{kind: " + kind + keys + "}",
                         batch);
}

double placed_parameter_bytes(const TrainingGraph& graph) {
  double bytes = 0;
  for (const Parameter& parameter : graph.parameters) bytes += 4.0 * static_cast<double>(parameter.elements);
  return bytes;
}

/// Kernels that a plan runs, each as often as devices run it.
double placed_flops(const Plan& plan) {
  double sum = 0;
  for (const Role& role : plan.roles)
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops)
        sum += static_cast<double>(role.members.size()) *
               (op.images * op.work.flops_per_image + op.work.flops_fixed);
  return sum;
}

std::string placed_error(const std::string& strategy, std::int64_t batch = 16) {
  try {
    lab::Experiment(placed_model, lab::star(4, "10GB/s", "5us"), strategy, batch);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("placed replicas: as many steps side by side, and a sum of the gradients of each part after them") {
  for (const std::string kind : {"filter_parallel", "hypergraph", "pardnn"})
    for (const std::string more : {"", ", micro_batches: 4"}) {
      CAPTURE(kind);
      CAPTURE(more);
      const lab::Experiment one = placed(kind, 2, more);
      const lab::Experiment three = placed(kind, 6, more + ", replicas: 3");
      validate(three.plan(), three.machine());
      const ReplayResult alone = one.run(), together = three.run();
      CHECK(three.plan().images == 3 * one.plan().images);
      CHECK(placed_flops(three.plan()) == approx(3 * placed_flops(one.plan())).epsilon(1e-12));
      const double sums = 2 * (3 - 1) * placed_parameter_bytes(one.graph());
      CHECK(together.comm_bytes == approx(3 * alone.comm_bytes + sums).epsilon(1e-12));
      // A ring of three: four rounds of a third of the part's parameters, of which all are the most.
      const double longest_s =
          4 * (placed_latency_s + placed_parameter_bytes(one.graph()) / 3 / placed_bandwidth_Bps);
      CHECK(together.step_time_s > alone.step_time_s);
      CHECK(together.step_time_s <= alone.step_time_s + longest_s * (1 + 1e-9));
      for (std::size_t d = 0; d < 6; ++d)
        CHECK(together.endpoints[d].peak_memory_bytes ==
              approx(alone.endpoints[d % 2].peak_memory_bytes).epsilon(1e-12));
      CHECK(three.run(true).step_time_s == approx(three.run(false).step_time_s).epsilon(1e-9));
    }
}

TEST_CASE("placed replicas: buckets that are sent while backward goes on end no later than all after it") {
  int earlier = 0;
  for (const std::string kind : {"filter_parallel", "hypergraph", "pardnn"})
    for (const int micro_batches : {1, 4}) {
      CAPTURE(kind);
      CAPTURE(micro_batches);
      const auto step_s = [&](bool overlap) {
        return placed(kind, 4,
                      fmt::format(", replicas: 2, micro_batches: {}, inner: {{kind: data_parallel, sync: "
                                  "all_reduce, bucket: 1B, overlap: {}}}",
                                  micro_batches, overlap))
            .run()
            .step_time_s;
      };
      const double during_s = step_s(true), after_s = step_s(false);
      CHECK(during_s <= after_s * (1 + 1e-12));
      earlier += during_s < after_s * (1 - 1e-3) ? 1 : 0;
    }
  CHECK(earlier >= 4);  // of six
}

TEST_CASE("placed replicas of one device are data parallelism, and one of them is single") {
  for (const std::string kind : {"hypergraph", "pardnn", "filter_parallel"}) {
    CAPTURE(kind);
    const auto same_step = [&](int devices, const std::string& keys, const std::string& as) {
      const ReplayResult result = placed(kind, devices, keys).run();
      const ReplayResult other =
          lab::Experiment(placed_model, lab::star(devices, "10GB/s", "5us"), as, 16).run();
      CHECK(result.step_time_s == approx(other.step_time_s).epsilon(1e-9));
      CHECK(result.comm_bytes == approx(other.comm_bytes).epsilon(1e-12));
      CHECK(result.endpoints[0].peak_memory_bytes ==
            approx(other.endpoints[0].peak_memory_bytes).epsilon(1e-12));
    };
    same_step(1, "", "{kind: single}");
    same_step(1, ", micro_batches: 4", "{kind: single, micro_batches: 4}");
    const std::string sync = "kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: 10kB";
    same_step(4, ", replicas: 4, inner: {" + sync + "}", "{" + sync + "}");
  }
}

TEST_CASE("micro-batches of placed work: the same work, and the more of them, the less is in memory") {
  for (const std::string kind : {"filter_parallel", "hypergraph", "pardnn"}) {
    CAPTURE(kind);
    const auto peak_bytes = [](const ReplayResult& result) {
      return std::max(result.endpoints[0].peak_memory_bytes, result.endpoints[1].peak_memory_bytes);
    };
    const lab::Experiment whole = placed(kind, 2), parts = placed(kind, 2, ", micro_batches: 8");
    CHECK(parts.plan().images == whole.plan().images);
    CHECK(placed_flops(parts.plan()) >= placed_flops(whole.plan()) * (1 - 1e-12));
    CHECK(placed_flops(parts.plan()) <=
          placed_flops(whole.plan()) * 1.01);  // gradients that have come are added
    CHECK(peak_bytes(parts.run()) < peak_bytes(whole.run()));
  }
}

TEST_CASE("placed replicas: what does not go together is told where it is written") {
  CHECK(
      placed_error("{kind: pardnn, replicas: 3}") ==
      "strategy:1:26: strategy.replicas: 3 replicas cannot have equally many of 4 devices; use a number that "
      "divides them");
  CHECK(placed_error("{kind: hypergraph, parts: 3, replicas: 2}") ==
        "strategy:1:40: strategy.replicas: 2 replicas of 3 devices take 6; the cluster has 4");
  CHECK(placed_error("{kind: pardnn, inner: {kind: data_parallel, sync: all_reduce}}") ==
        "strategy:1:23: strategy.inner: says how replicas sum their gradients, and there is one: give "
        "replicas, or leave it out");
  CHECK(
      placed_error("{kind: pardnn, replicas: 2, inner: {kind: data_parallel, sync: all_reduce, zero: 2}}") ==
      "strategy:1:82: strategy.inner.zero: 2 frees gradients after each pass over all layers, and here "
      "passes "
      "take turns; use zero: 0 or 1");
  CHECK(placed_error("{kind: filter_parallel, replicas: 2, master: 2}") ==
        "strategy:1:46: strategy.master: there is no device 2; a replica has 2, 0 to 1");
  CHECK(placed_error("{kind: filter_parallel, replicas: 2, micro_batches: 3}", 16) ==
        "test:1:1: training.batch_per_device: 16 on each of 4 devices, 64 images in all, cannot be divided "
        "into "
        "2 replicas of 3 micro-batches; 15 or 18 can");
}
