// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sim/base/input_error.h"
#include "sim/lowering/liveness.h"
#include "sim/prove/prove.h"
#include "tests/prove/covered.h"
#include "tests/prove/hybrids.h"
#include "tests/prove/plan_mutants.h"
#include "tests/support/recorded_texts.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// A shard's border one further on: of what devices do, or of what messages bring them.
std::string move_shard(Plan& plan, Dice& dice) {
  std::vector<PartLayout*> layouts;
  for (PartLayout& layout : plan.meaning->layouts)
    if (layout.size() > 1) layouts.push_back(&layout);
  for (int tries = 0; tries < 20 && !layouts.empty(); ++tries) {
    PartLayout& layout = *dice.one_of(layouts);
    Region& region = layout[static_cast<std::size_t>(dice.between(0, static_cast<int>(layout.size()) - 1))];
    std::vector<IndexRanges*> axes;
    for (IndexRanges* axis :
         {&region.images, &region.channels, &region.rows, &region.columns, &region.inputs})
      if (*axis && !(*axis)->empty()) axes.push_back(axis);
    if (axes.empty()) continue;
    IndexRanges& axis = *dice.one_of(axes);
    IndexRange& range =
        (*axis)[static_cast<std::size_t>(dice.between(0, static_cast<int>(axis->size()) - 1))];
    if (dice.coin())
      ++range.begin;
    else
      --range.end;
    if (range.begin >= range.end) std::erase(*axis, range);
    return "a border";
  }
  return "";
}

}  // namespace

TEST_CASE("proof: random hybrids, alone and as stages, with replicas, micro-batches, schemes and ZeRO") {
  std::map<std::string, int> kinds;
  for (unsigned seed = 1; seed <= 120; ++seed) {
    Dice dice(seed + 52'000);
    const HybridExperiment of(dice);
    CAPTURE(seed);
    CAPTURE(of.model);
    CAPTURE(of.strategy);
    CAPTURE(of.devices);
    const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
    const Proof proof = proof_of(it, plan_with_meaning(it));
    CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    ++kinds[of.conv], ++kinds["fc " + of.fc], ++kinds[of.stages > 1 ? "pipeline" : "alone"];
  }
  for (const auto& [kind, count] : kinds) CHECK_MESSAGE(count >= 1, kind);
  CHECK(kinds.size() == 14);
}

TEST_CASE(
    "proof: under ZeRO-3 a stage that recomputes sends its output after it has taken the next pass's "
    "buffers") {
  const std::string model =
      "{name: net, input: [3, 8, 8], layers: [{name: in, kind: conv2d, out_channels: 8, kernel: 3}, {name: "
      "pool, kind: adaptive_avg_pool}, {name: flat, kind: flatten}, {name: fc, kind: linear, out_features: "
      "10}]}";
  for (const int zero : {0, 2, 3})
    for (const char* recompute : {"never", "always"}) {
      CAPTURE(zero);
      CAPTURE(recompute);
      const lab::Experiment it(
          model, star(8, "1GB/s", "1us"),
          fmt::format("{{kind: pipeline, stages: 2, begins: [fc], micro_batches: 2, schedule: 1f1b, "
                      "recompute: {}, inner: "
                      "{{kind: hybrid, conv: height, fc: channel, replicas: 2, bucket: 3kB, overlap: false, "
                      "zero: {}}}}}",
                      recompute, zero),
          8);
      const Proof proof = proof_of(it, plan_with_meaning(it));
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    }
}

TEST_CASE("proof: what a hybrid's plan means costs the plan nothing") {
  Dice dice(1);
  const HybridExperiment of(dice);
  const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
  check_means_nothing_else(plan_with_meaning(it), it.plan());
}

TEST_CASE("proof: layers that read images by their channels hold these channels of them, and no others") {
  for (const int devices : {2, 3, 4})
    for (const int replicas : {1, 2})
      for (const std::string kind :
           {"conv2d, out_channels: 6, kernel: 3", "conv2d, out_channels: 6, kernel: 1"}) {
        CAPTURE(devices);
        CAPTURE(replicas);
        CAPTURE(kind);
        const lab::Experiment it(
            fmt::format("{{name: net, input: [5, 8, 8], layers: [{{name: in, kind: {}}}, {{name: act, kind: "
                        "relu}}, {{name: flat, kind: flatten}}, {{name: fc, kind: linear, out_features: "
                        "10}}]}}",
                        kind),
            star(devices * replicas, "1GB/s", "1us"),
            fmt::format("{{kind: hybrid, conv: channel, fc: replicated, replicas: {}}}", replicas), 4);
        Plan plan = plan_with_meaning(it);
        const Proof proof = proof_of(it, plan);
        CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);

        // One value of the images less than the first layer reads.
        const auto take_value = [&](std::vector<MemoryDelta>& deltas) {
          for (MemoryDelta& delta : deltas) {
            if (delta.memory_class != MemoryClass::activations) continue;
            delta.bytes -= 4;
            return true;
          }
          return false;
        };
        const std::vector<PlanOp*> ops = operations_of(plan.roles.front());
        const auto first =
            std::find_if(ops.begin(), ops.end(), [&](PlanOp* op) { return take_value(op->allocates); });
        REQUIRE(first != ops.end());
        REQUIRE(std::any_of(ops.rbegin(), ops.rend(), [&](PlanOp* op) { return take_value(op->frees); }));
        CHECK(proof_of(it, plan).outcome == Proof::Outcome::refuted);
      }
}

