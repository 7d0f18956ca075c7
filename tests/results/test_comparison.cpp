// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "sim/results/comparison.h"
#include "tests/results/results_fixture.h"
#include "tests/results/xml.h"

using namespace convoy;

namespace {

/// A sweep over `values` of cluster.nodes with these step times.
ComparedResults sweep(const std::string& name, const std::vector<std::pair<int, double>>& steps) {
  ComparedResults side{name, {}, {}};
  side.results.experiment = "e";
  side.results.manifest = {"1", "3.32", "convoy", "c0ffee", {}, {}};
  for (const auto& [nodes, step_s] : steps) {
    RunResult run = run_of(std::to_string(side.results.runs.size() + 1), 1, 10);
    run.point = coordinates({{"cluster.nodes", std::to_string(nodes)}});
    run.step_time_s = run.compute_s = step_s;
    side.results.runs.push_back(run);
  }
  return side;
}

nlohmann::json json_of(const Comparison& comparison) {
  std::ostringstream out;
  write_json(comparison, out);
  return nlohmann::json::parse(out.str());
}

Origin origin_of(const std::string& experiment,
                 const std::vector<std::pair<std::string, std::string>>& files) {
  return {"abc", parse_yaml(experiment, "test"), files};
}

}  // namespace

TEST_CASE("compare: what changed, the largest first, and what is only in one") {
  const Comparison comparison = compare(sweep("a", {{1, 1.0}, {2, 1.0}, {4, 1.0}, {8, 1.0}, {16, 1.0}}),
                                        sweep("b", {{32, 1.0}, {8, 0.5}, {4, 1.1}, {2, 1.0}, {1, 3.0}}));
  const nlohmann::json json = json_of(comparison);
  CHECK(json["schema"] == "convoy.compare/1");
  CHECK(json["same"] == 1);
  CHECK(json["only_a"] == nlohmann::json::parse(R"([{"cluster.nodes": 16}])"));
  CHECK(json["only_b"] == nlohmann::json::parse(R"([{"cluster.nodes": 32}])"));
  REQUIRE(json["changed"].size() == 3);
  CHECK(json["changed"][0]["point"]["cluster.nodes"] == 1);  // three times as slow
  CHECK(json["changed"][1]["point"]["cluster.nodes"] == 8);  // twice as fast
  CHECK(json["changed"][2]["point"]["cluster.nodes"] == 4);
  CHECK(json["changed"][2]["step_time_s"] == nlohmann::json::parse("[1.0, 1.1]"));
  CHECK(json["changed"][2]["terms"]["compute_s"] == nlohmann::json::parse("[1.0, 1.1]"));
  CHECK(json["changed"][2]["terms"]["cost_usd_per_epoch"] == nlohmann::json::parse("[null, null]"));
  CHECK(json["changed"][0]["ids"] == nlohmann::json::parse(R"(["1", "5"])"));
  const std::string text = comparison_text(comparison);
  CHECK(text.starts_with("1 point the same, 3 changed, 1 only in a, 1 only in b\n\ncluster.nodes: 1\n"));
  CHECK(text.find("1 s -> 3 s a step: 3.00 times as slow") != std::string::npos);
  std::ostringstream page;
  write_page(comparison, page);
  CHECK(page.str().find("3.00 times as slow") != std::string::npos);
  CHECK(parse_xml(page.str()).all("table").size() == 3);
}

TEST_CASE("compare: a result is the same as itself, and swapping the sides swaps every pair") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::mt19937 engine(seed);
    const auto random = [&](const std::string& name) {
      std::vector<std::pair<int, double>> steps;
      for (int i = 0, count = static_cast<int>(engine() % 8); i < count; ++i)
        steps.emplace_back(static_cast<int>(engine() % 6), 1.0 + static_cast<double>(engine() % 3));
      return sweep(name, steps);
    };
    const ComparedResults a = random("a"), b = random("b");
    const Comparison self = compare(a, a);
    CHECK(self.same == static_cast<std::int64_t>(a.results.runs.size()));
    CHECK(self.changed.empty());
    CHECK((self.only[0].empty() && self.only[1].empty()));
    const nlohmann::json there = json_of(compare(a, b)), back = json_of(compare(b, a));
    CHECK(there["same"] == back["same"]);
    CHECK(there["only_a"] == back["only_b"]);
    CHECK(there["only_b"] == back["only_a"]);
    // Every run is the same, changed or alone.
    const std::size_t joined = there["same"].get<std::size_t>() + there["changed"].size();
    CHECK(joined + there["only_a"].size() == a.results.runs.size());
    CHECK(joined + there["only_b"].size() == b.results.runs.size());
    REQUIRE(there["changed"].size() == back["changed"].size());
    double before = INFINITY;
    for (const auto& change : there["changed"]) {
      const double size =
          std::abs(std::log(change["step_time_s"][1].get<double>() / change["step_time_s"][0].get<double>()));
      CHECK(size <= before);
      before = size;
      CHECK(change["step_time_s"][0] != change["step_time_s"][1]);
      CHECK(!change["because"].empty());
    }
  }
}

