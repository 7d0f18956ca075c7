// SPDX-License-Identifier: MIT
// Plans of networks in which layers use the parameters of others.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sim/prove/prove.h"
#include "sim/prove/served_role.h"
#include "tests/prove/covered.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// A network whose maps of several sizes go through the same head: a small pyramid.
std::string pyramid(Dice& dice) {
  std::string layers, outputs;
  const auto add = [&](const std::string& keys) { layers += fmt::format("{{{}}}, ", keys); };
  add("name: in, kind: conv2d, out_channels: 8, kernel: 3, padding: 1");
  std::string map = "in";
  const int levels = dice.between(2, 4);
  for (int level = 0; level < levels; ++level) {
    const std::string shared = level > 0 ? ", weights_of: head0" : "", next = fmt::format("map{}", level);
    if (dice.coin()) {
      add(fmt::format("name: conv{0}, kind: conv2d, inputs: [{1}], out_channels: 8, kernel: 1", level, map));
      map = fmt::format("conv{}", level);
    }
    add(fmt::format("name: {}, kind: max_pool, inputs: [{}], kernel: 2", next, map));
    map = next;
    add(fmt::format("name: head{}, kind: conv2d, inputs: [{}], out_channels: 4, kernel: 3, padding: 1{}",
                    level, map, shared));
    add(fmt::format("name: flat{}, kind: flatten", level));
    outputs += fmt::format("{}flat{}", level > 0 ? ", " : "", level);
  }
  add(fmt::format("name: all, kind: concat, inputs: [{}]", outputs));
  return "{name: pyramid, input: [3, 32, 32], loss: cross_entropy, layers: [" + layers +
         "{name: fc, kind: linear, out_features: 5}]}";
}

Proof proof_of_shared(const lab::Experiment& it, const Plan& plan) {
  return prove_plan(plan, it.report(), it.graph(), it.machine(), images_asked_for(it, plan));
}

lab::Experiment experiment(const std::string& model, const std::string& strategy) {
  return lab::Experiment::with_global_batch(model, star(4, "1GB/s", "1us"), strategy, 16);
}

std::string refusal(const std::string& model, const std::string& strategy) {
  try {
    experiment(model, strategy);
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("proof: replicas and pipelines of networks with shared parameters, and ZeRO in all its stages") {
  for (const std::string strategy :
       {"{kind: single}", "{kind: data_parallel, sync: all_reduce, algorithm: ring}",
        "{kind: data_parallel, sync: all_reduce, bucket: 1KiB}",
        "{kind: data_parallel, sync: all_reduce, zero: 1}",
        "{kind: data_parallel, sync: all_reduce, zero: 2, bucket: 1KiB}",
        "{kind: data_parallel, sync: all_reduce, zero: 3, bucket: 1KiB}",
        "{kind: pipeline, stages: 2, replicas: 2, micro_batches: 2}",
        "{kind: pipeline, stages: 2, replicas: 2, micro_batches: 4, recompute: always}"})
    for (unsigned seed = 1; seed <= 12; ++seed) {
      Dice dice(seed);
      const std::string model = pyramid(dice);
      CAPTURE(strategy);
      CAPTURE(seed);
      CAPTURE(model);
      const lab::Experiment it = experiment(model, strategy);
      const Proof proof = proof_of_shared(it, plan_with_meaning(it));
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    }
}

TEST_CASE("proof: servers, averages, factors and pipelines that stash weights have shared parameters, too") {
  for (const std::string strategy :
       {"{kind: data_parallel, sync: parameter_server, servers: 2}",
        "{kind: data_parallel, sync: parameter_server, servers: 2, pull: at_first_use, micro_batches: 2}",
        "{kind: data_parallel, sync: parameter_server, servers: 2, local_aggregation: host, pull: "
        "at_first_use, unpack: 1GB/s}",
        "{kind: data_parallel, sync: parameter_server, servers: 2, mode: async}",
        "{kind: data_parallel, sync: all_reduce, sync_every: 3, micro_batches: 2}",
        "{kind: data_parallel, sync: gossip}", "{kind: data_parallel, sync: gossip, overlap: false}",
        "{kind: data_parallel, sync: all_reduce, compression: {kind: powersgd, rank: 2}}",
        "{kind: pipeline, stages: 2, replicas: 2, micro_batches: 4, weights: stash}"})
    for (unsigned seed = 1; seed <= 6; ++seed) {
      Dice dice(seed);
      const std::string model = pyramid(dice);
      CAPTURE(strategy);
      CAPTURE(seed);
      CAPTURE(model);
      const lab::Experiment it = experiment(model, strategy);
      const Proof proof = proof_of_shared(it, plan_with_meaning(it));
      CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    }
}

TEST_CASE("proof: whatever uses shared parameters reads those of the layer that has them, of servers too") {
  Dice dice(1);
  const lab::Experiment it =
      experiment(pyramid(dice), "{kind: data_parallel, sync: parameter_server, servers: 1}");
  const Plan plan = plan_with_meaning(it);
  const prove::HappensBefore order(plan);
  const prove::ServedRole worker = prove::served_role(plan, it.graph(), it.machine(), order.of(0), 0);
  REQUIRE(worker.works);
  std::set<std::string> readers;
  const auto layer_named = [&](const std::string& name) {
    const auto& layers = it.graph().model.layers;
    return static_cast<std::uint32_t>(
        std::find_if(layers.begin(), layers.end(), [&](const Layer& of) { return of.name == name; }) -
        layers.begin());
  };
  for (const prove::ServedStep& read : worker.reads.at(layer_named("head0")))
    readers.insert(it.graph().operations[read.operation].name);
  for (const char* reader : {"head0.forward", "head1.forward", "head0.data_gradient", "head1.data_gradient"})
    CHECK(readers.contains(reader));
  CHECK(!worker.reads.contains(layer_named("head1")));
}

TEST_CASE("proof: a use of shared parameters whose gradient is left out is refuted") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    Dice dice(seed);
    const std::string model = pyramid(dice);
    CAPTURE(seed);
    CAPTURE(model);
    const lab::Experiment it = experiment(model, "{kind: data_parallel, sync: all_reduce}");
    Plan plan = plan_with_meaning(it);
    std::size_t dropped = 0;
    for (Role& role : plan.roles)
      for (Task& task : role.program)
        dropped += std::erase_if(
            task.ops.edit(), [](const PlanOp& op) { return op.name.starts_with("head1.weight_gradient"); });
    CHECK(dropped > 0);
    const Proof proof = proof_of_shared(it, plan);
    CHECK(proof.outcome == Proof::Outcome::refuted);
    CHECK(proof.text.find("head1.weight_gradient") != std::string::npos);
  }
}