// Without messages both passes are one task.
TEST_CASE("proof: a stage of one device runs its forward pass again, and keeps nothing of the first") {
  for (const int micro_batches : {1, 2})
    for (const char* schedule : {"1f1b", "gpipe"}) {
      CAPTURE(micro_batches);
      CAPTURE(schedule);
      const lab::Experiment it(
          "{name: net, input: [3, 8, 8], layers: [{name: in, kind: conv2d, out_channels: 8, kernel: 3}, "
          "{name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}",
          star(1, "1GB/s", "1us"),
          fmt::format("{{kind: pipeline, micro_batches: {}, schedule: {}, recompute: always, inner: {{kind: "
                      "hybrid, conv: filter, fc: filter}}}}",
                      micro_batches, schedule),
          4);
      const Proof proof = proof_of(it, plan_with_meaning(it));
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    }
}

TEST_CASE("proof: networks of the zoo as hybrids") {
  for (const auto& [model, strategy] : std::vector<std::pair<std::string, std::string>>{
           {"alexnet", "{kind: hybrid, conv: batch, fc: filter, scheme: b}"},
           {"vgg16", "{kind: hybrid, conv: {height: 2, width: 2}, fc: pairs}"},
           {"resnet18", "{kind: hybrid, conv: height, fc: replicated, replicas: 2}"},
           {"resnet18", "{kind: hybrid, conv: pairs, fc: channel, micro_batches: 2, zero: 3}"},
           {"mobilenet_v2", "{kind: hybrid, conv: filter, fc: filter}"},
           {"shufflenet_v2_x1_0", "{kind: hybrid, conv: filter, fc: replicated}"},
           {"vit_b_16", "{kind: hybrid, fc: pairs, replicas: 2}"},
           {"resnet18",
            "{kind: pipeline, stages: 2, micro_batches: 2, recompute: always, inner: {kind: hybrid, conv: "
            "width, "
            "fc: replicated}}"}}) {
    CAPTURE(model);
    CAPTURE(strategy);
    const lab::Experiment it("{name: " + model + "}", star(4, "10GB/s", "1us"), strategy, 4);
    const Proof proof = proof_of(it, plan_with_meaning(it));
    CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
  }
}

TEST_CASE("proof: hybrids that recompute segments, and their exchanges with them") {
  for (const Recomputation how : {Recomputation::blocks, Recomputation::sqrt})
    for (const std::string strategy : {"{kind: hybrid, conv: height, fc: replicated}",
                                       "{kind: hybrid, conv: pairs, fc: filter, replicas: 2}",
                                       "{kind: hybrid, conv: batch, fc: channel, zero: 3}"}) {
      TrainingOptions options;
      options.recompute = how;
      CAPTURE(strategy);
      const lab::Experiment it = lab::Experiment::with_global_batch(
          "{name: resnet18}", star(4, "10GB/s", "1us"), strategy, 16, options);
      const Proof proof = proof_of(it, plan_with_meaning(it));
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    }
}

