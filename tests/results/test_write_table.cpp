// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sstream>

#include "sim/results/text.h"
#include "sim/results/write_table.h"
#include "tests/results/results_fixture.h"

using namespace convoy;

namespace {

std::string table(std::vector<RunResult> runs) {
  std::ostringstream out;
  write_table(demo(std::move(runs)), out);
  return out.str();
}

}  // namespace

TEST_CASE("table: a block a model, a line a run, columns under their titles") {
  std::vector<RunResult> runs;
  for (const char* model : {"toy", "vgg16"})
    for (const std::int64_t devices : {1, 8}) {
      RunResult run = run_of("", devices, devices == 1 ? 50 : 300.0);
      run.model = model;
      run.point = coordinates({{"model", model}, {"cluster.nodes", std::to_string(devices)}});
      if (devices == 8) {
        run.exposed_comm_s = 0.05;
        run.comm_bytes = 1e9;
        run.bottleneck = {"link", "ps0.nic", 0.944, ""};
        run.fits = std::string(model) == "toy";
      }
      runs.push_back(run);
    }
  CHECK(
      table(runs) ==
      "toy on box (k80)\n"
      "strategy         devices    step  images/s  scaling  exposed comm     sent   peak memory  bottleneck\n"
      "ring all-reduce        1  200 ms      50.0    100 %             -        -      1.00 MiB  compute 100 "
      "%\n"
      "ring all-reduce        8  267 ms       300     75 %       50.0 ms  954 MiB      1.00 MiB  ps0.nic 94 "
      "%\n"
      "\n"
      "vgg16 on box (k80)\n"
      "strategy         devices    step  images/s  scaling  exposed comm     sent   peak memory  bottleneck\n"
      "ring all-reduce        1  200 ms      50.0    100 %             -        -      1.00 MiB  compute 100 "
      "%\n"
      "ring all-reduce        8  267 ms       300     75 %       50.0 ms  954 MiB  1.00 MiB (!)  ps0.nic 94 "
      "%\n"
      "\n"
      "(!) more than the device's memory: this run would fail\n"
      "\n"
      "software: pytorch, eager, nchw, fp32, foreach updates; transport ideal; input synthetic\n");
}

TEST_CASE(
    "table: what runs were predicted for is one line, with all values where they differ, and warnings are "
    "told once") {
  RunResult run = run_of("1", 2, 10), other = run_of("2", 2, 10);
  other.software.precision = "fp16";
  other.software.transport = "nccl-tcp";
  other.software.launches = "per_process";
  run.warnings = other.warnings = {"rests on little"};
  CHECK(assumptions(demo({run, other})) ==
        std::vector<std::string>{
            "software: pytorch, eager, nchw, fp32 or fp16, foreach updates; transport ideal or nccl-tcp, "
            "launched per_process; input synthetic",
            "note: rests on little"});
  CHECK(assumptions(Results{}).empty());
}

TEST_CASE("table: swept values have columns of their own, long ones are cut") {
  RunResult run = run_of("1", 2, 10);
  run.point = coordinates({{"training.batch_per_device", "8"},
                           {"strategy.schedule", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]"}});
  const std::string text = table({run});
  CHECK(text.find("strategy         batch_per_device  schedule                                  devices") !=
        std::string::npos);
  CHECK(text.find("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1...") != std::string::npos);
}

TEST_CASE("table: a bottleneck is named by what is busy, or by its kind where that says more") {
  CHECK(bottleneck_text("compute", "n0", 1) == "compute 100 %");
  CHECK(bottleneck_text("latency", "n0.nic", 0.954) == "latency 95 %");
  CHECK(bottleneck_text("link", "n0.nic", 0.05) == "n0.nic 5.0 %");
  CHECK(bottleneck_text("memory", "n1", 2.048) == "n1 205 %");
}

TEST_CASE("table: an interval whose sides are unlike shows both, and never reaches below zero") {
  const auto shown = [](double low, double high) {
    RunResult run = run_of("1", 2, 10);
    run.interval = IntervalResult{0.8, {0.9, 1.1}, {low, high}, {1, 2}, {0, 1}};
    return table({run});
  };
  CHECK(shown(8.5, 11.7).find("10.0 ± 16 %") != std::string::npos);
  CHECK(shown(8.5, 13).find("10.0 -15 +30 %") != std::string::npos);
  CHECK(shown(1, 40).find("10.0 -90 +300 %") != std::string::npos);
}

TEST_CASE("table: letters that take several bytes do not push columns apart") {
  RunResult one = run_of("1", 2, 10), two = run_of("2", 2, 10);
  one.strategy =
      "Gr\xC3\xB6\xC3\x9F"
      "e";
  two.strategy = "Grosse";
  std::istringstream lines(table({one, two}));
  std::string line, first, second;
  std::getline(lines, line), std::getline(lines, line), std::getline(lines, first),
      std::getline(lines, second);
  CHECK(first.size() == second.size() + 2);  // of the same width, with two letters of two bytes each
}
