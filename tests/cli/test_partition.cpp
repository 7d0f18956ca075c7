// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/quantity.h"
#include "tests/cli/program.h"

using nlohmann::json;

namespace {

/// Two operations of 100 us side by side, between two of 10 us; ids in no order.
const std::string graph = R"({"name": "diamond", "nodes": [
  {"id": 8, "time_us": 10}, {"id": 1, "time_us": 100, "output_bytes": 13000, "memory_bytes": 2048},
  {"id": 5, "time_us": 100}, {"id": 0, "time_us": 10, "output_bytes": 130000}],
  "edges": [[0, 1], [0, 5], [1, 8], [5, 8]]})";

const std::vector<std::string> methods{
    "pardnn", "pardnn_published", "linear_clustering", "heft", "metis", "scotch", "zoltan",
    "dfs",    "random",           "round_robin",       "best"};

}  // namespace

TEST_CASE("partition: every method answers in the agreed form") {
  const Workplace place;
  place.file("graph.json", graph);
  for (const std::string& method : methods) {
    CAPTURE(method);
    const Finished run =
        place.convoy({"partition", "graph.json", "--method", method, "--parts", "2", "--json"});
    if (method == "zoltan" && run.exit_code != 0) {
      CHECK(run.err == "--method: this convoy was built without zoltan (docs/partition.md)\n");
      continue;
    }
    REQUIRE(run.exit_code == 0);
    CHECK(run.err.empty());
    const json report = json::parse(run.out);
    CHECK(report["method"] == method);
    CHECK(report["parts"] == 2);
    CHECK(report["makespan_us"].get<double>() >= 120);
    CHECK(report["schedule_makespan_us"].get<double>() >= 120);
    CHECK(report["cut_bytes"].get<double>() >= 0);
    CHECK(report["load_imbalance"].get<double>() >= 1);
    CHECK(report["peak_memory_bytes"].size() == 2);
    CHECK(report["fits"] == true);
    CHECK(report["partition_s"].get<double>() >= 0);
    CHECK(report["assignment"].size() == 4);
    for (const json& part : report["assignment"]) CHECK((part == 0 || part == 1));
  }
}

TEST_CASE("partition: the assignment is in the file's order, links are what the options say") {
  const Workplace place;
  place.file("graph.json", graph);
  // Round robin over the ids 0, 1, 5, 8: parts 0, 1, 0, 1; the file lists 8, 1, 5, 0. Messages of 0's 130 kB
  // at 1 GB/s take 130 us and 50 us of latency: 1 runs 190-290 on part 1; 5 runs 10-110 on part 0, its
  // message of nothing arrives at 160; 8 runs 290-300 on part 1. The cut: 0 to part 1; 5 has no bytes.
  const json report =
      json::parse(place
                      .convoy({"partition", "graph.json", "--method", "round_robin", "--parts", "2",
                               "--bandwidth", "1GB/s", "--latency", "50us", "--json"})
                      .out);
  CHECK(report["assignment"] == json{1, 1, 0, 0});
  CHECK(report["makespan_us"] == 300);
  CHECK(report["cut_bytes"] == 130000);
}

TEST_CASE("partition: a table for people prints the seed of what draws, and what does not fit") {
  const Workplace place;
  place.file("graph.json", graph);
  const Finished run = place.convoy(
      {"partition", "graph.json", "--method", "random", "--seed", "7", "--parts", "2", "--memory", "1kB"});
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("random, seed 7\n") != std::string::npos);
  CHECK(run.out.find("NO, not into") != std::string::npos);
}

