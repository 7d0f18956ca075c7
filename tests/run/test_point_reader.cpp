// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "sim/run/experiment.h"
#include "sim/run/point_reader.h"
#include "sim/run/preparer.h"

using namespace convoy;

namespace {

/// Axes in parts that take turns, one of them in a part that the file does not write otherwise.
constexpr const char* swept = R"(experiment: e
model: alexnet
training: {batch_per_device: 8, dataset: {samples: 1000}}
cluster: {server: dgx1, nodes: 2}
strategy: {kind: data_parallel, sync: all_reduce}
sweep:
  strategy: [{kind: data_parallel, sync: all_reduce}, {kind: single}]
  training.batch_per_device: [1, 2, 3]
  cluster.nodes: [1, 2]
  strategy.micro_batches: [1, 2]
  model: [alexnet, resnet50]
  variability.runs: [10, 20]
)";

std::string content_of(const YamlNode& resolved) {
  std::string text;
  for (const auto& [name, part] : resolved.entries)
    if (name != "experiment" && name != "jobs") text += name + ':' + fingerprint(part) + '\n';
  return text;
}

/// What the points of an experiment say, read one after the other in an order drawn by `seed`, is what each says read
/// alone.
void check_points(const runs::Experiment& experiment, unsigned seed) {
  std::vector<std::size_t> order(experiment.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  PointReader reader(experiment);
  std::set<std::string> contents;
  for (const std::size_t index : order) {
    CAPTURE(index);
    const Point alone = experiment.point(index);
    const Point& read = reader.point(index);
    CHECK(read.model == alone.model);
    CHECK(read.cluster == alone.cluster);
    CHECK(read.strategy == alone.strategy);
    CHECK(read.training.batch.per_device == alone.training.batch.per_device);
    CHECK(read.training.samples == alone.training.samples);
    REQUIRE(read.variability.has_value() == alone.variability.has_value());
    if (alone.variability) CHECK(read.variability->runs == alone.variability->runs);
    REQUIRE(read.spreads.size() == alone.spreads.size());
    for (std::size_t s = 0; s < alone.spreads.size(); ++s) {
      CHECK(read.spreads[s].value == alone.spreads[s].value);
      CHECK(read.spreads[s].more->cluster == alone.spreads[s].more->cluster);
    }
    CHECK(reader.content(index) == content_of(experiment.resolved(index)));
    contents.insert(reader.content(index));
  }
  CHECK(contents.size() == experiment.size());
}

}  // namespace

TEST_CASE("points: in whatever order a sweep's points are read, each is what it is alone [law]") {
  const runs::Experiment experiment = runs::Experiment::parse(swept, "e.yaml", {});
  REQUIRE(experiment.size() == 96);
  for (const unsigned seed : {1u, 2u, 3u}) check_points(experiment, seed);
}

TEST_CASE("points: spreads are of the numbers of their own point") {
  check_points(runs::Experiment::parse(swept, "e.yaml", {"spread={cluster.nodes: 10%}"}), 1);
}

TEST_CASE("points: of those that are listed each is read by itself") {
  const runs::Experiment sweep = runs::Experiment::parse(swept, "e.yaml", {});
  check_points(sweep.at_points({sweep.coordinates(95), sweep.coordinates(0), sweep.coordinates(50)}), 1);
}

TEST_CASE("points: those that share a part share its nodes, and what is wrong with one is told of it alone") {
  const runs::Experiment experiment =
      runs::Experiment::parse(swept, "e.yaml", {"sweep.training.batch_per_device=[1, none, 3]"});
  PointReader reader(experiment);
  const Point first = reader.point(0);
  CHECK(reader.point(1).strategy.is(first.strategy));
  CHECK_FALSE(reader.point(4).strategy.is(first.strategy));
  const auto message = [](const auto& read) -> std::string {
    try {
      read();
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  };
  for (const std::size_t index : {16, 17, 0, 16}) {
    const std::string alone = message([&] { experiment.point(index); });
    CHECK(message([&] { reader.point(index); }) == alone);
    CHECK(alone.empty() == (index == 0));
  }
}

TEST_CASE("points: whoever prepares runs of another experiment reads the points of that one") {
  runs::Experiment experiment = runs::Experiment::parse(swept, "e.yaml", {});
  Preparer preparer(experiment);
  CHECK(preparer.point(0).training.batch.per_device == 1);
  experiment = experiment.at_points({experiment.coordinates(95)});
  preparer.turn_to(experiment);
  CHECK(preparer.point(0).training.batch.per_device == 3);
  CHECK(preparer.content(0) == content_of(experiment.resolved(0)));
}
