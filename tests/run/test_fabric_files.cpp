// SPDX-License-Identifier: MIT
// Networks of ASTRA-sim's files: ring all-reduce takes what its closed form says.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/run/sweep.h"
#include "tests/support/approx.h"
#include "tests/support/working_file.h"

using namespace convoy;

namespace {

double astra_step_s(const std::string& shape, int count) {
  const WorkingFile file(
      "net.yml",
      fmt::format("topology: [{}]\nnpus_count: [{}]\nbandwidth: [2]\nlatency: [700]\n", shape, count));
  const std::string text = fmt::format(
      "experiment: astra\n"
      "model: {{name: wide, input: [1], layers: [{{name: all, kind: custom, forward_flops: 0, "
      "backward_flops: 0, "
      "parameters: 1000000, output: [1]}}]}}\n"
      "training: {{batch_per_device: 1, precision: fp32, optimizer: sgd}}\n"
      "cluster: {{name: lab, nodes: [{{name: n, count: {}, server: box}}], fabric: {{kind: astra_sim, file: "
      "net.yml}}, "
      "servers: {{box: {{devices: [{{device: ideal}}]}}}}, devices: {{ideal: {{peak: {{fp32: 1000TFLOPS}}, "
      "memory: "
      "16GiB, memory_bandwidth: 1000000000GB/s, efficiency: 1.0, launch_overhead: 0us}}}}}}\n"
      "strategy: {{kind: data_parallel, sync: all_reduce, algorithm: ring}}\n",
      count);
  return simulate_sweep(runs::Experiment::parse(text, "astra.yaml", {}), 1).runs.front().step_time_s;
}

}  // namespace

TEST_CASE("fabric files: a ring all-reduce on ASTRA-sim's networks takes 2 (N - 1) (alpha + S / (N B))") {
  // Every rank sends to the next one, which is a cable away, or two by the switch. The update takes 1e-11 s.
  constexpr double bytes = 4e6, bandwidth_Bps = 2.0 * (1 << 30), cable_s = 700e-9;
  for (const int n : {2, 3, 4, 8}) {
    CAPTURE(n);
    const auto closed_s = [&](double alpha_s) {
      return 2 * (n - 1) * (alpha_s + bytes / (n * bandwidth_Bps));
    };
    CHECK(astra_step_s("Ring", n) == approx(closed_s(cable_s)).epsilon(1e-6));
    CHECK(astra_step_s("FullyConnected", n) == approx(closed_s(cable_s)).epsilon(1e-6));
    CHECK(astra_step_s("Switch", n) == approx(closed_s(2 * cable_s)).epsilon(1e-6));
  }
}
