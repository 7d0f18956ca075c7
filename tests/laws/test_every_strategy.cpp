// SPDX-License-Identifier: MIT
// Laws that hold for every strategy, model and cluster, over random ones: one row a strategy. The seed of a
// random case is printed when it fails.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/plan/validate.h"
#include "sim/replay/lower_bound.h"
#include "strategies/cost_table.h"
#include "tests/laws/strategy_rows.h"
#include "topologies/first_devices.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

constexpr std::int64_t batch_a_device = 4;  ///< a device

Experiment experiment(const StrategyRow& row, const std::string& model, const RandomCluster& cluster,
                      const std::string& strategy, std::int64_t devices,
                      const TrainingOptions& options = {}) {
  return row.global_batch ? Experiment::with_global_batch(model, cluster.text(), strategy,
                                                          batch_a_device * devices, options)
                          : Experiment(model, cluster.text(), strategy,
                                       {batch_a_device, std::nullopt, {"test", 1, 1}}, options);
}

void check_laws(const StrategyRow& row, const Trial& trial) {
  validate(trial.plan, trial.machine);
  check_bytes(trial);
  check_time(trial);
  check_devices(trial);
  check_roles(trial);
  check_memory(trial);
  check_bounds(trial);
  check_operations(trial, row.counts(trial));
  if (!row.volume) return;
  if (const std::optional<double> bytes = row.volume(trial)) CHECK(same(trial.result.comm_bytes, *bytes));
}

/// What a strategy says of its step before it plans <= what its plan says before it is replayed <= the step.
/// @param alone the same network and software on the same cluster, of which floors are asked
/// @return whether there is a floor
bool check_floor(const Experiment& it, const Experiment& alone, const ReplayResult& result) {
  CostTable table(alone.graph(), alone.machine(), alone.cost());
  const std::optional<StepFloor> floor = it.strategy().floor(it.batch(), table);
  const double bound_s = lower_bound(it.plan(), it.machine(), it.cost()).step_time_s;
  CHECK(no_more(bound_s, result.step_time_s));
  if (!floor) return false;
  CAPTURE(floor->text);
  CHECK(static_cast<double>(floor->images) == it.plan().images);
  CHECK(no_more(floor->step_s, bound_s));
  return true;
}

/// The same, and all laws.
bool check_all(const StrategyRow& row, const Experiment& it, const std::string& model,
               const RandomCluster& cluster, const TrainingOptions& options = {}) {
  const ReplayResult result = it.run();
  check_laws(row, {it.graph(), it.machine(), it.cost(), it.plan(), it.report(), result});
  const Experiment alone(model, cluster.text(), "{kind: single}", it.batch(), options);
  return check_floor(it, alone, result);
}

}  // namespace

TEST_CASE("laws of every strategy: operations, bytes, time, memory and bounds, on every fabric") {
  std::set<std::string> floored;  // rows whose strategies know a floor
  for (const StrategyRow& row : strategy_rows())
    for (unsigned seed = 1; seed <= 2 * fabrics().size(); ++seed) {
      Dice dice(seed);
      const std::string model = random_model(dice);
      const RandomCluster cluster = random_cluster(dice, fabrics()[seed % fabrics().size()]);
      const Experiment plain(model, cluster.text(), "{kind: single}", batch_a_device);
      const auto devices = static_cast<int>(plain.machine().devices.size());
      const std::string strategy = row.strategy(
          dice, {devices / cluster.devices, devices, static_cast<int>(plain.graph().model.layers.size())});
      CAPTURE(row.name);
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(cluster.text());
      CAPTURE(strategy);
      const Experiment it = experiment(row, model, cluster, strategy, devices);
      if (check_all(row, it, model, cluster)) floored.insert(row.name);
      const std::vector<RunPhase> phases = it.phases();
      REQUIRE_FALSE(phases.empty());
      CHECK(phases.back().plan.images == it.plan().images);
      if (it.report().images_by_device.empty()) {
        CHECK(phases.size() == 1);
        CHECK(phases.front().devices == it.machine().devices.size());
      }
      for (std::size_t i = 0; phases.size() > 1 && i < phases.size(); ++i) {
        const RunPhase& phase = phases[i];
        const Machine part = first_devices(it.machine(), phase.devices);
        check_laws(row, {it.graph(), part, it.cost(), phase.plan, phase.report,
                         replay(phase.plan, part, it.cost(), {})});
      }
    }
  for (const char* name :
       {"single", "rings and trees", "ZeRO-3", "sync servers", "hypergraph", "pardnn", "pipeline",
        "pipeline of data-parallel stages", "pipeline of hybrid stages", "hybrid"})
    CHECK(floored.contains(name));
}

