// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: astra_sim`: the network file of ASTRA-sim's analytical backend, `topology`, `npus_count`, `bandwidth` (GB/s,
/// of 2^30 bytes as that program counts) and `latency` (ns of a cable), each by dimension, the innermost first. In a
/// Ring every NPU has a cable to the next one, FullyConnected has one between every two, and a Switch one to each, so
/// that a message crosses two. A host of the cluster is an NPU, or all NPUs of the dimensions `inside` it.
/// Source: astra-sim/astra-network-analytical, common/network-parser and congestion_aware/basic-topology, 2024.
std::shared_ptr<const Fabric> read_astra_sim_fabric(YamlMap& map);
std::vector<KeyText> astra_sim_keys();

}  // namespace convoy::topologies