TEST_CASE(
    "proof: devices that sum their gradients with those that have another part of the filters are refused") {
  const lab::Experiment it("{name: alexnet}", star(4, "10GB/s", "1us"),
                           "{kind: hybrid, conv: filter, fc: filter, replicas: 2}", 4);
  Plan plan = plan_with_meaning(it);
  std::size_t exchanged = 0;
  for (const Communication& comm : plan.communications) {
    if (plan.meaning->communications[comm.meaning].kind != CommMeaning::Kind::sum) continue;
    std::vector<std::vector<EndpointId>>& groups = plan.patterns[comm.pattern].groups;
    if (exchanged++ == 0) std::swap(groups.at(0).back(), groups.at(1).back());
  }
  REQUIRE(exchanged > 0);
  const Proof proof = proof_of(it, plan);
  CHECK(proof.outcome == Proof::Outcome::refuted);
  CHECK_MESSAGE(proof.text.find("of which they have other parts") != std::string::npos, proof.text);
}

TEST_CASE("proof: of 200 hybrids with a mistake, at least 95 of 100 are refused") {
  const std::vector<PlanMutant> of_plans{
      PlanMutant::message_dropped,   PlanMutant::send_dropped,      PlanMutant::round_too_few,
      PlanMutant::bucket_twice,      PlanMutant::tensor_twice,      PlanMutant::gradient_lost,
      PlanMutant::result_lost,       PlanMutant::operation_dropped, PlanMutant::wait_removed,
      PlanMutant::border_off_by_one, PlanMutant::bytes_off_by_one,  PlanMutant::micro_batch_twice,
      PlanMutant::update_dropped,    PlanMutant::work_changed};
  int made = 0, refused = 0;
  std::string let_through;
  RecordedTexts refusals(CONVOY_SOURCE, "proof-of-hybrids");
  std::map<int, int> made_of, refused_of;
  for (unsigned seed = 1; made < 200 && seed < 600; ++seed) {
    Dice dice(seed + 91'000);
    const HybridExperiment of(dice);
    const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
    Plan plan = plan_with_meaning(it);
    const double images = images_asked_for(it, plan);
    plan.meaning = std::make_shared<Meaning>(*plan.meaning);
    std::vector<int> kinds(of_plans.size() + 1);
    std::iota(kinds.begin(), kinds.end(), 0);
    std::stable_sort(kinds.begin(), kinds.end(), [&](int a, int b) { return made_of[a] < made_of[b]; });
    std::string what;
    int kind = 0;
    for (std::size_t i = 0; i < kinds.size() && what.empty(); ++i) {
      const auto own = static_cast<std::size_t>(kind = kinds[i]);
      what = own < of_plans.size() ? change(plan, it.graph(), of_plans[own], dice) : move_shard(plan, dice);
    }
    if (what.empty()) continue;
    // Results that are exchanged again are the same as before.
    if (static_cast<std::size_t>(kind) < of_plans.size() &&
        of_plans[static_cast<std::size_t>(kind)] == PlanMutant::bucket_twice &&
        plan.meaning->communications[plan.communications.back().meaning].bucket == no_meaning)
      continue;
    ++made, ++made_of[kind];
    const Proof proof = prove_plan(plan, it.report(), it.graph(), it.machine(), images);
    if (proof.outcome != Proof::Outcome::proved) {
      refusals.add(fmt::format("{}, {}", seed, what), proof.text);
      ++refused, ++refused_of[kind];
      continue;
    }
    let_through += fmt::format("seed {}, mutant {}, {}: {}\n", seed, kind, what, of.strategy);
  }
  MESSAGE(refused << " of " << made << " mutants refused; let through:\n" << let_through);
  CHECK(made >= 150);
  CHECK_MESSAGE(100 * refused >= 95 * made, let_through);
  refusals.check();
  for (const auto& [kind, count] : made_of) CHECK_MESSAGE(refused_of[kind] > 0, kind);
}
