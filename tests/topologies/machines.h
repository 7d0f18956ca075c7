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

/// Looks at the routes between all endpoints: what is wrong with the first bad one, or "". A route must have
/// no link twice, sum up its latency, be empty between a place and itself, and use the same ports in both
/// directions (in the other direction of each cable) where `symmetric`.
std::string check_routes(const Machine& machine, bool symmetric = false);

}  // namespace convoy