TEST_CASE("laws of every strategy: the same with fewer images than devices, or the batch is refused") {
  std::set<std::string> taken;
  for (const StrategyRow& row : strategy_rows())
    for (unsigned seed = 1; seed <= 2 * fabrics().size(); ++seed) {
      Dice dice(seed + 300);
      const std::string model = random_model(dice);
      const RandomCluster cluster = random_cluster(dice, fabrics()[seed % fabrics().size()]);
      const Experiment plain(model, cluster.text(), "{kind: single}", batch_a_device);
      const auto devices = static_cast<int>(plain.machine().devices.size());
      const std::string strategy = row.strategy(
          dice, {devices / cluster.devices, devices, static_cast<int>(plain.graph().model.layers.size())});
      const std::int64_t batch = dice.between(1, devices);
      CAPTURE(row.name);
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(cluster.text());
      CAPTURE(strategy);
      CAPTURE(batch);
      std::optional<Experiment> it;
      try {
        it.emplace(Experiment::with_global_batch(model, cluster.text(), strategy, batch));
      } catch (const InputError& refused) {
        CHECK(std::string_view(refused.what()).find("training") != std::string_view::npos);
        continue;
      }
      if (batch < devices) taken.insert(row.name);
      check_all(row, *it, model, cluster);
    }
  for (const char* name : {"single", "filter_parallel", "hypergraph", "pardnn"}) CHECK(taken.contains(name));
}

TEST_CASE("laws of every strategy that takes recomputation: the same, with what runs again") {
  std::set<std::string> taken;
  for (const StrategyRow& row : strategy_rows())
    for (unsigned seed = 1; seed <= 14; ++seed) {
      Dice dice(seed);
      const std::string model = random_model(dice);
      const RandomCluster cluster = random_cluster(dice, fabrics()[seed % fabrics().size()]);
      const Experiment plain(model, cluster.text(), "{kind: single}", batch_a_device);
      const auto devices = static_cast<int>(plain.machine().devices.size());
      const std::string strategy = row.strategy(
          dice, {devices / cluster.devices, devices, static_cast<int>(plain.graph().model.layers.size())});
      CAPTURE(row.name);
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(cluster.text());
      CAPTURE(strategy);
      if (!experiment(row, model, cluster, strategy, devices).takes_recomputation()) continue;
      taken.insert(row.name);
      TrainingOptions options;
      options.recompute = dice.coin() ? Recomputation::blocks : Recomputation::sqrt;
      const Experiment it = experiment(row, model, cluster, strategy, devices, options);
      check_all(row, it, model, cluster, options);
    }
  for (const char* name : {"single", "elastic", "hybrid", "hybrid with micro-batches"})
    CHECK(taken.contains(name));
  for (const char* name : {"pipeline", "pardnn"}) CHECK(!taken.contains(name));
}

// Every strategy under half of the frameworks, every framework under half of the strategies.
TEST_CASE("laws of every strategy: the same under every framework's rules of memory and every optimizer") {
  std::size_t r = 0;
  for (const StrategyRow& row : strategy_rows())
    for (std::size_t f = r++ % 2; f < framework_names.size(); f += 2) {
      Dice dice(static_cast<unsigned>(100 + f));
      const std::string model = random_model(dice);
      const RandomCluster cluster = random_cluster(dice, dice.one_of(fabrics()));
      const Experiment plain(model, cluster.text(), "{kind: single}", batch_a_device);
      const auto devices = static_cast<int>(plain.machine().devices.size());
      const std::string strategy = row.strategy(
          dice, {devices / cluster.devices, devices, static_cast<int>(plain.graph().model.layers.size())});
      TrainingOptions options;
      options.framework = static_cast<Framework>(f);
      options.optimizer = dice.one_of<Optimizer>({Optimizer::sgd, Optimizer::momentum, Optimizer::adam});
      CAPTURE(row.name);
      CAPTURE(f);
      CAPTURE(model);
      CAPTURE(cluster.text());
      CAPTURE(strategy);
      const Experiment it = experiment(row, model, cluster, strategy, devices, options);
      check_all(row, it, model, cluster, options);
    }
}

