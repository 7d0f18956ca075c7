// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/approx.h"

namespace {

using nlohmann::json;

std::string lab(const std::string& model, int batch, const std::string& device = "base: epyc-7763") {
  return fmt::format(
      "experiment: lab\nmodel: {}\ntraining: {{batch_per_device: {}, precision: fp32, optimizer: momentum}}\n"
      "cluster: {{nodes: [{{name: n, count: 1, server: box}}], servers: {{box: {{devices: [{{device: mine, "
      "count: 1}}], interconnect: {{kind: none}}}}}}, devices: {{mine: {{{}, peak: {{fp32: 78.4GFLOPS}}, "
      "memory_bandwidth: 20GB/s, sms: 1}}}}}}\nstrategy: {{kind: single}}\n",
      model, batch, device);
}

json event(const std::string& name, double start_us, double us, const json& shapes,
           const std::string& category = "cpu_op") {
  return {{"ph", "X"}, {"cat", category}, {"name", name}, {"pid", 1},
          {"tid", 1},  {"ts", start_us},  {"dur", us},    {"args", {{"Input Dims", shapes}}}};
}

/// Two equal steps of a convolution, a ReLU and their gradients; 1,000 us each, of which operations take 702.
json two_steps() {
  json events = json::array();
  const json image{4, 8, 16, 16}, weight{8, 8, 3, 3};
  for (const double at : {0.0, 1000.0}) {
    events.push_back(event("aten::conv2d", at, 200, {image, weight, json::array()}));
    events.push_back(event("aten::convolution", at + 5, 190, {image, weight, json::array()}));
    events.push_back(event("aten::relu", at + 250, 50, json::array({image})));
    events.push_back(event("aten::threshold_backward", at + 350, 60, {image, image}));
    events.push_back(event("aten::convolution_backward", at + 410, 340, {image, image, weight}));
    events.push_back(event("aten::mystery", at + 800, 50, json::array({image})));
    events.push_back(event("Optimizer.step#SGD.step", at + 998, 2, json::array()));
  }
  return events;
}

const char* const two_layers =
    "{name: m, input: [8, 16, 16], layers: [{name: a, kind: conv2d, out_channels: 8, kernel: 3, padding: 1, "
    "bias: false}, {name: r, kind: relu}]}";

json diagnosed(const Workplace& place, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"diagnose", "t.json", "e.yaml", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished finished = place.convoy(arguments);
  CAPTURE(finished.err);
  REQUIRE(finished.exit_code == 0);
  return json::parse(finished.out);
}

/// Measured and predicted seconds by name.
std::map<std::string, std::pair<double, double>> by_name(const json& terms) {
  std::map<std::string, std::pair<double, double>> map;
  for (const json& term : terms) {
    map[term["name"]] = {term["measured_s"], term["predicted_s"]};
    CHECK(term["gap_s"].get<double>() ==
          convoy::approx(term["predicted_s"].get<double>() - term["measured_s"].get<double>()).epsilon(1e-9));
  }
  return map;
}

/// Terms add up to both steps, and come in order of their gaps.
void check_sums(const json& diagnosis) {
  double measured = 0, predicted = 0, last = 1e300;
  for (const json& term : diagnosis["terms"]) {
    measured += term["measured_s"].get<double>();
    predicted += term["predicted_s"].get<double>();
    const double gap = std::abs(term["gap_s"].get<double>());
    CHECK(gap <= last);
    last = gap;
  }
  CHECK(measured == convoy::approx(diagnosis["measured_step_time_s"].get<double>()).epsilon(1e-9));
  CHECK(predicted == convoy::approx(diagnosis["step_time_s"].get<double>()).epsilon(1e-9));
}

}  // namespace