TEST_CASE("stages of a pipeline keep layers with the same parameters together, or say why they cannot") {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    Dice dice(seed);
    const std::string model = pyramid(dice);
    CAPTURE(seed);
    CAPTURE(model);
    for (const char* partition : {"optimal", "balanced"}) {
      const lab::Experiment it = experiment(
          model, fmt::format("{{kind: pipeline, stages: 2, replicas: 2, micro_batches: 2, partition: {}}}",
                             partition));
      std::size_t with_heads = 0, heads = 0;
      for (const PipelineStage& stage : it.report().stages) {
        const auto of_stage =
            std::count_if(stage.layers.begin(), stage.layers.end(),
                          [](const std::string& layer) { return layer.starts_with("head"); });
        heads += static_cast<std::size_t>(of_stage);
        with_heads += of_stage > 0 ? 1 : 0;
      }
      CHECK(with_heads == 1);
      CHECK(heads >= 2);
    }
    const std::string split =
        refusal(model, "{kind: pipeline, replicas: 2, begins: [head1], micro_batches: 2}");
    CHECK(split.find("strategy.begins: a stage would begin with 'head1', between layers that use the same "
                     "parameters, which have to be in one stage") != std::string::npos);
  }
  const std::string two =
      "{name: two, input: [4, 8, 8], layers: [{name: a, kind: conv2d, out_channels: 4, kernel: 1}, {name: b, "
      "kind: "
      "conv2d, out_channels: 4, kernel: 1, weights_of: a}]}";
  CHECK(refusal(two, "{kind: pipeline, stages: 2, replicas: 2, micro_batches: 2}")
            .find("strategy.stages: 2 stages would part layers that use the same parameters, such as 'a' and "
                  "'b'; "
                  "use at most 1") != std::string::npos);
}

TEST_CASE("strategies that place layers one by one refuse shared parameters in a line") {
  Dice dice(1);
  const std::string model = pyramid(dice);
  for (const char* strategy : {"{kind: pardnn}", "{kind: hypergraph}", "{kind: filter_parallel}"}) {
    const std::string error = refusal(model, strategy);
    CAPTURE(error);
    CHECK(error.find("and 'head1' uses the parameters of 'head0'") != std::string::npos);
    CHECK(error.find('\n') == std::string::npos);
  }
  CHECK(refusal(model, "{kind: hybrid, conv: filter, fc: replicated}")
            .find("strategy: 'head1' uses the parameters of 'head0', and parameters that layers share cannot "
                  "be split") != std::string::npos);
  CHECK(refusal(model, "{kind: hybrid, conv: batch, fc: replicated}").empty());
}

TEST_CASE("proof: detectors, U-Nets and a pair of networks, trained by four devices") {
  for (const char* name :
       {"retinanet_resnet50_fpn", "retinanet_resnext50_32x4d_fpn", "fasterrcnn_resnet50_fpn",
        "maskrcnn_resnet50_fpn", "ssd300_resnet34", "ssd300_resnet50", "ssd300_vgg16", "unet_3d_kits19",
        "stable_diffusion_v1_unet", "ddpm_cifar10", "dcgan"}) {
    CAPTURE(name);
    const lab::Experiment it = experiment(name, "{kind: data_parallel, sync: all_reduce}");
    const Proof proof = proof_of_shared(it, plan_with_meaning(it));
    CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
    CHECK(it.run().step_time_s > 0);
  }
}

TEST_CASE("proof: a tensor may reach an operation in two ways, by itself and in a sum") {
  // DDPM's maps are read as they are and, added to something, beside it in one concatenation.
  const lab::Experiment it = experiment("ddpm_cifar10", "{kind: hypergraph}");
  const Proof proof = proof_of_shared(it, plan_with_meaning(it));
  CHECK_MESSAGE(proof.outcome == Proof::Outcome::proved, proof.text);
}
