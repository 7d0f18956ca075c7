// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/base/input_error.h"
#include "strategies/single.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// A device of 10 TFLOPS and 500 GB/s with 10 us before every kernel.
const std::string single_cluster =
    "{name: lab, nodes: [{name: n, count: 2, server: box}], fabric: {kind: switch, bandwidth: 1GB/s, "
    "latency: 1us}, "
    "servers: {box: {devices: [{device: slow-start}]}}, devices: {slow-start: {peak: {fp32: 10TFLOPS}, "
    "memory: "
    "16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0, launch_overhead: 10us}}}";

/// SimGrid's clock runs on from replay to replay of a process: a step's end minus its beginning is rounded.
constexpr double rounding = 1e-9;

std::string micro_batches(int count) { return fmt::format("{{kind: single, micro_batches: {}}}", count); }

}  // namespace

TEST_CASE("M micro-batches: M times the kernels' starts, once the work") {
  // 2 layers of 1 + 2 GFLOP an image on 12 images: 7.2 ms; 3 kernels a layer, each started M times.
  for (const int m : {1, 2, 3, 4, 6, 12}) {
    CAPTURE(m);
    const lab::Experiment experiment(lab::custom_model(2, 1'000'000), single_cluster, micro_batches(m), 12);
    CHECK(experiment.run().step_time_s == approx(12 * 2 * 3e9 / 10e12 + m * 2 * 3 * 10e-6).epsilon(rounding));
    CHECK(experiment.plan().images == 12);
  }
}

TEST_CASE("M micro-batches of a network: M (forward + backward) of a part, and one update") {
  const std::string network =
      "{name: net, input: [3, 16, 16], layers: [{name: conv, kind: conv2d, out_channels: 8, kernel: 3, "
      "padding: 1}, "
      "{name: bn, kind: batch_norm}, {name: relu, kind: relu}, {name: flat, kind: flatten}, {name: fc, kind: "
      "linear, "
      "out_features: 10}]}";
  for (const int m : {1, 2, 5, 10}) {
    CAPTURE(m);
    const lab::Experiment experiment(network, single_cluster, micro_batches(m), 20);
    double part_s = 0, update_s = 0;
    for (const Operation& op : experiment.graph().operations)
      (op.phase == Phase::update ? update_s : part_s) +=
          operation_time_s(op.work, op.phase == Phase::update ? 1 : 20.0 / m, Precision::fp32,
                           experiment.machine().device_types[0]);
    CHECK(update_s > 0);
    CHECK(experiment.run().step_time_s == approx(m * part_s + update_s).epsilon(rounding));
  }
}

TEST_CASE("smaller micro-batches take less memory") {
  const std::string network =
      "{name: net, input: [3, 64, 64], layers: [{name: conv, kind: conv2d, out_channels: 32, kernel: 3, "
      "padding: 1}, "
      "{name: relu, kind: relu}, {name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}";
  double last_bytes = 1e300;
  for (const int m : {1, 2, 4, 8}) {
    const double bytes =
        lab::Experiment(network, single_cluster, micro_batches(m), 8).run().endpoints[0].peak_memory_bytes;
    CHECK(bytes < last_bytes);
    last_bytes = bytes;
  }
}

TEST_CASE("a batch that does not divide into its micro-batches is an error") {
  CHECK_THROWS_WITH_AS(
      lab::Experiment(lab::custom_model(1, 1), single_cluster, micro_batches(5), 12),
      "test:1:1: training.batch_per_device: 12 cannot be divided into 5 micro-batches; 10 or 15 can",
      InputError);
  CHECK_THROWS_WITH_AS(lab::Experiment(lab::custom_model(1, 1), single_cluster,
                                       "{kind: data_parallel, sync: all_reduce, micro_batches: 5}", 12),
                       "test:1:1: training.batch_per_device: 12 on each of 2 devices, 24 images in all, "
                       "cannot be divided into 5 micro-batches on each of 2 devices; 10 or 15 can",
                       InputError);
}

TEST_CASE("single uses the first device only, and says so in one line") {
  const lab::Experiment experiment(lab::custom_model(1, 1000), single_cluster, micro_batches(2), 4);
  REQUIRE(experiment.plan().roles.size() == 1);
  CHECK(experiment.plan().roles[0].members == std::vector<EndpointId>{0});
  CHECK(experiment.plan().communications.empty());
  CHECK(read_strategy(parse_yaml("{kind: single}", "s"))->label() == "single device");
  CHECK(read_strategy(parse_yaml(micro_batches(2), "s"))->label() == "single device, 2 micro-batches");
}
