// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/input_error.h"

namespace convoy::inline topologies {

/// What InfraGraph files say of what is between their devices.
struct InfraGraphFile {
  struct Link {
    std::optional<double> bandwidth_Bps, latency_s;  ///< nothing: not told
    SourcePos pos;
  };
  struct Instance {
    std::string name;
    std::uint32_t count = 1;
    bool is_host = false;                             ///< its device has xpus
    std::map<std::string, std::uint32_t> components;  ///< of its device: how many
  };
  /// A component of one of an instance's devices.
  struct Endpoint {
    std::size_t instance = 0;  ///< index into instances
    std::uint32_t index = 0;   ///< of the device
    std::string component;
    std::uint32_t component_index = 0;
  };
  struct Edge {
    Endpoint a, b;
    std::string link;  ///< one of links
    SourcePos pos;
  };

  std::string name;
  std::vector<Instance> instances;
  std::map<std::string, Link> links;
  std::vector<Edge> edges;  ///< one by one
};

/// @throws InputError with the place: an unknown name, an index that is not there, ends that cannot be paired
InfraGraphFile read_infragraph_file(const std::string& file);

}  // namespace convoy::topologies
