// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/base/memo.h"
#include "sim/run/search/try_out.h"
#include "sim/run/wire.h"
#include "tests/laws/random_experiment.h"

using namespace convoy;

namespace {

/// An experiment whose points are the candidates: on a network of which nobody says how fast it is, with images from files.
std::string experiment_of(lab::Dice& dice) {
  return fmt::format(
      "experiment: tries\nmodel: {}\n"
      "training: {{batch_per_device: {}, input: {{kind: jpeg, library: pil, workers_per_device: 2}}}}\n"
      "cluster: {{server: {}, nodes: 6}}\nstrategy: {{kind: data_parallel, sync: all_reduce}}\nsweep:\n"
      "  strategy.algorithm: [ring, double_binary_tree, auto]\n  cluster.nodes: [2, 6]\n",
      lab::random_model(dice), dice.one_of<std::string>({"4", "8"}),
      dice.one_of<std::string>({"lambda-gpu_8x_v100", "aws-p3.16xlarge"}));
}

}  // namespace

TEST_CASE("try out: what processes keep of candidates changes nothing that they are asked for [law]") {
  std::size_t intervals = 0;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const convoy::Experiment of_tries = convoy::Experiment::parse(experiment_of(dice), "tries.yaml", {});
    Preparer preparer(of_tries);
    const PrepareItem prepare = [&](std::size_t candidate, Detail detail, double factor) {
      return preparer.prepare(of_tries.point(candidate), nullptr, {.bandwidth = factor}, detail);
    };
    TryOut try_out(1 + seed % 2, prepare);
    for (const double factor : {1.0, 0.5}) {
      const auto alone = [&](std::size_t candidate, Detail detail) {
        const WithoutMemos without;
        return encode(simulate(prepare(candidate, detail, factor), false));
      };
      std::vector<std::size_t> candidates;
      for (std::size_t i = 0; i < of_tries.size(); ++i) candidates.push_back(i);
      try_out.plan(
          candidates,
          [&](std::size_t place, Tried<Assessment> tried) {
            const WithoutMemos without;
            CHECK(encode(*tried.value) == encode(assess(prepare(candidates[place], Detail::step, factor))));
          },
          factor);
      for (const Detail detail : {Detail::step, Detail::all, Detail::step}) {
        std::vector<Tried<RunOutput>> outputs = try_out.simulate(candidates, detail, false, factor);
        for (std::size_t i = 0; i < candidates.size(); ++i) {
          CHECK(encode(*outputs[i].value) == alone(i, detail));
          intervals += detail == Detail::all && outputs[i].value->result.interval ? 1 : 0;
        }
      }
    }
  }
  CHECK(intervals > 20);
}
