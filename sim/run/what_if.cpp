// SPDX-License-Identifier: MIT
#include "sim/run/what_if.h"

#include "topologies/first_devices.h"

namespace convoy::inline runs {
namespace {

/// The routes of another router, with their latency and what connections carry multiplied.
class ScaledRouter final : public Router {
 public:
  ScaledRouter(std::shared_ptr<const Router> router, double latency, double bandwidth)
      : router_(std::move(router)), latency_(latency), bandwidth_(bandwidth) {}
  void route(EndpointId from, EndpointId to, Route& route) const override {
    router_->route(from, to, route);
    route.latency_s *= latency_;
    route.connection_Bps *= bandwidth_;
  }
  bool halves(EndpointId endpoint, std::vector<LinkId>& out, std::vector<LinkId>& in) const override {
    return router_->halves(endpoint, out, in);
  }

 private:
  std::shared_ptr<const Router> router_;
  double latency_, bandwidth_;
};

/// Whatever is waited for before bytes flow takes so many times as long, and links and connections carry so
/// many times as much.
void scale_messages(Machine& machine, double waits, double bandwidth) {
  for (Link& link : machine.links) link.latency_s *= waits, link.bandwidth_Bps *= bandwidth;
  machine.collective_overhead_s *= waits;
  machine.transport.call_s *= waits;
  machine.transport.serialise_Bps *= bandwidth;
  machine.router = std::make_shared<ScaledRouter>(machine.router, waits, bandwidth);
}

}  // namespace

void apply(const WhatIf& change, Machine& machine) {
  if (!change.only.empty()) machine = chosen_devices(machine, change.only);
  for (Link& link : machine.links) link.bandwidth_Bps *= change.bandwidth;
  for (Device& device : machine.devices) device.speed *= change.compute;
  for (DeviceType& type : machine.device_types) type.issue_factor /= change.issue;
  if (change.network != 1)
    for (Link& link : machine.links)
      if (link.kind == LinkKind::network || link.kind == LinkKind::nic) link.bandwidth_Bps *= change.network;
  if (change.messages != 1) scale_messages(machine, change.messages, 1 / change.messages);
  if (!change.no_latency) return;
  for (Link& link : machine.links) link.latency_s = 0;
  machine.collective_overhead_s = 0;
  machine.router = std::make_shared<ScaledRouter>(machine.router, 0, 1);
}

}  // namespace convoy::runs
