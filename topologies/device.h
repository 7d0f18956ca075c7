// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/work.h"
#include "sim/base/yaml_map.h"

namespace convoy {

/// A kind of device: a GPU, a CPU used for computing, a mobile GPU. From topologies/catalog/devices/NAME.yaml or inline.
struct DeviceType {
  std::string name;
  std::map<Precision, double> peak_flops;   ///< FLOP/s by precision; a precision that is absent cannot be run
  double memory_bytes = 0;
  double memory_bandwidth_Bps = 0;
  double launch_overhead_s = 0;             ///< per operation, before its kernel runs
  double reserved_bytes = 0;                ///< framework context and allocator reserve (0 inline)
  double idle_power_w = 0, peak_power_w = 0;
  // efficiency tables: completed by the cost model
};

}  // namespace convoy
