// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/held_states.h"
#include "sim/prove/prove_change.h"
#include "tests/prove/covered.h"
#include "tests/prove/hybrids.h"
#include "tests/support/recorded_texts.h"
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

/// Of devices that keep parts of a network: on 4 devices, or fewer in a run whose devices come and go.
struct PartedRun {
  std::string model, inner;
  bool is_hybrid;
  int least = 1;  ///< devices, whose number is a multiple of it
  explicit PartedRun(Dice& dice) : is_hybrid(dice.coin()) {
    const std::string sync =
        fmt::format("bucket: {}kB{}", dice.one_of<int>({1, 3, 300}),
                    dice.one_of<std::string>({"", ", zero: 1", ", zero: 2", ", zero: 3"}));
    const std::string layouts =
        fmt::format("conv: {}, fc: {}", dice.one_of<std::string>({"batch", "filter", "replicated"}),
                    dice.one_of<std::string>({"batch", "filter", "channel", "pairs", "replicated"}));
    model = is_hybrid ? splittable_network(dice, true) : blocks(dice, 4);
    if (is_hybrid && dice.coin()) {
      least = 2;  // stages
      inner = fmt::format("{{kind: pipeline, stages: 2, micro_batches: 2, inner: {{kind: hybrid, {}, {}}}}}",
                          layouts, sync);
    } else if (is_hybrid) {
      least = dice.one_of<int>({1, 2});  // replicas
      inner = fmt::format("{{kind: hybrid, {}, replicas: {}, {}}}", layouts, least, sync);
    } else {
      const int kind = dice.between(0, 3);
      least = kind == 0 ? 2 : 1;
      inner = kind == 0 ? "{kind: pipeline, stages: 2, micro_batches: 2, inner: {kind: data_parallel, sync: "
                          "all_reduce, " +
                              sync + "}}"
              : kind == 1 ? "{kind: pipeline, micro_batches: 4, schedule: 1f1b}"
              : kind == 2
                  ? "{kind: pipeline, stages: auto, micro_batches: 4, inner: {kind: data_parallel, sync: "
                    "all_reduce, " +
                        sync + "}}"
                  : "{kind: pipeline, micro_batches: 4, recompute: always}";
    }
  }
};

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

TEST_CASE("proof: what devices keep between steps is what their memory holds of weights and states") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Dice dice(seed + 900);
    TrainingOptions options;
    options.optimizer = dice.one_of<Optimizer>({Optimizer::sgd, Optimizer::momentum, Optimizer::adam});
    options.precision = dice.one_of<Precision>({Precision::fp32, Precision::fp16});
    const PartedRun of(dice);
    CAPTURE(of.inner);
    const auto it =
        lab::Experiment::with_global_batch(of.model, star(4, "1GB/s", "1us"), of.inner, 48, options);
    const Plan plan = plan_with_meaning(it);
    const ParameterElements elements(it.graph());
    const HeldStates held = held_states(plan, it.graph(), elements);
    IndexSet parameters, states;
    for (const Role& role : plan.roles)
      for (const EndpointId device : role.members) {
        const KeptValues values = held.of(device);
        const double resident = role.resident_bytes[static_cast<std::size_t>(MemoryClass::weights)] +
                                role.resident_bytes[static_cast<std::size_t>(MemoryClass::optimizer)];
        // Shares of buckets end between two values.
        const double rounding = 16.0 * static_cast<double>(plan.meaning->buckets.size());
        CHECK(std::abs(elements.bytes(values) - resident) <= rounding);
        parameters = united(std::move(parameters), values.parameters);
        states = united(std::move(states), values.states);
      }
    CHECK(parameters == elements.all().parameters);
    CHECK(states == elements.all().states);
  }
}