TEST_CASE("partition: the table for people has the figures of the JSON") {
  const Workplace place;
  place.file("graph.json", graph);
  for (const std::string method : {"round_robin", "heft", "dfs"})
    for (const int parts : {1, 2, 3}) {
      CAPTURE(method);
      CAPTURE(parts);
      const auto partitioned = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments{"partition", "graph.json", "--method",
                                           method,      "--parts",    fmt::format("{}", parts),
                                           "--memory",  "1MB"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return place.convoy(arguments).out;
      };
      const json report = json::parse(partitioned({"--json"}));
      std::vector<std::string> peaks;
      for (const double bytes : report["peak_memory_bytes"]) peaks.push_back(convoy::format_bytes(bytes));
      std::map<std::string, std::string> rows;  // by label
      std::istringstream table(partitioned({}));
      for (std::string line; std::getline(table, line);) {
        const std::size_t gap = line.find("  "), text = line.find_first_not_of(' ', gap);
        if (gap != std::string::npos && text != std::string::npos)
          rows[line.substr(0, gap)] = line.substr(text);
      }
      const auto time = [&](const char* key) {
        return convoy::format_time(1e-6 * report[key].get<double>());
      };
      CHECK(rows["parts"] == fmt::format("{}", parts));
      CHECK(rows["method"] == method);
      CHECK(rows["makespan"].starts_with(time("makespan_us") + ", "));
      CHECK(rows["own schedule"] == time("schedule_makespan_us"));
      CHECK(rows["cut"] == convoy::format_bytes(report["cut_bytes"].get<double>()));
      CHECK(rows["load imbalance"] == fmt::format("{:.3f}", report["load_imbalance"].get<double>()));
      CHECK(rows["peak memory"] == fmt::format("{}", fmt::join(peaks, ", ")));
      CHECK(rows["fits"].starts_with(report["fits"].get<bool>() ? "yes, " : "NO, "));
    }
}

TEST_CASE("partition: an experiment stands for its training graph") {
  const Workplace place;
  place.file("experiment.yaml", small_experiment());
  const Finished run = place.convoy({"partition", "experiment.yaml", "--parts", "2", "--json"});
  REQUIRE(run.exit_code == 0);
  CHECK(json::parse(run.out)["assignment"].size() > 3);
}

TEST_CASE("partition: a network by its shape is partitioned as the graph that check counts") {
  const Workplace place;
  place.file("lstm.yaml",
             "network: {kind: recurrent, layers: 2, steps: 3, hidden: 64, vocabulary: 100}\n"
             "device: v100-sxm2-32gb\nbatch: 8\noptimizer: sgd\n");
  const Finished counted = place.convoy({"check", "lstm.yaml"});
  REQUIRE(counted.exit_code == 0);
  const Finished run = place.convoy({"partition", "lstm.yaml", "--method", "heft", "--parts", "2", "--json"});
  REQUIRE(run.exit_code == 0);
  const json report = json::parse(run.out);
  CHECK(counted.out ==
        fmt::format("lstm: {} operations and variables for convoy partition\n", report["assignment"].size()));
  CHECK(report["makespan_us"].get<double>() >= report["lower_bound_us"].get<double>());

  const Finished simulated = place.convoy({"run", "lstm.yaml"});
  CHECK(simulated.exit_code == 2);
  CHECK(simulated.err == "lstm.yaml:1:1: is a network for convoy partition, not an experiment\n");
}

TEST_CASE("partition: wrong input is one line and exit code 2") {
  const Workplace place;
  place.file("graph.json", graph);
  place.file("bad.json", R"({"nodes": [{"id": 0, "time_us": -1}], "edges": []})");
  const struct {
    std::vector<std::string> arguments;
    const char* error;
  } cases[] = {
      {{"bad.json", "--parts", "2"}, "bad.json:1:33: 'time_us' must not be negative\n"},
      {{"none.json", "--parts", "2"}, "none.json: cannot be read\n"},
      {{"graph.json", "--parts", "2", "--bandwidth", "0GB/s"}, "--bandwidth: must be more than 0\n"},
      {{"graph.json"}, "convoy: --parts is required (convoy --help says more)\n"},
  };
  for (const auto& [arguments, error] : cases) {
    std::vector<std::string> all{"partition"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Finished run = place.convoy(all);
    CHECK(run.exit_code == 2);
    CHECK(run.err == error);
    CHECK(run.out.empty());
  }
  for (const char* option : {"--memory", "--latency", "--bandwidth"}) {
    const Finished run = place.convoy({"partition", "graph.json", "--parts", "2", option, "16"});
    CHECK(run.exit_code == 2);
    CHECK(run.err.starts_with(std::string(option) + ": "));
    CHECK(run.err.find('\n') == run.err.size() - 1);
  }
  CHECK(place.convoy({"partition", "graph.json", "--parts", "0"}).exit_code == 2);
  CHECK(place.convoy({"partition", "graph.json", "--parts", "2", "--method", "magic"}).exit_code == 2);
}
