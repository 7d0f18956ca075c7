// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace {

/// The example of docs/numerics.md with fewer steps and one strategy.
Finished learnt(const Workplace& place, const std::string& strategy, std::vector<std::string> more = {}) {
  std::vector<std::string> command{"run",
                                   std::string(CONVOY_SOURCE) + "/configs/examples/numerics.yaml",
                                   "--json",
                                   "--set",
                                   "sweep={}",
                                   "--set",
                                   "numerics.steps=6",
                                   "--set",
                                   "strategy=" + strategy};
  command.insert(command.end(), more.begin(), more.end());
  return place.convoy(command);
}

/// `learning` of the run.
nlohmann::json points_learnt(const Workplace& place, const std::string& strategy) {
  const Finished run = learnt(place, strategy);
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  return nlohmann::json::parse(run.out)["runs"][0]["learning"];
}

}  // namespace

TEST_CASE("numerics: schedules and tables of the same sums learn the same, at their own pace") {
  const Workplace place;
  const auto points = [&](const std::string& algorithm) {
    return points_learnt(place, "{kind: data_parallel, sync: all_reduce, algorithm: " + algorithm + "}");
  };
  const nlohmann::json ring = points("ring"),
                       tree = points("{file: " + std::string(CONVOY_SOURCE) + "/configs/collectives/tree.yaml}");
  REQUIRE(ring.size() == 6);
  REQUIRE(tree.size() == 6);
  for (std::size_t i = 0; i < ring.size(); ++i) {
    CHECK(tree[i]["loss"] == ring[i]["loss"]);
    CHECK(tree[i]["accuracy"] == ring[i]["accuracy"]);
    CHECK(tree[i]["time_s"].get<double>() > ring[i]["time_s"].get<double>());
  }
}

TEST_CASE("numerics: wherever operations are placed, the same is learnt") {
  const Workplace place;
  const auto points = [&](const std::string& method) {
    return points_learnt(place, "{kind: pardnn, parts: 4, method: " + method + "}");
  };
  const nlohmann::json own = points("pardnn"), random = points("random");
  REQUIRE(own.size() == 6);
  REQUIRE(random.size() == 6);
  for (std::size_t i = 0; i < own.size(); ++i) {
    CHECK(random[i]["loss"].get<double>() == doctest::Approx(own[i]["loss"].get<double>()).epsilon(1e-9));
    CHECK(random[i]["accuracy"] == own[i]["accuracy"]);
    CHECK(random[i]["time_s"].get<double>() > own[i]["time_s"].get<double>());
  }
}

TEST_CASE("numerics: what is not followed is refused in one line, and so is a loss without bounds") {
  const Workplace place;
  const auto refuses = [](const Finished& run, const std::string& what) {
    CHECK_MESSAGE(run.exit_code == 2, run.err);
    CHECK_MESSAGE(run.err.find(": numerics: ") != std::string::npos, run.err);
    CHECK_MESSAGE(run.err.find(what) != std::string::npos, run.err);
    CHECK(run.out.empty());
  };
  refuses(learnt(place,
                 "{kind: elastic, inner: {kind: pipeline, micro_batches: 4, weights: stash}, schedule: "
                 "[{at_step: 0, "
                 "devices: 2}, {at_step: 2, devices: 4}]}",
                 {"--set", "training={global_batch: 64, optimizer: sgd, dataset: {samples: 1438}}"}),
          "its steps do not follow one another");
  refuses(learnt(place, "{kind: auto}"), "kind: auto");
  refuses(learnt(place, "{kind: single}", {"--set", "numerics.learning_rate=1000"}), "no finite number");
}