TEST_CASE("diagnose: the measured step by kernels, other operations, loader and waiting, by hand") {
  const Workplace place;
  place.file("e.yaml", lab(two_layers, 4));
  json events = two_steps();
  events.push_back(event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 870, 100,
                         json::array(), "user_annotation"));
  place.file("t.json", json{{"traceEvents", events}}.dump());
  const json diagnosis = diagnosed(place);
  check_sums(diagnosis);
  CHECK(diagnosis["steps"] == 2);
  CHECK(diagnosis["measured_step_time_s"].get<double>() == convoy::approx(1e-3).epsilon(1e-9));
  const auto terms = by_name(diagnosis["terms"]);
  CHECK(terms.at("convolution").first == convoy::approx(540e-6).epsilon(1e-9));
  CHECK(terms.at("relu").first == convoy::approx(110e-6).epsilon(1e-9));
  CHECK(terms.at("other operations").first == convoy::approx(52e-6).epsilon(1e-9));  // and the update
  CHECK(terms.at("loader").first == convoy::approx(50e-6).epsilon(1e-9));  // 100 us in one of two steps
  CHECK(terms.at("waiting for the host, and for others").first == convoy::approx(248e-6).epsilon(1e-9));
  const auto operations = by_name(diagnosis["operations"]);
  CHECK(operations.at("convolution 8>8 3x3/1 16x16, forward").first == convoy::approx(200e-6).epsilon(1e-9));
  CHECK(diagnosis["matched_share"].get<double>() == convoy::approx(650.0 / 702).epsilon(1e-9));
  // The prediction is that of a run.
  const Finished run = place.convoy({"run", "e.yaml", "--json", "--trace", "--out", "o"});
  CHECK(json::parse(run.out)["runs"][0]["step_time_s"] == diagnosis["step_time_s"]);
  for (const json& remedy : diagnosis["remedies"])
    CHECK(remedy["gain_s"] <= diagnosis["remedies"][0]["gain_s"]);
  CHECK(diagnosis["remedies"].size() > 3);
}

TEST_CASE("diagnose: nearly all of a real trace of a CPU is matched, in all kinds of kernels") {
  const Workplace place;
  place.shell("cp '" CONVOY_SOURCE "/tests/calibration/traces/resnet18_batch8_32x32_cpu.json.gz' t.json.gz");
  place.file("e.yaml", lab("{name: resnet18, input: [3, 32, 32]}", 8));
  place.shell("gunzip t.json.gz");
  const json before = diagnosed(place);
  check_sums(before);
  CHECK(before["steps"] == 5);
  // The rest has no counterpart among a profile's kernels: the loss, the last pooling, counters of batch
  // normalization (aten::add_ of one value) and detach(), 1.1 ms of 166 ms a step.
  CHECK(before["matched_share"] > 0.99);
  // 20 convolutions and a linear layer in both passes, normalizations, ReLUs, sums, pooling, the update.
  CHECK(before["operations"].size() > 30);
  const auto terms = by_name(before["terms"]);
  for (const char* kind : {"convolution", "matmul", "batch_norm", "relu", "add", "max_pool", "update"}) {
    CAPTURE(kind);
    CHECK(terms.contains(kind));
  }
  // Of the file, by hand: aten::addmm of [8, 512] by [512, 1000], and the two aten::mm of its backward pass.
  const auto operations = by_name(before["operations"]);
  // Less what recording the 45, 15 and 10 operations inside them took: as long for each of them.
  const double recording_us = (30771 - 5e6 * operations.at("matmul 512>1000, forward").first) / 45;
  CHECK(recording_us == convoy::approx(11.7).epsilon(0.01));
  const double linear_us[] = {30771 - 45 * recording_us, 12531 - 15 * recording_us, 11945 - 10 * recording_us};
  std::size_t next = 0;
  for (const char* phase : {"forward", "data_gradient", "weight_gradient"}) {
    CAPTURE(phase);
    const auto [measured_s, predicted_s] = operations.at(fmt::format("matmul 512>1000, {}", phase));
    CHECK(measured_s == convoy::approx(linear_us[next++] * 1e-6 / 5).epsilon(1e-6));
    CHECK(predicted_s > 0);
  }
  CHECK(operations.contains("max_pool 64 16x16>8x8, forward"));  // of windows that overlap
  const Finished text = place.convoy({"diagnose", "t.json", "e.yaml"});
  CHECK(text.out.find("what would help") != std::string::npos);
  const Finished page = place.convoy({"diagnose", "t.json", "e.yaml", "--html"});
  CHECK(page.out.find("<table>") != std::string::npos);
}

