// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::inline topologies {

/// What all devices of a kind have in common (`kind:` of a device), beside the numbers of each.
struct DeviceKind {
  std::string_view name;   ///< "gpu": in files and in JSON
  std::string_view text;   ///< "GPU": in messages
  std::string_view units;  ///< what `sms` counts
  /// The library that moves tensors between such devices unless a strategy says `transport`. In a cluster with
  /// several kinds it is that of the last of them in the table.
  std::string_view library;
  /// Its kernels run on threads of the framework's own process. Of other kinds a host issues the kernels, and
  /// their algorithms are those of the vendor's libraries.
  bool in_process = false;
};

/// The first is that of a device that does not say its kind.
inline constexpr std::array device_kinds{DeviceKind{"gpu", "GPU", "SMs", "nccl", false},
                                         DeviceKind{"cpu", "CPU", "cores", "gloo", true}};

/// The names of all kinds, in the order of device_kinds.
const std::vector<std::string>& device_kind_names();

}  // namespace convoy::topologies
