// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/results/result.h"
#include "sim/run/experiment.h"
#include "sim/studies/claims/record.h"

namespace convoy::inline studies {

/// Adds to the records of an experiment's runs what monitoring reports of a minute (watch_hosts), as
/// "monitor.HOST.FIGURE". HOST is `first`, the first host with devices, or `busiest`, that which sends and receives
/// most. FIGURE is sent_Bps, received_Bps, nic_share (of what its NICs can carry, in the direction that is used
/// more), cpu_share (of its vCPUs, where they are known), gpu_busy_share or gpu_memory_bytes (of hosts with GPUs).
/// @param runs those of `records`, in their order
void add_monitored(const Experiment& experiment, const std::vector<RunResult>& runs,
                   std::vector<Record>& records);

}  // namespace convoy::studies
