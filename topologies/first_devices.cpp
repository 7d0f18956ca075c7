// SPDX-License-Identifier: MIT
#include "topologies/first_devices.h"

#include <numeric>
#include <utility>
#include <vector>

namespace convoy::inline topologies {
namespace {

/// Asks the whole machine's router, whose hosts have other numbers.
class PartRouter : public Router {
 public:
  PartRouter(std::shared_ptr<const Router> whole, std::vector<EndpointId> whole_endpoint)
      : whole_(std::move(whole)), whole_endpoint_(std::move(whole_endpoint)) {}
  void route(EndpointId from, EndpointId to, Route& route) const override {
    whole_->route(whole_endpoint_[from], whole_endpoint_[to], route);
  }
  bool halves(EndpointId endpoint, std::vector<LinkId>& out, std::vector<LinkId>& in) const override {
    return whole_->halves(whole_endpoint_[endpoint], out, in);
  }

 private:
  std::shared_ptr<const Router> whole_;
  std::vector<EndpointId> whole_endpoint_;
};

/// By host, how many of the chosen devices it has.
std::vector<std::uint32_t> chosen_of_host(const Machine& machine, const std::vector<EndpointId>& chosen) {
  std::vector<std::uint32_t> count(machine.hosts.size(), 0);
  for (const EndpointId device : chosen) ++count[machine.devices[device].host];
  return count;
}

bool stays(const Host& host, std::uint32_t chosen) { return chosen > 0 || host.device_count == 0; }

}  // namespace

std::vector<EndpointId> endpoints_of_chosen(const Machine& machine, const std::vector<EndpointId>& chosen) {
  const std::vector<std::uint32_t> count = chosen_of_host(machine, chosen);
  std::vector<EndpointId> endpoints = chosen;
  for (std::uint32_t h = 0; h < machine.hosts.size(); ++h)
    if (stays(machine.hosts[h], count[h])) endpoints.push_back(machine.host_endpoint(h));
  return endpoints;
}

Machine chosen_devices(const Machine& machine, const std::vector<EndpointId>& chosen) {
  Machine part = machine;
  part.devices.clear();
  for (const EndpointId device : chosen) part.devices.push_back(machine.devices[device]);
  part.hosts.clear();
  const std::vector<std::uint32_t> count = chosen_of_host(machine, chosen);
  std::vector<std::uint32_t> part_host(machine.hosts.size(), Link::no_host);
  std::uint32_t first_device = 0;
  for (std::uint32_t h = 0; h < machine.hosts.size(); ++h) {
    if (!stays(machine.hosts[h], count[h])) continue;
    part_host[h] = static_cast<std::uint32_t>(part.hosts.size());
    Host& host = part.hosts.emplace_back(machine.hosts[h]);
    if (count[h] == 0) continue;
    host.first_device = first_device;
    host.device_count = count[h];
    first_device += count[h];
  }
  for (Device& device : part.devices) device.host = part_host[device.host];
  for (Link& link : part.links)
    if (link.host != Link::no_host) link.host = part_host[link.host];
  part.router = std::make_shared<const PartRouter>(machine.router, endpoints_of_chosen(machine, chosen));
  return part;
}

Machine first_devices(const Machine& machine, std::uint32_t count) {
  std::vector<EndpointId> first(count);
  std::iota(first.begin(), first.end(), EndpointId{0});
  return chosen_devices(machine, first);
}

}  // namespace convoy::topologies
