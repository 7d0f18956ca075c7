// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/planning/bucket_times.h"
#include "sim/planning/candidates.h"
#include "sim/planning/sum_time.h"
#include "sim/run/preparer.h"

namespace convoy::inline planning {

/// One step on one device, alone: all setups with that server, precision and batch share it.
struct SoloStep {
  std::int64_t batch = 0;
  double step_s = 0, update_s = 0;      ///< no step is shorter; what the update alone takes
  double forward_s = 0, running_s = 0;  ///< operations of the forward pass; all, without waiting for the host
  double device_energy_j = 0, host_power_w = 0;
  double peak_memory_bytes = 0;
  bool fits = false;
  std::vector<BucketTimes> buckets;  ///< if several such devices sum their gradients
};

/// The steps of a server with one precision, and what sums of its gradients have to do with.
struct SoloSteps {
  std::vector<SoloStep> steps;  ///< by batch
  HostWays ways;                ///< with the transport of plain all-reduces
  double gradient_bytes = 0;    ///< of the network
  double step_jitter = 0;       ///< Machine::step_jitter
  std::string message;          ///< why there are none
};

/// The cost table of a plan.
using SoloTable = std::map<std::pair<std::string, Precision>, SoloSteps>;

/// Plans a step of one device for each server, precision and batch, in processes. Batches that the plan does not name
/// are tried until one does not fit.
SoloTable measure_servers(const PlanSpec& spec, const ServerTable& servers, Preparer& preparer,
                          std::size_t jobs,
                          const std::function<void(std::size_t done, std::size_t all)>& progress);

/// Nothing where the server does not run the setup's precision.
const SoloStep* solo_step(const SoloTable& table, const std::string& server, const Setup& setup);

/// Batches are tried up to this many images a device where the plan names none.
inline constexpr std::int64_t largest_tried_batch = 4096;

}  // namespace convoy::planning
