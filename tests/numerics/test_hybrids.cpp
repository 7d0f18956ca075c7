// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/algorithm/string/replace.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/numerics/kernels.h"
#include "sim/numerics/learn.h"
#include "tests/numerics/course.h"
#include "tests/numerics/networks.h"
#include "tests/prove/hybrids.h"
#include "tests/prove/plan_mutants.h"

using namespace convoy;
using namespace convoy::lab;

TEST_CASE("numerics: random hybrids have one device's parameters after three steps") {
  std::map<std::string, int> kinds;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Dice dice(seed + 64'000);
    const HybridExperiment of(dice, false, false);
    const Optimizer optimizer = dice.one_of<Optimizer>({Optimizer::sgd, Optimizer::momentum});
    CAPTURE(seed);
    CAPTURE(of.model);
    CAPTURE(of.strategy);
    CAPTURE(of.devices);
    const Course course(of.model, of.cluster, of.strategy, {of.batch, std::nullopt, {"test", 1, 1}},
                        optimizer);
    REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
    REQUIRE(refuses_numerics(course.it.graph().model) == "");
    CHECK(distance_after_three_steps(course, course.plan) < 1e-10);
    ++kinds[of.conv], ++kinds["fc " + of.fc], ++kinds[of.stages > 1 ? "pipeline" : "alone"];
  }
  for (const auto& [kind, count] : kinds) CHECK_MESSAGE(count >= 1, kind);
}

TEST_CASE("numerics: batch normalization and dropout of hybrids go by the images and channels of a device") {
  const std::string model = boost::replace_first_copy(learning_network("resnet"), "{name: f,",
                                                      "{name: d, kind: dropout, rate: 0.3}, {name: f,");
  for (const std::string keys :
       {"conv: batch, fc: filter", "conv: batch, fc: channel, scheme: b",
        "conv: batch, fc: filter, scheme: c", "conv: batch, fc: replicated, replicas: 2, micro_batches: 2",
        "conv: filter, fc: channel", "conv: pairs, fc: replicated, replicas: 2, zero: 1",
        "conv: filter, fc: channel, zero: 3, bucket: 1kB"}) {
    CAPTURE(keys);
    const Course course(model, star(4, "1GB/s", "1us"), "{kind: hybrid, " + keys + "}",
                        {4, std::nullopt, {"test", 1, 1}}, Optimizer::momentum);
    REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
    CHECK(distance_after_three_steps(course, course.plan) < 1e-10);
  }
}

// Of 9 rows the last is in no window, and a device may have rows that only its neighbour's windows are over.
TEST_CASE(
    "numerics: hybrids split rows and columns that no window of a pooling reads, or only another device's") {
  for (const std::string pool : {"avg_pool", "max_pool"})
    for (const std::string conv : {"height", "width"})
      for (const int devices : {2, 3, 4}) {
        CAPTURE(pool);
        CAPTURE(conv);
        CAPTURE(devices);
        const Course course(
            "{name: odd, input: [3, 9, 9], loss: cross_entropy, layers: [{name: in, kind: conv2d, "
            "out_channels: "
            "4, kernel: 3, padding: 1}, {name: act, kind: gelu}, {name: half, kind: " +
                pool +
                ", kernel: 2, stride: 2}, {name: flat, kind: flatten}, {name: fc, kind: linear, "
                "out_features: "
                "10}]}",
            star(devices, "1GB/s", "1us"), fmt::format("{{kind: hybrid, conv: {}, fc: filter}}", conv),
            {4, std::nullopt, {"test", 1, 1}}, Optimizer::momentum);
        REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
        CHECK(distance_after_three_steps(course, course.plan) < 1e-10);
      }
}

TEST_CASE("numerics: placed operations and filters have one device's parameters after three steps") {
  for (const std::string network : {"lenet", "resnet", "groups"})
    for (const std::string keys :
         {"kind: pardnn", "kind: filter_parallel", "kind: filter_parallel, overlap: false, shares: probed",
          "kind: filter_parallel, broadcast: scatter_allgather", "kind: pardnn, micro_batches: 2",
          "kind: filter_parallel, micro_batches: 2",
          "kind: filter_parallel, micro_batches: 4, broadcast: scatter_allgather"})
      for (const int devices : {2, 3}) {
        CAPTURE(network);
        CAPTURE(keys);
        CAPTURE(devices);
        const Course course(learning_network(network), star(devices, "1GB/s", "1us"), "{" + keys + "}",
                            {4, std::nullopt, {"test", 1, 1}}, Optimizer::momentum);
        REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
        CHECK(distance_after_three_steps(course, course.plan) < 1e-10);
      }
}

