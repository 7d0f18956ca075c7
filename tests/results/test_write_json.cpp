// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/results/field_reader.h"
#include "sim/results/json_writer.h"
#include "sim/results/stored_reader.h"
#include "sim/results/write_json.h"
#include "tests/results/results_fixture.h"

using namespace convoy;
using nlohmann::json;

namespace {

std::string written_json(const Results& results) {
  std::ostringstream out;
  write_json(results, out);
  return out.str();
}

template <class Content>
std::string written_value(Content content) {
  std::ostringstream out;
  {
    JsonWriter writer(out);
    content(writer);
  }
  return out.str();
}

}  // namespace

TEST_CASE("json: a run in full, names in the contract's order") {
  Results results{
      "demo", {run_of("1", 1, 10)}, {"0.1.0", "3.32.0", "max-min", "abc", {"a=1"}, {{"e.yaml", "def"}}}};
  results.runs[0].point = coordinates({{"cluster.nodes", "1"}, {"strategy", "{kind: single}"}});
  CHECK(written_json(results) == R"({
  "schema": "convoy.results/1",
  "experiment": "demo",
  "points": 1,
  "done": 1,
  "failed": [],
  "runs": [
    {
      "id": "1",
      "point": {"cluster.nodes": 1, "strategy": {"kind": "single"}},
      "model": "toy",
      "cluster": "lab",
      "servers": "box",
      "device_type": "k80",
      "strategy": "ring all-reduce",
      "algorithms": [],
      "devices": 1,
      "global_batch": 10,
      "step_time_s": 1,
      "throughput_images_per_s": 10,
      "epoch_time_s": null,
      "cost_usd_per_epoch": null,
      "energy_j": 0.1,
      "compute_s": 1,
      "issue_wait_s": 0,
      "exposed_comm_s": 0,
      "idle_s": 0,
      "comm_bytes": 0,
      "load_imbalance": 1,
      "peak_memory_bytes": 1048576,
      "process_memory_bytes": 1572864,
      "device_memory_bytes": 2097152,
      "fits": true,
      "software": {"framework": "pytorch", "execution": "eager", "layout": "nchw", "precision": "fp32", "update": "foreach", "transport": "ideal", "launches": "", "input": "synthetic"},
      "warnings": [],
      "bottleneck": {"kind": "compute", "name": "n0", "utilization": 1, "text": "the k80 computes 100 % of the step"},
      "per_device": [
        {"name": "n0", "count": 1, "busy_s": 0.5, "sent_bytes": 1, "received_bytes": 2, "peak_memory_bytes": 3, "memory": {"weights": 1, "gradients": 2, "optimizer": 3, "activations": 4, "workspace": 5, "reserved": 6}, "energy_j": 0.1}
      ],
      "per_link": [
        {"name": "n0.nic.up", "count": 1, "bytes": 4, "utilization": 0.25}
      ]
    }
  ],
  "manifest": {
    "version": "0.1.0",
    "simgrid": "3.32.0",
    "network_model": "max-min",
    "config_sha256": "abc",
    "set": ["a=1"],
    "inputs": {
      "e.yaml": "def"
    }
  }
}
)");
}

TEST_CASE("json: the interval, only where there is one, and warnings") {
  Results results{"demo", {run_of("1", 2, 10), run_of("2", 2, 10)}, {}};
  results.runs[1].interval = IntervalResult{0.8, {0.9, 1.1}, {9, 11}, {1, 2}, {0, 1}};
  results.runs[1].warnings = {"it may rain"};
  const json report = json::parse(written_json(results));
  CHECK_FALSE(report["runs"][0].contains("interval"));
  CHECK(report["runs"][1]["interval"] ==
        json::parse(R"({"level": 0.8, "step_time_s": [0.9, 1.1], "throughput_images_per_s": [9, 11],
                        "peak_memory_bytes": [1, 2], "energy_j": [0, 1]})"));
  CHECK(report["runs"][1]["warnings"] == json::parse(R"(["it may rain"])"));
}

TEST_CASE("json: a pipeline's stages, only where there are any") {
  Results results{"demo", {run_of("1", 2, 10), run_of("2", 2, 10)}, {}};
  results.runs[1].bubble_fraction = 0.25;
  results.runs[1].stages = {{"n0", {"n0", "n1"}, {"conv", "fc"}, 0.5, 7}};
  const json report = json::parse(written_json(results));
  CHECK_FALSE(report["runs"][0].contains("bubble_fraction"));
  CHECK_FALSE(report["runs"][0].contains("stages"));
  CHECK(report["runs"][1]["bubble_fraction"] == 0.25);
  CHECK(report["runs"][1]["stages"] == json::parse(R"([{"device": "n0", "replicas": ["n0", "n1"],
      "layers": ["conv", "fc"], "compute_s": 0.5, "peak_memory_bytes": 7,
      "weight_versions": 1, "staleness": {"mean": 0, "max": 0}}])"));
}

