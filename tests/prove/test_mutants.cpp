// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "sim/prove/prove.h"
#include "tests/prove/covered.h"
#include "tests/prove/plan_mutants.h"
#include "tests/support/recorded_texts.h"

using namespace convoy;
using namespace convoy::lab;

TEST_CASE("proof: of 300 plans with a mistake, at least 95 of 100 are refused, and some of every kind") {
  constexpr int wanted = 300;
  int made = 0, refused = 0;
  std::map<int, int> made_of, refused_of;
  std::string let_through;
  RecordedTexts refusals(CONVOY_SOURCE, "proof-of-plans");
  for (unsigned seed = 1; made < wanted; ++seed) {
    Dice dice(seed + 20'000);
    const CoveredExperiment of(dice);
    const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
    Plan plan = plan_with_meaning(it);
    const double images = images_asked_for(it, plan);
    const Proof whole = prove_plan(plan, it.report(), it.graph(), it.machine(), images);
    REQUIRE_MESSAGE(whole.outcome == Proof::Outcome::proved, whole.text);
    // Of what can be changed in the plan that of which there are fewest so far.
    std::vector<int> kinds(plan_mutants);
    std::iota(kinds.begin(), kinds.end(), 0);
    std::stable_sort(kinds.begin(), kinds.end(), [&](int a, int b) { return made_of[a] < made_of[b]; });
    std::string what;
    int kind = 0;
    for (std::size_t i = 0; i < kinds.size() && what.empty(); ++i)
      what = change(plan, it.graph(), static_cast<PlanMutant>(kind = kinds[i]), dice);
    if (what.empty()) continue;
    ++made, ++made_of[kind];
    const Proof proof = prove_plan(plan, it.report(), it.graph(), it.machine(), images);
    const bool is_right = static_cast<PlanMutant>(kind) == PlanMutant::round_too_many;
    CAPTURE(seed);
    CAPTURE(what);
    CHECK_MESSAGE(proof.outcome != (is_right ? Proof::Outcome::refuted : Proof::Outcome::not_covered),
                  proof.text);
    if (proof.outcome != Proof::Outcome::proved) {
      refusals.add(fmt::format("{}, {}", seed, what), proof.text);
      ++refused, ++refused_of[kind];
      continue;
    }
    let_through += fmt::format("seed {}, kind {}, {}: {}\n", seed, kind, what, of.strategy);
  }
  MESSAGE(refused << " of " << made << " mutants refused; let through:\n" << let_through);
  CHECK_MESSAGE(100 * refused >= 95 * made, let_through);
  refusals.check();
  for (int kind = 0; kind < plan_mutants; ++kind) CHECK_MESSAGE(refused_of[kind] > 0, kind);
}
