// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>

#include "sim/prove/prove.h"
#include "tests/prove/covered.h"
#include "tests/prove/plan_mutants.h"

using namespace convoy;
using namespace convoy::lab;

TEST_CASE("proof: of 200 plans with a mistake, at least 95 of 100 are refused, and some of every kind") {
  constexpr int wanted = 200;
  int made = 0, refused = 0;
  std::map<int, int> refused_of;
  std::string let_through;
  for (unsigned seed = 1; made < wanted; ++seed) {
    Dice dice(seed + 20'000);
    const CoveredExperiment of(dice);
    const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
    Plan plan = plan_with_meaning(it);
    REQUIRE(prove_plan(plan, it.report(), it.graph(), it.machine()).outcome == Proof::Outcome::proved);
    const int kind = static_cast<int>(seed) % plan_mutants;
    const std::string what = change(plan, static_cast<PlanMutant>(kind), dice);
    if (what.empty()) continue;
    ++made;
    const Proof proof = prove_plan(plan, it.report(), it.graph(), it.machine());
    CHECK_MESSAGE(proof.outcome != Proof::Outcome::not_covered, proof.text);
    if (proof.outcome == Proof::Outcome::refuted) {
      CHECK_FALSE(proof.text.empty());
      ++refused, ++refused_of[kind];
      continue;
    }
    let_through += fmt::format("seed {}, kind {}, {}: {}\n", seed, kind, what, of.strategy);
  }
  MESSAGE(refused << " of " << made << " mutants refused; let through:\n" << let_through);
  CHECK_MESSAGE(100 * refused >= 95 * made, let_through);
  for (int kind = 0; kind < plan_mutants; ++kind) CHECK_MESSAGE(refused_of[kind] > 0, kind);
}
