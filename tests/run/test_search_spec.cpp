// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/run/searches.h"
#include "tests/support/approx.h"

using namespace convoy;
using namespace convoy::searches;

TEST_CASE("search: the usual candidates of every kind, for the cluster at hand") {
  const RunOutput found = Written(searched("objective: throughput")).search();
  std::vector<std::string> kinds;
  for (const CandidateResult& row : found.result.search->ranking) {
    CAPTURE(row.strategy);
    CHECK(row.outcome != "failed");
    kinds.push_back(row.candidate.find("kind")->scalar);
    if (const YamlNode* servers = row.candidate.find("servers")) CHECK(servers->scalar == "4");
  }
  for (const char* kind : {"single", "data_parallel", "pipeline", "filter_parallel", "hypergraph", "pardnn"})
    CHECK(std::count(kinds.begin(), kinds.end(), kind) > 0);
  CHECK(std::count(kinds.begin(), kinds.end(), "elastic") == 0);
  CHECK(*found.result.search->ranking[0].value ==
        approx(found.result.throughput_images_per_s).epsilon(1e-12));
}

TEST_CASE("search: a candidate's lists of values are multiplied out, the last key fastest") {
  const auto all = [](const std::string& mapping) {
    std::string text;
    for (const YamlNode& candidate : multiplied_out(parse_yaml(mapping, "m")))
      text += to_flow(candidate) + " ";
    return text;
  };
  CHECK(all("{kind: single}") == "{kind: single} ");
  CHECK(all("{kind: single, micro_batches: [1, 2]}") ==
        "{kind: single, micro_batches: 1} {kind: single, micro_batches: 2} ");
  CHECK(all("{a: [1, 2], kind: [x, y]}") ==
        "{a: 1, kind: x} {a: 2, kind: x} {a: 1, kind: y} {a: 2, kind: y} ");
  CHECK(all("{kind: x, inner: {a: [1, 2]}, b: [{c: [3, 4]}, 5]}") ==
        "{kind: x, inner: {a: 1}, b: {c: 3}} {kind: x, inner: {a: 1}, b: {c: 4}} {kind: x, inner: {a: 1}, b: "
        "5} "
        "{kind: x, inner: {a: 2}, b: {c: 3}} {kind: x, inner: {a: 2}, b: {c: 4}} {kind: x, inner: {a: 2}, b: "
        "5} ");
  // Keys that take a list.
  CHECK(all("{kind: pipeline, begins: [l2, l3]}") == "{kind: pipeline, begins: [l2, l3]} ");
  CHECK(all("{kind: pipeline, begins: [[l2], [l3]]}") ==
        "{kind: pipeline, begins: [l2]} {kind: pipeline, begins: [l3]} ");
}

TEST_CASE(
    "search: a candidate's keys stand in the order of their table, however deep, and values as they are") {
  const auto ordered = [](const std::string& strategy) {
    return to_flow(in_table_order(parse_yaml(strategy, "s")));
  };
  CHECK(ordered("{micro_batches: 4, stages: 2, kind: pipeline}") ==
        ordered("{kind: pipeline, stages: 2, micro_batches: 4}"));
  const std::string inner = ordered(
      "{stages: 2, inner: {bucket: 1MB, algorithm: ring, sync: all_reduce, kind: data_parallel}, kind: "
      "pipeline}");
  CHECK(inner == ordered("{kind: pipeline, inner: {kind: data_parallel, algorithm: ring, bucket: 1MB, sync: "
                         "all_reduce}, stages: 2}"));
  CHECK(inner.find("{kind: data_parallel, sync: all_reduce, ") != std::string::npos);
  CHECK(ordered("{conv: {width: 3, height: 2}, kind: hybrid, groups: [{layout: {width: 3, height: 2}, kind: "
                "conv2d}]}") ==
        ordered("{kind: hybrid, groups: [{kind: conv2d, layout: {height: 2, width: 3}}], conv: {height: 2, "
                "width: 3}}"));
  CHECK(ordered("{kind: pipeline, begins: [b, a], stages: 3}").find("[b, a]") != std::string::npos);
}

TEST_CASE("search: what is wrong is an error with its place") {
  const auto error = [](const std::string& keys) { return Written(searched(keys)).error(); };
  CHECK(error("objective: speed") ==
        ":5:35: strategy.objective: unknown value 'speed'; allowed: step_time, throughput, cost, energy, "
        "memory");
  CHECK(error("budget: 0") ==
        ":5:32: strategy.budget: 0 is out of range: between 1 and 1000000000 is allowed");
  CHECK(
      error("candidate: []") ==
      ":5:24: strategy.candidate: unknown key (did you mean 'candidates'?); known here: budget, candidates, "
      "kind, objective");
  CHECK(error("candidates: []") ==
        ":5:36: strategy.candidates: expected a list of strategies such as [{kind: single}], found an empty "
        "list");
  CHECK(error("candidates: [single]") ==
        ":5:37: strategy.candidates: expected a mapping (key: value), found 'single'");
  CHECK(error("candidates: [{kind: single, micro_batch: 2}]") ==
        ":5:52: strategy.micro_batch: unknown key (did you mean 'micro_batches'?); known here: kind, "
        "micro_batches");
  CHECK(error("candidates: [{kind: auto}]") ==
        ":5:44: strategy.kind: auto simulates other strategies to find the best; it cannot be a part of one, "
        "or "
        "a candidate");
  CHECK(error("objective: cost") ==
        ":5:35: strategy.objective: cost is that of an epoch: give training.dataset");
  const std::string none = error("candidates: [{kind: pipeline, stages: [3, 5]}]");
  CHECK(none.starts_with(":5:36: strategy.candidates: none of 2 can run; the first: "));
  CHECK(none.ends_with("the model has 2 layers that run a kernel, too few for 3 stages"));
  const Written unpriced(searched("objective: cost", "{global_batch: 16, dataset: {samples: 10}}"));
  CHECK(unpriced.error() == ":5:35: strategy.objective: cost needs the price of every server of the cluster");
}

TEST_CASE("search: candidates of one label are told apart by the keys in which they differ") {
  const YamlNode a = parse_yaml("{kind: x, bucket: 5MiB, o: 1}", "t"), b = parse_yaml("{kind: x, o: 1}", "t"),
                 c = parse_yaml("{kind: y, bucket: 5MiB}", "t");
  CHECK(telling_names({"ring", "ring", "tree"}, {&a, &b, &c}) ==
        std::vector<std::string>{"ring (bucket: 5MiB)", "ring", "tree"});
}
