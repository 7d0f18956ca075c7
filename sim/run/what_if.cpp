// SPDX-License-Identifier: MIT
#include "sim/run/what_if.h"

namespace convoy::inline runs {
namespace {

/// The routes of another router, without their latency.
class SwiftRouter final : public Router {
 public:
  explicit SwiftRouter(std::shared_ptr<const Router> router) : router_(std::move(router)) {}
  void route(EndpointId from, EndpointId to, Route& route) const override {
    router_->route(from, to, route);
    route.latency_s = 0;
  }
  bool halves(EndpointId endpoint, std::vector<LinkId>& out, std::vector<LinkId>& in) const override {
    return router_->halves(endpoint, out, in);
  }

 private:
  std::shared_ptr<const Router> router_;
};

}  // namespace

void apply(const WhatIf& change, Machine& machine) {
  for (Link& link : machine.links) link.bandwidth_Bps *= change.bandwidth;
  for (Device& device : machine.devices) device.speed *= change.compute;
  for (DeviceType& type : machine.device_types) type.issue_factor /= change.issue;
  if (!change.no_latency) return;
  for (Link& link : machine.links) link.latency_s = 0;
  machine.collective_overhead_s = 0;
  machine.router = std::make_shared<SwiftRouter>(machine.router);
}

}  // namespace convoy::runs
