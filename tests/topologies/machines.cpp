// SPDX-License-Identifier: MIT
#include "tests/topologies/machines.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "sim/base/input_error.h"

namespace convoy {
namespace {

ClusterSpec cluster_of(const std::string& yaml) {
  std::string text = yaml;
  if (text.find("\ndevices:") == std::string::npos && text.find("ideal") != std::string::npos)
    text +=
        "\ndevices:\n  ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: "
        "1.0}\n";
  return read_cluster(parse_yaml(text, "c.yaml"));
}

Route route_of(const Machine& machine, const std::string& from, const std::string& to) {
  Route route;
  machine.router->route(endpoint(machine, from), endpoint(machine, to), route);
  return route;
}

}  // namespace

Machine machine_of(const std::string& cluster_yaml, std::uint32_t dedicated_hosts) {
  return build_machine(cluster_of(cluster_yaml), dedicated_hosts);
}

std::string error_of(const std::string& cluster_yaml, std::uint32_t dedicated_hosts) {
  try {
    machine_of(cluster_yaml, dedicated_hosts);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

EndpointId endpoint(const Machine& machine, const std::string& name) {
  const bool memory = name.starts_with("mem:");
  for (EndpointId e = memory ? machine.host_endpoint(0) : 0; e < machine.endpoint_count(); ++e)
    if (machine.endpoint_name(e) == (memory ? name.substr(4) : name)) return e;
  throw std::out_of_range("no endpoint " + name);
}

std::string names(const Machine& machine, const Route& route) {
  std::string text;
  for (const LinkId link : route.links) text += (text.empty() ? "" : " ") + machine.links.at(link).name;
  return text;
}

std::string way(const Machine& machine, const std::string& from, const std::string& to) {
  return names(machine, route_of(machine, from, to));
}

double latency_s(const Machine& machine, const std::string& from, const std::string& to) {
  return route_of(machine, from, to).latency_s;
}

std::string check_routes(const Machine& machine, bool symmetric) {
  const auto ports = [&](const Route& route) {
    std::multiset<std::uint32_t> result;
    for (const LinkId link : route.links) result.insert(machine.links.at(link).port);
    return result;
  };
  Route there, back;
  for (EndpointId a = 0; a < machine.endpoint_count(); ++a)
    for (EndpointId b = 0; b < machine.endpoint_count(); ++b) {
      const std::string pair = machine.endpoint_name(a) + " to " + machine.endpoint_name(b) + ": ";
      machine.router->route(a, b, there);
      if (a == b && !there.links.empty()) return pair + "not empty";
      const std::set<LinkId> distinct(there.links.begin(), there.links.end());
      if (distinct.size() != there.links.size()) return pair + "a link twice";
      double latency_s = 0;
      for (const LinkId link : there.links) latency_s += machine.links.at(link).latency_s;
      if (latency_s != there.latency_s) return pair + "latency is not the links' sum";
      if (!symmetric) continue;
      machine.router->route(b, a, back);
      if (ports(there) != ports(back)) return pair + "other cables than back";
      if (std::any_of(back.links.begin(), back.links.end(),
                      [&](LinkId link) { return distinct.contains(link); }))
        return pair + "a direction is used both ways";
    }
  return "";
}

}  // namespace convoy
