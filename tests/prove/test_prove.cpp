// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "sim/prove/prove.h"
#include "tests/laws/strategy_rows.h"
#include "tests/prove/covered.h"
#include "tests/prove/plan_mutants.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

Proof prove_experiment_plan(const lab::Experiment& it) {
  const Plan plan = plan_with_meaning(it);
  return prove_plan(plan, it.report(), it.graph(), it.machine(), images_asked_for(it, plan));
}

bool are_same(const std::vector<MemoryDelta>& a, const std::vector<MemoryDelta>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const MemoryDelta& x, const MemoryDelta& y) {
    return x.memory_class == y.memory_class && x.bytes == y.bytes;
  });
}

}  // namespace

TEST_CASE("proof: random replicas and pipelines, with sharded states, compression and recomputation") {
  for (unsigned seed = 1; seed <= 120; ++seed) {
    Dice dice(seed);
    const CoveredExperiment of(dice);
    CAPTURE(seed);
    CAPTURE(of.model);
    CAPTURE(of.cluster);
    CAPTURE(of.strategy);
    const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
    const Proof proof = prove_experiment_plan(it);
    CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    CHECK(proof.tasks > 0);
  }
}

TEST_CASE("proof: plans of every strategy are proved") {
  for (const StrategyRow& row : strategy_rows())
    for (unsigned seed = 1; seed <= fabrics().size(); ++seed) {
      Dice dice(seed + 4000);
      const std::string model = random_model(dice);
      const RandomCluster cluster = random_cluster(dice, fabrics()[seed % fabrics().size()]);
      const lab::Experiment plain(model, cluster.text(), "{kind: single}", 4);
      const auto devices = static_cast<int>(plain.machine().devices.size());
      const std::string strategy = row.strategy(
          dice, {devices / cluster.devices, devices, static_cast<int>(plain.graph().model.layers.size())});
      CAPTURE(row.name);
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(cluster.text());
      CAPTURE(strategy);
      const int all = 4 * devices;
      const lab::Experiment it =
          row.global_batch ? lab::Experiment::with_global_batch(model, cluster.text(), strategy, all)
                           : lab::Experiment(model, cluster.text(), strategy, 4);
      const Proof proof = prove_experiment_plan(it);
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    }
}

TEST_CASE("proof: a plan that says what it means is otherwise the same plan") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Dice dice(seed + 900);
    const CoveredExperiment of(dice);
    CAPTURE(seed);
    const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
    const Plan& plain = it.plan();
    const Plan told = plan_with_meaning(it);
    CHECK_FALSE(plain.meaning);
    REQUIRE(told.meaning);
    REQUIRE(told.roles.size() == plain.roles.size());
    for (std::size_t r = 0; r < plain.roles.size(); ++r) {
      REQUIRE(told.roles[r].program.size() == plain.roles[r].program.size());
      for (std::size_t t = 0; t < plain.roles[r].program.size(); ++t) {
        const Task &a = plain.roles[r].program[t], &b = told.roles[r].program[t];
        CHECK(a.name == b.name);
        CHECK(a.after == b.after);
        CHECK(a.kind == b.kind);
        CHECK(a.stream == b.stream);
        CHECK(a.comm == b.comm);
        REQUIRE(a.ops.size() == b.ops.size());
        for (std::size_t i = 0; i < a.ops.size(); ++i) {
          const PlanOp &of_a = a.ops[i], &of_b = b.ops[i];
          CHECK(of_a.name == of_b.name);
          CHECK(of_a.work == of_b.work);
          CHECK(of_a.images == of_b.images);
          CHECK(of_a.operation == of_b.operation);
          CHECK(are_same(of_a.allocates, of_b.allocates));
          CHECK(are_same(of_a.frees, of_b.frees));
          CHECK(of_a.meaning == no_meaning);
        }
      }
      CHECK(told.roles[r].members == plain.roles[r].members);
      CHECK(told.roles[r].resident_bytes == plain.roles[r].resident_bytes);
    }
    REQUIRE(told.communications.size() == plain.communications.size());
    for (std::size_t c = 0; c < plain.communications.size(); ++c) {
      const Communication &a = plain.communications[c], &b = told.communications[c];
      CHECK(a.name == b.name);
      CHECK(a.bytes == b.bytes);
      CHECK(a.pattern == b.pattern);
      CHECK(a.overhead_s == b.overhead_s);
    }
    REQUIRE(told.patterns.size() == plain.patterns.size());
    for (std::size_t p = 0; p < plain.patterns.size(); ++p) {
      CHECK(told.patterns[p].groups == plain.patterns[p].groups);
      CHECK(told.patterns[p].rounds == plain.patterns[p].rounds);
    }
  }
}

