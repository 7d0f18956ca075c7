// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/prove/prove.h"
#include "tests/laws/random_experiment.h"

namespace convoy::lab {

/// A plan that says what it means.
inline Plan plan_with_meaning(const lab::Experiment& it) {
  return it.strategy().plan({it.graph(), it.machine(), it.cost(), it.batch(), true}).plan;
}

/// A plan that says what it means is otherwise the one that does not.
inline void check_means_nothing_else(const Plan& with, const Plan& without) {
  REQUIRE(with.roles.size() == without.roles.size());
  for (std::size_t r = 0; r < with.roles.size(); ++r) {
    REQUIRE(with.roles[r].program.size() == without.roles[r].program.size());
    for (TaskId t = 0; t < with.roles[r].program.size(); ++t) {
      const Task &a = with.roles[r].program[t], &b = without.roles[r].program[t];
      CHECK(a.name == b.name);
      CHECK(a.after == b.after);
      REQUIRE(a.ops.size() == b.ops.size());
      for (std::size_t i = 0; i < a.ops.size(); ++i) {
        CHECK(a.ops[i].work == b.ops[i].work);
        CHECK(b.ops[i].meaning == no_meaning);
      }
    }
  }
}

/// Images of the global batch that an experiment asks for, of a plan on its devices.
inline double images_asked_for(const lab::Experiment& it, const Plan& plan) {
  return static_cast<double>(it.batch().over(static_cast<std::int64_t>(devices_used(plan, it.machine()))));
}

inline Proof proof_of(const lab::Experiment& it, const Plan& plan) {
  return prove_plan(plan, it.report(), it.graph(), it.machine(), images_asked_for(it, plan));
}

/// A network of several blocks, of which some have two ways, or read half of the channels of an earlier one
/// (as ShuffleNet does), for pipelines of so many stages.
inline std::string blocks(Dice& dice, int stages) {
  std::string layers;
  const auto add = [&](const std::string& keys) { layers += fmt::format("{{{}}}, ", keys); };
  for (int block = 0; block < stages + dice.between(1, 3); ++block) {
    add(fmt::format("name: in{}, kind: conv2d, out_channels: 8, kernel: 3, padding: 1", block));
    if (dice.coin()) add(fmt::format("name: bn{}, kind: batch_norm", block));
    if (dice.coin()) add(fmt::format("name: relu{}, kind: relu", block));
    if (dice.coin()) {
      add(fmt::format("name: out{}, kind: conv2d, out_channels: 8, kernel: 3, padding: 1", block));
      const int from = dice.between(0, block);  // over several blocks, some of other stages
      add(fmt::format("name: sum{0}, kind: add, inputs: [out{0}, in{1}]", block, from));
    }
    if (dice.between(0, 2) == 0) {
      const int from = dice.between(0, block);
      add(fmt::format("name: way{}, kind: conv2d, out_channels: 4, kernel: 1", block));
      add(fmt::format("name: half{}, kind: slice, first: 4, last: 8, inputs: [in{}]", block, from));
      add(fmt::format("name: both{0}, kind: concat, inputs: [way{0}, half{0}]", block));
    }
  }
  add("name: flat, kind: flatten");
  add("name: fc, kind: linear, out_features: 10");
  return fmt::format("{{name: net, input: [3, 8, 8], layers: [{}]}}", layers);
}

/// An experiment with a strategy whose tasks say what they mean.
struct CoveredExperiment {
  std::string model, cluster, strategy;
  int batch;  ///< a device
  explicit CoveredExperiment(Dice& dice) {
    RandomCluster of;
    of.fabric = dice.one_of(fabrics()) + dice.one_of<std::string>({"", ", protocol: tcp"});  // tcp: copies
    of.bandwidth_Bps = 1e9;
    of.latency_s = 1e-6;
    of.devices = dice.one_of<int>({1, 2, 4});
    const int hosts = dice.between(1, 4);
    of.nodes = fmt::format("[{{name: n, count: {}, server: box}}]", hosts);
    cluster = of.text();
    const int devices = hosts * of.devices;
    const int micro_batches = dice.one_of<int>({1, 2, 4});
    batch = 4 * dice.between(1, 3);
    const std::string sync = fmt::format("algorithm: {}, bucket: {}kB, overlap: {}",
                                         dice.one_of<std::string>({"ring", "auto", "nccl"}),
                                         dice.one_of<int>({2, 10, 300}), dice.coin());
    const std::string kind =
        dice.one_of<std::string>({"", "", ", zero: 1", ", zero: 2", ", zero: 3", ", compression: fp16",
                                  ", compression: {kind: top_k, ratio: 0.01}"});
    int stages = 1;
    for (const int n : {2, 3, 4})
      if (devices % n == 0 && dice.coin()) stages = n;
    model = blocks(dice, stages);
    if (stages > 1 && dice.between(0, 4) == 0) {  // never flushed
      const bool doubled = dice.coin();  // has to have as many micro-batches as the pipeline has devices
      batch = 48;
      strategy = fmt::format("{{kind: pipeline, stages: {}, replicas: {}, micro_batches: {}, weights: {}}}",
                             stages, devices / stages, doubled ? devices : micro_batches,
                             doubled ? "double_buffered" : "stash");
      return;
    }
    const std::string schedule = dice.one_of<std::string>({"naive", "gpipe", "1f1b"});
    const bool fills = schedule == "gpipe";  // all forward passes come first
    if (stages > 1 || dice.between(0, 3) == 0)
      strategy = fmt::format(
          "{{kind: pipeline, stages: {}, micro_batches: {}, schedule: {}, recompute: {}, inner: {{kind: "
          "data_parallel, sync: all_reduce, {}{}}}}}",
          stages, micro_batches, schedule,
          dice.one_of<std::string>({"never", "always", fills ? "except_last" : "never"}), sync, kind);
    else
      strategy = fmt::format("{{kind: data_parallel, sync: all_reduce, {}{}, micro_batches: {}}}", sync, kind,
                             micro_batches);
  }
};

}  // namespace convoy::lab
