// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/lowering/liveness.h"
#include "sim/prove/happens_before.h"
#include "sim/prove/prove.h"
#include "tests/prove/covered.h"
#include "tests/prove/hybrids.h"
#include "tests/prove/plan_mutants.h"

using namespace convoy;
using namespace convoy::lab;

TEST_CASE("proof: in parts, what an operation makes is not freed before its last reader") {
  int made = 0, refused = 0;
  std::string let_through;
  const auto free_at_once = [&](const std::string& model, const std::string& cluster,
                                const std::string& strategy, int batch, unsigned seed) {
    const lab::Experiment it(model, cluster, strategy, batch);
    Dice dice(seed);
    const Plan plan = plan_with_meaning(it);
    // An output's memory, freed with the operation that makes it and not with its last reader.
    for (int tries = 0; tries < 20; ++tries) {
      Plan wrong = plan;
      Role& role =
          wrong.roles[static_cast<std::size_t>(dice.between(0, static_cast<int>(wrong.roles.size()) - 1))];
      const std::vector<PlanOp*> ops = operations_of(role);
      if (ops.empty()) continue;
      const auto at = static_cast<std::size_t>(dice.between(0, static_cast<int>(ops.size()) - 1));
      const OpMeaning* means = meaning_in_graph(*wrong.meaning, *ops[at]);
      if (!means || it.graph().operations[means->operation].phase != Phase::forward ||
          ops[at]->allocates.empty())
        continue;
      const MemoryDelta freed =
          *std::max_element(ops[at]->allocates.begin(), ops[at]->allocates.end(),
                            [](const MemoryDelta& a, const MemoryDelta& b) { return a.bytes < b.bytes; });
      for (std::size_t last = at + 1; last < ops.size(); ++last) {
        std::vector<MemoryDelta>& frees = ops[last]->frees;
        const auto found = std::find_if(frees.begin(), frees.end(), [&](const MemoryDelta& of) {
          return of.bytes == freed.bytes && of.memory_class == freed.memory_class;
        });
        if (found == frees.end()) continue;
        if (!meaning_in_graph(*wrong.meaning, *ops[last]))
          break;  // it waits for messages, of which rule 17 is silent
        frees.erase(found);
        ops[at]->frees.push_back(freed);
        ++made;
        if (proof_of(it, wrong).outcome == Proof::Outcome::refuted)
          ++refused;
        else
          let_through += fmt::format("{} to {}: {}\n{}\n", ops[at]->name, ops[last]->name, strategy, model);
        return;
      }
    }
  };
  for (unsigned seed = 1; seed <= 15; ++seed) {
    for (const std::string kind : {"pardnn", "filter_parallel", "hypergraph"}) {
      Dice dice(seed + 41'000);
      const std::string network = splittable_network(dice, false);
      free_at_once(network, star(3, "1GB/s", "1us"),
                   fmt::format("{{kind: {}, micro_batches: {}}}", kind, dice.between(1, 2)), 4, seed);
    }
    for (int i = 0; i < 4; ++i) {
      Dice dice(seed + 42'000 + 100 * static_cast<unsigned>(i));
      const HybridExperiment of(dice);
      free_at_once(of.model, of.cluster, of.strategy, of.batch, seed);
    }
  }
  MESSAGE(refused << " of " << made << " refused; let through:\n" << let_through);
  CHECK(made >= 95);
  // The others hide behind what the rule does not count: gradients on their way, and tensors that are only sent.
  CHECK(100 * refused >= 80 * made);
}

TEST_CASE(
    "proof: by nodes, copies of others' channels stay for a data gradient that reads nothing else of them") {
  // A neighbour's channels, all of them, a factor made elsewhere, every second one through a view, and turned tokens.
  const std::vector<std::string> between{
      "{name: b, kind: local_response_norm, size: 5}", "{name: b, kind: tanh}, {name: c, kind: softmax}",
      "{name: b, kind: conv2d, out_channels: 8, kernel: 1}, {name: c, kind: multiply, inputs: [a, b]}",
      "{name: b, kind: slice, first: 0, last: 8, step: 2}, {name: c, kind: tanh}, {name: d, kind: conv2d, "
      "out_channels: 8, kernel: 1}",
      "{name: b, kind: channel_shuffle, groups: 2}, {name: c, kind: max_pool, kernel: 2}"};
  int sent = 0;
  for (const std::string& layers : between)
    for (const std::string how : {"method: even", "method: random, seed: 1", "method: random, seed: 2"}) {
      CAPTURE(layers);
      CAPTURE(how);
      const lab::Experiment it(
          fmt::format("{{name: net, input: [3, 8, 8], loss: cross_entropy, layers: [{{name: a, kind: conv2d, "
                      "out_channels: 8, kernel: 3, padding: 1}}, {}, {{name: flat, kind: flatten}}, {{name: "
                      "fc, kind: linear, out_features: 10}}]}}",
                      layers),
          star(3, "1GB/s", "1us"), fmt::format("{{kind: hypergraph, granularity: channel, {}}}", how), 4);
      const Plan plan = plan_with_meaning(it);
      sent += static_cast<int>(plan.communications.size());
      const Proof proof = proof_of(it, plan);
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    }
  CHECK(sent > 40);
}

// An average is not kept for the backward pass: where devices have unlike parts of it, those that have more of it than they read of
// the flattened one hold the smaller copy alone, and others the larger one.
TEST_CASE(
    "proof: in parts, a tensor that came flattened is held in the place of the device's own part [law]") {
  const std::string model =
      "{name: net, input: [3, 8, 8], loss: cross_entropy, layers: [{name: in, kind: conv2d, out_channels: "
      "10, "
      "kernel: 3, padding: 1}, {name: mean, kind: avg_pool, kernel: 2, stride: 2}, {name: flat, kind: "
      "flatten}, "
      "{name: fc1, kind: linear, out_features: 11}, {name: act, kind: relu}, {name: fc2, kind: linear, "
      "out_features: 7}]}";
  const auto holds_less = [](Plan plan) {  // of what comes
    for (Role& role : plan.roles)
      for (Task& task : role.program)
        for (PlanOp& op : task.ops)
          if (op.operation == PlanOp::of_plan && op.name.starts_with("buffers of mean"))
            for (MemoryDelta& memory : op.allocates) memory.bytes *= 0.9;
    return plan;
  };
  int smaller = 0;
  for (const std::string conv : {"batch", "filter", "height"})
    for (const std::string fc : {"batch", "filter", "channel", "pairs"})
      for (const int devices : {2, 3, 4}) {
        const std::string strategy = fmt::format("{{kind: hybrid, conv: {}, fc: {}}}", conv, fc);
        CAPTURE(strategy);
        CAPTURE(devices);
        const lab::Experiment it(model, star(devices, "1GB/s", "1us"), strategy, 12);
        const Plan plan = plan_with_meaning(it);
        const Proof proof = proof_of(it, plan);
        CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
        smaller += proof_of(it, holds_less(plan)).outcome == Proof::Outcome::refuted;
      }
  CHECK(smaller >= 24);
}

TEST_CASE("proof: in parts, gradients stay until their sum has come, and have room when they are made") {
  int made = 0;
  for (unsigned seed = 1; made < 12; ++seed) {
    Dice dice(seed + 43'000);
    const HybridExperiment of(dice);
    if (of.strategy.find("zero: 2") == std::string::npos && of.strategy.find("zero: 3") == std::string::npos)
      continue;
    const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
    const Plan plan = plan_with_meaning(it);
    CAPTURE(seed);
    CAPTURE(of.strategy);
    const auto prove_changed = [&](const auto& change) {
      Plan changed = plan;
      int changes = 0;
      for (Role& role : changed.roles)
        for (Task& task : role.program)
          for (PlanOp& op : task.ops) changes += change(role, task, op) ? 1 : 0;
      made += changes > 0;
      return changes == 0 ? Proof{Proof::Outcome::refuted} : proof_of(it, changed);
    };
    const Proof unchanged = proof_of(it, plan);
    CHECK_MESSAGE(unchanged.outcome == Proof::Outcome::proved, unchanged.text);
    CHECK(prove_changed(frees_gradients_early).outcome == Proof::Outcome::refuted);
    CHECK(prove_changed(makes_gradients_late).outcome == Proof::Outcome::refuted);
  }
}
