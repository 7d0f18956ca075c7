// SPDX-License-Identifier: MIT
#include "sim/prove/prove.h"

#include "sim/prove/happens_before.h"
#include "sim/prove/prove_gradients.h"
#include "sim/prove/prove_memory.h"
#include "sim/prove/prove_results.h"
#include "sim/prove/prove_rounds.h"

namespace convoy::inline prove {
namespace {

void check_all(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph, const Machine& machine) {
  if (!plan.meaning) throw NotCovered("the strategy does not say yet what its tasks read and write");
  if (plan.service()) throw NotCovered("workers have no common step");
  const HappensBefore order(plan);
  RoundRules rounds(plan, machine);
  prove_results(plan, graph, machine, order, rounds);
  prove_gradients(plan, report, graph, machine, order, rounds);
  prove_memory(plan, graph, machine);
}

}  // namespace

Proof prove_plan(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph, const Machine& machine) {
  Proof proof;
  for (const Role& role : plan.roles) proof.tasks += role.program.size();
  try {
    check_all(plan, report, graph, machine);
  } catch (const Refuted& refuted) {
    proof.outcome = Proof::Outcome::refuted;
    proof.text = refuted.what();
  } catch (const NotCovered& not_covered) {
    proof.outcome = Proof::Outcome::not_covered;
    proof.text = not_covered.what();
  }
  return proof;
}

}  // namespace convoy::prove
