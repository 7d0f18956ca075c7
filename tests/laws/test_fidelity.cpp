// SPDX-License-Identifier: MIT
// What `fidelity: auto` chooses is never more than 1 % from every message of every round.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/collectives/table.h"
#include "tests/laws/random_experiment.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

constexpr double most_apart = 0.01;

double relative_gap(double a, double b) { return std::abs(a / b - 1); }

double step_of(const std::string& model, const RandomCluster& cluster, const std::string& strategy,
               const std::string& fidelity) {
  Experiment experiment(model, cluster.text(), strategy, 4);
  for (Communication& communication : experiment.plan().communications)
    communication.fidelity = fidelity == "chunk" ? Fidelity::chunk : Fidelity::automatic;
  return experiment.run().step_time_s;
}

}  // namespace

TEST_CASE("auto is no more than 1 % from chunk: all-reduces") {
  for (unsigned seed = 1; seed <= 240; ++seed) {
    Dice dice(seed);
    const std::string model = random_model(dice);
    const RandomCluster cluster = random_cluster(dice, fabrics()[seed % fabrics().size()]);
    const std::string strategy = random_all_reduce(dice, "auto");
    CAPTURE(seed);
    CAPTURE(model);
    CAPTURE(cluster.text());
    CAPTURE(strategy);
    CHECK(relative_gap(step_of(model, cluster, strategy, "auto"),
                       step_of(model, cluster, strategy, "chunk")) <= most_apart);
  }
}

TEST_CASE("auto is no more than 1 % from chunk: sharded states, hybrids and pipelines of replicas") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    Dice dice(seed);
    const std::string model = random_model(dice);
    RandomCluster cluster = random_cluster(dice, fabrics()[seed % fabrics().size()]);
    cluster.nodes = fmt::format("[{{name: n, count: {}, server: box}}]", cluster.devices == 4 ? 2 : 4);
    const std::string algorithm =
        dice.one_of<std::string>({"ring", "halving_doubling", "hierarchical", "nccl", "auto"});
    const int devices = cluster.devices == 4 ? 8 : 4;
    std::string strategy;
    switch (seed % 3) {
      case 0:
        strategy =
            fmt::format("{{kind: data_parallel, sync: all_reduce, zero: {}, algorithm: {}, bucket: {}kB}}",
                        dice.between(1, 3), algorithm, dice.one_of<int>({30, 300, 100000}));
        break;
      case 1:
        strategy =
            fmt::format("{{kind: hybrid, {}, replicas: {}, algorithm: {}, bucket: {}kB}}",
                        model.find("custom") != std::string::npos ? "groups: [{kind: custom, layout: filter}]"
                                                                  : "conv: batch, fc: filter",
                        dice.one_of<int>({1, 2}), algorithm, dice.one_of<int>({30, 300, 100000}));
        break;
      default:
        strategy = fmt::format(
            "{{kind: pipeline, stages: {}, replicas: {}, micro_batches: 2, schedule: gpipe, algorithm: {}}}",
            2, devices / 2, algorithm);
    }
    CAPTURE(seed);
    CAPTURE(model);
    CAPTURE(cluster.text());
    CAPTURE(strategy);
    double automatic_s = 0;
    try {
      automatic_s = step_of(model, cluster, strategy, "auto");
    } catch (const InputError&) {
      continue;  // more stages than layers
    }
    CHECK(relative_gap(automatic_s, step_of(model, cluster, strategy, "chunk")) <= most_apart);
  }
}

TEST_CASE("chunk keeps the closed form: late ranks' messages wait for their receivers") {
  // 8 equal ranks, a ring alone on a switch: 2 (N-1) (alpha + S / (N B)), chunk or fluid, whoever is late.
  for (const char* fidelity : {"chunk", "fluid"}) {
    const Experiment ring(custom_model(1, 1'000'000), star(8, "1GB/s", "20us"),
                          fmt::format("{{kind: data_parallel, sync: all_reduce, fidelity: {}}}", fidelity),
                          10);
    CHECK(relative_gap(ring.run().step_time_s, 3e-3 + 14 * (20e-6 + 4e6 / 8 / 1e9)) <= 1e-9);
  }
}

TEST_CASE("an all-reduce ends nowhere before all of its ranks have reached it, whatever the algorithm [law]") {
  for (const std::string& algorithm : all_reduce_algorithm_names())
    for (unsigned seed = 1; seed <= 12; ++seed) {
      Dice dice(seed);
      const int nodes = 1 << dice.between(1, 3);  // halving-doubling takes powers of two
      const std::string cluster = fmt::format(
          "{{name: lab, nodes: [{{name: a, count: {}, server: box}}, {{name: b, count: 1, server: box, speed: "
          "0.2}}], fabric: {{kind: switch, bandwidth: 10Gbps, latency: {}us}}, {}}}",
          nodes - 1, dice.between(1, 50), ideal_servers());
      const std::string strategy =
          fmt::format("{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: {}kB}}", algorithm,
                      dice.one_of<int>({100, 500, 100000}));
      CAPTURE(seed);
      CAPTURE(cluster);
      CAPTURE(strategy);
      const Experiment experiment(custom_model(4, 100'000), cluster, strategy, dice.between(1, 8));
      const ReplayResult result = experiment.run(false);
      const Plan& plan = experiment.plan();
      std::vector<double> last_ready_s(plan.communications.size(), 0),
          first_end_s(plan.communications.size(), std::numeric_limits<double>::infinity());
      std::size_t collectives = 0;
      for (const Role& role : plan.roles)
        for (const EndpointId e : role.members) {
          const Timeline& timeline = result.timelines[result.timeline_of[e]];
          for (std::size_t t = 0; t < role.program.size(); ++t) {
            const Task& task = role.program[t];
            if (task.kind != Task::Kind::collective) continue;
            ++collectives;
            for (const TaskId before : task.after)
              last_ready_s[task.comm] = std::max(last_ready_s[task.comm], timeline.tasks[before].end_s);
            first_end_s[task.comm] = std::min(first_end_s[task.comm], timeline.tasks[t].end_s);
          }
        }
      REQUIRE(collectives > 0);
      for (std::size_t c = 0; c < plan.communications.size(); ++c)
        CHECK(first_end_s[c] >= last_ready_s[c] * (1 - 1e-12));
    }
}
