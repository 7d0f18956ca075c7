// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "sim/run/out_of_resources.h"
#include "sim/run/workers.h"
#include "sim/studies/regions/border.h"
#include "sim/studies/regions/write_study.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// A ring of exact devices that sends 4 bytes a parameter after its backward pass, over links without
/// latency: it waits 2 (N - 1) / N x 4 P / B.
const std::string exact_ring = R"(
experiment: exact
model:
  name: one-layer
  input: [3, 8, 8]
  layers:
    - {name: opaque, kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: 1000000, output: [10], memory_bytes: 0}
training: {batch_per_device: 8, precision: fp32, optimizer: sgd}
cluster:
  name: lab
  nodes: [{name: n, count: 4, server: box}]
  fabric: {kind: switch, bandwidth: 10Gbps, latency: 0us, protocol: ideal}
  servers: {box: {devices: [{device: exact, count: 1}], interconnect: {kind: none}}}
  devices:
    exact: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0, launch_overhead: 0us}
strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring, overlap: false}
study:
  inputs:
    rate: {sets: cluster.fabric.bandwidth, range: [1Gbps, 100Gbps], because: a test}
    parameters: {sets: model.layers.0.parameters, range: [1000000, 100000000], because: a test}
  variants: {ring: {}}
  claims:
    - {claim: waits at most 100 ms, value: ring.exposed_comm_s, at_most: 0.1}
)";

std::string study_replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

StudyOptions options_with(std::size_t jobs) {
  StudyOptions options;
  options.sweep.jobs = jobs;
  return options;
}

StudyResult run_yaml(const std::string& yaml, std::size_t jobs = 2) {
  const Experiment experiment = Experiment::parse(yaml, "study.yaml", {});
  Store store;
  return run_study(experiment, read_study(experiment), store, options_with(jobs));
}

std::string study_json(const StudyResult& study) {
  std::ostringstream out;
  write_json(study, out);
  return out.str();
}

