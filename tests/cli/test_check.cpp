// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "sim/base/quantity.h"
#include "tests/cli/program.h"

using nlohmann::json;

TEST_CASE("check: says what would be run and runs nothing") {
  const Workplace place;
  place.file("e.yaml", small_experiment() + "sweep: {cluster.nodes.0.count: [1, 2]}\n");
  const Finished run = place.convoy({"check", "e.yaml"});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  std::string points = "small: 2 runs\n";
  for (const int count : {1, 2})
    points += fmt::format("  {0}  cluster.nodes.0.count: {0}\n     memory of n0: MEMORY\n", count);
  CHECK(std::regex_replace(
            run.out,
            std::regex("memory of n0: [0-9.]+ [KM]iB of 16.0 GiB at the peak \\(weights [^)]+\\), "
                       "process [^\n]+"),
            "memory of n0: MEMORY") == points);
  CHECK(place.files() == std::vector<std::string>{"e.yaml"});
}

TEST_CASE("check: tells the memory that a run reports, and warns of what does not fit, as it does") {
  const Workplace place;
  const auto text = [](int batch) {
    return fmt::format(
        "experiment: e\nmodel: resnet50\ntraining: {{batch_per_device: {}, precision: fp32}}\ncluster: "
        "{{server: aws-p3.2xlarge, nodes: 2, fabric: {{kind: switch, bandwidth: 10Gbps, latency: 25us, "
        "protocol: "
        "tcp}}}}\nstrategy: {{kind: data_parallel, sync: all_reduce}}\n",
        batch);
  };
  for (const int batch : {16, 100'000'000}) {
    CAPTURE(batch);
    place.file("e.yaml", text(batch));
    const Finished check = place.convoy({"check", "e.yaml"});
    CAPTURE(check.out);
    CAPTURE(check.err);
    CHECK(check.exit_code == 0);
    const json run = json::parse(place.convoy({"run", "e.yaml", "--json"}).out)["runs"][0];
    const json& memory = run["per_device"][0]["memory"];
    std::string classes;
    for (const char* name : {"weights", "gradients", "optimizer", "activations", "workspace", "reserved"})
      if (memory[name].get<double>() > 0)
        classes += fmt::format("{}{} {}", classes.empty() ? "" : ", ", name,
                               convoy::format_bytes(memory[name].get<double>()));
    const std::string told =
        fmt::format("memory of n0: {} of 16.0 GiB at the peak ({}), process {}\n",
                    convoy::format_bytes(run["peak_memory_bytes"].get<double>()), classes,
                    convoy::format_bytes(run["process_memory_bytes"].get<double>()));
    CHECK(check.out == "e: 1 run\n  " + told);
    const bool warned = check.err.find("convoy: warning: the process on n0 needs 7.7") != std::string::npos &&
                        check.err.ends_with(": this run would fail\n");
    CHECK(warned == !run["fits"].get<bool>());
    if (run["fits"].get<bool>()) CHECK(check.err.empty());
  }
  CHECK(place.files() == std::vector<std::string>{"e.yaml"});
}

TEST_CASE("check: warns of every strategy as a run of it does, and of devices that have nothing to do") {
  const std::pair<std::string, std::size_t> strategies[] = {
      {"{kind: single}", 3},
      {"{kind: data_parallel, sync: all_reduce}", 0},
      {"{kind: data_parallel, sync: gossip}", 0},
      {"{kind: data_parallel, sync: all_reduce, sync_every: 4}", 0},
      {"{kind: data_parallel, sync: parameter_server, mode: async}", 0},
      {"{kind: pipeline, stages: 2, micro_batches: 2}", 0},
      {"{kind: pardnn, parts: 3}", 1},
      {"{kind: hypergraph, parts: 2}", 2},
      {"{kind: filter_parallel}", 0}};
  std::size_t most = 0;
  // A fabric that says no protocol is warned of too: all that a run warns of is told, not the first alone.
  for (const char* fabric : {"", ", fabric: {kind: switch, bandwidth: 1Gbps, latency: 50us}"})
    for (const auto& [strategy, idle] : strategies) {
      CAPTURE(strategy);
      const Workplace place;
      place.file("e.yaml",
                 fmt::format("experiment: e\nmodel: lenet5\ntraining: {{batch_per_device: 8}}\n"
                             "cluster: {{server: gcp-n1-standard-8-k80, nodes: 4{}}}\nstrategy: {}\n",
                             fabric, strategy));
      std::string warnings;
      std::size_t told = 0;
      const json results = json::parse(place.convoy({"run", "e.yaml", "--json"}).out);
      for (const std::string warning : results["runs"][0]["warnings"]) {
        warnings += fmt::format("convoy: warning: {}\n", warning);
        if (warning.starts_with(fmt::format("{} of the 4 devices (n{}", idle, 4 - idle))) ++told;
      }
      CHECK(place.convoy({"check", "e.yaml"}).err == warnings);
      most = std::max(most, results["runs"][0]["warnings"].size());
      CHECK(told == (idle > 0 ? 1 : 0));
      CHECK((warnings.find("nothing to do") != std::string::npos) == (idle > 0));
    }
  CHECK(most >= 2);
}
