// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "sim/prove/box.h"
#include "sim/prove/layer_maps.h"
#include "sim/prove/prove.h"
#include "tests/prove/covered.h"
#include "tests/prove/plan_mutants.h"
#include "tests/support/recorded_texts.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// Convolutions, dense and grouped, with what comes between them, ways side by side, and a loss or none.
std::string network(Dice& dice) {
  std::string layers;
  const auto add = [&](const std::string& keys) { layers += fmt::format("{{{}}}, ", keys); };
  add("name: in, kind: conv2d, out_channels: 8, kernel: 3, padding: 1");
  std::string last = "in";
  for (int block = 0, blocks = dice.between(1, 3); block < blocks; ++block) {
    if (dice.coin()) add(fmt::format("name: bn{}, kind: batch_norm", block));
    add(fmt::format("name: relu{}, kind: relu", block));
    if (dice.coin()) {
      add(fmt::format("name: left{0}, kind: conv2d, out_channels: 8, kernel: 1, inputs: [relu{0}]", block));
      add(
          fmt::format("name: right{0}, kind: conv2d, out_channels: 8, kernel: 3, padding: 1, inputs: "
                      "[relu{0}]",
                      block));
      const std::string third = dice.coin() ? fmt::format(", relu{}", block) : "";
      add(fmt::format("name: sum{0}, kind: add, inputs: [left{0}, right{0}{1}]", block, third));
    } else {
      add(fmt::format("name: conv{}, kind: conv2d, out_channels: 8, kernel: 3, padding: 1, groups: {}", block,
                      dice.one_of<int>({1, 1, 2, 8})));
    }
  }
  if (dice.coin()) add("name: pool, kind: max_pool, kernel: 2, stride: 2");
  add("name: flat, kind: flatten");
  add("name: fc, kind: linear, out_features: 10");
  return fmt::format("{{name: net, input: [3, 8, 8]{}, layers: [{}]}}",
                     dice.coin() ? ", loss: cross_entropy" : "", layers);
}

const std::vector<std::string> kinds{"pardnn", "filter_parallel", "hypergraph"};
/// Each alone, and with replicas.
const std::vector<std::pair<std::string, bool>> in_parts{
    {"pardnn", false}, {"filter_parallel", false}, {"hypergraph", false},
    {"pardnn", true},  {"filter_parallel", true},  {"hypergraph", true}};

/// How replicas of placed work sum their gradients.
std::string sums(Dice& dice) {
  const std::string how = dice.one_of<std::string>({"", "", ", zero: 1", ", compression: fp16",
                                                    ", compression: {kind: top_k, ratio: 0.1}",
                                                    ", compression: {kind: powersgd, rank: 1}"});
  return fmt::format("{{kind: data_parallel, sync: all_reduce, bucket: {}kB, overlap: {}{}}}",
                     dice.one_of<int>({1, 3, 300}), dice.coin(), how);
}

struct PartsExperiment {
  std::string model, cluster, strategy;
  int batch;
  PartsExperiment(Dice& dice, const std::string& kind, bool is_replicated = false) {
    model = network(dice);
    const int replicas = is_replicated ? dice.between(2, 3) : 1;
    const int devices = dice.between(2, 5) * replicas;
    cluster = star(devices, "1GB/s", "1us");
    batch = 4;
    std::string more;
    if (is_replicated) {
      RandomCluster of;
      of.fabric = dice.one_of<std::string>({"switch", "switch, protocol: tcp"});  // tcp: copies
      of.bandwidth_Bps = 1e9, of.latency_s = 1e-6;
      of.nodes = fmt::format("[{{name: n, count: {}, server: box{}}}]", devices,
                             dice.coin() ? "" : ", speed_spread: 0.2");
      cluster = of.text();
      more = fmt::format(", replicas: {}", replicas);
      if (dice.coin()) more += ", inner: " + sums(dice);
    }
    more += fmt::format(", micro_batches: {}", dice.one_of<int>({1, 2, 4}));
    if (kind == "filter_parallel")
      more += fmt::format(", overlap: {}, shares: {}, broadcast: {}", dice.coin(),
                          dice.one_of<std::string>({"equal", "probed"}),
                          dice.one_of<std::string>({"direct", "scatter_allgather"}));
    if (kind == "hypergraph")
      more += fmt::format(", granularity: {}, method: {}", dice.one_of<std::string>({"auto", "channel", "2"}),
                          dice.one_of<std::string>({"hypergraph", "even", "random", "layerwise"}));
    if (kind == "pardnn")
      more += fmt::format(
          ", method: {}",
          dice.one_of<std::string>({"pardnn", "pardnn_published", "linear_clustering", "heft", "cpop", "etf",
                                    "sct", "metis", "dfs", "random", "round_robin", "best"}));
    strategy = fmt::format("{{kind: {}{}}}", kind, more);
  }
};

