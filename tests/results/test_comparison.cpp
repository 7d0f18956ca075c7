// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "sim/results/comparison.h"
#include "tests/page/xml.h"
#include "tests/results/results_fixture.h"

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
  CHECK(text.find("1 s -> 3 s a step: 0.33 times as fast") != std::string::npos);
  std::ostringstream page;
  write_page(comparison, page);
  CHECK(page.str().find("0.33 times as fast") != std::string::npos);
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

namespace {

/// The ratio of speeds that a text of the change says: "82 % faster", "2.5 times as fast".
double ratio_said(const std::string& text) {
  if (text.starts_with("as fast") || text.starts_with("less than 0.1 %")) return 1;
  std::istringstream in(text);
  double number = 0;
  std::string unit, word;
  in >> number >> unit >> word;
  if (unit == "times") return number;
  REQUIRE(unit == "%");
  REQUIRE((word == "faster" || word == "slower"));
  return 1 + number / 100 * (word == "faster" ? 1 : -1);
}

}  // namespace

TEST_CASE("compare: what it says of a change is the ratio of speeds, of steps alike and of images a second") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto ratio = [&] { return std::pow(10, std::uniform_real_distribution<>(-2, 2)(random)); };
    const double a_s = ratio(), b_s = a_s * (random() % 3 ? std::exp(std::log(ratio()) / 4) : ratio());
    ComparedResults a = sweep("a", {{1, a_s}}), b = sweep("b", {{1, b_s}});
    RunResult &before = a.results.runs[0], &after = b.results.runs[0];
    const bool other_batch = random() % 2 != 0;
    if (other_batch) after.global_batch = before.global_batch * (random() % 2 ? 2 : 0.5);
    before.throughput_images_per_s = before.global_batch / a_s;
    after.throughput_images_per_s = after.global_batch / b_s;
    CAPTURE(a_s);
    CAPTURE(b_s);
    const std::string text = comparison_text(compare(a, b));
    const std::string line = text.substr(text.find("\n  ") + 3, text.find("\n    ") - text.find("\n  ") - 3);
    CAPTURE(line);
    const std::string change = line.substr(line.find(": ") + 2);
    const double speeds =
        other_batch ? after.throughput_images_per_s / before.throughput_images_per_s : a_s / b_s;
    CHECK(std::abs(ratio_said(change) / speeds - 1) <= 0.051);
    CHECK((change.find("per image") != std::string::npos) == other_batch);
    CHECK((text.find("    global batch ") != std::string::npos) == other_batch);
    std::ostringstream page;
    write_page(compare(a, b), page);
    CHECK(page.str().find(change.substr(0, change.find(" ("))) != std::string::npos);
    const nlohmann::json json = json_of(compare(a, b));
    CHECK(json["changed"][0]["terms"]["global_batch"][0] == before.global_batch);
    CHECK(json["changed"][0]["terms"]["global_batch"][1] == after.global_batch);
  }
}

TEST_CASE("compare: half the batch in more than half the time trains more slowly, and is ranked by that") {
  ComparedResults a = sweep("a", {{1, 0.36}, {2, 1.0}}), b = sweep("b", {{1, 0.198}, {2, 1.2}});
  for (ComparedResults* side : {&a, &b}) {
    RunResult& run = side->results.runs[0];
    run.global_batch = side == &a ? 512 : 256;
    run.throughput_images_per_s = run.global_batch / run.step_time_s;
  }
  const std::string text = comparison_text(compare(a, b));
  CHECK(text.find("\n  1422 -> 1293 images/s: 9.1 % slower per image (360 ms -> 198 ms a step of 512 -> 256 "
                  "images)\n") != std::string::npos);
  CHECK(text.find("cluster.nodes: 2\n") < text.find("cluster.nodes: 1\n"));
  CHECK(comparison_text(compare(sweep("a", {{1, 0.36}}), sweep("b", {{1, 0.198}})))
            .find("360 ms -> 198 ms a step: 82 % faster\n") != std::string::npos);
  CHECK(comparison_text(compare(sweep("a", {{1, 1.0}}), sweep("b", {{1, 1.0001}})))
            .find("less than 0.1 % slower\n") != std::string::npos);
}

TEST_CASE(
    "compare: a reason that all points have is told once, at the end, and every other under its point") {
  const auto times = [](const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  };
  for (unsigned seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Comparison comparison{{"a", "b"}, 0, {}, {}};
    const std::size_t points = 1 + random() % 5;
    std::map<std::string, std::size_t> having;
    for (std::size_t i = 0; i < points; ++i) {
      ChangedPoint point;
      point.point = coordinates({{"cluster.nodes", std::to_string(i)}});
      point.step_time_s = {1, 2};
      for (const char reason : {'p', 'q', 'r', 's'})
        if (random() % 4) ++having[point.because.emplace_back(std::string("reason ") + reason)];
      comparison.changed.push_back(std::move(point));
    }
    const std::string text = comparison_text(comparison);
    std::ostringstream page;
    write_page(comparison, page);
    const std::size_t last = text.find(fmt::format("cluster.nodes: {}\n", points - 1));
    for (const auto& [reason, count] : having) {
      CAPTURE(reason);
      const bool common = points > 1 && count == points;
      CHECK(times(text, reason) == (common ? 1 : static_cast<int>(count)));
      CHECK(times(page.str(), reason) == (common ? 1 : static_cast<int>(count)));
      if (common) CHECK(text.find(reason) > last);
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
  CHECK(because() == std::vector<std::string>{"catalog/devices/k80.yaml has other content",
                                              "catalog/prices.csv has other content (not named by the run)"});
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
