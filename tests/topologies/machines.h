// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "topologies/cluster.h"

namespace convoy {

/// The machine of a `cluster:` in YAML; a device `ideal` is added to it unless the text has `devices:`
/// itself.
Machine machine_of(const std::string& cluster_yaml, std::uint32_t dedicated_hosts = 0);

/// The error's text that building this cluster gives; "no error" where there is none. The file is called
/// "c.yaml".
std::string error_of(const std::string& cluster_yaml, std::uint32_t dedicated_hosts = 0);

/// Endpoint by name. "mem:n0" is the memory of host n0.
EndpointId endpoint(const Machine& machine, const std::string& name);

/// Names of a route's links, with a space between.
std::string names(const Machine& machine, const Route& route);
std::string way(const Machine& machine, const std::string& from, const std::string& to);
double latency_s(const Machine& machine, const std::string& from, const std::string& to);

}  // namespace convoy