std::vector<std::int64_t> widths(const std::vector<IndexRange>& ranges) {
  std::vector<std::int64_t> widths;
  for (const IndexRange& range : ranges) widths.push_back(range.end - range.begin);
  return widths;
}

/// The channels of a device's part, or its images where these are what is shared out; nullptr for all of both.
std::vector<IndexRange>* shared_out(Region& region) {
  if (region.channels) return &*region.channels;
  return region.images ? &*region.images : nullptr;
}

/// What a plan says of the channels or images of its devices: a border off by one, or two devices exchanged.
std::string change_layout(Plan& plan, Dice& dice) {
  std::vector<PartLayout*> layouts;
  for (PartLayout& layout : plan.meaning->layouts)
    if (layout.size() > 1) layouts.push_back(&layout);
  for (int tries = 0; tries < 20 && !layouts.empty(); ++tries) {
    PartLayout& layout = *dice.one_of(layouts);
    const auto a = static_cast<std::size_t>(dice.between(0, static_cast<int>(layout.size()) - 1));
    const auto b = static_cast<std::size_t>(dice.between(0, static_cast<int>(layout.size()) - 1));
    std::vector<IndexRange>* const ranges = shared_out(layout[a]);
    const std::vector<IndexRange>* const others = shared_out(layout[b]);
    if (!ranges || !others) continue;
    if (dice.coin()) {
      if (ranges->empty() || ranges->front().end - ranges->front().begin < 2) continue;
      ++ranges->front().begin;
      return fmt::format("border of device {}", a);
    }
    // Of two that have equally many, either may have the one or the other.
    if (widths(*ranges) == widths(*others)) continue;
    std::swap(layout[a], layout[b]);
    return fmt::format("devices {} and {}", a, b);
  }
  return "";
}

std::string lose_addition(Plan& plan, Dice& dice) {
  std::vector<PlanOp*> found;
  for (Role& role : plan.roles)
    for (Task& task : role.program)
      for (PlanOp& op : task.ops)
        if (op.meaning != no_meaning && plan.meaning->operations[op.meaning].act == OpMeaning::Act::add)
          found.push_back(&op);
  if (found.empty()) return "";
  PlanOp* op = dice.one_of(found);
  op->meaning = no_meaning;
  return op->name;
}

}  // namespace

TEST_CASE("boxes: intersections and differences have the elements that they should have") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const auto box = [&] {
      Box made;
      for (std::size_t axis = 0; axis < Box::axes; ++axis) {
        std::vector<std::int64_t> indices;
        for (std::int64_t i = 0; i < 3; ++i)
          if (dice.between(0, 2) > 0) indices.push_back(i);
        made.of[axis] = set_of(indices);
      }
      return made;
    };
    const Box a = box(), b = box();
    const std::vector<Box> left = difference(a, b);
    const auto has = [](const Box& of, const std::array<std::int64_t, Box::axes>& at) {
      for (std::size_t axis = 0; axis < Box::axes; ++axis)
        if (!contains(of.of[axis], at[axis])) return false;
      return true;
    };
    double volume = 0;
    for (int i = 0; i < 243; ++i) {
      const std::array<std::int64_t, Box::axes> at{i % 3, i / 3 % 3, i / 9 % 3, i / 27 % 3, i / 81};
      volume += has(a, at);
      CHECK(has(intersection(a, b), at) == (has(a, at) && has(b, at)));
      const auto times =
          std::count_if(left.begin(), left.end(), [&](const Box& part) { return has(part, at); });
      CHECK(times == (has(a, at) && !has(b, at) ? 1 : 0));
    }
    CHECK(a.volume() == volume);
  }
}

