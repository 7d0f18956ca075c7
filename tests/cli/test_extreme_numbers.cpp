// SPDX-License-Identifier: MIT
// Extreme numbers for every key that the program knows, from its own tables: whatever they are, a point is
// simulated, or refused as wrong input, or takes more than it may; nothing else ends it. Run in this process,
// since it would take hundreds of the program. CONVOY_EXTREMES=N: so many numbers a key.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "models/model_keys.h"
#include "sim/base/input_error.h"
#include "sim/costs/input_pipeline.h"
#include "sim/planning/plan_spec.h"
#include "sim/results/write_csv.h"
#include "sim/results/write_json.h"
#include "sim/results/write_table.h"
#include "sim/run/sweep.h"
#include "sim/studies/job_study.h"
#include "strategies/strategy.h"
#include "tests/cli/program.h"
#include "tests/laws/random_experiment.h"
#include "topologies/cluster_keys.h"

using namespace convoy;

namespace {

/// A number, in the unit of a key's values where it says one.
std::string extreme(lab::Dice& dice, const std::string& values) {
  const std::string number = dice.one_of<std::string>({"0",
                                                       "-0",
                                                       "-1",
                                                       "0.5",
                                                       "1",
                                                       "2",
                                                       "1000000",
                                                       "4294967295",
                                                       "4294967296",
                                                       "9007199254740992",
                                                       "9007199254740993",
                                                       "9223372036854775807",
                                                       "9223372036854775808",
                                                       "18446744073709551615",
                                                       "18446744073709551616",
                                                       "-9223372036854775809",
                                                       "1e18",
                                                       "1e19",
                                                       "1e22",
                                                       "1e100",
                                                       "1e300",
                                                       "1.7e308",
                                                       "1e309",
                                                       "1e-15",
                                                       "1e-300",
                                                       "-1e300",
                                                       "123456789.123456789"});
  static const std::vector<std::pair<std::string, std::vector<std::string>>> units{
      {"a size", {"B", "TiB", "PB"}}, {"a time", {"s", "ns", "d"}},   {"a bandwidth", {"B/s", "Tbps"}},
      {"a rate", {"FLOPS"}},          {"a power", {"W", "mW", "GW"}}, {"a price", {"USD/h"}},
      {"a share", {"", "%"}},         {"a clock", {"Hz", "GHz"}},     {"a fraction", {"", "%"}}};
  for (const auto& [kind, names] : units)
    if (values.find(kind) != std::string::npos && dice.between(0, 9) > 0) return number + dice.one_of(names);
  return number;
}

/// Where keys of a table stand in an experiment: what is there already, as a mapping without braces.
struct Place {
  std::string path;  ///< "training"
  std::vector<KeyText> keys;
  std::map<std::string, std::string> settings = {};  ///< by path: the experiment is that
};

/// Every key with those of the mappings in it, by their paths.
std::vector<std::pair<std::string, std::string>> paths_of(const std::vector<KeyText>& keys,
                                                          const std::string& path) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const KeyText& key : keys) {
    result.emplace_back(path + "." + key.name, key.values);
    for (auto& part : paths_of(key.parts, path + "." + key.name + (key.takes_list ? ".0" : "")))
      result.push_back(std::move(part));
  }
  return result;
}

std::string experiment_text() {
  return "experiment: e\n"
         "model: {name: net, input: [3, 16, 16], layers: [{name: conv, kind: conv2d, out_channels: 8, "
         "kernel: 3, "
         "padding: 1}, {name: norm, kind: batch_norm}, {name: pool, kind: max_pool, kernel: 2, stride: 2}, "
         "{name: "
         "flat, kind: flatten}, {name: fc, kind: linear, out_features: 10}, {name: own, kind: custom, "
         "forward_flops: 1e9, backward_flops: 2e9, parameters: 1000, output: [10], memory_bytes: 0}]}\n"
         "training: {global_batch: 24, dataset: {samples: 1000}}\n"
         "cluster: {name: lab, nodes: [{name: n, count: 4, server: box}], fabric: {kind: switch, bandwidth: "
         "10Gbps, "
         "latency: 5us}, servers: {box: {devices: [{device: ideal, count: 1}], interconnect: {kind: pcie, "
         "bandwidth: 12GB/s, latency: 5us}, price: 1USD/h}}, devices: {ideal: {peak: {fp32: 10TFLOPS}, "
         "memory: "
         "16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}}}\n"
         "strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring}\n";
}

