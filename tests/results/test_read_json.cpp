// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/input_error.h"
#include "sim/results/read_json.h"
#include "sim/results/write_json.h"
#include "tests/results/results_fixture.h"

using namespace convoy;
using nlohmann::ordered_json;

namespace {

std::string written(const Results& results) {
  std::ostringstream out;
  write_json(results, out);
  return out.str();
}

Results read(const std::string& text) {
  std::istringstream in(text);
  return read_json(in, "o/results.json");
}

std::string complaint(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

/// Results whose first run has every part there is.
Results full_results() {
  Results results{
      "demo",
      {run_of("1", 2, 10.0 / 3), run_of("2", 4, 20)},
      {"0.1.0", "3.32.0", "max-min", "abc", {"a=1", "b='x'"}, {{"z.yaml", "def"}, {"a.csv", "ghi"}}}};
  results.runs[0].point =
      coordinates({{"z", "[1, 2.50, 'x y', true, null, {k: 1e-7, j: '1'}]"}, {"a", "25MiB"}});
  results.runs[1].point = coordinates({{"z", "'true'"}, {"a", "123456789012345678"}});
  RunResult& run = results.runs[0];
  run.epoch_time_s = 1.0 / 7;
  run.cost_usd_per_epoch = 3e22;
  run.device_memory_bytes = 12e9;
  run.fits = false;
  run.per_device.push_back({"\"<&>\n\xC3\xB6", 0.1, 1e-99, 2, 3, 0.1, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}});
  run.phases = {{0, 2, 0, 1.5, 10, 4, 5, 7}, {9, 4, 20.25, 1, 20, 2, 3, 6}};
  run.reconfigurations = {{8, 2, 4, 0.125, 9}};
  run.staleness = Staleness{1.5, 3};
  run.bubble_fraction = 0.25;
  run.stages = {{"n0", {"n0", "n1"}, {"conv", "fc"}, 0.5, 7}, {"n2", {"n2", "n3"}, {}, 0.25, 8}};
  run.partition = PartitionSummary{"hypergraph", 1e6, 5e5, 1.0625};
  run.search = SearchSummary{
      "step_time",
      2,
      1,
      1,
      true,
      {{"ring", parse_yaml("{kind: data_parallel, bucket: 5MiB}", "t"), "best", 1.5, 1.25, true, "compute"},
       {"tree", parse_yaml("{kind: tree}", "t"), "cannot_run", std::nullopt, std::nullopt, false,
        "cannot run"}}};
  run.layouts = {{"batch", {"conv1", "relu1"}, 1e5, 0, 2e5}, {"filter", {"fc"}, 3e5, 1e6, 0}};
  results.points = 5;
  results.failed = {{"3", results.runs[1].point, "memory", "ran out of memory"}};
  results.schedules = {{"afs-l", 0xffffffffffffffff, 200, 120, 3600.5, 7200, 0.75, 31}};
  return results;
}

/// The written form of full_results() after `change` of the document.
template <class Change>
std::string changed(Change change) {
  ordered_json document = ordered_json::parse(written(full_results()));
  change(document);
  return document.dump();
}

}  // namespace

TEST_CASE("read json: what was written, to the last byte") {
  const std::string text = written(full_results());
  CHECK(written(read(text)) == text);
  const std::string none = written({"no runs", {}, {}});
  CHECK(written(read(none)) == none);
}

TEST_CASE("read json: the values, not only their form") {
  const Results results = read(written(full_results()));
  const Results expected = full_results();
  CHECK(results.experiment == "demo");
  REQUIRE(results.runs.size() == 2);
  const RunResult &run = results.runs[0], &was = expected.runs[0];
  CHECK(run.per_device == was.per_device);
  CHECK(run.per_link == was.per_link);
  CHECK(run.phases == was.phases);
  CHECK(run.reconfigurations == was.reconfigurations);
  CHECK(run.stages == was.stages);
  CHECK(run.staleness == was.staleness);
  CHECK(run.partition == was.partition);
  CHECK(run.layouts == was.layouts);
  CHECK(run.cost_usd_per_epoch == was.cost_usd_per_epoch);
  CHECK(run.servers == "box");
  CHECK(run.device_type == "k80");
  CHECK(run.network_model == "max-min");
  CHECK(run.device_memory_bytes == 12e9);
  CHECK_FALSE(run.fits);
  CHECK(results.runs[1].fits);
  CHECK(results.runs[1].point[0].second.quoted);
  CHECK(to_flow(run.point[0].second) == "[1, 2.5, x y, true, null, {k: 1e-7, j: 1}]");
  CHECK(results.points == 5);
  REQUIRE(results.failed.size() == 1);
  CHECK(results.failed[0].kind == "memory");
  CHECK(results.schedules[0].seed == 0xffffffffffffffff);
}

TEST_CASE("read json: a file cut anywhere is refused in one line, and never taken for whole") {
  const std::string text = written(full_results());
  const std::size_t end = text.rfind('}');  // behind it only the last line's end
  for (std::size_t size = 0; size <= end; ++size) {
    const std::string error = complaint(text.substr(0, size));
    if (error != "o/results.json: ends too early: it is no whole JSON document") {
      CAPTURE(size);
      CHECK(error.starts_with("o/results.json: not JSON: line "));  // cut within a name, a number or a letter
    }
  }
}

