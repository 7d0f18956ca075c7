// SPDX-License-Identifier: MIT
#include "topologies/first_devices.h"

#include <algorithm>
#include <utility>

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

}  // namespace

Machine first_devices(const Machine& machine, std::uint32_t count) {
  Machine part = machine;
  part.devices.resize(count);
  part.hosts.clear();
  std::vector<EndpointId> whole_endpoint;
  for (EndpointId d = 0; d < count; ++d) whole_endpoint.push_back(d);
  std::vector<std::uint32_t> part_host(machine.hosts.size(), Link::no_host);
  for (std::uint32_t h = 0; h < machine.hosts.size(); ++h) {
    Host host = machine.hosts[h];
    const bool dedicated = host.device_count == 0;
    if (!dedicated && host.first_device >= count) continue;
    if (!dedicated) host.device_count = std::min(host.device_count, count - host.first_device);
    part_host[h] = static_cast<std::uint32_t>(part.hosts.size());
    part.hosts.push_back(std::move(host));
    whole_endpoint.push_back(machine.host_endpoint(h));
  }
  for (Device& device : part.devices) device.host = part_host[device.host];
  for (Link& link : part.links)
    if (link.host != Link::no_host) link.host = part_host[link.host];
  part.router = std::make_shared<const PartRouter>(machine.router, std::move(whole_endpoint));
  return part;
}

}  // namespace convoy::topologies
