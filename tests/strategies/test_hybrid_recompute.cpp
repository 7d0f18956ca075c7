// SPDX-License-Identifier: MIT
// `training.recompute` in hybrids: forward passes of segments run again, with their exchanges.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "sim/base/input_error.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

constexpr std::int64_t batch_images = 16;
constexpr double features = 64;

TrainingOptions recomputing(Recomputation how) {
  TrainingOptions options;
  options.recompute = how;
  return options;
}

/// fc0 ... fc(n-1) of equally many features each, without biases.
std::string wide_perceptron(int layers) {
  std::string text = "{name: mlp, input: [64], layers: [";
  for (int i = 0; i < layers; ++i)
    text += fmt::format("{{name: fc{}, kind: linear, out_features: 64, bias: false}},", i);
  return text + "]}";
}

Experiment on(const std::string& model, int devices, const std::string& strategy, Recomputation how) {
  return Experiment::with_global_batch(model, star(devices, "1GB/s", "0us"), strategy, batch_images,
                                       recomputing(how));
}

/// Layers whose forward operation a device runs again, in order.
std::vector<std::string> run_again(const Plan& plan) {
  std::vector<std::string> names;
  for (const Task& task : plan.roles.front().program)
    for (const PlanOp& op : task.ops)
      if (const std::size_t at = op.name.find(".forward again"); at != std::string::npos)
        names.push_back(op.name.substr(0, at));
  return names;
}

double peak_bytes(const Experiment& it) { return it.run().endpoints[0].peak_memory_bytes; }

}  // namespace

TEST_CASE("hybrid recomputation: Megatron pairs repeat the all-reduces that lie within a segment") {
  // Nine layers of equally many bytes: three segments of three. The first two run their first two layers
  // again: fc0 and fc1, whose partial sums fc2's weight gradient needs whole; fc3, needed by fc4, whose input
  // is summed again; and fc4. Each all-reduce is 2 (N - 1) S, S = 16 * 64 * 4 bytes.
  const std::string strategy = "{kind: hybrid, fc: pairs}";
  const Experiment plain = on(wide_perceptron(9), 4, strategy, Recomputation::none);
  const Experiment again = on(wide_perceptron(9), 4, strategy, Recomputation::sqrt);
  CHECK(run_again(plain.plan()).empty());
  CHECK(run_again(again.plan()) == std::vector<std::string>{"fc3", "fc4", "fc0", "fc1"});
  const double all_reduce = 2 * 3 * batch_images * features * 4;
  CHECK(again.run().comm_bytes - plain.run().comm_bytes == approx(2 * all_reduce).epsilon(1e-12));
  std::multiset<std::string> names;
  for (const Communication& comm : again.plan().communications) names.insert(comm.name);
  CHECK(names.count("all-reduce of fc1") == 2);
  CHECK(names.count("all-reduce of fc3") == 2);
  CHECK(names.count("all-reduce of fc5") == 1);
}

TEST_CASE("hybrid recomputation: on one device it is that of single, in time, bytes and memory") {
  for (const char* model : {"alexnet", "resnet50", "squeezenet1_1", "densenet121"})
    for (const Recomputation how : {Recomputation::blocks, Recomputation::sqrt}) {
      CAPTURE(model);
      const Experiment single = on(model, 1, "{kind: single}", how);
      for (const char* layout : {"batch", "filter", "height"}) {
        const Experiment hybrid = on(model, 1, fmt::format("{{kind: hybrid, conv: {}}}", layout), how);
        CAPTURE(layout);
        CHECK(fmt::format("{}", fmt::join(run_again(hybrid.plan()), " ")) ==
              fmt::format("{}", fmt::join(run_again(single.plan()), " ")));
        CHECK_FALSE(run_again(hybrid.plan()).empty());
        CHECK(hybrid.run().step_time_s == approx(single.run().step_time_s).epsilon(1e-12));
        CHECK(peak_bytes(hybrid) == approx(peak_bytes(single)).epsilon(1e-12));
      }
    }
}

TEST_CASE("hybrid recomputation: layers split by images are data parallelism that recomputes") {
  for (const Recomputation how : {Recomputation::blocks, Recomputation::sqrt}) {
    const Experiment data =
        on("resnet50", 4, "{kind: data_parallel, sync: all_reduce, micro_batches: 2}", how);
    const Experiment hybrid = on("resnet50", 4, "{kind: hybrid, conv: batch, micro_batches: 2}", how);
    CHECK(run_again(hybrid.plan()) == run_again(data.plan()));
    CHECK(hybrid.run().step_time_s == approx(data.run().step_time_s).epsilon(1e-9));
    CHECK(hybrid.run().comm_bytes == approx(data.run().comm_bytes).epsilon(1e-12));
    CHECK(peak_bytes(hybrid) == approx(peak_bytes(data)).epsilon(1e-9));
  }
}

TEST_CASE("hybrid recomputation: less memory and more time, whatever the layouts") {
  for (const char* strategy :
       {"{kind: hybrid, conv: height}", "{kind: hybrid, conv: pairs, fc: pairs}",
        "{kind: hybrid, conv: batch, fc: filter}", "{kind: hybrid, conv: filter, replicas: 2}"}) {
    CAPTURE(strategy);
    const Experiment plain = on("resnet50", 4, strategy, Recomputation::none);
    const Experiment again = on("resnet50", 4, strategy, Recomputation::blocks);
    CHECK(peak_bytes(again) < 0.9 * peak_bytes(plain));
    CHECK(again.run().step_time_s > plain.run().step_time_s);
    CHECK(again.run().comm_bytes >= plain.run().comm_bytes);
  }
}

TEST_CASE("hybrid recomputation: schemes b and c, which run parts of layers in turn, refuse it") {
  const auto reason = [](const std::string& strategy) {
    return std::string(read_strategy(parse_yaml(strategy, "s"))->refuses_recomputation());
  };
  CHECK(reason("{kind: hybrid, conv: batch, fc: filter}").empty());
  CHECK(reason("{kind: hybrid, conv: batch, fc: filter, scheme: b}") ==
        "schemes b and c run layers forward and back part by part");
}
