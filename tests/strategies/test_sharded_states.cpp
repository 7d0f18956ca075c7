// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/lowering/gradient_sync.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

constexpr std::size_t weights = 0, gradients = 1, optimizer = 2;
constexpr int sharded_layers = 5;
constexpr std::int64_t parameters = 300'000;
constexpr double layer_bytes = 4.0 * parameters, model_bytes = sharded_layers * layer_bytes;

std::string zero(int stage, const std::string& more = "") {
  return fmt::format("{{kind: data_parallel, sync: all_reduce, zero: {}, bucket: 1kB{}}}", stage, more);
}

lab::Experiment experiment(int nodes, int stage, const std::string& more = "", std::int64_t batch = 4,
                           const std::string& network = "1GB/s") {
  return {lab::custom_model(sharded_layers, parameters), lab::star(nodes, network, "20us"), zero(stage, more),
          batch};
}

double summed(const std::array<double, memory_class_count>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

/// "name <a,b" for each task: what it waits for beside its stream.
std::vector<std::string> program(const Plan& plan) {
  std::vector<std::string> lines;
  for (const Task& task : plan.roles[0].program) {
    std::string line = task.name + (task.after.empty() ? "" : " <");
    for (std::size_t i = 0; i < task.after.size(); ++i)
      line += fmt::format("{}{}", i > 0 ? "," : "", task.after[i]);
    lines.push_back(line);
  }
  return lines;
}

std::string error_of(const std::string& cluster, const std::string& strategy, std::int64_t batch = 4) {
  try {
    lab::Experiment(lab::custom_model(2, 1000), cluster, strategy, batch);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("states of 7.5 billion parameters with Adam and mixed precision are those of the paper's table 1") {
  const Model model = read_model(parse_yaml(lab::custom_model(1, 7'500'000'000), "model"));
  const TrainingGraph graph = build_training_graph(model, {Precision::fp16, Optimizer::adam});
  CHECK(summed(graph.resident_bytes()) == 120e9);  // 16 bytes each
  struct Row {
    double devices, stage_1, stage_2, stage_3;  // GB, as printed
  };
  for (const Row& row : {Row{4, 52.5, 41.3, 30}, Row{16, 35.6, 21.6, 7.5}, Row{64, 31.4, 16.6, 1.88},
                         Row{256, 30.4, 15.4, 0.47}, Row{1024, 30.1, 15.1, 0.12}}) {
    CAPTURE(row.devices);
    const auto GB = [&](int stage) {
      return summed(sharded_resident_bytes(7.5e9, graph.options, stage, row.devices)) / 1e9;
    };
    CHECK(std::abs(GB(1) - row.stage_1) <= 0.0501);
    CHECK(std::abs(GB(2) - row.stage_2) <= 0.0501);
    CHECK(std::abs(GB(3) - row.stage_3) <= 0.0051);
  }
}

TEST_CASE("in fp32 only the optimizer's states are sharded in stage 1, and momentum has one of them") {
  const Model model = read_model(parse_yaml(lab::custom_model(1, 1'000'000), "model"));
  const auto bytes = [&](int stage, Optimizer chosen) {
    return sharded_resident_bytes(1e6, {Precision::fp32, chosen}, stage, 8);
  };
  // 4 bytes each of parameters, gradients and velocity.
  CHECK(bytes(1, Optimizer::momentum)[weights] == 4e6);
  CHECK(bytes(1, Optimizer::momentum)[gradients] == 4e6);
  CHECK(bytes(1, Optimizer::momentum)[optimizer] == 0.5e6);
  CHECK(bytes(2, Optimizer::momentum)[weights] == 4e6);
  CHECK(bytes(2, Optimizer::momentum)[gradients] == 0.5e6);
  CHECK(bytes(3, Optimizer::momentum)[weights] == 0.5e6);
  CHECK(summed(bytes(3, Optimizer::momentum)) == 1.5e6);
  CHECK(summed(bytes(3, Optimizer::adam)) == 2e6);
  CHECK(summed(bytes(1, Optimizer::sgd)) == 8e6);
}

TEST_CASE("programs of two layers, by hand") {
  const auto plan = [](int stage, const std::string& more) {
    return lab::Experiment(lab::custom_model(2, parameters), lab::star(4, "1GB/s", "20us"), zero(stage, more),
                           4)
        .plan();
  };
  CHECK(program(plan(1, "")) == std::vector<std::string>{
                                    "compute up to body1.weight_gradient",
                                    "compute up to body0.weight_gradient",
                                    "reduce-scatter bucket 0 <0",
                                    "reduce-scatter bucket 1 <1",
                                    "update <1,2,3",
                                    "all-gather bucket 0 <4",
                                    "all-gather bucket 1 <4",
                                });
  // Without overlap the data gradient of body0 waits until the sums of body1 are there.
  CHECK(program(plan(2, ", overlap: false")) == std::vector<std::string>{
                                                    "compute up to body1.weight_gradient",
                                                    "reduce-scatter bucket 0 <0",
                                                    "compute up to body0.weight_gradient <1",
                                                    "reduce-scatter bucket 1 <2",
                                                    "free gradients of bucket 1 <3",
                                                    "update <1,3,4",
                                                    "all-gather bucket 0 <5",
                                                    "all-gather bucket 1 <5",
                                                });
  CHECK(program(plan(3, "")) == std::vector<std::string>{
                                    "begin",
                                    "all-gather bucket 1 for body0.forward <0",
                                    "all-gather bucket 0 for body1.forward <0",
                                    "compute up to body0.forward <1",
                                    "all-gather bucket 0 for body1.data_gradient <3",
                                    "compute up to body1.forward <2",
                                    "all-gather bucket 1 for body0.data_gradient <5",
                                    "compute up to body1.weight_gradient <4",
                                    "reduce-scatter bucket 0 <7",
                                    "compute up to body0.weight_gradient <6",
                                    "reduce-scatter bucket 1 <9",
                                    "update <8,10,9",
                                });
}

TEST_CASE("a third bucket of gradients waits until the first has been reduce-scattered") {
  const lab::Experiment three(lab::custom_model(3, parameters), lab::star(2, "1GB/s", "20us"), zero(2), 4);
  CHECK(program(three.plan()) == std::vector<std::string>{
                                     "compute up to body2.weight_gradient",
                                     "reduce-scatter bucket 0 <0",
                                     "compute up to body1.weight_gradient",
                                     "reduce-scatter bucket 1 <2",
                                     "compute up to body0.data_gradient",
                                     "compute up to body0.weight_gradient <1",
                                     "reduce-scatter bucket 2 <5",
                                     "update <1,3,6,5",
                                     "all-gather bucket 0 <7",
                                     "all-gather bucket 1 <7",
                                     "all-gather bucket 2 <7",
                                 });
}

TEST_CASE("a device sends 2, M + 1 and 3 M times (N-1)/N of the parameters with M micro-batches") {
  for (const int nodes : {2, 3, 8})
    for (const int micro_batches : {1, 2, 4})
      for (const bool overlap : {true, false}) {
        CAPTURE(nodes);
        CAPTURE(micro_batches);
        CAPTURE(overlap);
        const double times[]{2, micro_batches + 1.0, 3.0 * micro_batches};
        for (const int stage : {1, 2, 3}) {
          CAPTURE(stage);
          const ReplayResult result =
              experiment(nodes, stage,
                         fmt::format(", micro_batches: {}, overlap: {}", micro_batches, overlap))
                  .run();
          const double expected = times[stage - 1] * model_bytes * (nodes - 1) / nodes;
          for (int d = 0; d < nodes; ++d)
            CHECK(result.endpoints[static_cast<std::size_t>(d)].sent_bytes ==
                  approx(expected).epsilon(1e-12));
          CHECK(result.comm_bytes == approx(nodes * expected).epsilon(1e-12));
        }
      }
}

TEST_CASE("memory: the shards, and whole buckets one or two at a time") {
  const int nodes = 4;
  for (const bool overlap : {true, false}) {
    CAPTURE(overlap);
    const double there = overlap ? 2 : 1;
    for (const int stage : {1, 2, 3})
      for (const int micro_batches : {1, 2}) {
        CAPTURE(stage);
        CAPTURE(micro_batches);
        const lab::Experiment tried =
            experiment(nodes, stage, fmt::format(", overlap: {}, micro_batches: {}", overlap, micro_batches));
        const ReplayResult result = tried.run();
        double most_weights = 0, most_gradients = 0;
        for (const MemoryPoint& point : memory_of(result, tried.plan(), tried.machine(), tried.cost(), 0)) {
          most_weights = std::max(most_weights, point.bytes[weights]);
          most_gradients = std::max(most_gradients, point.bytes[gradients]);
        }
        CHECK(most_weights == (stage == 3 ? model_bytes / nodes + there * layer_bytes : model_bytes));
        CHECK(most_gradients == (stage >= 2 ? model_bytes / nodes + there * layer_bytes : model_bytes));
      }
  }
}

TEST_CASE("step time without overlap: every message in full") {
  // 1.2 ms of computation a layer, and (N-1) (alpha + S/(N B)) for each message of a layer's bytes.
  for (const int nodes : {2, 4, 7}) {
    const double message_s = (nodes - 1) * (20e-6 + layer_bytes / nodes / 1e9),
                 compute_s = sharded_layers * 1.2e-3;
    CAPTURE(nodes);
    const auto step_s = [&](int stage, int micro_batches) {
      return experiment(nodes, stage, fmt::format(", overlap: false, micro_batches: {}", micro_batches))
          .run()
          .step_time_s;
    };
    CHECK(step_s(1, 1) == approx(compute_s + 2 * sharded_layers * message_s).epsilon(1e-9));
    CHECK(step_s(1, 1) == approx(step_s(0, 1)).epsilon(1e-9));
    CHECK(step_s(1, 4) == approx(compute_s + 2 * sharded_layers * message_s).epsilon(1e-9));
    CHECK(step_s(2, 1) == approx(compute_s + 2 * sharded_layers * message_s).epsilon(1e-9));
    CHECK(step_s(2, 4) == approx(compute_s + 5 * sharded_layers * message_s).epsilon(1e-9));
    CHECK(step_s(3, 1) == approx(compute_s + 3 * sharded_layers * message_s).epsilon(1e-9));
    CHECK(step_s(3, 4) == approx(compute_s + 12 * sharded_layers * message_s).epsilon(1e-9));
  }
}

TEST_CASE("with overlap stage 3 on a fast network shows its first gather and its last reduce-scatter only") {
  // 4 devices at 10 GB/s: a message takes 3 (20 us + 0.3 MB / 10 GB/s) = 150 us, forward of a layer 400 us.
  CHECK(experiment(4, 3, "", 4, "10GB/s").run().step_time_s == approx(6e-3 + 2 * 150e-6).epsilon(1e-9));
  // Stage 2: the last reduce-scatter, and five all-gathers after the update.
  CHECK(experiment(4, 2, "", 4, "10GB/s").run().step_time_s == approx(6e-3 + 6 * 150e-6).epsilon(1e-9));
}

TEST_CASE("every device updates its part: 1/N of the work of single's update") {
  const std::string model =
      "{name: net, input: [3, 16, 16], layers: [{name: conv, kind: conv2d, out_channels: 8, kernel: 3}, "
      "{name: "
      "flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}";
  const auto updates = [&](const std::string& strategy, int nodes) {
    const lab::Experiment tried(model, lab::star(nodes, "1GB/s", "20us"), strategy, 4);
    std::vector<PlanOp> ops;
    for (const PlanOp& op : tried.plan().roles[0].program.back().ops) ops.push_back(op);
    for (const Task& task : tried.plan().roles[0].program)
      if (task.name == "update") ops = task.ops;
    std::erase_if(ops, [](const PlanOp& op) { return op.work.kind != KernelKind::update; });
    return ops;
  };
  const std::vector<PlanOp> whole = updates("{kind: single}", 1);
  REQUIRE(whole.size() == 2);
  for (const int stage : {1, 2, 3}) {
    const std::vector<PlanOp> part = updates(zero(stage), 5);
    REQUIRE(part.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(part[i].name == whole[i].name);
      CHECK(5 * part[i].work.bytes_fixed == approx(whole[i].work.bytes_fixed).epsilon(1e-12));
      CHECK(5 * part[i].work.flops_fixed == approx(whole[i].work.flops_fixed).epsilon(1e-12));
    }
  }
}

TEST_CASE("one device, and a model without parameters, have nothing to shard") {
  for (const int stage : {1, 2, 3}) {
    const lab::Experiment one = experiment(1, stage);
    const lab::Experiment plain(lab::custom_model(sharded_layers, parameters), lab::star(1, "1GB/s", "20us"),
                                "{kind: single}", 4);
    CHECK(program(one.plan()) == program(plain.plan()));
    const ReplayResult alone = one.run(), single = plain.run();
    CHECK(alone.step_time_s == approx(single.step_time_s).epsilon(1e-9));
    CHECK(alone.comm_bytes == 0);
    CHECK(alone.endpoints[0].memory_at_peak == single.endpoints[0].memory_at_peak);
    const lab::Experiment bare(lab::custom_model(2, 0), lab::star(4, "1GB/s", "20us"), zero(stage), 4);
    CHECK(bare.run().step_time_s == approx(2 * 1.2e-3).epsilon(1e-9));
    CHECK(bare.run().comm_bytes == 0);
  }
  // So there is nothing that the algorithm would have to be able to sum: three devices, two stages of sharding.
  for (const int stage : {1, 2}) {
    const lab::Experiment bare(lab::custom_model(2, 0), lab::star(3, "1GB/s", "20us"),
                               zero(stage, ", algorithm: tree"), 4);
    CHECK(bare.run().comm_bytes == 0);
  }
}

TEST_CASE("zero: what cannot be is an error that says what can") {
  const std::string three = lab::star(3, "1GB/s", "20us");
  CHECK(error_of(three, "{kind: data_parallel, sync: all_reduce, zero: 4}") ==
        "strategy:1:47: strategy.zero: 4 is out of range: between 0 and 3 is allowed");
  CHECK(
      error_of(three, "{kind: data_parallel, sync: all_reduce, zero: 1, algorithm: tree}") ==
      "strategy:1:61: strategy.algorithm: with zero: 1, tree has no reduce-scatter or all-gather; use ring, "
      "hierarchical, nccl or auto");
  CHECK(error_of(three, "{kind: data_parallel, sync: all_reduce, zero: 2, algorithm: double_binary_tree}") ==
        "strategy:1:61: strategy.algorithm: with zero: 2, double_binary_tree has no reduce-scatter or "
        "all-gather; use ring, hierarchical, nccl or auto");
  CHECK(error_of(three, "{kind: data_parallel, sync: all_reduce, zero: 2, algorithm: halving_doubling}") ==
        "strategy:1:61: strategy.algorithm: with zero: 2, halving_doubling scatters over a power of two of "
        "devices, found 3; use ring, hierarchical, nccl or auto");
  CHECK(error_of(three, "{kind: data_parallel, sync: all_reduce, zero: 3, micro_batches: 3}") ==
        "test:1:1: training.batch_per_device: 4 on each of 3 devices, 12 images in all, cannot be divided "
        "into 3 micro-batches on each of 3 devices; 3 or 6 can");
  CHECK(
      error_of(three, "{kind: data_parallel, sync: all_reduce, bucket: 4MiB, first_bucket: 5MiB}") ==
      "strategy:1:69: strategy.first_bucket: is more than bucket (4.00 MiB); at most that, or leave it out");
  CHECK(
      error_of(three, "{kind: data_parallel, sync: all_reduce, like: ddp, first_bucket: 26MiB}") ==
      "strategy:1:66: strategy.first_bucket: is more than bucket (25.0 MiB); at most that, or leave it out");
  CHECK(error_of(three, "{kind: data_parallel, sync: all_reduce, zero: 2, compression: fp16}") ==
        "strategy:1:63: strategy.compression: goes with zero: 0, whose gradients are summed whole on every "
        "device; leave out one of the two");
  CHECK(error_of(three, "{kind: data_parallel, sync: parameter_server, zero: 1}")
            .starts_with("strategy:1:47: strategy.zero: unknown key"));
  CHECK(error_of(
            three,
            "{kind: elastic, inner: {kind: data_parallel, sync: all_reduce, zero: 1}, schedule: [{at_step: "
            "0, devices: 2}]}") ==
        "strategy:1:70: strategy.inner.zero: elastic moves whole states when devices come and go; leave it "
        "out");
}
