// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/sweep_results.h"

namespace convoy::inline results {

/// What a host's GPUs did in an interval, all of them together.
struct GpuSample {
  double busy_share = 0;    ///< of the time, the mean of the host's GPUs: operations ran
  double memory_bytes = 0;  ///< what nvidia-smi shows at the interval's end: it counts what processes keep
  double tensor_bytes = 0;  ///< mean over the interval of what is in use
};

/// What a monitoring agent reports of a host for an interval of time.
struct MonitorSample {
  double from_s = 0, to_s = 0;            ///< the interval, from the beginning of the run's first step on
  double sent_Bps = 0, received_Bps = 0;  ///< payload to and from other hosts, mean over the interval
  double busy_vcpus = 0;                  ///< mean number of hardware threads at work
  std::optional<GpuSample> gpus = {};     ///< nothing for a host without devices
};

struct MonitoredHost {
  std::string name;
  std::uint32_t vcpus = 0;  ///< that it has; 0: not known
  std::vector<MonitorSample> samples;
};

/// The hosts of a run.
struct RunMonitor {
  std::size_t run = 0;  ///< index into SweepResults::runs
  std::vector<MonitoredHost> hosts;
};

/// Writes monitor.csv: a line a run, host and interval. What is not known or does not exist is empty.
void write_monitor(const SweepResults& results, const std::vector<RunMonitor>& monitors, std::ostream& out);

/// What write_monitor wrote. @throws InputError: the file is damaged or names runs that `results` lacks
std::vector<RunMonitor> read_monitor(const std::string& file, const SweepResults& results);

}  // namespace convoy::results