TEST_CASE(
    "diagnose: convolutions with the same FLOPs and bytes are told apart, as are the products of a layer") {
  const Workplace place;
  const json narrow{4, 8, 4, 4}, wide{4, 32, 4, 4};  // 8 channels to 32 and back, as in a bottleneck
  const json out{32, 8, 1, 1}, back{8, 32, 1, 1};
  place.file("e.yaml",
             lab("{name: m, input: [8, 4, 4], layers: [{name: a, kind: conv2d, out_channels: 32, kernel: 1, "
                 "bias: false}, {name: b, kind: conv2d, out_channels: 8, kernel: 1, bias: false}, "
                 "{name: f, kind: flatten}, {name: l, kind: linear, out_features: 128, bias: false}]}",
                 4));
  json events = json::array();
  double at = 0;
  const auto add = [&](const std::string& name, double us, const json& shapes) {
    events.push_back(event(name, at, us, shapes));
    at += us + 10;
  };
  add("aten::convolution", 100, {narrow, out, json::array()});
  add("aten::convolution", 300, {wide, back, json::array()});
  add("aten::mm", 50, {json{4, 128}, json{128, 128}});  // forward
  add("aten::mm", 60, {json{128, 4}, json{4, 128}});    // weight gradient
  add("aten::mm", 70, {json{4, 128}, json{128, 128}});  // data gradient, of the same sizes as forward
  add("aten::convolution_backward", 700, {narrow, wide, back});
  add("aten::convolution_backward", 200, {wide, narrow, out});
  add("Optimizer.step#SGD.step", 2, json::array());
  place.file("t.json", json{{"traceEvents", events}}.dump());
  const json diagnosis = diagnosed(place);
  check_sums(diagnosis);
  const auto operations = by_name(diagnosis["operations"]);
  CHECK(operations.at("convolution 8>32 1x1/1 4x4, forward").first == convoy::approx(100e-6).epsilon(1e-9));
  CHECK(operations.at("convolution 32>8 1x1/1 4x4, forward").first == convoy::approx(300e-6).epsilon(1e-9));
  CHECK(operations.at("convolution 32>8 1x1/1 4x4, backward").first == convoy::approx(700e-6).epsilon(1e-9));
  CHECK(operations.at("matmul 128>128, weight_gradient").first == convoy::approx(60e-6).epsilon(1e-9));
  CHECK(operations.at("matmul 128>128, forward and 128>128, data_gradient").first ==
        convoy::approx(120e-6).epsilon(1e-9));
}

TEST_CASE("diagnose: what is of another batch, device or number of points is refused") {
  const Workplace place;
  place.file("t.json", json{{"traceEvents", two_steps()}}.dump());
  const auto complaint = [&](const std::string& experiment, const std::vector<std::string>& more = {}) {
    place.file("e.yaml", experiment);
    std::vector<std::string> arguments{"diagnose", "t.json", "e.yaml"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = place.convoy(arguments);
    CHECK(finished.exit_code == 2);
    return finished.err;
  };
  CHECK(complaint(lab(two_layers, 8)).find("trace is of 4 images, and of another") != std::string::npos);
  std::string other = two_layers;  // with the same ReLU
  other.replace(other.find("kernel: 3, padding: 1"), 21, "kernel: 5, padding: 2");
  CHECK(complaint(lab(other, 4)).find("and of another network") != std::string::npos);
  CHECK(complaint(lab(two_layers, 4, "base: v100-sxm2-16gb")).find("holds operations of a CPU") !=
        std::string::npos);
  CHECK(complaint(lab(two_layers, 4), {"--set", "sweep.training.batch_per_device=[4, 8]"})
            .find("a trace is of one point, and the experiment has 2") != std::string::npos);
  json events = two_steps();
  events.erase(std::remove_if(
                   events.begin(), events.end(),
                   [](const json& each) { return each["name"].get<std::string>().starts_with("Optimizer"); }),
               events.end());
  place.file("t.json", json{{"traceEvents", events}}.dump());
  CHECK(complaint(lab(two_layers, 4)).find("does not mark its steps") != std::string::npos);
}
