// SPDX-License-Identifier: MIT
// Units: a world in which everything takes twice as long is the same world, and so is one with twice the
// bytes over twice the bandwidth.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>
#include <memory>

#include "tests/laws/changed_plans.h"
#include "tests/laws/strategy_rows.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

/// A router whose ways have so many times the latency, and connections with so many times the bandwidth.
class ScaledRouter : public Router {
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

Machine with_links(Machine machine, double latency, double bandwidth) {
  for (Link& link : machine.links) {
    link.latency_s *= latency;
    link.bandwidth_Bps *= bandwidth;
  }
  for (HostType& type : machine.host_types) type.reduce_bandwidth_Bps *= bandwidth;
  machine.router = std::make_shared<const ScaledRouter>(machine.router, latency, bandwidth);
  return machine;
}

Machine slower(const Machine& machine, double factor) {
  Machine result = with_links(machine, factor, 1 / factor);
  for (DeviceType& type : result.device_types) {
    for (auto& [precision, peak] : type.peak_flops) peak /= factor;
    type.memory_bandwidth_Bps /= factor;
    type.launch_overhead_s *= factor;
    type.issue_factor *= factor;
  }
  return result;
}

Plan slower(Plan plan, double factor) {
  for (Communication& communication : plan.communications) communication.overhead_s *= factor;
  for (Pattern& pattern : plan.patterns)
    for (Round& round : pattern.rounds)
      if (round.latency_s) *round.latency_s *= factor;
  for (Role& role : plan.roles)
    for (Task& task : role.program) task.seconds *= factor;
  if (Service* service = plan.service())
    for (Service::Client& client : service->clients) client.start_s *= factor;
  if (plan.input)
    for (double& interval_s : plan.input->interval_s) interval_s *= factor;
  return plan;
}

Plan with_bytes(Plan plan, double factor) {
  for (Communication& communication : plan.communications) communication.bytes *= factor;
  if (Service* service = plan.service())
    for (Service::Exchange& exchange : service->exchanges)
      if (exchange.added_bytes) *exchange.added_bytes *= factor;
  return plan;
}

}  // namespace

TEST_CASE("where everything takes three times as long, the step does") {
  for_random_plans(6, [](const Experiment& experiment, Dice&) {
    check_follows(
        experiment.run(),
        replay(slower(experiment.plan(), 3), slower(experiment.machine(), 3), experiment.cost(), {}), {3, 1});
  });
}

TEST_CASE("twice the bytes over links of twice the bandwidth take as long") {
  for_random_plans(6, [](const Experiment& experiment, Dice&) {
    check_follows(experiment.run(),
                  replay(with_bytes(experiment.plan(), 2), with_links(experiment.machine(), 1, 2),
                         experiment.cost(), {}),
                  {1, 2});
  });
}

TEST_CASE(
    "on exact machines that take twice as long for everything, strategies decide what they did before") {
  for (const StrategyRow& row : strategy_rows())
    for (unsigned seed = 1; seed <= 8; ++seed) {
      Dice dice(seed);
      const std::string model = random_model(dice);
      RandomCluster cluster = random_cluster(dice, fabrics()[seed % fabrics().size()]);
      const auto inside = [&](double factor) {
        return cluster.devices == 1 ? std::string("{kind: none}")
                                    : fmt::format(
                                          "{{kind: nvlink, bandwidth: {}GB/s, latency: {}us, pcie: "
                                          "{{bandwidth: {}GB/s, latency: "
                                          "{}us}}}}",
                                          24 / factor, 2 * factor, 12 / factor, 4 * factor);
      };
      cluster.interconnect = inside(1);
      RandomCluster slow = cluster;
      slow.interconnect = inside(2);
      slow.bandwidth_Bps /= 2;
      slow.latency_s *= 2;
      slow.peak_flops /= 2;
      slow.memory_Bps /= 2;
      const Experiment plain(model, cluster.text(), "{kind: single}", 4);
      const auto devices = static_cast<int>(plain.machine().devices.size());
      const std::string strategy = row.strategy(
          dice, {devices / cluster.devices, devices, static_cast<int>(plain.graph().model.layers.size())});
      if (strategy.find("cycle: ") != std::string::npos) continue;  // a time that the strategy says
      CAPTURE(row.name);
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(cluster.text());
      CAPTURE(strategy);
      const auto run = [&](const RandomCluster& on) {
        Experiment it = row.global_batch
                            ? Experiment::with_global_batch(model, on.text(), strategy, 4 * devices)
                            : Experiment(model, on.text(), strategy, 4);
        shorten(it.plan());
        return it.run();
      };
      check_follows(run(cluster), run(slow), {2, 1});
    }
}