TEST_CASE("read json: what is wrong is said with its place") {
  using Change = void (*)(ordered_json&);
  const auto error_after = [](Change change) { return complaint(changed(change)); };
  CHECK(error_after([](ordered_json& d) { d["runs"][1]["step_time_s"] = "1"; }) ==
        "o/results.json: runs[1].step_time_s: expected a number, not text");
  CHECK(error_after([](ordered_json& d) { d["runs"][0]["per_device"][1]["memory"]["weights"] = -1; }) ==
        "o/results.json: runs[0].per_device[1].memory.weights: expected a number that is not below zero");
  CHECK(error_after([](ordered_json& d) { d["runs"][0]["energy_j"] = 1e200; }) ==
        "o/results.json: runs[0].energy_j: a number that large is no result");
  CHECK(error_after([](ordered_json& d) { d["runs"][1]["devices"] = 1.5; }) ==
        "o/results.json: runs[1].devices: expected a whole number that is not below zero");
  CHECK(error_after([](ordered_json& d) { d["runs"][1]["devices"] = 0; }) ==
        "o/results.json: runs[1]: a run without devices");
  CHECK(error_after([](ordered_json& d) { d["runs"][1]["fits"] = 1; }) ==
        "o/results.json: runs[1].fits: expected true or false, not a number");
  CHECK(error_after([](ordered_json& d) { d["runs"][1].erase("idle_s"); }) ==
        "o/results.json: runs[1]: 'idle_s' is missing");
  CHECK(error_after([](ordered_json& d) { d["runs"][1]["speed"] = 1; }) ==
        "o/results.json: runs[1]: unknown name 'speed'");
  CHECK(error_after([](ordered_json& d) { d["runs"][1] = 7; }) ==
        "o/results.json: runs[1]: expected an object, not a number");
  CHECK(error_after([](ordered_json& d) { d["runs"] = 7; }) ==
        "o/results.json: runs: expected a list, not a number");
  CHECK(error_after([](ordered_json& d) { d["runs"][0]["per_link"] = nullptr; }) ==
        "o/results.json: runs[0].per_link: expected a list, not null");
  CHECK(error_after([](ordered_json& d) { d["runs"][0]["partition"]["partition_s"] = 1; }) ==
        "o/results.json: runs[0].partition.partition_s: expected null");
  CHECK(error_after([](ordered_json& d) {
          d["runs"][1]["point"] = {{"b", 1}};
        }) == "o/results.json: runs[1]: its point has other names than the first run's");
  CHECK(error_after([](ordered_json& d) { d["manifest"]["set"][1] = 2; }) ==
        "o/results.json: manifest.set[1]: expected text, not a number");
  CHECK(error_after([](ordered_json& d) { d["manifest"]["inputs"]["a.csv"] = true; }) ==
        "o/results.json: manifest.inputs.a.csv: expected text, not a truth value");
  CHECK(error_after([](ordered_json& d) { d["done"] = 3; }) ==
        "o/results.json: 'done' is 3, and there are 2 runs");
  CHECK(error_after([](ordered_json& d) { d["auto"] = 1; }) == "o/results.json: unknown name 'auto'");
  CHECK(error_after([](ordered_json& d) { d.erase("manifest"); }) == "o/results.json: 'manifest' is missing");
}

TEST_CASE("read json: other documents") {
  const std::string not_ours =
      "o/results.json: no results of convoy: does not begin with \"schema\": \"convoy.results/1\"";
  CHECK(complaint("{}") == not_ours);
  CHECK(complaint("[]") == not_ours);
  CHECK(complaint("3") == not_ours);
  CHECK(complaint(R"({"runs": [{}], "schema": "convoy.results/1"})") == not_ours);
  CHECK(complaint(R"({"schema": 1})") == not_ours);
  CHECK(complaint(R"({"schema": "convoy.results/2", "runs": [{}]})") ==
        "o/results.json: its schema is 'convoy.results/2'; this program reads 'convoy.results/1'");
  CHECK(complaint("") == "o/results.json: ends too early: it is no whole JSON document");
  CHECK(complaint("experiment: x") == "o/results.json: not JSON: line 1, column 1");
  CHECK(complaint(R"({"schema": "convoy.results/1", "experiment": "a", "experiment": "b"})") ==
        "o/results.json: the name 'experiment' is there twice in an object");
  CHECK(complaint(R"({"schema": "convoy.results/1", "experiment": 1e999})") ==
        "o/results.json: not JSON: a number is too large");
  CHECK(complaint(R"({"schema": "convoy.results/1", "experiment": )" + std::string(100'000, '[')) ==
        "o/results.json: nested deeper than 100 levels");
  std::string names = R"({"schema": "convoy.results/1", "runs": [{"point": {)";
  for (int i = 0; i < 20'000; ++i) names += "\"" + std::to_string(i) + "\": 1, ";
  CHECK(complaint(names) == "o/results.json: an object with more than 10000 names");
}