TEST_CASE(
    "proof: shares of states in pipelines that are never flushed, and no pass before they are gathered") {
  for (const std::string weights : {"stash", "double_buffered"}) {
    CAPTURE(weights);
    Dice dice(7);
    const lab::Experiment it(
        blocks(dice, 2), star(4, "1GB/s", "1us"),
        "{kind: pipeline, stages: 2, replicas: 2, micro_batches: 4, weights: " + weights +
            ", inner: {kind: data_parallel, sync: all_reduce, zero: 1, bucket: 2kB}}",
        48);
    Plan plan = plan_with_meaning(it);
    const double images = images_asked_for(it, plan);
    const auto proof = [&] { return prove_plan(plan, it.report(), it.graph(), it.machine(), images); };
    CHECK_MESSAGE(proof().outcome == Proof::Outcome::proved, proof().text);
    int removed = 0;
    for (Role& role : plan.roles)
      for (Task& task : role.program)
        removed += static_cast<int>(std::erase_if(task.after, [&](TaskId before) {
          const Task& of = role.program[before];
          return task.kind == Task::Kind::compute && of.kind == Task::Kind::collective &&
                 plan.meaning->communications[plan.communications[of.comm].meaning].kind ==
                     CommMeaning::Kind::gather_parameters;
        }));
    CHECK(removed > 0);
    CHECK(proof().outcome == Proof::Outcome::refuted);
    CHECK_MESSAGE(proof().text.find("does not wait for") != std::string::npos, proof().text);
  }
}

TEST_CASE("proof: unequal shares of the images, dealt out by speed") {
  Dice dice(1);
  const lab::Experiment it(blocks(dice, 2), star(5, "1GB/s", "1us", ", speed_spread: 0.4"),
                           "{kind: data_parallel, sync: all_reduce, shares: speed}", 16);
  const Proof proof = prove_experiment_plan(it);
  CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
}

TEST_CASE("proof: networks whose stages get parts of other stages' tensors") {
  for (const std::string model : {"unet", "shufflenet_v2_x1_0"})
    for (const std::string more :
         {"schedule: gpipe", "schedule: 1f1b, recompute: always", "weights: stash"}) {
      CAPTURE(model);
      CAPTURE(more);
      const lab::Experiment it("{name: " + model + "}", star(4, "10GB/s", "1us"),
                               "{kind: pipeline, stages: 4, micro_batches: 4, " + more + "}", 8);
      const Proof proof = prove_experiment_plan(it);
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    }
}

TEST_CASE("proof: of how many images a normalization is, the proof says") {
  const std::string model =
      "{name: net, input: [3, 8, 8], layers: [{name: conv, kind: conv2d, out_channels: 8, kernel: 3}, {name: "
      "bn, kind: batch_norm}, {name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}";
  const auto allowed = [&](int devices, const std::string& strategy) {
    const lab::Experiment it(model, star(devices, "10GB/s", "1us"), strategy, 8);
    return prove_experiment_plan(it).allowed;
  };
  CHECK(allowed(1, "{kind: single}") == "");
  CHECK(allowed(1, "{kind: single, micro_batches: 4}") == "batch normalization over 2 images at a time");
  CHECK(allowed(4, "{kind: data_parallel, sync: all_reduce}") ==
        "batch normalization over 8 images at a time");
}

TEST_CASE("proof: a plan that no engine begins is refuted, though each of its comparisons holds") {
  const auto refuted = [](const std::string& strategy, const auto& change) {
    const lab::Experiment it(
        "{name: net, input: [3, 8, 8], layers: [{name: conv, kind: conv2d, out_channels: 8, kernel: 3}, "
        "{name: "
        "flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}",
        star(4, "10GB/s", "1us"), strategy, 8);
    Plan plan = plan_with_meaning(it);
    change(plan);
    return prove_plan(plan, it.report(), it.graph(), it.machine(), images_asked_for(it, plan)).text;
  };
  // 0 bytes, shared out among its parts by their bytes over the sum: no number is less or more.
  CHECK(refuted("{kind: filter_parallel}", [](Plan& plan) {
          for (Communication& message : plan.communications) message.bytes = 0;
          for (Pattern& pattern : plan.patterns)
            for (double& fraction : pattern.rounds.front().fractions) fraction = INFINITY;
        }).find("carries the fraction inf") != std::string::npos);
  CHECK(refuted("{kind: data_parallel, sync: gossip}", [](Plan& plan) {
          for (Pattern& pattern : plan.patterns)
            for (auto& [from, to] : pattern.rounds.front().pairs) to = from;
        }) != "");
  CHECK(refuted("{kind: data_parallel, sync: all_reduce}", [](Plan& plan) {
          plan.communications.front().overhead_s = -1;
        }).find("overhead") != std::string::npos);
}

