// SPDX-License-Identifier: MIT
// What is written otherwise and means the same changes no byte of the results: numbers, order of keys, quotes,
// flow and block style. CONVOY_RESPELLED=N: so many random experiments.
#include <doctest/doctest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "sim/results/write_json.h"
#include "sim/run/sweep.h"
#include "tests/laws/strategy_rows.h"
#include "tests/run/searches.h"
#include "tests/support/respelled.h"

using namespace convoy;
using namespace convoy::searches;

namespace {

/// results.json of an experiment, without what names its file.
nlohmann::json results_of(const std::string& text) {
  const Written written(text);
  Preparer preparer(*written);
  Store store;
  store.set_subject(make_subject(preparer, {}, {}, std::nullopt));
  run_sweep(preparer, {}, store);
  std::ostringstream out;
  write_json(load_results(store, &*written), out);
  const std::regex place("[^ \"]*\\.yaml:[0-9]+:[0-9]+: ");
  nlohmann::json results = nlohmann::json::parse(std::regex_replace(out.str(), place, ""));
  for (auto& run : results["runs"]) run.erase("partition");  // tells how long it took
  return results;
}

/// @return whether there was a run to compare
bool hold(const std::string& text, lab::Dice& dice) {
  respelled::Speller speller([&](int low, int high) { return dice.between(low, high); },
                             &respelled::has_no_order);
  const std::string other = speller.document(parse_yaml(text, "text"));
  CAPTURE(text);
  CAPTURE(other);
  const nlohmann::json was = results_of(text), is = results_of(other);
  // The experiment's digest tells the order of keys.
  for (const char* part : {"points", "done", "failed", "runs"}) CHECK(was[part] == is[part]);
  return !was["runs"].empty();
}

/// 300 in all with auto's, unless more are wanted.
int wanted(int usual) {
  const char* count = std::getenv("CONVOY_RESPELLED");
  return count ? std::atoi(count) : usual;
}

}  // namespace

TEST_CASE("respelling: numbers, order of keys, quotes and style change no result of random experiments") {
  const std::vector<lab::StrategyRow>& rows = lab::strategy_rows();
  int compared = 0;
  const int count = wanted(280);
  for (int seed = 1; seed <= count; ++seed) {
    lab::Dice dice(static_cast<unsigned>(seed));
    const lab::StrategyRow& row = rows[static_cast<std::size_t>(seed) % rows.size()];
    const std::string model = lab::random_model(dice);
    const lab::RandomCluster cluster = lab::random_cluster(dice, dice.one_of(lab::fabrics()));
    const int hosts = static_cast<int>(read_cluster(parse_yaml(cluster.text(), "c")).node_count());
    const std::string strategy = row.strategy(dice, {hosts, hosts * cluster.devices, 8});
    CAPTURE(seed);
    CAPTURE(row.name);
    compared +=
        hold(experiment(model, cluster.text(), strategy,
                        fmt::format("{{global_batch: {}, optimizer: adam, dataset: {{samples: 1000}}}}",
                                    4 * hosts * cluster.devices)),
             dice);
  }
  CHECK(compared > count / 2);
}

TEST_CASE("respelling: numbers, order of keys, quotes and style change nothing of a search") {
  const int count = wanted(20);
  for (int seed = 1; seed <= count; ++seed) {
    lab::Dice dice(static_cast<unsigned>(seed) + 5000);
    const lab::RandomCluster cluster = lab::random_cluster(dice, dice.one_of(lab::fabrics()));
    CAPTURE(seed);
    CHECK(hold(
        experiment(
            lab::random_model(dice), cluster.text(),
            "{kind: auto, candidates: [{kind: pipeline, stages: [1, 2], micro_batches: [2, 4], schedule: "
            "[1f1b, gpipe]}, {kind: single, micro_batches: [1, 2, 3]}, {kind: data_parallel, sync: "
            "all_reduce, zero: [0, 1], algorithm: [ring, auto], bucket: [4MiB, 10kB]}, {kind: hybrid, "
            "conv: [batch, height], fc: batch, micro_batches: [1, 2]}]}",
            "{global_batch: 48, dataset: {samples: 1000}}"),
        dice));
  }
}

TEST_CASE("respelling: a chosen algorithm is told of what a pipeline's stages do, too") {
  const auto algorithms = [](const std::string& strategy) {
    return results_of(
        experiment(two_layers(), lab::star(4, "1GB/s", "0us"), strategy))["runs"][0]["algorithms"];
  };
  const nlohmann::json none = nlohmann::json::array();
  CHECK(algorithms("{kind: data_parallel, sync: all_reduce, algorithm: ring}") == none);
  CHECK(algorithms(
            "{kind: pipeline, stages: 2, micro_batches: 2, inner: {kind: data_parallel, sync: all_reduce, "
            "algorithm: auto}}") != none);
  CHECK(
      algorithms(
          "{kind: pipeline, stages: 2, micro_batches: 2, inner: {kind: data_parallel, sync: all_reduce}}") ==
      none);
  CHECK(
      algorithms("{kind: elastic, inner: {kind: data_parallel, sync: all_reduce, algorithm: auto}, schedule: "
                 "[{at_step: 0, devices: 4}]}") != none);
}
