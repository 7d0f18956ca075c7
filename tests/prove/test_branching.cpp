// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "sim/prove/prove.h"
#include "strategies/partition/method.h"
#include "tests/prove/branching_network.h"
#include "tests/prove/covered.h"
#include "tests/prove/plan_mutants.h"
#include "tests/support/recorded_texts.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// A strategy whose devices work on the same images between them, or one of whole layers.
std::string any_strategy(Dice& dice, const std::string& kind) {
  const std::string micro = fmt::format("micro_batches: {}", dice.one_of<int>({1, 2}));
  if (kind == "pardnn") {
    std::vector<std::string> methods;
    for (const PartitionMethod& method : partition_methods())
      if (method.available()) methods.emplace_back(method.name);
    return fmt::format("{{kind: pardnn, {}, method: {}}}", micro, dice.one_of(methods));
  }
  if (kind == "filter_parallel")
    return fmt::format("{{kind: filter_parallel, {}, overlap: {}}}", micro, dice.coin());
  if (kind == "hypergraph")
    return fmt::format("{{kind: hypergraph, {}, granularity: {}, method: {}}}", micro,
                       dice.one_of<std::string>({"auto", "channel", "2"}),
                       dice.one_of<std::string>({"hypergraph", "even", "random", "layerwise"}));
  const std::string conv = dice.one_of<std::string>({"batch", "filter", "replicated"});
  const std::string fc = dice.one_of<std::string>({"batch", "filter", "channel", "replicated"});
  if (kind == "hybrid") return fmt::format("{{kind: hybrid, {}, conv: {}, fc: {}}}", micro, conv, fc);
  if (kind == "stages of hybrids")
    return fmt::format("{{kind: pipeline, stages: 2, {}, inner: {{kind: hybrid, conv: {}, fc: {}}}}}", micro,
                       conv, fc);
  return fmt::format("{{kind: pipeline, stages: 2, micro_batches: {}}}", dice.one_of<int>({2, 4}));
}

struct BranchingExperiment {
  std::string model, strategy;
  BranchingExperiment(Dice& dice, const std::string& kind)
      : model(branching_network(dice, true)), strategy(any_strategy(dice, kind)) {}
  lab::Experiment made() const { return {model, star(4, "1GB/s", "1us"), strategy, 4}; }
};

const std::vector<std::string> branching_kinds{"pardnn", "filter_parallel",   "hypergraph",
                                               "hybrid", "stages of hybrids", "pipeline"};

}  // namespace

TEST_CASE("proof: random networks whose tensors have several readers, some of them twice the same") {
  int twice = 0;
  for (const std::string& kind : branching_kinds)
    for (unsigned seed = 1; seed <= 30; ++seed) {
      Dice dice(seed + 93'000);
      const BranchingExperiment of(dice, kind);
      CAPTURE(seed);
      CAPTURE(of.model);
      CAPTURE(of.strategy);
      const lab::Experiment it = of.made();
      const Proof proof = proof_of(it, plan_with_meaning(it));
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
      twice += of.model.find("twice") != std::string::npos || of.model.find("double") != std::string::npos;
    }
  CHECK(twice > 60);
}

TEST_CASE("proof: of such plans, those in which a part of a gradient is lost or made twice are refused") {
  int made = 0, refused = 0;
  std::string let_through;
  RecordedTexts refusals(CONVOY_SOURCE, "proof-of-branching-networks");
  for (unsigned seed = 1; seed <= 120; ++seed) {
    Dice dice(seed + 95'000);
    const BranchingExperiment of(dice, dice.one_of(branching_kinds));
    const lab::Experiment it = of.made();
    Plan plan = plan_with_meaning(it);
    plan.meaning = std::make_shared<Meaning>(*plan.meaning);
    const auto mutant = dice.one_of<PlanMutant>({PlanMutant::result_lost, PlanMutant::operation_dropped,
                                                 PlanMutant::micro_batch_twice, PlanMutant::work_changed});
    const std::string what = change(plan, it.graph(), mutant, dice);
    if (what.empty()) continue;
    ++made;
    const Proof proof = proof_of(it, plan);
    refusals.add(fmt::format("{}, {}", seed, what), proof.text);
    if (proof.outcome == Proof::Outcome::refuted)
      ++refused;
    else
      let_through += fmt::format("seed {}, {}: {}\n{}\n", seed, what, of.strategy, of.model);
  }
  CHECK(made > 80);
  CHECK_MESSAGE(refused == made, let_through);
  refusals.check();
}