TEST_CASE("proof: sizes that are no numbers, and messages from a device to itself, are refuted in any plan") {
  int made = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Dice dice(seed + 60'000);
    const CoveredExperiment of(dice);
    const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
    Plan plan = plan_with_meaning(it);
    const double images = images_asked_for(it, plan);
    std::vector<double*> bytes, overheads, fractions, images_of_ops, allocations, residents;
    std::vector<std::pair<std::uint32_t, std::uint32_t>*> pairs;
    for (Communication& comm : plan.communications) {
      bytes.push_back(&comm.bytes);
      overheads.push_back(&comm.overhead_s);
    }
    for (Pattern& pattern : plan.patterns)
      for (Round& round : pattern.rounds) {
        for (double& fraction : round.fractions) fractions.push_back(&fraction);
        for (auto& pair : round.pairs) pairs.push_back(&pair);
      }
    for (Role& role : plan.roles) {
      for (double& held : role.resident_bytes) residents.push_back(&held);
      for (Task& task : role.program)
        for (PlanOp& op : task.ops) {
          images_of_ops.push_back(&op.images);
          for (MemoryDelta& delta : op.allocates) allocations.push_back(&delta.bytes);
        }
    }
    const std::vector<std::vector<double*>> kinds{bytes,         overheads,   fractions,
                                                  images_of_ops, allocations, residents};
    const int kind = dice.between(0, static_cast<int>(kinds.size()));
    const bool is_to_itself = kind == static_cast<int>(kinds.size());
    if (is_to_itself ? pairs.empty() : kinds[static_cast<std::size_t>(kind)].empty()) continue;
    if (is_to_itself) {
      auto& [from, to] = *dice.one_of(pairs);
      to = from;
    } else {
      *dice.one_of(kinds[static_cast<std::size_t>(kind)]) =
          dice.one_of<double>({std::nan(""), INFINITY, -INFINITY, -1.0});
    }
    CAPTURE(seed);
    CAPTURE(kind);
    ++made;
    const Proof proof = prove_plan(plan, it.report(), it.graph(), it.machine(), images);
    CHECK_MESSAGE(proof.outcome == Proof::Outcome::refuted, proof.text);
  }
  CHECK(made >= 45);
}

TEST_CASE(
    "proof: gradients that are freed while they are summed, or made before there is room, are refuted") {
  for (const int zero : {2, 3})
    for (const bool overlaps : {false, true}) {
      CAPTURE(zero);
      CAPTURE(overlaps);
      Dice dice(3);
      const lab::Experiment it(
          blocks(dice, 2), star(4, "1GB/s", "1us"),
          fmt::format("{{kind: data_parallel, sync: all_reduce, bucket: 2kB, overlap: {}, zero: {}}}",
                      overlaps, zero),
          8);
      const Plan plan = plan_with_meaning(it);
      const auto prove_changed = [&](const auto& change) {
        Plan changed = plan;
        int made = 0;
        Role& role = changed.roles.front();
        for (Task& task : role.program)
          for (PlanOp& op : task.ops) made += change(role, task, op) ? 1 : 0;
        CHECK(made > 0);
        return prove_plan(changed, it.report(), it.graph(), it.machine(), images_asked_for(it, changed));
      };
      const Proof unchanged = prove_changed([](auto&...) { return true; });
      CHECK_MESSAGE(unchanged.outcome == Proof::Outcome::proved, unchanged.text);
      CHECK(prove_changed(frees_gradients_early).outcome == Proof::Outcome::refuted);
      CHECK(prove_changed(makes_gradients_late).outcome == Proof::Outcome::refuted);
    }
}

TEST_CASE("proof: 1,024 devices") {
  const lab::Experiment it(
      "{name: net, input: [3, 8, 8], layers: [{name: conv, kind: conv2d, out_channels: 8, "
      "kernel: 3}, {name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}",
      star(1024, "10GB/s", "1us"), "{kind: data_parallel, sync: all_reduce, algorithm: ring}", 4);
  const Proof proof = prove_experiment_plan(it);
  CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
}
