// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/numerics/kernels.h"
#include "sim/numerics/learn.h"
#include "strategies/partition/method.h"
#include "tests/numerics/course.h"
#include "tests/prove/branching_network.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// Gradients of losses that are made on another device than the loss.
int losses_sent(const Course& course) {
  int sent = 0;
  for (const CommMeaning& means : course.plan.meaning->communications)
    for (const CommMeaning::Result& result : means.results) {
      if (result.operation == no_meaning) continue;
      const Operation& operation = course.it.graph().operations[result.operation];
      sent += operation.part == OperationPart::loss && operation.phase == Phase::forward;
    }
  return sent;
}

}  // namespace

TEST_CASE("numerics: operations that any method places have one device's parameters after three steps") {
  int sent = 0;
  for (const PartitionMethod& method : partition_methods()) {
    if (!method.available()) continue;
    for (unsigned seed = 1; seed <= 12; ++seed) {
      Dice dice(seed + 81'000);
      const std::string model = branching_network(dice, dice.coin());
      const int replicas = dice.one_of<int>({1, 1, 2});
      const std::string strategy =
          fmt::format("{{kind: pardnn, method: {}, replicas: {}, micro_batches: {}}}", method.name, replicas,
                      dice.one_of<int>({1, 2}));
      const Optimizer optimizer = dice.one_of<Optimizer>({Optimizer::sgd, Optimizer::momentum});
      const std::string cluster = star(replicas * dice.between(2, 4), "1GB/s", "1us");
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(strategy);
      const Course course(model, cluster, strategy, {4, std::nullopt, {"test", 1, 1}}, optimizer);
      REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
      CHECK(distance_after_three_steps(course, course.plan) < 1e-10);
      sent += losses_sent(course);
    }
  }
  CHECK(sent > 10);
}

TEST_CASE(
    "numerics: tensors with several readers have one device's gradients, also where one reads them twice") {
  for (const std::string strategy :
       {"{kind: data_parallel, sync: all_reduce}", "{kind: pipeline, stages: 2, micro_batches: 2}",
        "{kind: pipeline, stages: 4, micro_batches: 2, schedule: 1f1b, recompute: always}",
        "{kind: filter_parallel}", "{kind: hypergraph}",
        "{kind: hypergraph, method: random, granularity: channel, micro_batches: 2}",
        "{kind: hybrid, conv: filter, fc: channel}", "{kind: hybrid, conv: batch, fc: replicated, zero: 1}",
        "{kind: pipeline, stages: 2, micro_batches: 2, inner: {kind: hybrid, conv: filter, fc: filter}}"})
    for (unsigned seed = 1; seed <= 10; ++seed) {
      Dice dice(seed + 82'000);
      const std::string model = branching_network(dice, true);
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(strategy);
      const Course course(model, star(4, "1GB/s", "1us"), strategy, {4, std::nullopt, {"test", 1, 1}},
                          Optimizer::sgd);
      REQUIRE(refuses_numerics(course.it.graph().model) == "");
      REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
      CHECK(distance_after_three_steps(course, course.plan) < 1e-10);
    }
}
