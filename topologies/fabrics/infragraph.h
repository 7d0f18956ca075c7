// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: infragraph`: the infrastructure of an InfraGraph file (YAML or JSON): instances of devices, and edges
/// between their components over links. Instances whose device has xpus are the cluster's hosts, in the file's order;
/// all others are switches that do not block. What is inside a device is not read: servers of the cluster say what is
/// in hosts. A component of a host that edges name is a NIC; every host needs as many. Several edges between the same
/// two places are one cable with the sum of their bandwidths.
/// Source: Keysight/infragraph, models/*.yaml and the files of its tests (2025).
std::shared_ptr<const Fabric> read_infragraph_fabric(YamlMap& map);
std::vector<KeyText> infragraph_keys();

}  // namespace convoy::topologies
