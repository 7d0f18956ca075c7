// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

using nlohmann::json;

namespace {

/// Four K80s on a slow network, where one device is nearly as fast.
std::string auto_experiment(const std::string& rest) {
  return "experiment: auto\n"
         "model: alexnet\n"
         "training: {global_batch: 64, precision: fp32, dataset: {samples: 1000}}\n"
         "cluster: {server: gcp-n1-standard-8-k80, nodes: 4}\n" +
         rest;
}

const char* const candidates =
    "[{kind: single}, {kind: data_parallel, sync: all_reduce, algorithm: [ring, tree]}, {kind: "
    "data_parallel, "
    "sync: parameter_server, mode: [sync, async]}, {kind: pipeline, stages: 3}]";

}  // namespace

TEST_CASE("auto: the run is the best candidate's own, in a sweep beside it too, for any number of jobs") {
  const Workplace place;
  place.file("e.yaml",
             auto_experiment("strategy: {kind: single}\n"
                             "sweep:\n"
                             "  cluster.nodes: [2, 4]\n"
                             "  strategy: [{kind: auto, candidates: " +
                             std::string(candidates) +
                             "}, {kind: single}, {kind: data_parallel, sync: all_reduce, algorithm: "
                             "ring}, {kind: data_parallel, sync: all_reduce, algorithm: tree}, {kind: "
                             "data_parallel, sync: parameter_server}, {kind: data_parallel, sync: "
                             "parameter_server, mode: async}]\n"));
  const Finished run = place.convoy({"run", "e.yaml", "--json"});
  REQUIRE(run.exit_code == 0);
  const json runs = json::parse(run.out)["runs"];
  REQUIRE(runs.size() == 12);
  for (const std::size_t first : {std::size_t{0}, std::size_t{6}}) {
    json best = runs[first];
    const json search = best["auto"];
    CHECK(search["proven"] == true);
    CHECK(search["ranking"].size() == 6);
    CHECK(search["ranking"][5]["outcome"] == "cannot_run");  // 3 stages of 2 or 4 devices: replicated or not
    std::size_t same = 0;
    for (std::size_t i = first + 1; i < first + 6; ++i) {
      CHECK(best["step_time_s"] <= runs[i]["step_time_s"]);
      if (runs[i]["strategy"] != best["strategy"]) continue;
      ++same;
      json alone = runs[i];
      for (json* result : {&alone, &best}) {
        result->erase("id");
        result->erase("point");
        result->erase("auto");
      }
      CHECK(alone == best);
    }
    CHECK(same == 1);
  }
  for (const char* jobs : {"2", "5"})
    CHECK(place.convoy({"run", "e.yaml", "--json", "--jobs", jobs}).out == run.out);
}

TEST_CASE(
    "auto: a file that a candidate names is part of the point, which is computed again where it changes") {
  const Workplace place;
  place.file("e.yaml",
             "experiment: e\nmodel: lenet5\ntraining: {batch_per_device: 8, precision: fp32}\n"
             "cluster: {server: gcp-n1-standard-8-k80, nodes: 8}\n"
             "strategy: {kind: auto, candidates: [{kind: data_parallel, sync: all_reduce, algorithm: {file: "
             "s.yaml}}]}\n");
  const auto step_s = [&](const std::string& schedule, std::vector<std::string> more) {
    place.shell("cp '" CONVOY_SOURCE "/configs/collectives/" + schedule + ".yaml' s.yaml");
    more.insert(more.begin(), {"run", "e.yaml", "--json", "--out", "o"});
    return json::parse(place.convoy(more).out)["runs"][0]["step_time_s"].get<double>();
  };
  const double ring_s = step_s("ring", {}), tree_s = step_s("tree", {});
  CHECK(tree_s != ring_s);
  CHECK(tree_s == step_s("tree", {"--fresh"}));
  CHECK(ring_s == step_s("ring", {}));
}

TEST_CASE("auto: table, CSV and trace of one search") {
  const Workplace place;
  place.file("e.yaml", auto_experiment("strategy: {kind: auto, objective: cost, candidates: " +
                                       std::string(candidates) + "}\n"));
  CHECK(place.convoy({"check", "e.yaml"}).exit_code == 0);
  const Finished run = place.convoy({"run", "e.yaml", "--out", "o", "--trace", "--jobs", "3"});
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("\nauto: ") != std::string::npos);
  CHECK(run.out.find("\nrun 1: auto, cost: 6 candidates, ") != std::string::npos);
  CHECK(run.out.find("cannot run: ") != std::string::npos);
  CHECK(place.read("o/results.csv")
            .find(",auto_objective,auto_planned,auto_simulated,auto_pruned_by_cost_table,auto_proven,auto_"
                  "candidates,") != std::string::npos);
  CHECK(json::parse(place.read("o/trace.json"))["traceEvents"].size() > 10);
  const json search = json::parse(place.read("o/results.json"))["runs"][0]["auto"];
  CHECK(search["objective"] == "cost");
  CHECK(search["ranking"][0]["value"] ==
        json::parse(place.read("o/results.json"))["runs"][0]["cost_usd_per_epoch"]);
}

TEST_CASE("auto: what is wrong ends as one line, exit code 2 and no results") {
  const Workplace place;
  place.file("e.yaml",
             auto_experiment("strategy: {kind: auto, candidates: [{kind: pipeline, stages: 99}]}\n"));
  for (const char* command : {"check", "run"}) {
    const Finished run = place.convoy({command, "e.yaml"});
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK(run.err.find("e.yaml:5:36: strategy.candidates: none of 1 can run; the first: ") !=
          std::string::npos);
  }
}

TEST_CASE(
    "auto: a candidate whose simulation crashes is told, the best of the others is written, exit code 70") {
  // Message by message a ring of 512 hosts of which no NIC equals another takes a second and more. What
  // simulates it is a process of a process of the program: the first that lives for a fifth of a second ends
  // as by a bug.
  const Workplace place;
  place.file("e.yaml",
             "experiment: e\nmodel: alexnet\ntraining: {batch_per_device: 8, precision: fp32}\n"
             "cluster: {server: aws-p3.2xlarge, nodes: 512, nic_spread: 10%}\n"
             "strategy: {kind: auto, candidates: [{kind: data_parallel, sync: all_reduce, algorithm: ring, "
             "fidelity: "
             "chunk}, {kind: single}]}\n");
  const Finished run = place.shell(
      "\"$CONVOY\" run e.yaml --out o --jobs 1 &\n"
      "main=$!\n"
      "children() { cat /proc/$1/task/$1/children 2>/dev/null; }\n"
      "hit=''\n"
      "while [ -z \"$hit\" ] && kill -0 $main 2>/dev/null; do\n"
      "  for worker in $(children $main); do for process in $(children $worker); do\n"
      "    sleep 0.2\n"
      "    kill -SEGV $process 2>/dev/null && hit=yes\n"
      "  done; done\n"
      "done\n"
      "wait $main\n");
  CAPTURE(run.out);
  CHECK(run.exit_code == 70);
  CHECK(run.err.find("convoy: run 1: auto: ring all-reduce: failed: ") != std::string::npos);
  const json search = json::parse(place.read("o/results.json"))["runs"][0]["auto"];
  CHECK(search["proven"] == false);
  CHECK(search["ranking"][0]["strategy"] == "single device");
  CHECK(search["ranking"][1]["outcome"] == "failed");
}
