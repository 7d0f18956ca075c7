// SPDX-License-Identifier: MIT
// Pipelines whose stages hold another strategy, against closed forms and against that strategy alone.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

std::string pipeline(const std::string& keys, const std::string& inner) {
  return fmt::format("{{kind: pipeline, {}, inner: {{kind: data_parallel, sync: all_reduce, {}}}}}", keys,
                     inner);
}

/// `layers` layers that send a byte or so: forward 0.1 ms an image, data gradient and weight gradient the
/// same.
std::string small_messages(int layers, int parameters) {
  std::string text = lab::custom_model(layers, parameters);
  for (std::size_t at; (at = text.find("output: [10]")) != std::string::npos;)
    text.replace(at, 12, "output: [1]");
  return text;
}

ReplayResult run(const std::string& model, int devices, const std::string& strategy, std::int64_t batch) {
  return lab::Experiment(model, lab::star(devices, "1GB/s", "0us"), strategy, batch).run();
}

std::string nested_error(const std::string& strategy, int devices = 4) {
  try {
    run(lab::custom_model(4, 1000), devices, strategy, 12);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

double peak(const ReplayResult& result) {
  double bytes = 0;
  for (const EndpointUsage endpoint : result.endpoints) bytes = std::max(bytes, endpoint.peak_memory_bytes);
  return bytes;
}

}  // namespace

TEST_CASE("one stage that holds data parallelism is data parallelism, whatever its options") {
  for (const char* inner :
       {"algorithm: ring", "algorithm: tree, overlap: false", "bucket: 5MB", "bucket: 5MB, zero: 1",
        "bucket: 5MB, zero: 2", "bucket: 5MB, zero: 2, overlap: false", "bucket: 5MB, zero: 3",
        "bucket: 5MB, zero: 3, overlap: false", "compression: fp16",
        "compression: {kind: top_k, ratio: 0.01}"})
    for (const int micro_batches : {1, 3}) {
      CAPTURE(inner);
      CAPTURE(micro_batches);
      const std::string model = lab::custom_model(5, 1'000'000);
      const ReplayResult nested =
          run(model, 4, pipeline(fmt::format("stages: 1, micro_batches: {}", micro_batches), inner), 6);
      const ReplayResult plain =
          run(model, 4,
              fmt::format("{{kind: data_parallel, sync: all_reduce, micro_batches: {}, {}}}", micro_batches,
                          inner),
              6);
      CHECK(nested.step_time_s == approx(plain.step_time_s).epsilon(1e-12));
      CHECK(nested.comm_bytes == approx(plain.comm_bytes).epsilon(1e-12));
      CHECK(peak(nested) == peak(plain));
    }
}

TEST_CASE("an inner all-reduce after backward is that of replicas without inner") {
  const std::string keys = "stages: 2, replicas: 3, micro_batches: 4";
  const std::string model = lab::custom_model(5, 1'000'000);
  const ReplayResult nested = run(model, 6, pipeline(keys, "overlap: false"), 4);
  const ReplayResult plain = run(model, 6, fmt::format("{{kind: pipeline, {}}}", keys), 4);
  CHECK(nested.step_time_s == approx(plain.step_time_s).epsilon(1e-12));
  CHECK(nested.comm_bytes == plain.comm_bytes);
  CHECK(peak(nested) == peak(plain));
}

TEST_CASE("buckets of the last micro-batch overlap its backward pass, by hand") {
  // Two stages of two layers and two replicas, 4 images a device and micro-batch: forward 0.8 ms a stage,
  // backward 1.6 ms. A layer's gradients, 1 MB, take two devices 2 (1/2) 1 MB / (1 GB/s) = 1 ms.
  const int parameters = 250'000;
  const double forward_s = 0.8e-3, backward_s = 1.6e-3, sum_s = 1e-3, layer_s = backward_s / 2;
  for (const int micro_batches : {1, 2, 6}) {
    CAPTURE(micro_batches);
    const std::string keys =
        fmt::format("stages: 2, partition: even, neighbours: stages, micro_batches: {}", micro_batches);
    const auto step_s = [&](const std::string& inner) {
      return run(small_messages(4, parameters), 4, pipeline(keys, inner), 2 * micro_batches).step_time_s;
    };
    // The first stage is the last to end, when all micro-batches have come back to it.
    const double passes_s = (micro_batches + 1) * (forward_s + backward_s);
    const double messages_s = 1e-6;  // a few of 16 B
    const auto expect = [&](double actual_s, double expected_s) {
      CHECK(actual_s >= expected_s);
      CHECK(actual_s <= expected_s + messages_s);
    };
    expect(step_s("bucket: 2MB"), passes_s + 2 * sum_s);
    expect(step_s("bucket: 2MB, overlap: false"), passes_s + 2 * sum_s);
    // The second layer's are on their way while the first layer's are made, which takes less.
    expect(step_s("bucket: 1MB"), passes_s - layer_s + 2 * sum_s);
    expect(step_s("bucket: 1MB, overlap: false"), passes_s + 2 * sum_s);
    // The halves of ZeRO-1: the second one after the update.
    expect(step_s("bucket: 1MB, zero: 1"), passes_s + sum_s / 2 + 2 * sum_s / 2);
  }
}

TEST_CASE("what ZeRO sends within stages, and keeps, is that of its paper for each stage's parameters") {
  const double parameters = 1e6, layers = 6, stages = 3, replicas = 4, micro_batches = 2;
  const auto experiment = [&](int zero) {
    return lab::Experiment(
        small_messages(6, static_cast<int>(parameters)), lab::star(12, "1GB/s", "0us"),
        pipeline("stages: 3, partition: even, micro_batches: 2", fmt::format("bucket: 4MB, zero: {}", zero)),
        {2, std::nullopt, {"test", 1, 1}}, {Precision::fp32, Optimizer::adam});
  };
  const auto result = [&](int zero) { return experiment(zero).run(); };
  const double activations =
      2 * (stages - 1) * 4 * 24;  // outputs and their gradients of all images, 4 B each
  const auto sent = [&](double times) {
    return times * (replicas - 1) * 4 * parameters * layers + activations;
  };
  CHECK(result(0).comm_bytes == approx(sent(2)).epsilon(1e-12));
  CHECK(result(1).comm_bytes == approx(sent(2)).epsilon(1e-12));
  CHECK(result(2).comm_bytes == approx(sent(micro_batches + 1)).epsilon(1e-12));
  CHECK(result(3).comm_bytes == approx(sent(3 * micro_batches)).epsilon(1e-12));
  // Adam in fp32: 4 bytes of parameters, 4 of gradients, 8 of moments, two layers a stage.
  const double psi = parameters * layers / stages;
  const auto states = [&](int zero) {
    const StateBytes bytes = experiment(zero).plan().roles[0].resident_bytes;
    return std::accumulate(bytes.begin(), bytes.end(), 0.0);
  };
  CHECK(states(0) == 16 * psi);
  CHECK(states(1) == 8 * psi + 8 * psi / replicas);
  CHECK(states(2) == 4 * psi + 12 * psi / replicas);
  CHECK(states(3) == 16 * psi / replicas);
}

TEST_CASE("hybrid stages whose layers are split by images are data-parallel stages") {
  // With a branch over layers that a cut may part: the two gradients that come back over it are one tensor to
  // a data-parallel stage, whose memory is less therefore.
  const auto model = [](bool branch) {
    return fmt::format(
        "{{name: net, input: [3, 16, 16], layers: ["
        "{{name: a, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}}, {{name: ra, kind: relu}}, "
        "{{name: b, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}}, {}"
        "{{name: rs, kind: relu}}, {{name: c, kind: conv2d, out_channels: 16, kernel: 3, stride: 2, padding: "
        "1}}, "
        "{{name: flat, kind: flatten}}, {{name: fc, kind: linear, out_features: 10}}]}}",
        branch ? "{name: sum, kind: add, inputs: [ra, b]}, " : "");
  };
  for (const auto& [branch, recompute] : {std::pair(false, ""), {true, ""}, {false, ", recompute: always"}})
    for (const int stages : {1, 2, 3, 6})
      for (const char* schedule : {"gpipe", "1f1b"})
        for (const std::string sums : {"bucket: 1kB", "overlap: false"}) {
          CAPTURE(branch);
          CAPTURE(recompute);
          CAPTURE(stages);
          CAPTURE(schedule);
          CAPTURE(sums);
          const std::string keys =
              fmt::format("stages: {}, partition: balanced, micro_batches: 4, schedule: {}{}", stages,
                          schedule, recompute);
          const ReplayResult replicas = run(model(branch), 6, pipeline(keys, sums), 16);
          const ReplayResult hybrid =
              run(model(branch), 6,
                  fmt::format("{{kind: pipeline, {}, inner: {{kind: hybrid, conv: batch, fc: batch, {}}}}}",
                              keys, sums),
                  16);
          // A branch's gradients are added up before or after a weight gradient that a bucket waits for.
          CHECK(hybrid.step_time_s ==
                approx(replicas.step_time_s).epsilon(branch && sums == "bucket: 1kB" ? 1e-3 : 1e-9));
          CHECK(hybrid.comm_bytes == approx(replicas.comm_bytes).epsilon(1e-12));
          if (!branch) CHECK(peak(hybrid) == approx(peak(replicas)).epsilon(1e-12));
        }
}

TEST_CASE(
    "pipeline x tensor x data: what Megatron's pairs, the stages' messages and the replicas send, counted") {
  // Eight linear layers of 64 features on 2 stages of 2 replicas of 2 devices. Each pair (filter, channel)
  // ends with an all-reduce of its output over 2 devices: 2 (n - 1) S a group, forward and, for its input's
  // gradient, backward; weights are in halves that two replicas sum.
  std::string model = "{name: mlp, input: [64, 1, 1], layers: [{name: flat, kind: flatten}";
  for (int i = 0; i < 8; ++i)
    model += fmt::format(", {{name: fc{}, kind: linear, out_features: 64, bias: false}}", i);
  model += "]}";
  const double images = 64, tensor = 64 * 4 * images;  // of a step, all replicas
  const double pairs = 4;
  const double exchanged = pairs * 2 * tensor          // forward
                           + (pairs - 1) * 2 * tensor  // backward: the image needs no gradient
                           + 0;
  // Both devices of a group have all of what goes from stage to stage, and send it to their like.
  const double sent = 2 * 2 * tensor;
  const double weights = 8 * 64 * 64 * 4.0;
  const double summed = 2 * (2 - 1) * weights;
  for (const int micro_batches : {1, 4}) {
    CAPTURE(micro_batches);
    const std::string strategy = fmt::format(
        "{{kind: pipeline, stages: 2, partition: even, micro_batches: {}, inner: {{kind: hybrid, groups: "
        "[{{kind: linear, layout: pairs}}], replicas: 2}}",
        micro_batches);
    const lab::Experiment lab(model, lab::star(8, "1GB/s", "0us"), strategy + "}", 8);
    CHECK(lab.run().comm_bytes == approx(exchanged + sent + summed).epsilon(1e-9));
    // Recomputation sums the outputs of pairs once more, but of each stage's last, which backward does not
    // read.
    const ReplayResult again =
        lab::Experiment(model, lab::star(8, "1GB/s", "0us"), strategy + ", recompute: always}", 8).run();
    CHECK(again.comm_bytes == approx(exchanged + (pairs - 2) * 2 * tensor + sent + summed).epsilon(1e-9));
    REQUIRE(lab.report().stages.size() == 2);
    CHECK(lab.report().stages[0].layers == std::vector<std::string>{"flat", "fc0", "fc1", "fc2", "fc3"});
    // Half of four layers' weights, and of their gradients.
    const StateBytes states = lab.plan().roles[0].resident_bytes;
    CHECK(states[static_cast<std::size_t>(MemoryClass::weights)] == weights / 4);
  }
}

TEST_CASE("micro-batches of hybrids that cannot be are errors") {
  const auto hybrid = [](const std::string& keys) {
    return nested_error("{kind: hybrid, groups: [{layers: 'body*', layout: batch}], " + keys + "}");
  };
  CHECK(hybrid("micro_batches: 5") ==
        "test:1:1: training.batch_per_device: 12 on each of 4 devices, 48 images in all, cannot be divided "
        "into 5 micro-batches; 10 or 15 can");
  CHECK(hybrid("replicas: 2, micro_batches: 7") ==
        "test:1:1: training.batch_per_device: 12 on each of 4 devices, 48 images in all, cannot be divided "
        "into 2 replicas of 7 micro-batches; 7 or 14 can");
  CHECK(nested_error("{kind: pipeline, stages: two}") ==
        "strategy:1:26: strategy.stages: expected a whole number or auto, found 'two'");
}

TEST_CASE("keys that an inner hybrid strategy cannot have are errors") {
  const auto hybrid = [](const std::string& outer, const std::string& keys) {
    return nested_error(
        fmt::format("{{kind: pipeline, stages: 2{}, inner: {{kind: hybrid, groups: [{{layers: 'body*', "
                    "layout: batch}}]{}}}}}",
                    outer, keys));
  };
  CHECK(hybrid("", "") == "no error");
  CHECK(hybrid("", ", micro_batches: 2")
            .ends_with("strategy.inner.micro_batches: the pipeline has them: write strategy.micro_batches"));
  CHECK(
      hybrid("", ", scheme: b")
          .ends_with(
              "strategy.inner.scheme: cuts a batch whose layers are all on the same devices; leave it out"));
  CHECK(hybrid("", ", replicas: 3")
            .ends_with("strategy.inner.replicas: 2 devices of a stage do not divide into 3 groups"));
  CHECK(hybrid(", replicas: 2", "")
            .ends_with("strategy.replicas: belongs into inner: groups of a stage's devices that share each "
                       "micro-batch"));
  CHECK(hybrid(", weights: stash", "")
            .ends_with("strategy.weights: goes without flush over inner data_parallel only; leave it out"));
  CHECK(hybrid(", recompute: except_last, schedule: gpipe", "")
            .ends_with("strategy.recompute: except_last goes over inner data_parallel only; use always or "
                       "never"));
}

TEST_CASE("a stage has all devices that its share of the pipeline leaves it") {
  const lab::Experiment experiment(lab::custom_model(8, 1000), lab::star(8, "1GB/s", "10us"),
                                   pipeline("stages: 2, micro_batches: 4", "overlap: false"), 8);
  REQUIRE(experiment.report().stages.size() == 2);
  CHECK(experiment.report().stages[0].devices.size() == 4);
  CHECK(experiment.report().stages[1].devices.size() == 4);
}

TEST_CASE(
    "stages: auto takes one stage where everything fits and nothing is sent, and more where memory asks") {
  const auto stages = [](std::int64_t parameters, const std::string& inner) {
    return lab::Experiment(lab::custom_model(8, parameters), lab::star(8, "1000GB/s", "0us"),
                           fmt::format("{{kind: pipeline, stages: auto, micro_batches: 2{}}}", inner), 8)
        .report()
        .stages.size();
  };
  const std::string replicas = ", inner: {kind: data_parallel, sync: all_reduce}";
  CHECK(stages(1, replicas) == 1);  // no bubble
  // 8 layers of 4 GB and as much of their gradients take 64 GB, of 16 GiB a device.
  CHECK(stages(1'000'000'000, replicas) == 4);
}

TEST_CASE("stages: auto finds the number of stages whose simulated step is the shortest") {
  for (const std::int64_t batch : {8, 64, 512})
    for (const std::string inner : {"overlap: false", "bucket: 8MB"}) {
      CAPTURE(batch);
      CAPTURE(inner);
      const auto step_s = [&](const std::string& stages) {
        return lab::Experiment(lab::custom_model(8, 2'000'000), lab::star(8, "1GB/s", "10us"),
                               pipeline("micro_batches: 4, stages: " + stages, inner), batch)
            .run()
            .step_time_s;
      };
      double best_s = std::numeric_limits<double>::infinity();
      for (const char* stages : {"1", "2", "4", "8"}) best_s = std::min(best_s, step_s(stages));
      CHECK(step_s("auto") == best_s);
    }
}

TEST_CASE("inner strategies that cannot be are errors") {
  CHECK(nested_error("{kind: pipeline, stages: 2, inner: {kind: data_parallel, sync: parameter_server}}") ==
        "strategy:1:64: strategy.inner.sync: unknown value 'parameter_server'; allowed: all_reduce");
  CHECK(nested_error(pipeline("stages: 2", "micro_batches: 2")) ==
        "strategy:1:91: strategy.inner.micro_batches: the pipeline has them: write strategy.micro_batches");
  CHECK(nested_error(pipeline("stages: 2, algorithm: tree", "zero: 1")) ==
        "strategy:1:40: strategy.algorithm: belongs into inner, which says how a stage's replicas sum their "
        "gradients");
  CHECK(nested_error(pipeline("stages: 3", "zero: 1")) ==
        "strategy:1:26: strategy.stages: 3 stages cannot have equally many of 4 devices; use one of 1, 2, 4, "
        "or auto");
  CHECK(nested_error(pipeline("stages: 2, weights: stash", "zero: 2")) ==
        "strategy:1:52: strategy.inner: zero: 2 frees gradients and parameters after each use, and weights: "
        "stash "
        "keeps versions of them; use zero: 0 or 1, or weights: flush");
  CHECK(nested_error(pipeline("stages: 2", "zero: 1, algorithm: halving_doubling"), 6) ==
        "strategy:1:96: strategy.inner.algorithm: with zero: 1, halving_doubling scatters over a power of "
        "two of "
        "devices, found 3; use ring, hierarchical, nccl or auto");
}

TEST_CASE(
    "a stage with zero: 3 sends 3 M of its parameters, and one that recomputes 4 M less M times its last "
    "bucket") {
  // What runs again is gathered again, but for the bucket that backward needs at once: a bucket a layer here.
  for (const std::vector<int>& layers : {std::vector<int>{100'000},
                                         {100'000, 300'000},
                                         {50'000, 200'000, 100'000},
                                         {400'000, 100'000, 100'000, 200'000, 100'000}})
    for (const int devices : {2, 4})
      for (const int micro_batches : {1, 3})
        for (const bool recomputes : {false, true}) {
          std::string model = "{name: toy, input: [3, 32, 32], layers: [";
          for (std::size_t l = 0; l < layers.size(); ++l)
            model += fmt::format(
                "{{name: body{}, kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: {}, "
                "output: [10], "
                "memory_bytes: 0}}, ",
                l, layers[l]);
          const std::string strategy =
              pipeline(fmt::format("stages: 1, schedule: gpipe, micro_batches: {}, recompute: {}",
                                   micro_batches, recomputes ? "always" : "never"),
                       "zero: 3, bucket: 1kB");
          CAPTURE(model);
          CAPTURE(strategy);
          const double all_bytes = 4.0 * std::accumulate(layers.begin(), layers.end(), 0);
          const double passes_bytes =
              recomputes ? 4 * all_bytes - 4.0 * layers.back() : 3 * all_bytes;  // of a micro-batch
          CHECK(run(model + "]}", devices, strategy, 3).comm_bytes ==
                approx((devices - 1) * micro_batches * passes_bytes).epsilon(1e-12));
        }
}

TEST_CASE("hybrid stages: what is gathered behind a stage's last layer is there until its pass is over") {
  const ReplayResult result = run(
      "{name: net, input: [3, 8, 8], layers: [{name: c, kind: conv2d, out_channels: 8, kernel: 3, padding: "
      "1}, {name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}",
      4, "{kind: pipeline, stages: 2, micro_batches: 1, inner: {kind: hybrid, conv: height, fc: replicated}}",
      4);
  // Of 16 images, all of the convolution's output.
  const double whole = 16 * 8 * 8 * 8 * 4;
  CHECK(result.endpoints[0].peak_memory_bytes >= whole);
}
