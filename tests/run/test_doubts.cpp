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