std::vector<Place> places() {
  std::vector<Place> result{
      {"training", training_keys().keys},
      {"training",
       training_keys().keys,
       {{"training.profile", "{file: none.csv}"}, {"training.anchor", "{images_per_s: 100, batch: 24}"}}},
      {"training.input", input_keys().keys, {{"training.input", "{kind: jpeg, library: pil}"}}},
      {"variability",
       variability_keys().keys,
       {{"variability",
         "{runs: 2, links: [{link: '*', bandwidth: 50%}], stops: [{host: n0, at: 1ms, for: 1ms}], failures: "
         "{per_host_day: 1, at: [{host: n0, at: 1s}], checkpoint: {time: 1s, every: 9s}}}"}}},
      {"model", model_keys().keys},
      {"cluster", cluster_keys().keys},
      {"cluster.nodes.0", cluster_keys().keys},
      {"cluster.servers.box", server_keys().keys},
      {"cluster.servers.box.devices.0", {{"count", "1", ""}}},
      {"cluster.servers.box.interconnect", interconnect_keys().keys},
      {"cluster.devices.ideal", device_keys().keys},
      {"cluster.fabric", fabric_keys().keys}};
  for (const char* kind : {"shared", "ring", "full_mesh", "fat_tree", "torus", "dragonfly"})
    result.push_back({"cluster.fabric", fabric_keys().keys, {{"cluster.fabric.kind", kind}}});
  for (int layer = 0; layer < 6; ++layer)
    result.push_back({fmt::format("model.layers.{}", layer), layer_keys().keys});
  const std::map<std::string, std::vector<std::string>> least{
      {"data_parallel", {"sync: all_reduce", "sync: parameter_server", "sync: gossip"}},
      {"elastic",
       {"inner: {kind: data_parallel, sync: all_reduce}, schedule: [{at_step: 0, devices: 2}, {at_step: 3, "
        "devices: "
        "4}]"}},
      {"hybrid", {"conv: batch, fc: filter", "conv: {height: 2, width: 2}, fc: replicated"}},
      {"pipeline", {"stages: 2", "stages: 2, inner: {kind: data_parallel, sync: all_reduce}"}},
      {"hypergraph", {"", "method: random"}},
      {"auto", {"candidates: [{kind: single}]"}}};
  for (const StrategyEntry& entry : strategy_registry()) {
    const auto known = least.find(std::string(entry.kind));
    for (const std::string& keys : known == least.end() ? std::vector<std::string>{""} : known->second) {
      const std::string strategy =
          fmt::format("{{kind: {}{}{}}}", entry.kind, keys.empty() ? "" : ", ", keys);
      result.push_back({"strategy", entry.keys, {{"strategy", strategy}}});
      if (entry.kind != "auto")
        result.push_back(
            {"strategy.candidates.0",
             entry.keys,
             {{"strategy", fmt::format("{{kind: auto, candidates: [{}, {{kind: single}}]}}", strategy)}}});
    }
  }
  return result;
}

/// What becomes of the experiment: "done", or the kinds of its failures.
std::string outcome(const std::string& file, const std::vector<std::string>& settings) {
  try {
    const Experiment experiment = Experiment::load(file, settings);
    if (experiment.plan()) {
      read_plan(experiment);
      return "done";
    }
    if (experiment.jobs()) read_job_study(*experiment.jobs());
    Preparer preparer(experiment);
    Store store;
    store.set_subject(make_subject(preparer, file, settings, std::nullopt));
    SweepOptions options;
    options.point_memory_bytes = 1e9;
    options.point_time_s = 5;
    run_sweep(preparer, options, store);
    const Results results = load_results(store, &experiment);
    std::ostringstream out;
    write_json(results, out);
    write_csv(results, out);
    write_table(results, out);
    return results.failed.empty() ? "done"
                                  : results.failed.front().kind + ": " + results.failed.front().reason;
  } catch (const InputError&) {
    return "input";
  } catch (const std::exception& error) {
    return fmt::format("internal error: {}", error.what());
  }
}

}  // namespace

TEST_CASE("extreme numbers: every key of an experiment takes them, or refuses them as wrong input") {
  const Workplace place;
  const std::string file = (place.path() / place.file("e.yaml", experiment_text())).string();
  const char* wanted = std::getenv("CONVOY_EXTREMES");
  const int each = wanted ? std::atoi(wanted) : 1;
  lab::Dice dice(26);
  std::map<std::string, int> outcomes;
  for (const Place& at : places()) {
    std::vector<std::string> settings;
    for (const auto& [path, value] : at.settings) settings.push_back(path + "=" + value);
    for (const auto& [path, values] : paths_of(at.keys, at.path))
      for (int i = 0; i < each; ++i) {
        std::vector<std::string> all = settings;
        const std::string number = extreme(dice, values);
        // A list of numbers, now and then, and of candidates' values always.
        const bool list = at.path == "strategy.candidates.0" || dice.between(0, 5) == 0;
        all.push_back(fmt::format("{}={}", path,
                                  list ? fmt::format("[{}, {}]", number, extreme(dice, values)) : number));
        if (path == "training.batch_per_device")
          all.insert(all.begin(), "training={dataset: {samples: 9}, batch_per_device: 1}");
        CAPTURE(at.path);
        CAPTURE(all.back());
        CAPTURE(settings.empty() ? "" : settings.back());
        const std::string what = outcome(file, all);
        CAPTURE(what);
        const std::string kind = what.substr(0, what.find(':'));
        ++outcomes[kind];
        CHECK((kind == "done" || kind == "input" || kind == "memory" || kind == "time"));
      }
  }
  CAPTURE(outcomes["done"]);
  CAPTURE(outcomes["input"]);
  CHECK(outcomes["done"] >= 50 * each);
  CHECK(outcomes["input"] >= 50 * each);
  CHECK(outcomes["memory"] + outcomes["time"] <= 10 * each);
}
