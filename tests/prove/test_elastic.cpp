// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/prove/prove_change.h"
#include "tests/prove/covered.h"
#include "topologies/first_devices.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

struct ElasticRun {
  lab::Experiment it;
  std::vector<RunPhase> phases;
  ElasticRun(const std::string& model, int devices, int batch, const std::string& strategy)
      : it(lab::Experiment::with_global_batch(model, star(devices, "1GB/s", "1us"), strategy, batch)),
        phases(it.strategy().phases({it.graph(), it.machine(), it.cost(), it.batch(), true})) {}

  Proof of_phase(std::size_t i) const {
    const Machine machine = first_devices(it.machine(), phases[i].devices);
    return prove_plan(phases[i].plan, phases[i].report, it.graph(), machine,
                      static_cast<double>(it.batch().over(phases[i].devices)));
  }
  Proof of_change(std::size_t i) const {
    return prove_change(phases[i - 1], phases[i], it.graph(), it.machine());
  }
};

std::string elastic(Dice& dice, int devices) {
  std::string schedule;
  for (int i = 0, phases = dice.between(2, 4); i < phases; ++i)
    schedule +=
        fmt::format("{}{{at_step: {}, devices: {}}}", i ? ", " : "", 10 * i, dice.between(1, devices));
  return fmt::format(
      "{{kind: elastic, inner: {{kind: data_parallel, sync: all_reduce, algorithm: ring, bucket: {}kB}}, "
      "balance: {}, micro_batch: {}, schedule: [{}]}}",
      dice.one_of<int>({2, 300}), dice.one_of<std::string>({"uniform", "coarse"}), dice.between(2, 5),
      schedule);
}

}  // namespace

TEST_CASE("proof: each phase of an elastic run, and what newcomers get") {
  int grown = 0, refused = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Dice dice(seed + 600);
    const int devices = dice.between(2, 6);
    const std::string strategy = elastic(dice, devices);
    CAPTURE(strategy);
    ElasticRun run(blocks(dice, 1), devices, dice.between(12, 30), strategy);
    for (std::size_t i = 0; i < run.phases.size(); ++i) {
      CAPTURE(i);
      const Proof proof = run.of_phase(i);
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
      if (i == 0) continue;
      const Proof change = run.of_change(i);
      CHECK_MESSAGE(change.outcome == Proof::Outcome::proved, change.text);
      if (run.phases[i].devices <= run.phases[i - 1].devices) continue;
      // A newcomer is passed by, gets half, or a byte too few.
      Plan& traffic = run.phases[i].change.traffic;
      Round& last = traffic.patterns[0].rounds.back();
      switch (dice.between(0, 2)) {
        case 0:
          last.pairs.pop_back();
          break;
        case 1:
          last.fractions = {0.5};
          break;
        default:
          traffic.communications[0].bytes -= 4;
      }
      ++grown;
      const Proof wrong = run.of_change(i);
      CHECK_FALSE(wrong.text.empty());
      refused += wrong.outcome == Proof::Outcome::refuted;
    }
  }
  CHECK(grown >= 20);
  CHECK(refused == grown);
}

TEST_CASE(
    "proof: an elastic pipeline does not say which part comes from whom, and a restart reads a checkpoint") {
  Dice dice(3);
  const std::string model = blocks(dice, 2);
  const std::string schedule = "schedule: [{at_step: 0, devices: 2}, {at_step: 5, devices: 4}]";
  const ElasticRun pipeline(
      model, 4, 16,
      "{kind: elastic, inner: {kind: pipeline, stages: 2, micro_batches: 2}, " + schedule + "}");
  CHECK(pipeline.of_phase(1).outcome == Proof::Outcome::proved);
  CHECK(pipeline.of_change(1).outcome == Proof::Outcome::not_covered);
  const ElasticRun restart(model, 4, 16,
                           "{kind: elastic, inner: {kind: data_parallel, sync: all_reduce}, reconfigure: "
                           "restart, " +
                               schedule + "}");
  CHECK(restart.of_change(1).outcome == Proof::Outcome::proved);
  CHECK(restart.of_change(1).allowed == "states come from a checkpoint");
}
