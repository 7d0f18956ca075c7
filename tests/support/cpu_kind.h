// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include "topologies/device_kind.h"

namespace convoy {

/// The kind of devices that compute in the framework's own process.
inline const DeviceKind* cpu_kind() {
  return &*std::ranges::find(device_kinds, std::string_view("cpu"), &DeviceKind::name);
}

}  // namespace convoy