TEST_CASE("laws of every strategy: the same in every precision") {
  for (const StrategyRow& row : strategy_rows())
    for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16})
      for (unsigned seed = 1; seed <= 3; ++seed) {
        Dice dice(200 + 10 * seed + static_cast<unsigned>(precision));
        const std::string model = random_model(dice);
        RandomCluster cluster = random_cluster(dice, dice.one_of(fabrics()));
        cluster.precisions = {"tf32", "fp16", "bf16"};
        const Experiment plain(model, cluster.text(), "{kind: single}", batch_a_device);
        const auto devices = static_cast<int>(plain.machine().devices.size());
        const std::string strategy = row.strategy(
            dice, {devices / cluster.devices, devices, static_cast<int>(plain.graph().model.layers.size())});
        TrainingOptions options;
        options.precision = precision;
        CAPTURE(row.name);
        CAPTURE(to_string(precision));
        CAPTURE(seed);
        CAPTURE(model);
        CAPTURE(cluster.text());
        CAPTURE(strategy);
        // Gradients that have two bytes already are not sent in half precision.
        if (strategy.find("compression: fp16") != std::string::npos && element_bytes(precision) == 2) {
          CHECK_THROWS_WITH_AS(experiment(row, model, cluster, strategy, devices, options),
                               doctest::Contains("gradients are sent in 2 bytes already"), InputError);
          continue;
        }
        const Experiment it = experiment(row, model, cluster, strategy, devices, options);
        check_all(row, it, model, cluster, options);
      }
}

TEST_CASE("laws of every strategy: every kind of the registry has a row") {
  std::set<std::string> kinds;
  for (const StrategyRow& row : strategy_rows()) {
    Dice dice(1);
    const std::string strategy = row.strategy(dice, {4, 4, 8});
    const std::size_t at = strategy.find("kind: ") + 6;
    kinds.insert(strategy.substr(at, strategy.find_first_of(",}", at) - at));
  }
  for (const StrategyEntry& entry : strategy_registry()) {
    CAPTURE(entry.kind);
    CHECK((entry.kind == "auto" ||
           kinds.contains(std::string(entry.kind))));  // auto is others, found by simulation
  }
}

TEST_CASE("laws of every strategy: a device that holds its parameters does what it does alone") {
  for (const std::string sums : {"owner", "ring"})
    for (unsigned seed = 1; seed <= 24; ++seed) {
      Dice dice(seed);
      const std::string model = random_model(dice);
      RandomCluster cluster = random_cluster(dice, dice.one_of(fabrics()));
      cluster.nodes = "[{name: n, count: 1, server: box}]";
      cluster.devices = 1;
      cluster.interconnect = "{kind: none}";
      const std::string strategy = fmt::format(
          "{{kind: data_parallel, sync: parameter_server, servers: 1, placement: colocated, "
          "local_aggregation: {}, sharding: {}, overlap: {}, pull: {}}}",
          sums, dice.one_of<std::string>({"tensor", "even", "even, bucket: 300kB"}), dice.coin(),
          dice.one_of<std::string>({"as_ready", "after_all", "at_first_use"}));
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(cluster.text());
      CAPTURE(strategy);
      const ReplayResult single = Experiment(model, cluster.text(), "{kind: single}", batch_a_device).run(),
                         result = Experiment(model, cluster.text(), strategy, batch_a_device).run();
      CHECK(same(single.step_time_s, result.step_time_s));
      CHECK(same(single.endpoints[0].compute_s, result.endpoints[0].compute_s));
      CHECK(result.comm_bytes == 0);
      CHECK(single.endpoints[0].peak_memory_bytes == result.endpoints[0].peak_memory_bytes);
    }
}

TEST_CASE("laws of every strategy: one device does what it does without any strategy") {
  for (const StrategyRow& row : strategy_rows())
    for (unsigned seed = 1; seed <= 12; ++seed) {
      Dice dice(seed);
      const std::string model = random_model(dice);
      RandomCluster cluster = random_cluster(dice, dice.one_of(fabrics()));
      cluster.nodes = "[{name: n, count: 1, server: box}]";
      cluster.devices = 1;
      cluster.interconnect = "{kind: none}";
      const Experiment alone(model, cluster.text(), "{kind: single}", batch_a_device);
      const std::string strategy =
          row.strategy(dice, {1, 1, static_cast<int>(alone.graph().model.layers.size())});
      CAPTURE(row.name);
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(cluster.text());
      CAPTURE(strategy);
      const ReplayResult single = alone.run(), result = experiment(row, model, cluster, strategy, 1).run();
      if (row.alone == Alone::single) {
        CHECK(same(single.step_time_s, result.step_time_s));
        CHECK(result.comm_bytes == 0);
        CHECK(single.endpoints[0].peak_memory_bytes == result.endpoints[0].peak_memory_bytes);
      } else {
        double update_s = 0;
        for (const Operation& op : alone.graph().operations)
          if (op.phase == Phase::update)
            update_s += alone.cost().time_s(op.work, 1, alone.machine().device_types[0]);
        CHECK(same(single.step_time_s - update_s, result.endpoints[0].compute_s));
        CHECK(no_more(result.endpoints[0].peak_memory_bytes, single.endpoints[0].peak_memory_bytes));
      }
    }
}
