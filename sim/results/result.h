// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/training_graph.h"

namespace convoy {

// The results of an experiment as plain values, named as in results.json (design B5, schema convoy.results/1).

struct DeviceResult {
  std::string name;
  double busy_s = 0, sent_bytes = 0, received_bytes = 0, peak_memory_bytes = 0, energy_j = 0;
  std::array<double, memory_class_count> memory{};   ///< by class at the peak, bytes
};

struct LinkResult {
  std::string name;
  double bytes = 0, utilization = 0;                 ///< bytes / (bandwidth step time)
};

struct Bottleneck {
  std::string kind;      ///< "compute" | "link" | "memory" | "host"
  std::string name;      ///< of the device or port
  double utilization = 0;///< share of the step it is busy
  std::string text;      ///< a sentence for people
};

struct RunResult {
  std::string id;                                             ///< "1", "2", ... in sweep order
  std::vector<std::pair<std::string, std::string>> point;     ///< dotted path -> value as flow YAML
  std::string model, cluster, strategy;
  std::int64_t devices = 0;
  double global_batch = 0;
  double step_time_s = 0, throughput_images_per_s = 0;
  std::optional<double> epoch_time_s, cost_usd_per_epoch;     ///< where dataset and prices are known
  double energy_j = 0;
  double compute_s = 0, exposed_comm_s = 0, idle_s = 0;       ///< of the critical device; they add up to step_time_s
  double comm_bytes = 0, load_imbalance = 1, peak_memory_bytes = 0;
  bool fits = true;
  Bottleneck bottleneck;
  std::vector<DeviceResult> per_device;
  std::vector<LinkResult> per_link;
};

struct Manifest {
  std::string version, simgrid, config_sha256;
  std::vector<std::pair<std::string, std::string>> inputs;    ///< file -> sha256
};

struct Results {
  std::string experiment;
  std::vector<RunResult> runs;
  Manifest manifest;
};

}  // namespace convoy