TEST_CASE("parts of layers: what a part reads, and who reads a part, by hand") {
  const lab::Experiment it(
      "{name: net, input: [4, 9, 9], layers: [{name: a, kind: conv2d, out_channels: 6, kernel: 3, stride: "
      "2}, "
      "{name: g, kind: conv2d, out_channels: 4, kernel: 1, groups: 2}, {name: flat, kind: flatten}, {name: "
      "fc, "
      "kind: linear, out_features: 2}]}",
      star(2, "1GB/s", "1us"), "{kind: single}", 2);
  const LayerMaps maps(it.graph(), 2);
  Box work = maps.work(0);
  CHECK(count(work[Box::inputs]) == 4);
  work[Box::rows] = {{1, 3}};
  work[Box::inputs] = {{2, 3}};
  const Box read = maps.read(0, 0, work);  // rows 2 r to 2 r + 2
  CHECK(read[Box::rows] == IndexSet{{2, 7}});
  CHECK(read[Box::channels] == IndexSet{{2, 3}});
  Box elements = maps.image_tensor();
  elements[Box::rows] = {{4, 5}};  // in the windows of rows 1 (2 to 4) and 2 (4 to 6)
  CHECK(maps.readers(0, 0, elements)[Box::rows] == IndexSet{{1, 3}});
  Box group = maps.work(1);
  group[Box::channels] = {{3, 4}};
  CHECK(maps.read(1, 0, group)[Box::channels] == IndexSet{{3, 6}});
  Box flat = maps.work(2);
  flat[Box::channels] = {{16, 33}};  // 16 positions a channel: all of 1, the first of 2
  CHECK(maps.read(2, 0, flat)[Box::channels] == IndexSet{{1, 3}});
  CHECK(maps.handed_on(2, 0, flat)[Box::channels] == IndexSet{{1, 2}});
}

TEST_CASE("proof: random networks in parts: operation by operation, by filters, by nodes") {
  for (const auto& [kind, is_replicated] : in_parts)
    for (unsigned seed = 1; seed <= 40; ++seed) {
      Dice dice(seed + 7000);
      const PartsExperiment of(dice, kind, is_replicated);
      CAPTURE(seed);
      CAPTURE(of.model);
      CAPTURE(of.strategy);
      const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
      const Plan plan = plan_with_meaning(it);
      const Proof proof = proof_of(it, plan);
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
      check_means_nothing_else(plan, it.plan());
    }
}

TEST_CASE("proof: a network whose first layer is a view of the image, in parts") {
  for (const std::string kind : {"pardnn", "pardnn, method: random", "pardnn, method: round_robin",
                                 "pardnn, method: dfs", "filter_parallel", "hypergraph"}) {
    CAPTURE(kind);
    const lab::Experiment it(
        "{name: net, input: [1, 8, 8], layers: [{name: flat, kind: flatten}, {name: a, kind: linear, "
        "out_features: 16}, {name: b, kind: relu}, {name: c, kind: linear, out_features: 10}]}",
        star(4, "1GB/s", "1us"), "{kind: " + kind + "}", 8);
    const Proof proof = proof_of(it, plan_with_meaning(it));
    CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
  }
}

TEST_CASE("proof: a view of the image by nodes: each part has its own pixels and gets the others") {
  int sent = 0;
  for (const char* views : {"{name: flat, kind: flatten}",
                            "{name: flat, kind: flatten}, {name: half, kind: slice, first: 8, last: 40}"}) {
    CAPTURE(views);
    const lab::Experiment it(fmt::format("{{name: net, input: [1, 8, 8], layers: [{}, {{name: a, kind: "
                                         "linear, out_features: 16}}, {{name: "
                                         "b, kind: relu}}, {{name: c, kind: linear, out_features: 10}}]}}",
                                         views),
                             star(4, "1GB/s", "1us"), "{kind: hypergraph, method: even}", 8);
    const Plan plan = plan_with_meaning(it);
    const Proof proof = proof_of(it, plan);
    CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    for (std::size_t c = 0; c < plan.communications.size(); ++c) {
      const CommMeaning& carries = plan.meaning->communications[plan.communications[c].meaning];
      if (carries.results.front().operation != no_meaning) continue;
      ++sent;
      Plan wrong = plan;  // one part gets nothing
      wrong.patterns.push_back(wrong.patterns[wrong.communications[c].pattern]);
      wrong.patterns.back().rounds[0].pairs.pop_back();
      if (wrong.patterns.back().rounds[0].fractions.size() > 1)
        wrong.patterns.back().rounds[0].fractions.pop_back();
      wrong.communications[c].pattern = static_cast<std::uint32_t>(wrong.patterns.size() - 1);
      CHECK(proof_of(it, wrong).outcome == Proof::Outcome::refuted);
    }
    Plan wrong = plan;  // the first part has fewer pixels than it sends
    wrong.meaning = std::make_shared<Meaning>(*plan.meaning);
    PartLayout& layout =
        wrong.meaning->layouts.emplace_back(wrong.meaning->layouts[wrong.meaning->image_views[0].layout]);
    --layout[0].channels->back().end;
    wrong.meaning->image_views[0].layout = static_cast<std::uint32_t>(wrong.meaning->layouts.size() - 1);
    CHECK(proof_of(it, wrong).outcome == Proof::Outcome::refuted);
  }
  CHECK(sent >= 2);
}

