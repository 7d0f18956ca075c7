// SPDX-License-Identifier: MIT
// Runs whose devices, or whose way of summing, change.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <deque>
#include <string>
#include <vector>

#include "sim/numerics/learn.h"
#include "tests/numerics/course.h"
#include "tests/prove/hybrids.h"
#include "topologies/first_devices.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

constexpr int devices = 4, batch = 24, steps_of_phase = 3;

/// An elastic run whose phases have three steps each.
struct PhasedCourse {
  lab::Experiment it;
  std::vector<RunPhase> phases;
  LearningData data;

  PhasedCourse(const std::string& model, const std::string& strategy, Optimizer optimizer)
      : it(model, star(devices, "1GB/s", "1us"), strategy, {std::nullopt, batch, {"test", 1, 1}},
           Course::with(optimizer)),
        phases(it.strategy().phases({it.graph(), it.machine(), it.cost(), it.batch(), true})),
        data(load_data(drawn(300), it.graph().model.input, 10, twin_seed)) {}

  std::int64_t steps() const { return steps_of_phase * static_cast<std::int64_t>(phases.size()); }

  std::vector<LearntPoint> learnt() const {
    std::deque<Machine> machines;
    std::vector<LearningPhase> all;
    for (std::size_t i = 0; i < phases.size(); ++i)
      all.push_back({phases[i].plan, machines.emplace_back(first_devices(it.machine(), phases[i].devices)),
                     steps_of_phase * static_cast<std::int64_t>(i), 1000.0 * static_cast<double>(i),
                     i > 0 ? &phases[i].change : nullptr});
    NumericsSpec spec;
    spec.seed = twin_seed, spec.learning_rate = rate, spec.steps = steps(), spec.every = 1;
    return learn_in_phases(spec, data, all, it.graph(), it.cost());
  }

  /// The largest difference to one device, of a step's loss. What was wrong after a step shows in the next one's.
  double distance() const {
    Learner<double> learner(it.graph(), data, twin_seed, rate);
    const std::vector<LearntPoint> points = learnt();
    REQUIRE(static_cast<std::int64_t>(points.size()) == steps());
    double most = 0;
    for (const LearntPoint& point : points) {
      const double off = std::abs(point.loss - learner.step(batch, {{0, batch}}));
      if (!(off <= most)) most = off;  // NaN as well
      CHECK(point.accuracy == learner.judged().accuracy);
    }
    return most;
  }
};

std::string schedule(Dice& dice, int least) {
  std::string entries;
  for (int i = 0; i < 4; ++i)
    entries += fmt::format("{}{{at_step: {}, devices: {}}}", i ? ", " : "", steps_of_phase * i,
                           least * dice.between(1, devices / least));
  return entries;
}

/// Data parallelism, a pipeline or a hybrid.
std::string elastic(Dice& dice, bool moves_parts) {
  const std::string sync =
      fmt::format("bucket: {}kB{}", dice.one_of<int>({1, 3, 300}),
                  moves_parts ? dice.one_of<std::string>({"", ", zero: 1", ", zero: 2", ", zero: 3"}) : "");
  int least = 1;
  std::string inner = "{kind: data_parallel, sync: all_reduce, " + sync + "}";
  if (moves_parts) switch (dice.between(0, 2)) {
      case 0:
        least = 2;
        inner = "{kind: pipeline, stages: 2, micro_batches: 2, inner: " + inner + "}";
        break;
      case 1:
        inner = "{kind: pipeline, micro_batches: 4, schedule: 1f1b}";
        break;
      default:
        least = dice.one_of<int>({1, 2});
        inner = fmt::format("{{kind: hybrid, conv: {}, fc: {}, replicas: {}, {}}}",
                            dice.one_of<std::string>({"batch", "filter"}),
                            dice.one_of<std::string>({"batch", "filter", "channel"}), least, sync);
    }
  return fmt::format("{{kind: elastic, inner: {}, reconfigure: {}, schedule: [{}]}}", inner,
                     dice.one_of<std::string>({"overlapped", "overlapped", "restart"}),
                     schedule(dice, least));
}

}  // namespace