std::string study_error(const std::string& yaml) {
  try {
    run_yaml(yaml, 1);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// 2 x 3/4 x 4 P bytes at B = 1 Gbit/s x 100^u, P = 1e6 x 100^v take 0.048 x 100^(v - u) s.
double exact_wait_s(double u, double v) { return 0.048 * std::pow(100, v - u); }

}  // namespace

TEST_CASE("study: the share of the space, and borders, of a ring whose time is known in closed form") {
  // 0.048 x 100^(v - u) <= 0.1 where v <= u + a, a = log_100(0.1 / 0.048): all but a triangle of sides 1 - a.
  const double a = std::log(0.1 / 0.048) / std::log(100.0);
  const double share = 1 - 0.5 * (1 - a) * (1 - a);
  const StudyResult study = run_yaml(exact_ring + "  points: 256\n  refine: 12\n");
  const ClaimRegion& region = study.regions.front();
  REQUIRE(region.share.of == 256);
  CAPTURE(region.share.share());
  CAPTURE(*region.share.standard_error);
  CHECK(*region.share.standard_error < 0.03);
  CHECK(std::abs(region.share.share() - share) < 3 * *region.share.standard_error);
  for (std::size_t i = 0; i < study.outcomes.size(); ++i) {  // the simulator has the closed form
    const StudyPoint& point = study.sample.points[i];
    const double bytes = 6 * *study.spec.inputs[1].number_at(point[1]);
    CHECK(study.outcomes[i].values[0] ==
          approx(bytes / *study.spec.inputs[0].number_at(point[0])).epsilon(1e-9));
  }
  // From the middle, u = v = 1/2: the border over the rate is u = 1/2 - a, over parameters v = 1/2 + a.
  REQUIRE(region.borders.size() == 2);
  for (const StudyBorder& border : region.borders) {
    const double at = border.input == 0 ? 0.5 - a : 0.5 + a;
    CAPTURE(text_of(study.spec, border));
    CHECK(std::min(border.holds, border.fails) <= at);
    CHECK(std::max(border.holds, border.fails) >= at);
    CHECK(std::abs(border.holds - border.fails) < 1e-3);
  }
}

TEST_CASE("study: the input that alone decides has index 1, one that has no part in it 0") {
  const StudyResult study = run_yaml(study_replaced(exact_ring, "value: ring.exposed_comm_s, at_most: 0.1",
                                                    "value: rate / 1e9, at_most: 1.25") +
                                     "  points: 512\n");
  const ClaimRegion& region = study.regions.front();
  CHECK(region.share.share() == approx(0.5).epsilon(0.02));  // 10 Gbit/s is the middle of the logarithm
  CHECK(region.first_order[0] > 0.95);
  CHECK(region.first_order[1] < 0.03);
  CHECK(region.sentence.right > 0.99);
  CHECK(region.sentence.text.starts_with("for rate at most"));
  // Of "x + y <= 1" each explains half the variance between its classes: Var(E[1 | x]) / Var(1) = (1/12) / (1/4).
  const StudyResult both = run_yaml(study_replaced(exact_ring, "value: ring.exposed_comm_s, at_most: 0.1",
                                                   "value: rate * parameters, at_most: 1.25e16") +
                                    "  points: 768\n");
  for (const double index : both.regions.front().first_order) CHECK(index == approx(1.0 / 3).epsilon(0.25));
}

TEST_CASE("study: the words are of where a claim holds, or of where it does not if that is shorter") {
  const auto words = [](const std::string& value) {
    return run_yaml(study_replaced(exact_ring, "value: ring.exposed_comm_s, at_most: 0.1", value) +
                    "  points: 512\n")
        .regions.front()
        .sentence;
  };
  const std::string corner = "value: \"(rate > 1.25e9) && (parameters > 1e7)\", ";
  const RegionSentence inside = words(corner + "at_least: 1"), outside = words(corner + "at_most: 0");
  CHECK(inside.text.starts_with("for rate at least "));
  CHECK(inside.text.find(" and parameters at least ") != std::string::npos);
  CHECK(outside.text == "except " + inside.text);
  const StudyResult most = run_yaml(study_replaced(exact_ring, "value: ring.exposed_comm_s, at_most: 0.1",
                                                   corner + "at_most: 0") +
                                    "  points: 512\n");
  CHECK(sentence_of(most, 0).find(" % of the space, except for rate at least ") != std::string::npos);
  CHECK(inside.right > 0.99);
  const RegionSentence two = words(
      "value: \"(rate > 1.25e9) && (parameters > 1e7) || (rate < 1.25e9) && (parameters < 2e6)\", at_least: "
      "1");
  CHECK(two.text.starts_with("(1) for rate at most "));
  CHECK(two.text.find(" or (2) for rate at least ") != std::string::npos);
  // A third case within the first one is not worth its words.
  const RegionSentence one =
      words("value: \"(rate > 1.25e9) && ((parameters > 1e7) || (parameters < 1.04e6))\", at_least: 1");
  CHECK(one.text.starts_with("for rate at least "));
  CHECK(one.right < 1);
  CHECK(one.right > 0.97);
}

TEST_CASE(
    "study: what all cases have in common is said once, and of many values those that are not among them") {
  StudySpec spec;
  const auto input = [&](const char* name, const std::vector<const char*>& values) {
    StudyInput& added = spec.inputs.emplace_back();
    added.name = name;
    for (const char* const value : values) {
      YamlNode& node = added.values.emplace_back();
      node.kind = YamlNode::Kind::scalar;
      node.scalar = value;
    }
  };
  input("network", {"a", "b", "c", "d"});
  input("batch", {"1", "2", "3", "4"});
  input("nodes", {"1", "2", "3", "4"});
  std::vector<StudyPoint> points;
  std::vector<bool> holds;
  for (std::size_t i = 0; i < 4 * 4 * 4 * 4; ++i) {
    const std::size_t network = i % 4, batch = i / 4 % 4, nodes = i / 16 % 4;
    points.push_back({spec.inputs[0].position_of_level(network), spec.inputs[1].position_of_level(batch),
                      spec.inputs[2].position_of_level(nodes)});
    holds.push_back(network != 1 && (batch >= 2 || nodes < 1));
  }
  const RegionSentence sentence = describe_region(spec, {true, true, true}, points, holds);
  CHECK(sentence.right == 1);
  CHECK(sentence.text.starts_with("for network other than b, and there (1) for "));
  CHECK(sentence.text.find(" or (2) for ") != std::string::npos);
  CHECK(sentence.text.find("network", 5) == std::string::npos);
}

TEST_CASE("study: quantities in quotes are quantities") {
  const std::string quoted =
      study_replaced(exact_ring, "range: [1Gbps, 100Gbps]", "range: [\"1Gbps\", '100Gbps']");
  const StudyResult plain = run_yaml(exact_ring + "  grid: 3\n  refine: 0\n"),
                    same = run_yaml(quoted + "  grid: 3\n  refine: 0\n");
  CHECK(same.regions.front().share.count == plain.regions.front().share.count);
  CHECK(same.spec.inputs.front().low == plain.spec.inputs.front().low);
  CHECK(same.spec.inputs.front().high == 12.5e9);
}

TEST_CASE("study: every point of a grid is what the formula says") {
  const StudyResult study = run_yaml(exact_ring + "  grid: 6\n  refine: 0\n");
  REQUIRE(study.outcomes.size() == 36);
  std::size_t holds = 0;
  for (int x = 0; x < 6; ++x)
    for (int y = 0; y < 6; ++y) holds += exact_wait_s((x + 0.5) / 6, (y + 0.5) / 6) <= 0.1 ? 1 : 0;
  CHECK(study.regions.front().share.count == holds);
  CHECK_FALSE(study.regions.front().share.standard_error.has_value());
}

TEST_CASE("study: one set of inputs for all claims is found beside a sample that has none, or is not there") {
  const std::string two = study_replaced(exact_ring, "at_most: 0.1}", "at_most: 0.1, at_least: 0.0999}");
  const StudyResult thin =
      run_yaml(two + "    - {claim: few, value: parameters, at_most: 4e6}\n  points: 32\n  refine: 20\n");
  CHECK(thin.together.share.count == 0);
  REQUIRE(thin.together.set.has_value());
  CHECK(thin.together.searched);
  CHECK(thin.together_values[0] == approx(0.1).epsilon(2e-3));
  CHECK(thin.together_values[1] <= 4e6);
  const StudyResult never = run_yaml(
      study_replaced(exact_ring, "at_most: 0.1}",
                     "at_most: 0.1}\n    - {claim: more, value: ring.exposed_comm_s, at_least: 0.2}") +
      "  points: 32\n");
  CHECK_FALSE(never.together.set.has_value());
  CHECK(together_sentence(never).find("at none of 32 points") != std::string::npos);
  const StudyResult always =
      run_yaml(study_replaced(exact_ring, "at_most: 0.1}", "at_most: 10}") + "  points: 16\n");
  CHECK(always.regions.front().sentence.text == "everywhere");
  CHECK(*always.together.set == middle_point(always.spec));
  CHECK(always.regions.front().first_order.empty());
  CHECK(*always.regions.front().share.standard_error == approx(1.0 / 18).epsilon(1e-12));
}

TEST_CASE("study: points that are not possible count for nothing, and are told") {
  const StudyResult study = run_yaml(exact_ring + "  points: 64\n  possible_if: ['rate > 1.25e9']\n");
  CHECK(study.regions.front().share.of < 40);
  CHECK(study.regions.front().share.of > 24);
  REQUIRE(study.impossible.size() == 1);
  CHECK(study.impossible.front().first == "possible_if: rate > 1.25e9 is 0");
  CHECK(study.impossible.front().second == 64 - study.regions.front().share.of);
  CHECK(study_error(exact_ring + "  possible_if: ['rate > 1e12']\n").find("none of 256 points is possible") !=
        std::string::npos);
}

TEST_CASE("study: the same bytes on any number of jobs, and from points that a stopped study left") {
  const std::string yaml = exact_ring + "  points: 32\n";
  const std::string alone = study_json(run_yaml(yaml, 1));
  CHECK(alone == study_json(run_yaml(yaml, 3)));
  const Experiment experiment = Experiment::parse(yaml, "study.yaml", {});
  Store store;
  StudyOptions options = options_with(1);
  options.store_options = "test";
  std::size_t done = 0, all_of_first = 0, all_of_second = 0;
  options.sweep.progress = [&](const SweepProgress& now) {
    done = now.done, all_of_first = std::max(all_of_first, now.all);
  };
  options.sweep.stop = [&] { return done >= 5; };
  // Stopped by whoever asks; a study of so few points may be faster than the first question.
  const bool whole = run_study(experiment, read_study(experiment), store, options).whole;
  options.sweep.stop = [] { return false; };
  options.sweep.progress = [&](const SweepProgress& now) {
    all_of_second = std::max(all_of_second, now.all);
  };
  const StudyResult again = run_study(experiment, read_study(experiment), store, options);
  CHECK(again.whole);
  CHECK(all_of_second + 5 <= all_of_first);
  if (whole) CHECK(all_of_second == 0);
  CHECK(study_json(again) == alone);
  CHECK(store.subject().points.size() == again.simulated);
}

TEST_CASE("study: what is wrong is said with its place") {
  const auto with = [](const std::string& from, const std::string& to) {
    return study_error(study_replaced(exact_ring, from, to));
  };
  CHECK(with("range: [1Gbps, 100Gbps]", "range: [1Gbps]") ==
        "study.yaml:19:51: study.inputs.rate.range: expected its two ends, such as [1Gbps, 100Gbps]");
  CHECK(with("range: [1Gbps, 100Gbps]", "range: [1Gbps, 100ms]").find("of different dimensions") !=
        std::string::npos);
  CHECK(with("range: [1Gbps, 100Gbps]", "range: [9Gbps, 1Gbps]").find("has to be more than its first") !=
        std::string::npos);
  CHECK(with("range: [1Gbps, 100Gbps]", "values: [1Gbps, 2Gbps, 1Gbps]") ==
        "study.yaml:19:67: study.inputs.rate.values: 1Gbps stands twice");
  CHECK(with("because: a test}", "becuse: a test}").find("did you mean 'because'") != std::string::npos);
  CHECK(with(", because: a test}", "}").find("because") != std::string::npos);
  CHECK(with("sets: cluster.fabric", "sets: clutser.fabric").find("did you mean 'cluster'") !=
        std::string::npos);
  CHECK(with("sets: cluster.fabric.bandwidth", "sets: cluster.fabric.bandwith").find("bandwith") !=
        std::string::npos);
  CHECK(with("value: ring.exposed_comm_s", "value: rings.exposed_comm_s") ==
        "study.yaml:23:44: 'rings.exposed_comm_s': there is no variant 'rings' (did you mean 'ring'?); names "
        "here are "
        "ring, rate, parameters");
  CHECK(
      with("value: ring.exposed_comm_s", "value: ring.exposed_com_s").find("did you mean 'exposed_comm_s'") !=
      std::string::npos);
  CHECK(with("value: ring.exposed_comm_s", "value: 'ring.step_time_s +'").find("is no expression") !=
        std::string::npos);
  CHECK(with("value: ring.exposed_comm_s", "value: rat").find("did you mean 'rate'") != std::string::npos);
  CHECK(with(", at_most: 0.1}", "}").find("at_least or at_most") != std::string::npos);
  CHECK(with("variants: {ring: {}}", "variants: {ring: {cluster.nodes.0.count: $node}}").find("'node'") !=
        std::string::npos);
  CHECK(with("variants: {ring: {}}", "variants: {2ring: {}}").find("begin with no digit") !=
        std::string::npos);
  CHECK(study_error(
            study_replaced(exact_ring, "study:\n", "sweep: {training.batch_per_device: [1, 2]}\nstudy:\n"))
            .find("has no sweep") != std::string::npos);
  CHECK(study_error(exact_ring + "  grid: 400\n").find("at most 100000 are tried") != std::string::npos);
}

TEST_CASE("study: a point for which this machine lacks memory is an error, and no point that is impossible") {
  const Experiment experiment = Experiment::parse(
      study_replaced(exact_ring,
                     "parameters: {sets: model.layers.0.parameters, range: "
                     "[1000000, 100000000], because: a test}",
                     "nodes: {sets: cluster.nodes.0.count, values: [2, 20000], because: a test}") +
          "  points: 16\n  refine: 0\n",
      "study.yaml", {});
  Store store;
  StudyOptions options = options_with(1);
  options.sweep.point_memory_bytes = 1e6;
  std::string told;
  try {
    run_study(experiment, read_study(experiment), store, options);
  } catch (const OutOfResources& error) {
    told = error.what();
  }
  CAPTURE(told);
  CHECK(told.starts_with("point "));
  CHECK(told.find("of memory; with fewer --jobs each may take more") != std::string::npos);
  const StudyResult study = run_study(experiment, read_study(experiment), store, options_with(1));
  CHECK(study.impossible.empty());  // nor does the store keep it as one
}

TEST_CASE("study: inputs of other variants have no part in a claim, however a small sample may look") {
  std::string yaml = study_replaced(exact_ring, "variants: {ring: {}}",
                                    "variants: {ring: {}, other: {training.batch_per_device: $batch}}");
  yaml = study_replaced(yaml, "  variants:", "    batch: {range: [1, 64], because: a test}\n  variants:");
  const StudyResult study =
      run_yaml(yaml + "    - {claim: other, value: other.step_time_s, at_most: 0.02}\n  points: 16\n");
  CHECK(study.spec.claims[0].depends_on == std::vector<bool>{true, true, false});
  CHECK(study.spec.claims[1].depends_on == std::vector<bool>{true, true, true});
  CHECK(study.regions[0].first_order[2] == 0);
  CHECK(study.regions[0].sentence.text.find("batch") == std::string::npos);
  for (const StudyBorder& border : study.regions[0].borders) CHECK(border.input != 2);
}