TEST_CASE("json: values of a sweep keep their type") {
  const YamlNode node = parse_yaml(
      "{a: 1, b: 2.50, c: true, d: 'true', e: '1', f: 25MiB, g: null, h: [1, x], i: {j: 1e3}, k: 010}", "t");
  const std::string text = written_value([&](JsonWriter& writer) { writer.value(node); });
  CHECK(text ==
        R"({"a": 1, "b": 2.5, "c": true, "d": "true", "e": "1", "f": "25MiB", "g": null, "h": [1, "x"], )"
        R"("i": {"j": 1000}, "k": 10})");
}

TEST_CASE("json: numbers read back to the same double") {
  for (const double number :
       {0.1, 1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308, 123456789012345678.0, -0.0, 1e22}) {
    const std::string text = written_value([&](JsonWriter& writer) { writer.value(number); });
    CAPTURE(text);
    CHECK(json::parse(text).is_number());
    const double back = std::strtod(text.c_str(), nullptr);
    CHECK(back == number);
    CHECK(std::signbit(back) == std::signbit(number));
  }
  CHECK(shortest(0.1) == "0.1");
}

TEST_CASE("json: a number that is none never gets into a file") {
  for (const double number : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    std::ostringstream out;
    JsonWriter writer(out);
    CHECK_THROWS_AS(writer.value(number), std::logic_error);
  }
}

TEST_CASE("json: staleness is there where the run has it") {
  RunResult run = run_of("1", 2, 40);
  CHECK_FALSE(json::parse(written_json({"e", {run}, {}}))["runs"][0].contains("staleness"));
  run.staleness = Staleness{1.5, 3};
  CHECK(json::parse(written_json({"e", {run}, {}}))["runs"][0]["staleness"] ==
        json{{"mean", 1.5}, {"max", 3}});
}

TEST_CASE("json: any text becomes a valid string") {
  const std::string hostile = std::string("a\"b\\c\n\t\x01\x7f") + "\xC3\xB6" + "\xFF" + "\xED\xA0\x80" +
                              "\xC0\xAF" + "\xF0\x9F\x9A\x9A" + "\xF4\x90\x80\x80" + "\xE2\x82";
  const std::string text =
      written_value([&](JsonWriter& writer) { writer.value(std::string_view(hostile)); });
  const std::string back = json::parse(text).get<std::string>();  // throws where it is not valid UTF-8
  CHECK(back.starts_with("a\"b\\c\n\t\x01\x7f\xC3\xB6\xEF\xBF\xBD"));
  CHECK(back.find("\xF0\x9F\x9A\x9A") != std::string::npos);
}

TEST_CASE("json: empty lists and mappings") {
  CHECK(written_value([](JsonWriter& w) { w.begin_array(), w.end_array(); }) == "[]");
  CHECK(written_value([](JsonWriter& w) { w.begin_object(), w.end_object(); }) == "{}");
}

TEST_CASE("json: of 65,536 devices and 300,000 links every one is written") {
  RunResult run = run_of("1", 65536, 1e6);
  run.per_device.assign(
      65536,
      {"n1234.gpu5", 0.12345678901234567, 1e8 / 3, 1e8 / 7, 1e10 / 3, 1.0 / 3, {1e9 / 3, 2, 3, 4, 5, 6}});
  run.per_link.assign(300000, {"n1234.gpu5.nvlink2.up", 1e8 / 3, 1.0 / 3});
  const Results results{"large", {run}, {}};
  const std::string text = written_json(results);
  const auto count = [&](std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
      ++found;
    return found;
  };
  CHECK(count("\"n1234.gpu5\"") == 65536);
  CHECK(count("\"n1234.gpu5.nvlink2.up\"") == 300000);
}

TEST_CASE("json: a number of any size is read back as it was, by both readers of what is stored") {
  std::vector<double> numbers{0,
                              1,
                              0.1,
                              1e6,
                              1e-7,
                              9007199254740993.0,
                              9223372036854774784.0,
                              9223372036854775808.0,
                              18446744073709551616.0,
                              1e19,
                              1e20,
                              1e22,
                              1e100};
  for (int exponent = 60; exponent < 70; ++exponent)
    for (const double factor : {0.999, 1.0, 1.001}) numbers.push_back(std::ldexp(factor, exponent));
  for (const double number : numbers) {
    CAPTURE(number);
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.scalar = yaml_spelling(number);
    const std::string text = written_value([&](JsonWriter& writer) {
      writer.begin_object();
      writer.field("yaml", node);
      writer.end_object();
    });
    CHECK(json::parse(text)["yaml"].get<double>() == number);
    CHECK(yaml_of_json(Json::parse(text)["yaml"]).scalar == node.scalar);
    YamlNode stored;
    StoredReader(text).whole(stored, [](auto& archive, YamlNode& value) { archive.yaml("yaml", value); });
    CHECK(stored.scalar == node.scalar);
  }
}
