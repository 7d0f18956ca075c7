// SPDX-License-Identifier: MIT
// Gradients and states of hybrids that are sharded over those who have replicas of them, or sent compressed.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>

#include "sim/base/input_error.h"
#include "sim/plan/process_memory.h"
#include "tests/support/lab.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

const std::string states_network =
    "{name: net, input: [3, 16, 16], layers: ["
    "{name: a, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}, {name: ra, kind: relu}, "
    "{name: b, kind: conv2d, out_channels: 16, kernel: 3, stride: 2, padding: 1}, {name: rb, kind: relu}, "
    "{name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}";

/// Four linear layers of 64 features without biases: 16 kB of weights each.
std::string linear_layers() {
  std::string model = "{name: mlp, input: [64], layers: [";
  for (int i = 0; i < 4; ++i)
    model += fmt::format("{{name: fc{}, kind: linear, out_features: 64, bias: false}}, ", i);
  return model + "]}";
}

double sum(const StateBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), 0.0); }

std::string states_error(const std::string& keys) {
  try {
    Experiment::with_global_batch("alexnet", star(4, "1GB/s", "0us"), "{kind: hybrid, " + keys + "}", 8);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("hybrid states: split by images, with whatever options, it is data parallelism") {
  for (const char* sync :
       {"bucket: 1kB, zero: 1", "zero: 1, overlap: false", "bucket: 1kB, zero: 2",
        "bucket: 1kB, zero: 2, overlap: false", "bucket: 1kB, zero: 3",
        "bucket: 1kB, zero: 3, overlap: false", "bucket: 1kB, compression: fp16",
        "bucket: 1kB, compression: {kind: top_k, ratio: 0.01}", "overlap: false, compression: fp16"})
    for (const int micro_batches : {1, 3}) {
      CAPTURE(sync);
      CAPTURE(micro_batches);
      const auto run = [&](const std::string& kind) {
        return Experiment(states_network, star(4, "100MB/s", "1us"),
                          fmt::format("{{kind: {}, micro_batches: {}, {}}}", kind, micro_batches, sync),
                          {6, std::nullopt, {"test", 1, 1}}, {Precision::fp32, Optimizer::adam})
            .run();
      };
      const ReplayResult plain = run("data_parallel, sync: all_reduce");
      for (const std::string replicas : {"", ", replicas: 2"}) {
        const ReplayResult hybrid = run("hybrid, conv: batch, fc: batch" + replicas);
        CHECK(hybrid.step_time_s == doctest::Approx(plain.step_time_s).epsilon(1e-12));
        CHECK(hybrid.comm_bytes == doctest::Approx(plain.comm_bytes).epsilon(1e-12));
        for (std::size_t d = 0; d < plain.endpoints.size(); ++d) {
          CHECK(hybrid.endpoints[d].peak_memory_bytes ==
                doctest::Approx(plain.endpoints[d].peak_memory_bytes).epsilon(1e-12));
          CHECK(hybrid.endpoints[d].compute_s ==
                doctest::Approx(plain.endpoints[d].compute_s).epsilon(1e-12));
        }
      }
    }
}

TEST_CASE("hybrid states: the allocator sees the buffers of a batch-split hybrid as those of replicas") {
  for (const std::string network : {"resnet18", "googlenet", "vgg11"}) {
    CAPTURE(network);
    const auto bytes = [&](const std::string& strategy) {
      const Experiment experiment(network, "{server: aws-p3.8xlarge, nodes: 1}", strategy, 16);
      const DeviceType& v100 = experiment.machine().device_types.at(experiment.machine().devices[0].type);
      return process_memory(experiment.plan().roles.at(0), v100, {}).bytes;
    };
    const double replica = bytes("{kind: data_parallel, sync: all_reduce, algorithm: ring}");
    CHECK(replica > 1e9);
    CHECK(bytes("{kind: hybrid, conv: batch, fc: batch}") == replica);
  }
}

TEST_CASE("hybrid states: shares of weights are sharded over the replicas, what ZeRO's paper says of them") {
  // Pairs on 3 replicas of 2 devices: a device has psi = half of four matrices, and two others have the same.
  const double psi = 4 * 64 * 64 / 2, replicas = 3, pairs = 2;
  const double images = 6 * 12, tensor = 64 * 4 * images;
  for (const int micro_batches : {1, 2})
    for (const int zero : {0, 1, 2, 3}) {
      CAPTURE(micro_batches);
      CAPTURE(zero);
      const Experiment experiment(
          linear_layers(), star(6, "1GB/s", "1us"),
          fmt::format("{{kind: hybrid, fc: pairs, replicas: 3, zero: {}, bucket: 20kB, micro_batches: {}}}",
                      zero, micro_batches),
          {12, std::nullopt, {"test", 1, 1}}, {Precision::fp32, Optimizer::adam});
      const double times = zero < 2 ? 2 : zero == 2 ? micro_batches + 1 : 3 * micro_batches;
      // All-reduces of outputs over two devices: every pair's forward, and but the first's backward.
      const double exchanged = (2 * pairs - 1) * 2 * tensor;
      CHECK(experiment.run().comm_bytes ==
            doctest::Approx(exchanged + times * (replicas - 1) * 2 * 4 * psi).epsilon(1e-12));
      const double expected = zero == 0   ? 16 * psi
                              : zero == 1 ? 8 * psi + 8 * psi / replicas
                              : zero == 2 ? 4 * psi + 12 * psi / replicas
                                          : 16 * psi / replicas;
      CHECK(sum(experiment.plan().roles[0].resident_bytes) == doctest::Approx(expected).epsilon(1e-12));
      double told = 0;
      for (const LayerGroup& group : experiment.report().layouts)
        told += group.exchange_bytes + group.gradient_bytes;
      CHECK(told == doctest::Approx(experiment.run().comm_bytes).epsilon(1e-12));
    }
}

TEST_CASE("hybrid states: what all have is sharded over all, shares over the replicas") {
  // One weird trick on 2 replicas of 2 devices. a and b are everyone's: (27 + 1) 8 + (72 + 1) 16 parameters
  // over four; fc is in halves of 5 (1024 + 1), each on two.
  const double conv = 28 * 8 + 73 * 16, fc = 5 * 1025;
  const Experiment experiment(states_network, star(4, "1GB/s", "1us"),
                              "{kind: hybrid, conv: batch, fc: filter, replicas: 2, zero: 3}",
                              {4, std::nullopt, {"test", 1, 1}}, {Precision::fp32, Optimizer::adam});
  REQUIRE(experiment.plan().roles.size() == 1);
  CHECK(sum(experiment.plan().roles[0].resident_bytes) == doctest::Approx(16 * (conv / 4 + fc / 2)));
  // The optimizer's work on a device: a quarter of the ones, half of the others.
  double updated = 0, whole = 0;
  for (const Task& task : experiment.plan().roles[0].program)
    for (const PlanOp& op : task.ops)
      if (op.name == "fc.update") updated = op.work.flops_fixed;
  for (const Operation& op : experiment.graph().operations)
    if (op.name == "fc.update") whole = op.work.flops_fixed;
  CHECK(updated == doctest::Approx(whole / 4));
}

TEST_CASE("hybrid states: pipeline x tensor x data with ZeRO-1 sends as much, and keeps less") {
  const auto experiment = [](int zero) {
    return Experiment(
        linear_layers(), star(8, "1GB/s", "1us"),
        fmt::format(
            "{{kind: pipeline, stages: 2, partition: even, micro_batches: 2, inner: {{kind: hybrid, fc: "
            "pairs, replicas: 2, zero: {}}}}}",
            zero),
        {4, std::nullopt, {"test", 1, 1}}, {Precision::fp32, Optimizer::adam});
  };
  const Experiment plain = experiment(0), sharded = experiment(1);
  CHECK(sharded.run().comm_bytes == doctest::Approx(plain.run().comm_bytes).epsilon(1e-12));
  const double psi = 2 * 64 * 64 / 2;  // half of a stage's two matrices
  CHECK(sum(plain.plan().roles[0].resident_bytes) == 16 * psi);
  CHECK(sum(sharded.plan().roles[0].resident_bytes) == 8 * psi + 8 * psi / 2);
}

TEST_CASE("hybrid states: options that do not go together are errors") {
  CHECK(states_error("conv: batch, fc: filter, scheme: c, zero: 2")
            .ends_with("strategy.zero: 2 and 3 free what a layer needs after each pass, and schemes b and c "
                       "have many; "
                       "use zero: 1, or scheme: a"));
  CHECK(states_error("conv: batch, zero: 1, compression: fp16")
            .ends_with(
                "strategy.compression: goes with zero: 0, whose gradients are summed whole on every device; "
                "leave out one of the two"));
  CHECK(states_error("conv: batch, fc: filter, scheme: c, zero: 1") == "no error");
  CHECK(read_strategy(parse_yaml("{kind: hybrid, conv: batch, zero: 2, overlap: false}", "s"))->label() ==
        "hybrid: conv batch, ZeRO-2, no overlap");
}