TEST_CASE("proof: networks with ways side by side, in parts") {
  for (const std::string model : {"resnet18", "shufflenet_v2_x1_0", "mobilenet_v2"})
    for (const std::string& kind : kinds) {
      CAPTURE(model);
      CAPTURE(kind);
      const lab::Experiment it("{name: " + model + "}", star(3, "10GB/s", "1us"), "{kind: " + kind + "}", 2);
      const Proof proof = proof_of(it, plan_with_meaning(it));
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    }
}

// Nodes dealt out at random: nearly every part reads nodes of every other one, in messages that some parts get
// before others have sent theirs.
TEST_CASE("proof: residual networks by nodes, however they are dealt out") {
  for (const std::string model : {"resnet18", "resnet50"})
    for (const std::string method : {"hypergraph", "layerwise", "even", "random"}) {
      CAPTURE(model);
      CAPTURE(method);
      const lab::Experiment it("{name: " + model + "}", star(4, "10GB/s", "1us"),
                               "{kind: hypergraph, micro_batches: 2, method: " + method + "}", 4);
      const Proof proof = proof_of(it, plan_with_meaning(it));
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    }
}

TEST_CASE(
    "proof: of plans in parts with a mistake, at least 95 of 100 are refused, of each strategy, alone and "
    "with "
    "replicas") {
  const std::vector<PlanMutant> of_plans{
      PlanMutant::message_dropped,   PlanMutant::send_dropped,      PlanMutant::result_lost,
      PlanMutant::operation_dropped, PlanMutant::wait_removed,      PlanMutant::border_off_by_one,
      PlanMutant::bytes_off_by_one,  PlanMutant::micro_batch_twice, PlanMutant::update_dropped,
      PlanMutant::one_image_less,    PlanMutant::work_changed};
  std::vector<PlanMutant> of_sums = of_plans;  // where replicas sum their gradients, too
  for (const PlanMutant mutant :
       {PlanMutant::round_too_few, PlanMutant::bucket_twice, PlanMutant::tensor_twice,
        PlanMutant::gradient_lost, PlanMutant::lanes_swapped, PlanMutant::copies_swapped})
    of_sums.push_back(mutant);
  RecordedTexts refusals(CONVOY_SOURCE, "proof-of-parts");
  for (const auto& [kind, is_replicated] : in_parts) {
    const std::vector<PlanMutant>& all = is_replicated ? of_sums : of_plans;
    int made = 0, refused = 0;
    std::map<int, int> made_of, refused_of;
    std::string let_through;
    for (unsigned seed = 1; made < 100 && seed < 400; ++seed) {
      Dice dice(seed + 31'000);
      const PartsExperiment of(dice, kind, is_replicated);
      const lab::Experiment it(of.model, of.cluster, of.strategy, of.batch);
      Plan plan = plan_with_meaning(it);
      const Proof whole = proof_of(it, plan);
      CAPTURE(seed);
      CAPTURE(of.model);
      CAPTURE(of.strategy);
      REQUIRE_MESSAGE(whole.outcome == Proof::Outcome::proved, whole.text);
      const double images = images_asked_for(it, plan);
      plan.meaning = std::make_shared<Meaning>(*plan.meaning);
      // Of what can be changed in the plan that of which there are fewest so far.
      std::vector<int> mutants(all.size() + 2);
      std::iota(mutants.begin(), mutants.end(), 0);
      std::stable_sort(mutants.begin(), mutants.end(), [&](int a, int b) { return made_of[a] < made_of[b]; });
      std::string what;
      int mutant = 0;
      for (std::size_t i = 0; i < mutants.size() && what.empty(); ++i) {
        const auto own = static_cast<std::size_t>(mutant = mutants[i]);
        what = own < all.size()    ? change(plan, it.graph(), all[own], dice)
               : own == all.size() ? lose_addition(plan, dice)
                                   : change_layout(plan, dice);
      }
      if (what.empty()) continue;
      ++made, ++made_of[mutant];
      const Proof proof = prove_plan(plan, it.report(), it.graph(), it.machine(), images);
      if (proof.outcome == Proof::Outcome::proved)
        let_through += fmt::format("seed {}, mutant {}, {}: {}\n", seed, mutant, what, of.strategy);
      else
        ++refused, ++refused_of[mutant];
      refusals.add(fmt::format("{}{}, {}, {}", kind, is_replicated ? " with replicas" : "", seed, what),
                   proof.text);
    }
    MESSAGE(kind << std::string(is_replicated ? " with replicas: " : ": ") << refused << " of " << made
                 << " mutants refused; let through:\n"
                 << let_through);
    CHECK(made >= 60);
    CHECK_MESSAGE(100 * refused >= 95 * made, let_through);
    for (const auto& [mutant, count] : made_of)
      if (count > 4) CHECK_MESSAGE(refused_of[mutant] > 0, mutant);
  }
  refusals.check();
}

TEST_CASE("proof: gradients of an image less are added up, or of an image further on") {
  for (const std::string kind : {"filter_parallel", "hypergraph"})
    for (const bool fewer : {true, false}) {
      CAPTURE(kind);
      CAPTURE(fewer);
      const lab::Experiment it("{name: resnet18}", star(3, "10GB/s", "1us"), "{kind: " + kind + "}", 4);
      Plan plan = plan_with_meaning(it);
      plan.meaning = std::make_shared<Meaning>(*plan.meaning);
      std::size_t sums = 0;
      for (Role& role : plan.roles)
        for (Task& task : role.program)
          for (PlanOp& op : task.ops) {
            if (op.meaning == no_meaning) continue;
            OpMeaning& means = plan.meaning->operations[op.meaning];
            if (means.act != OpMeaning::Act::add || sums++ > 0) continue;
            fewer ? op.images -= 1 : means.images.first += 1;
          }
      REQUIRE(sums > 0);
      CHECK(proof_of(it, plan).outcome == Proof::Outcome::refuted);
    }
}

TEST_CASE("plans with layers that are not trained are proved") {
  const std::string model =
      "{name: part, input: [3, 8, 8], loss: cross_entropy, layers: [{name: a, kind: conv2d, out_channels: 8, "
      "kernel: 3, padding: 1, frozen: true}, {name: r, kind: relu}, {name: b, kind: conv2d, out_channels: 8, "
      "kernel: 3, padding: 1}, {name: flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}]}";
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    const lab::Experiment it =
        lab::Experiment::with_global_batch(model, star(2, "1GB/s", "1us"), "{kind: " + kind + "}", 8);
    const Proof proof = proof_of(it, plan_with_meaning(it));
    CAPTURE(proof.text);
    CHECK(proof.outcome == Proof::Outcome::proved);
  }
}