TEST_CASE("numerics: replicas of placed work have one device's parameters after three steps") {
  for (const std::string network : {"lenet", "resnet"})
    for (const std::string kind : {"pardnn", "filter_parallel", "hypergraph"})
      for (const std::string more :
           {"", ", micro_batches: 2",
            ", inner: {kind: data_parallel, sync: all_reduce, bucket: 3kB, overlap: true}",
            ", micro_batches: 2, inner: {kind: data_parallel, sync: all_reduce, bucket: 3kB, zero: 1}"}) {
        CAPTURE(network);
        CAPTURE(kind);
        CAPTURE(more);
        const Course course(learning_network(network), star(4, "1GB/s", "1us"),
                            "{kind: " + kind + ", replicas: 2" + more + "}",
                            {4, std::nullopt, {"test", 1, 1}}, Optimizer::momentum);
        REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
        CHECK(distance_after_three_steps(course, course.plan) < 1e-10);
      }
}

TEST_CASE("numerics: nodes on random devices have one device's parameters after three steps") {
  for (const std::string network : {"lenet", "resnet", "groups"})
    for (const std::string method : {"hypergraph", "even", "random", "layerwise"})
      for (const int micro_batches : {1, 2}) {
        CAPTURE(network);
        CAPTURE(method);
        CAPTURE(micro_batches);
        const Course course(
            learning_network(network), star(3, "1GB/s", "1us"),
            fmt::format("{{kind: hypergraph, method: {}, micro_batches: {}}}", method, micro_batches),
            {4, std::nullopt, {"test", 1, 1}}, Optimizer::momentum);
        REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
        CHECK(distance_after_three_steps(course, course.plan) < 1e-10);
      }
}

TEST_CASE(
    "numerics: nodes that read the image by a layer which computes nothing have one device's parameters") {
  for (const char* views : {"{name: flat, kind: flatten}",
                            "{name: flat, kind: flatten}, {name: half, kind: slice, first: 8, last: 40}"})
    for (const std::string method : {"hypergraph", "even", "random"}) {
      CAPTURE(views);
      CAPTURE(method);
      const Course course(
          fmt::format("{{name: net, input: [1, 8, 8], loss: cross_entropy, layers: [{}, {{name: a, kind: "
                      "linear, out_features: 16}}, {{name: b, kind: relu}}, {{name: c, kind: linear, "
                      "out_features: 10}}]}}",
                      views),
          star(3, "1GB/s", "1us"), fmt::format("{{kind: hypergraph, method: {}}}", method),
          {4, std::nullopt, {"test", 1, 1}}, Optimizer::momentum);
      REQUIRE(refuses_plan(course.plan, course.it.graph()) == "");
      CHECK(distance_after_three_steps(course, course.plan) < 1e-10);
    }
}

TEST_CASE("numerics: a hybrid's plan with a mistake misses a value or learns otherwise than one device") {
  int made = 0, missed = 0, wrong = 0;
  std::string silent;
  for (unsigned seed = 1; made < 24; ++seed) {
    Dice dice(seed + 77'000);
    const HybridExperiment of(dice, false, false);
    const Course course(of.model, of.cluster, of.strategy, {of.batch, std::nullopt, {"test", 1, 1}},
                        Optimizer::sgd);
    Plan plan = course.plan;
    const auto mutant = dice.one_of<PlanMutant>({PlanMutant::gradient_lost, PlanMutant::result_lost,
                                                 PlanMutant::operation_dropped, PlanMutant::update_dropped,
                                                 PlanMutant::micro_batch_twice});
    const std::string what = change(plan, course.it.graph(), mutant, dice);
    if (what.empty()) continue;
    ++made;
    try {
      if (distance_after_three_steps(course, plan) > 1e-10)
        ++wrong;
      else
        silent += fmt::format("seed {}: {}: {}\n", seed, what, of.strategy);
    } catch (const std::exception& error) {
      CHECK_FALSE(std::string(error.what()).empty());
      ++missed;
    }
  }
  MESSAGE(missed << " miss a value, " << wrong << " learn otherwise, of " << made << "; silent:\n" << silent);
  CHECK_MESSAGE(silent.empty(), silent);
  CHECK(missed > 0);
  CHECK(wrong > 0);
}