TEST_CASE("proof: changes of elastic pipelines and hybrids, and mistakes in them") {
  int sent = 0, refused = 0, hybrids = 0;
  RecordedTexts refusals(CONVOY_SOURCE, "proof-of-changes");
  std::vector<int> tried(6, 0);
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Dice dice(seed + 1300);
    const PartedRun of(dice);
    CAPTURE(of.inner);
    std::string schedule;
    for (int i = 0; i < 3; ++i)
      schedule += fmt::format("{}{{at_step: {}, devices: {}}}", i ? ", " : "", 10 * i,
                              of.least * dice.one_of<int>({1, 2, 4 / of.least}));
    ElasticRun run(of.model, 4, 48,
                   fmt::format("{{kind: elastic, inner: {}, schedule: [{}]}}", of.inner, schedule));
    for (std::size_t i = 0; i < run.phases.size(); ++i) {
      CAPTURE(i);
      const Proof phase = run.of_phase(i);
      CHECK_MESSAGE(phase.outcome == Proof::Outcome::proved, phase.text);
      if (i == 0) continue;
      const Proof proof = run.of_change(i);
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
      CHECK(proof.allowed.empty());
      Reconfiguration& change = run.phases[i].change;
      if (change.moves.empty()) continue;
      const auto which = static_cast<std::size_t>(dice.between(0, static_cast<int>(change.moves.size()) - 1));
      StateMove& move = change.moves[which];
      Round& round = change.traffic.patterns[0].rounds[0];
      const auto of_round = static_cast<std::ptrdiff_t>(which);
      const int mistake = dice.between(0, 5);
      ++tried[static_cast<std::size_t>(mistake)];
      switch (mistake) {
        case 0:  // A device is passed by.
          round.pairs.erase(round.pairs.begin() + of_round);
          round.fractions.erase(round.fractions.begin() + of_round);
          break;
        case 1:  // The same, and nobody says otherwise.
          round.pairs.erase(round.pairs.begin() + of_round);
          round.fractions.erase(round.fractions.begin() + of_round);
          change.moves.erase(change.moves.begin() + of_round);
          break;
        case 2:  // Half of what it needs, or less.
          round.fractions[which] /= 2;
          break;
        case 3:
          round.fractions[which] -= 4 / change.traffic.communications[0].bytes;
          break;
        case 4:  // The last of the values.
          (move.values.parameters.empty() ? move.values.states : move.values.parameters).back().end -= 1;
          break;
        default: {  // Somebody sends it who does not have it.
          EndpointId other = 0;
          const HeldStates held =
              held_states(run.phases[i - 1].plan, run.it.graph(), ParameterElements(run.it.graph()));
          const std::vector<EndpointId>& group = change.traffic.patterns[0].groups[0];
          const auto place = [&](EndpointId device) {
            return static_cast<std::uint32_t>(std::ranges::find(group, device) - group.begin());
          };
          while (other < 4 && (other == move.to || place(other) == group.size() ||
                               difference(move.values.parameters, held.parameters.of(other)).empty()))
            ++other;
          if (other == 4) other = move.to;  // everybody has it
          if (other == move.to)
            round.pairs[which].second = place(move.from);
          else
            round.pairs[which].first = place(move.from = other);
        }
      }
      ++sent;
      hybrids += of.is_hybrid;
      const Proof wrong = run.of_change(i);
      refusals.add(fmt::format("{}", sent), wrong.text);
      refused += wrong.outcome == Proof::Outcome::refuted;
    }
  }
  CHECK(sent >= 60);
  CHECK(hybrids >= 20);
  for (const int count : tried) CHECK(count >= 5);
  CHECK(refused == sent);
  refusals.check();
}

TEST_CASE("proof: a restart reads a checkpoint, whatever its devices keep") {
  Dice dice(3);
  const std::string model = blocks(dice, 2);
  for (const char* inner :
       {"{kind: data_parallel, sync: all_reduce}", "{kind: pipeline, stages: 2, micro_batches: 2}"}) {
    const ElasticRun run(
        model, 4, 16,
        fmt::format("{{kind: elastic, inner: {}, reconfigure: restart, schedule: [{{at_step: 0, "
                    "devices: 2}}, {{at_step: 5, devices: 4}}]}}",
                    inner));
    CHECK(run.of_change(1).outcome == Proof::Outcome::proved);
    CHECK(run.of_change(1).allowed == "states come from a checkpoint");
  }
}
