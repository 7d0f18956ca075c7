// SPDX-License-Identifier: MIT
// `partition: optimal` against other cuts of the same pipeline, in the replay, on hosts of the catalogue. Seeds are printed
// where a case fails.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/input_error.h"
#include "tests/laws/pipelines.h"

using namespace convoy;

namespace {

/// A chain of wide layers on hosts whose devices share lanes, memory, NVLink or NICs in various ways; stages have replicas.
struct ReplicatedStages {
  std::string model = "{name: wide, input: [3, 64, 64], loss: cross_entropy, layers: [", cluster, options;
  std::vector<std::string> layers;
  int stages, micro_batches;
  std::int64_t global;
  lab::Dice dice;

  explicit ReplicatedStages(unsigned seed) : dice(seed) {
    const int convolutions = dice.between(3, 8), products = dice.between(1, 3);
    for (int i = 0; i < convolutions; ++i) {
      add(fmt::format("conv{}", i),
          fmt::format("kind: conv2d, kernel: 3, padding: 1, stride: {}, out_channels: {}", i % 3 == 1 ? 2 : 1,
                      dice.between(2, 40) * 8));
      add(fmt::format("relu{}", i), "kind: relu");
    }
    model += "{name: flat, kind: flatten},";
    for (int i = 0; i < products; ++i)
      add(fmt::format("fc{}", i), fmt::format("kind: linear, out_features: {}", dice.between(10, 3000)));
    model += "]}";
    const std::vector<std::string> servers{
        "aws-g5.12xlarge",           "aws-p3.8xlarge",        "dgx1-v100",     "azure-nc24",
        "workstation-4-rtx-2080-ti", "gcp-n1-standard-16-t4", "aws-p2.8xlarge"};
    const std::string first = dice.one_of(servers), second = dice.one_of(servers);
    cluster = fmt::format(
        "{{name: c, nodes: [{{name: a, count: {}, server: {}}}{}], fabric: {{kind: switch, bandwidth: "
        "{}Gbps, latency: 20us}}}}",
        dice.between(1, 3), first,
        dice.coin() ? fmt::format(", {{name: b, count: 1, server: {}}}", second) : "",
        dice.one_of<int>({10, 25, 100}));
    const bool flushes = dice.coin();
    micro_batches = dice.one_of<int>({6, 12, 24});
    stages = dice.between(2, 3);
    global = std::int64_t{micro_batches} * dice.one_of<int>({1, 4, 16});
    options = fmt::format("micro_batches: {}, weights: {}, transport: {}", micro_batches,
                          flushes ? "flush" : "stash", dice.one_of<std::string>({"nccl", "zmq", "gloo"}));
  }

  void add(const std::string& name, const std::string& rest) {
    model += fmt::format("{{name: {}, {}}},", name, rest);
    layers.push_back(name);
  }

  lab::Experiment experiment(const std::string& cut) const {
    return lab::Experiment::with_global_batch(
        model, cluster, fmt::format("{{kind: pipeline, {}, {}}}", options, cut), global);
  }
  /// Nothing where replicas would not have equally many micro-batches.
  std::optional<double> step_s(const std::string& cut) const try {
    return experiment(cut).run().step_time_s;
  } catch (const InputError&) {
    return std::nullopt;
  }
  /// Some cut; of the devices, any numbers or the given ones.
  std::string some_cut(int devices, std::vector<int> replicas) {
    std::vector<std::string> begins = layers;
    begins.erase(begins.begin());
    while (static_cast<int>(begins.size()) >= stages)
      begins.erase(begins.begin() + dice.between(0, static_cast<int>(begins.size()) - 1));
    if (replicas.empty()) {
      replicas.assign(static_cast<std::size_t>(stages), 1);
      for (int left = devices - stages; left > 0; --left)
        ++replicas[static_cast<std::size_t>(dice.between(0, stages - 1))];
    }
    return fmt::format("replicas: [{}], begins: [{}]", fmt::join(replicas, ", "), fmt::join(begins, ", "));
  }
};

}  // namespace

TEST_CASE(
    "optimal cuts with replicated stages are no slower in the replay than others, but for the estimate's "
    "error [law]") {
  constexpr double estimate_error = 0.1;
  constexpr int cuts = 12;
  int compared = 0;
  for (unsigned seed = 1; seed <= 80; ++seed) {
    ReplicatedStages c(seed);
    const std::string optimal = fmt::format("stages: {}, partition: optimal", c.stages);
    const std::optional<double> best_s = c.step_s(optimal);
    if (!best_s) continue;
    const lab::Experiment experiment = c.experiment(optimal);
    std::vector<int> replicas;
    for (const PipelineStage& stage : experiment.report().stages)
      replicas.push_back(static_cast<int>(stage.devices.size()));
    for (int i = 0; i < cuts; ++i) {
      const std::string other = c.some_cut(static_cast<int>(experiment.machine().devices.size()),
                                           i % 2 == 0 ? replicas : std::vector<int>{});
      const std::optional<double> other_s = c.step_s(other);
      if (!other_s) continue;
      ++compared;
      CAPTURE(seed);
      CAPTURE(c.cluster);
      CAPTURE(c.options);
      CAPTURE(other);
      CHECK(*best_s <= *other_s * (1 + estimate_error));
    }
  }
  CHECK(compared > 400);
}