TEST_CASE("numerics: runs whose devices come and go learn as one device does, step by step") {
  int restarts = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Dice dice(seed + 31'000);
    const std::string strategy = elastic(dice, seed % 2 == 0);
    CAPTURE(strategy);
    const auto optimizer = dice.one_of<Optimizer>({Optimizer::sgd, Optimizer::momentum, Optimizer::adam});
    const PhasedCourse course(splittable_network(dice, false), strategy, optimizer);
    for (const RunPhase& phase : course.phases) REQUIRE(refuses_plan(phase.plan, course.it.graph()) == "");
    CHECK(course.distance() < (optimizer == Optimizer::adam ? 1e-7 : 1e-10));
    for (const RunPhase& phase : course.phases) restarts += phase.change.reads_checkpoint;
  }
  CHECK(restarts > 0);
}

TEST_CASE("numerics: shares of parts of layers go along when the devices that have them change") {
  for (const int zero : {1, 2, 3}) {
    CAPTURE(zero);
    Dice dice(5);
    const PhasedCourse course(
        splittable_network(dice, false),
        fmt::format("{{kind: elastic, inner: {{kind: hybrid, conv: filter, fc: filter, replicas: 2, zero: "
                    "{}}}, schedule: "
                    "[{{at_step: 0, devices: 4}}, {{at_step: 3, devices: 2}}, {{at_step: 6, devices: 4}}]}}",
                    zero),
        Optimizer::momentum);
    CHECK(course.distance() < 1e-10);
  }
}

TEST_CASE("numerics: a newcomer that gets less than it keeps, or a change that brings nothing, is noticed") {
  int tried = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Dice dice(seed + 32'000);
    const std::string strategy = elastic(dice, dice.coin());
    CAPTURE(strategy);
    PhasedCourse course(splittable_network(dice, false), strategy, Optimizer::momentum);
    for (RunPhase& phase : course.phases) {
      if (phase.change.moves.empty()) continue;
      StateMove& last = phase.change.moves.back();
      const bool of_states = !last.values.states.empty() && dice.coin();
      IndexSet& values =
          of_states || last.values.parameters.empty() ? last.values.states : last.values.parameters;
      ++tried;
      dice.coin() ? static_cast<void>(values.clear()) : static_cast<void>(--values.back().end);
      CHECK_THROWS_AS(course.learnt(), MissingValue);
      break;
    }
  }
  CHECK(tried > 15);
}

TEST_CASE("numerics: points of a run in phases have the times of their phases") {
  Dice dice(1);
  const PhasedCourse course(splittable_network(dice, false),
                            "{kind: elastic, inner: {kind: data_parallel, sync: all_reduce}, schedule: "
                            "[{at_step: 0, devices: 1}, {at_step: 3, devices: 4}]}",
                            Optimizer::momentum);
  const std::vector<LearntPoint> points = course.learnt();
  REQUIRE(points.size() == 6);
  CHECK(points[2].time_s == doctest::Approx(3 * points[0].time_s));
  CHECK(points[3].time_s > 1000);
  CHECK(points[5].time_s - 1000 == doctest::Approx(3 * (points[3].time_s - 1000)));
}

TEST_CASE("numerics: local SGD that begins with sums in every step has one device's parameters until then") {
  for (const std::string averaging : {"", ", slow_momentum: 0.5"}) {
    Dice dice(2);
    PhasedCourse course(
        splittable_network(dice, false),
        "{kind: data_parallel, sync: all_reduce, sync_every: 3, local_from: 3" + averaging + "}",
        Optimizer::sgd);
    REQUIRE(course.phases.size() == 2);
    Learner<double> learner(course.it.graph(), course.data, twin_seed, rate);
    const std::vector<LearntPoint> points = course.learnt();
    REQUIRE(points.size() == 4);
    for (int step = 0; step < 3; ++step)
      CHECK(points[static_cast<std::size_t>(step)].loss ==
            doctest::Approx(learner.step(batch, {{0, batch}})).epsilon(1e-10));
    // Then replicas go apart from where they were, and not from where training began.
    const double later = (learner.step(batch, {{0, batch}}) + learner.step(batch, {{0, batch}}) +
                          learner.step(batch, {{0, batch}})) /
                         3;
    CHECK(points[3].loss == doctest::Approx(later).epsilon(0.02));
    CHECK(points[3].loss != later);
  }
}
