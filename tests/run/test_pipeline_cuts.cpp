// SPDX-License-Identifier: MIT
// Where pipelines are cut, by what is simulated, on machines of the catalogue. Seeds are printed where a case
// fails.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/run/searches.h"

using namespace convoy;
using namespace convoy::searches;

namespace {

struct CutCase {
  std::string text, pipeline;  ///< of the experiment; the strategy's keys but `partition`

  explicit CutCase(unsigned seed) {
    lab::Dice dice(seed);
    const std::string model = dice.one_of<std::string>({"alexnet", "googlenet", "mobilenet_v2", "resnet18",
                                                        "resnet50", "shufflenet_v2_x1_0", "squeezenet1_1",
                                                        "mnasnet1_0", "regnet_y_400mf", "densenet121"});
    const std::string server =
        dice.one_of<std::string>({"dgx-a100", "dgx1-v100", "dgx1-p100", "aws-p3.16xlarge", "aws-p5.48xlarge",
                                  "aws-g5.48xlarge", "aws-p2.8xlarge"});
    const int stages = dice.one_of<int>({2, 3, 4, 6, 8});
    const bool in_one_host = dice.between(0, 3) > 0;
    const int micro_batches = dice.one_of<int>({1, 2, 4, 8});
    const std::string precision = server == "aws-p2.8xlarge" || dice.coin() ? "fp32" : "fp16";
    pipeline =
        fmt::format("kind: pipeline, stages: {}, replicas: 1, micro_batches: {}, schedule: {}, recompute: {}",
                    stages, micro_batches, dice.one_of<std::string>({"naive", "gpipe", "1f1b"}),
                    dice.between(0, 3) == 0 ? "always" : "never");
    text = experiment(model,
                      fmt::format("{{server: {}, nodes: {}, devices_per_node: {}}}", server,
                                  in_one_host ? 1 : stages, in_one_host ? stages : 1),
                      fmt::format("{{{}}}", pipeline),
                      fmt::format("{{global_batch: {}, precision: {}}}",
                                  micro_batches * dice.one_of<int>({1, 2, 4, 8, 16}), precision));
  }
};

}  // namespace

TEST_CASE("optimal: simulated, no slower than even and balanced by more than its estimate may be off") {
  constexpr double error = 0.05;  // docs/pipelines.md
  for (unsigned seed = 1; seed <= 30; ++seed) {
    const CutCase it(seed);
    CAPTURE(seed);
    CAPTURE(it.text);
    std::vector<YamlNode> candidates;
    for (const char* partition : {"optimal", "even", "balanced"})
      candidates.push_back(
          parse_yaml(fmt::format("{{{}, partition: {}}}", it.pipeline, partition), "candidate"));
    const Written written(it.text);
    const auto results = exhaustive(*written, candidates);
    for (const auto& result : results) REQUIRE(result.has_value());
    const double others_s = std::min(results[1]->step_time_s, results[2]->step_time_s);
    CHECK(results[0]->step_time_s <= others_s * (1 + error));
  }
}
