// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <string>

namespace convoy {

/// A cluster of hosts with devices that reach what their data sheet says, on PCIe inside and 10 Gbit/s of TCP
/// between them.
/// @param peak of a device, "fp32: 10TFLOPS"
inline std::string pcie_hosts(int hosts, int devices, const std::string& peak) {
  return fmt::format(
      "{{nodes: [{{name: n, count: {}, server: box}}], "
      "fabric: {{kind: switch, bandwidth: 10Gbps, latency: 25us, protocol: tcp}}, "
      "servers: {{box: {{devices: [{{device: exact, count: {}}}], "
      "interconnect: {{kind: pcie, bandwidth: 12GB/s, latency: 5us}}}}}}, "
      "devices: {{exact: {{peak: {{{}}}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}}}}}}",
      hosts, devices, peak);
}

}  // namespace convoy
