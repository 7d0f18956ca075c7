// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/results/result.h"

namespace convoy {

/// "a.b: value" pairs as sweep coordinates.
inline std::vector<std::pair<std::string, YamlNode>> coordinates(
    const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::pair<std::string, YamlNode>> result;
  for (const auto& [path, text] : values) result.emplace_back(path, parse_yaml(text, "test"));
  return result;
}

/// A run of `devices` k80 that takes a second for 10 images a device, with one device and one link listed.
inline RunResult run_of(const std::string& id, std::int64_t devices, double images_per_s) {
  RunResult run;
  run.id = id;
  run.model = "toy";
  run.cluster = "lab";
  run.strategy = "ring all-reduce";
  run.servers = "box";
  run.device_type = "k80";
  run.devices = devices;
  run.global_batch = 10.0 * static_cast<double>(devices);
  run.step_time_s = run.global_batch / images_per_s;
  run.throughput_images_per_s = images_per_s;
  run.compute_s = run.step_time_s;
  run.energy_j = 0.1;
  run.peak_memory_bytes = 1048576;
  run.process_memory_bytes = 1572864;
  run.device_memory_bytes = 2097152;
  run.software = {"pytorch", "eager", "nchw", "fp32", "foreach", "ideal", false, "", "synthetic"};
  run.bottleneck = {"compute", "n0", 1, "the k80 computes 100 % of the step"};
  run.per_device.push_back({"n0", 0.5, 1, 2, 3, 0.1, {1, 2, 3, 4, 5, 6}});
  run.per_link.push_back({"n0.nic.up", 4, 0.25});
  return run;
}

/// Results of an experiment "demo".
inline Results demo(std::vector<RunResult> runs) { return {"demo", std::move(runs), {}}; }

}  // namespace convoy