TEST_CASE("tensors that autocast has in single precision are sent so, by every strategy") {
  const std::string model =
      "{name: part, input: [3, 8, 8], loss: cross_entropy, layers: [{name: a, kind: conv2d, out_channels: 8, "
      "kernel: 3, padding: 1}, {name: n, kind: layer_norm}, {name: b, kind: conv2d, out_channels: 8, "
      "kernel: 3, padding: 1}, {name: s, kind: add, inputs: [n, b]}, {name: m, kind: group_norm, groups: 2}, "
      "{name: c, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}, {name: flat, kind: flatten}, "
      "{name: fc, kind: linear, out_features: 10}]}";
  TrainingOptions half;
  half.framework = Framework::pytorch;
  half.precision = Precision::fp16;
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    const lab::Experiment it =
        lab::Experiment::with_global_batch(model, star(2, "1GB/s", "1us"), "{kind: " + kind + "}", 8, half);
    const Proof proof = proof_of(it, plan_with_meaning(it));
    CAPTURE(proof.text);
    CHECK(proof.outcome == Proof::Outcome::proved);
  }
}

TEST_CASE("proof: random networks in parts under autocast, with the memory of both precisions") {
  TrainingOptions half;
  half.framework = Framework::pytorch;
  half.precision = Precision::fp16;
  for (const std::string& kind : kinds)
    for (unsigned seed = 1; seed <= 25; ++seed) {
      Dice dice(seed + 9000);
      PartsExperiment of(dice, kind);
      const std::string norm =
          dice.one_of<std::string>({"batch_norm", "layer_norm", "group_norm, groups: 2"});
      for (std::size_t at = 0; (at = of.model.find("batch_norm", at)) != std::string::npos; at += norm.size())
        of.model.replace(at, std::string("batch_norm").size(), norm);
      CAPTURE(seed);
      CAPTURE(of.model);
      CAPTURE(of.strategy);
      const lab::Experiment it(of.model, of.cluster, of.strategy, {of.batch, std::nullopt, {"test", 1, 1}},
                               half);
      const Proof proof = proof_of(it, plan_with_meaning(it));
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    }
}
