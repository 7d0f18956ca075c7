// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/results/sweep_results.h"
#include "tests/results/results_fixture.h"

using namespace convoy;

namespace {

RunResult at(std::int64_t devices, double images_per_s,
             const std::vector<std::pair<std::string, std::string>>& point) {
  RunResult run = run_of("", devices, images_per_s);
  run.point = coordinates(point);
  return run;
}

}  // namespace

TEST_CASE("scaling: throughput a device, against the run with the fewest devices") {
  // 1 device: 50; 2: 90/2 = 45 -> 0.9; 8: 200/8 = 25 -> 0.5
  const std::vector<double> efficiency =
      scaling_efficiency(demo({at(1, 50, {{"cluster.nodes", "1"}}), at(2, 90, {{"cluster.nodes", "2"}}),
                               at(8, 200, {{"cluster.nodes", "8"}})}));
  CHECK(efficiency == std::vector<double>{1.0, 0.9, 0.5});
}

TEST_CASE("scaling: strategies share the best of the smallest runs, so that they can be compared") {
  const std::vector<double> efficiency =
      scaling_efficiency(demo({at(1, 50, {{"strategy", "{kind: a}"}, {"cluster.nodes", "1"}}),
                               at(4, 160, {{"strategy", "{kind: a}"}, {"cluster.nodes", "4"}}),
                               at(1, 40, {{"strategy", "{kind: b}"}, {"cluster.nodes", "1"}}),
                               at(4, 160, {{"strategy", "{kind: b}"}, {"cluster.nodes", "4"}})}));
  CHECK(efficiency == std::vector<double>{1.0, 0.8, 0.8, 0.8});
}

TEST_CASE("scaling: runs that differ in anything else are not compared") {
  const auto batch = [](std::int64_t devices, double images_per_s, const char* size) {
    return at(devices, images_per_s, {{"training.batch_per_device", size}});
  };
  CHECK(scaling_efficiency(demo({batch(1, 50, "8"), batch(2, 100, "8"), batch(1, 80, "16"),
                                 batch(2, 80, "16")})) == std::vector<double>{1.0, 1.0, 1.0, 0.5});
  RunResult other = at(2, 60, {});
  other.model = "other";
  CHECK(scaling_efficiency(demo({at(1, 50, {}), at(2, 50, {}), other})) ==
        std::vector<double>{1.0, 0.5, 1.0});
  RunResult elsewhere = at(2, 60, {});
  elsewhere.device_type = "other";
  CHECK(scaling_efficiency(demo({at(1, 50, {}), at(2, 50, {}), elsewhere})) ==
        std::vector<double>{1.0, 0.5, 1.0});
}

TEST_CASE("scaling: nothing to say where all runs have the same number of devices") {
  CHECK(scaling_efficiency(Results{}).empty());
  CHECK(scaling_efficiency(demo({at(4, 50, {}), at(4, 60, {})})).empty());
}
