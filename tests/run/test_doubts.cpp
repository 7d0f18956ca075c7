// SPDX-License-Identifier: MIT
// What a run's own replay tells of its doubts, against replays of the run with the number moved.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sim/costs/input_pipeline.h"
#include "sim/costs/residuals.h"
#include "sim/replay/replay.h"
#include "tests/run/searches.h"
#include "tests/support/approx.h"

using namespace convoy;
using lab::Dice;

TEST_CASE("doubts: how far a loader moves the step is what replays with its rate moved come to") {
  int waits = 0, moves = 0, all = 0;
  for (unsigned seed = 1; seed <= 24; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const std::string cluster =
        fmt::format("{{server: {}, nodes: {}}}",
                    dice.one_of<std::string>({"aws-p3.8xlarge", "aws-p3.2xlarge", "gcp-a2-highgpu-1g"}),
                    dice.between(1, 3));
    const std::string strategy =
        dice.one_of<std::string>({"{kind: data_parallel, sync: all_reduce, algorithm: auto}",
                                  "{kind: data_parallel, sync: all_reduce, sync_every: 3}",
                                  "{kind: data_parallel, sync: parameter_server, servers: 1, mode: async}",
                                  "{kind: data_parallel, sync: parameter_server, servers: 1}"});
    const std::string training = fmt::format(
        "{{batch_per_device: {}, precision: {}, dataset: {{samples: 100000}}, input: {{kind: jpeg, library: "
        "{}, "
        "prefetch: {}}}}}",
        8 << dice.between(0, 3), dice.coin() ? "fp32" : "fp16",
        dice.one_of<std::string>({"pil", "pillow_simd", "tf_data", "dali_gpu"}), dice.between(0, 2));
    CAPTURE(cluster);
    CAPTURE(strategy);
    CAPTURE(training);
    const searches::Written written(searches::experiment("resnet18", cluster, strategy, training));
    Preparer preparer(*written);
    const PreparedRun run = preparer.prepare(0);
    const ReplayResult replayed = replay(run.plan, run.machine, run.cost, {});
    for (const Doubt& doubt : run.doubts) {
      const StepRange told = step_range_s(run, doubt, replayed), moved = step_range_s(run, doubt);
      for (const int end : {0, 1}) CHECK(told[end] == approx(moved[end]).epsilon(1e-12));
      if (doubt.moves != Doubt::Moves::loader) continue;
      ++all;
      waits += replayed.input_wait_s > 0;
      moves += moved[0] > moved[1] * 1.01;
    }
  }
  CHECK(all == 24);
  CHECK(waits > 4);
  CHECK(moves > 4);
  CHECK(waits < all);
}

TEST_CASE("doubts: a loader's rate moved is that rate written in the experiment") {
  const auto text = [](const std::string& library) {
    return searches::experiment(
        "resnet18", "{server: aws-p3.8xlarge, nodes: 2}", "{kind: data_parallel, sync: all_reduce}",
        fmt::format(
            "{{batch_per_device: 32, dataset: {{samples: 100000}}, input: {{kind: jpeg, library: {}}}}}",
            library));
  };
  for (const std::string library : {"pil", "pillow_simd", "dali_gpu"}) {
    CAPTURE(library);
    const double rate = load_input_library(library, {}).core_images_per_s;
    std::array<std::vector<double>, 2> moved;
    {
      const searches::Written written(text(library));
      for (const Doubt& doubt : Preparer(*written).prepare(0).doubts)
        if (doubt.moves == Doubt::Moves::loader)
          moved = {doubt.less->plan.input->interval_s, doubt.more->plan.input->interval_s};
    }
    REQUIRE(moved[0].size() == 2);
    for (const int end : {0, 1}) {
      const double factor = std::exp((end == 0 ? -1 : 1) * quantile_80 * loader_spread());
      const searches::Written written(
          text(fmt::format("{}, core_images_per_s: {:.17g}", library, rate * factor)));
      const PreparedRun run = Preparer(*written).prepare(0);
      for (const std::size_t host : {0, 1})
        CHECK(moved[end][host] == approx(run.plan.input->interval_s[host]).epsilon(1e-12));
    }
  }
}

// A derived device whose bandwidth is another by a millionth computes as its base does, and has none of its figures.
TEST_CASE("doubts: a device is never surer without figures than with some, whatever it computes") {
  const auto spread_of_step = [](const std::string& device, const std::string& devices,
                                 const std::string& model, const std::string& training) {
    const std::string cluster = fmt::format(
        "{{server: s, nodes: 1, servers: {{s: {{devices: [{{device: {}, count: 1}}], interconnect: {{kind: "
        "none}}}}}}, devices: {{{}}}}}",
        device, devices);
    const searches::Written written(searches::experiment(model, cluster, "{kind: single}", training));
    const PreparedRun run = Preparer(*written).prepare(0);
    return step_spreads(run, images_of_device(run)).compute;
  };
  Dice dice(20);
  int wider = 0, all = 0;
  for (const std::string& name : device_names()) {
    const DeviceType device = load_device(name, {});
    if (device.evidence_rows == 0) continue;
    CAPTURE(name);
    const std::string bare = fmt::format("bare: {{base: {}, memory_bandwidth: {:.9f}GB/s}}", name,
                                         device.memory_bandwidth_Bps * (1 + 1e-6) / 1e9);
    for (int draw = 0; draw < 3; ++draw) {
      const std::string model =
          dice.one_of<std::string>({"resnet18", "mobilenet_v2", "resnext50_32x4d", "vit_b_16"});
      std::vector<std::string> precisions;
      for (const auto& [precision, flops] : device.peak_flops)
        if (precision == Precision::fp32 || precision == Precision::tf32 || precision == Precision::fp16)
          precisions.emplace_back(to_string(precision));
      const std::string training =
          fmt::format("{{batch_per_device: {}, precision: {}, framework: {}}}", dice.coin() ? 4 : 64,
                      dice.one_of(precisions),
                      dice.one_of<std::string>({"pytorch", "tensorflow", "tensorflow1", "mxnet", "paddle"}));
      CAPTURE(model);
      CAPTURE(training);
      const double seen = spread_of_step(name, "", model, training);
      const double unseen = spread_of_step("bare", bare, model, training);
      CHECK(seen > 0);
      CHECK(unseen >= seen * (1 - 1e-12));
      wider += unseen > seen * 1.01;
      ++all;
    }
  }
  CHECK(all > 60);
  CHECK(wider > all / 3);
}