TEST_CASE("compare: points are joined whatever the order of axes and keys") {
  ComparedResults a = sweep("a", {{1, 1.0}}), b = sweep("b", {{1, 1.0}});
  a.results.runs[0].point = coordinates({{"x.n", "2"}, {"strategy", "{kind: single, micro_batches: 2}"}});
  b.results.runs[0].point = coordinates({{"strategy", "{micro_batches: 2, kind: single}"}, {"x.n", "2"}});
  CHECK(compare(a, b).same == 1);
}

TEST_CASE("compare: a number that is no part of the step is a change too") {
  ComparedResults a = sweep("a", {{1, 1.0}}), b = a;
  b.results.runs[0].cost_usd_per_epoch = 3;
  const nlohmann::json json = json_of(compare(a, b));
  REQUIRE(json["changed"].size() == 1);
  CHECK(json["changed"][0]["terms"]["cost_usd_per_epoch"] == nlohmann::json::parse("[null, 3.0]"));
  CHECK(comparison_text(compare(a, b)).find("cost of an epoch none -> 3.00 USD") != std::string::npos);
  b = a;
  b.results.runs[0].warnings = {"e.yaml:3:1: a place that is another in another file"};
  b.results.runs[0].strategy = "all-reduce, not overlapped";  // of one device it is all the same
  CHECK(compare(a, b).same == 1);
}

TEST_CASE("compare: the keys, files and program that differ are the reasons, and no others") {
  ComparedResults a = sweep("a", {{2, 1.0}}), b = sweep("b", {{2, 2.0}});
  const auto because = [&] { return compare(a, b).changed.at(0).because; };
  const std::string experiment =
      "{experiment: e, cluster: {nodes: 1, server: box}, strategy: {bucket: 25MiB, list: [1, 2]}}";
  const std::vector<std::pair<std::string, std::string>> files{{"catalog/devices/k80.yaml", "1"},
                                                               {"catalog/prices.csv", "2"}};
  a.origin = b.origin = origin_of(experiment, files);
  CHECK(because() == std::vector<std::string>{
                         "nothing that is recorded: other options of the command (--full, --explain)"});
  // cluster.nodes is the point's own on both sides; the experiment's name changes nothing.
  b.origin = origin_of(
      "{experiment: f, strategy: {list: [1, 3], bucket: 1MiB, overlap: false}, cluster: {nodes: 7, server: "
      "box}}",
      files);
  CHECK(because() == std::vector<std::string>{"strategy.bucket: 25MiB -> 1MiB", "strategy.list.1: 2 -> 3",
                                              "strategy.overlap: not given -> false"});
  b.origin = origin_of(experiment,
                       {{"catalog/devices/k80.yaml", "9"}, {"catalog/prices.csv", "8"}, {"new.yaml", "7"}});
  CHECK(because() ==
        std::vector<std::string>{"catalog/devices/k80.yaml has other content",
                                 "catalog/prices.csv has other content, which this run does not name"});
  b.origin = origin_of(experiment, files);
  b.results.runs[0].network_model = "SimGrid's";
  CHECK(because() == std::vector<std::string>{"network model:  -> SimGrid's"});
  b.results.runs[0].network_model = {};
  b.origin->build = "def";
  CHECK(because() ==
        std::vector<std::string>{
            "program: convoy 1 (build abc), SimGrid 3.32 -> convoy 1 (build def), SimGrid 3.32"});
}

TEST_CASE("compare: of results.json alone the reasons are what the runs say of themselves") {
  ComparedResults a = sweep("a", {{2, 1.0}}), b = sweep("b", {{2, 2.0}});
  b.results.runs[0].strategy = "parameter servers";
  b.results.manifest.set = {"strategy.sync=parameter_server"};
  CHECK(compare(a, b).changed.at(0).because ==
        std::vector<std::string>{"strategy: ring all-reduce -> parameter servers",
                                 "--set: none -> strategy.sync=parameter_server"});
}
