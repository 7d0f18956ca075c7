// SPDX-License-Identifier: MIT
#include "tests/laws/changed_plans.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tests/laws/strategy_rows.h"

namespace convoy::lab {
namespace {

constexpr std::int64_t images_a_device = 4;

struct Setting {
  std::string cluster;
  int hosts = 0, devices = 0;
};

Setting catalogue_machine(Dice& dice) {
  static const std::vector<Setting> table{
      {"{server: dgx1-v100, nodes: 1, devices_per_node: 4}", 1, 4},
      {"{server: gcp-n1-standard-8-k80, nodes: 4}", 4, 4},
      {"{server: aws-p3.8xlarge, nodes: 2, devices_per_node: 2}", 2, 4},
      {"{server: workstation-4-rtx-2080-ti, nodes: 1}", 1, 4},
      {"{server: gcp-n1-standard-8-p100, nodes: 3}", 3, 3},
      {"{name: mixed, nodes: [{name: a, count: 2, server: gcp-n1-standard-8-k80}, {name: b, count: 1, "
       "server: "
       "gcp-n1-standard-8-v100}, {name: c, count: 1, server: gcp-n1-standard-8-k80, speed: 0.8}], fabric: "
       "{kind: switch, bandwidth: 10Gbps, latency: 30us, protocol: tcp}}",
       4, 4},
  };
  return dice.one_of(table);
}

Setting exact_machine(Dice& dice) {
  const RandomCluster cluster = random_cluster(dice, dice.one_of(fabrics()));
  const Experiment plain(custom_model(1, 0), cluster.text(), "{kind: single}", 1);
  const auto devices = static_cast<int>(plain.machine().devices.size());
  return {cluster.text(), devices / cluster.devices, devices};
}

class RenumberedRouter : public Router {
 public:
  /// @param old by new endpoint  @param fresh by old one
  RenumberedRouter(std::shared_ptr<const Router> router, std::vector<EndpointId> old,
                   std::vector<EndpointId> fresh)
      : router_(std::move(router)), old_(std::move(old)), fresh_(std::move(fresh)) {}
  void route(EndpointId from, EndpointId to, Route& route) const override {
    router_->route(old_[from], old_[to], route);
    if (std::isfinite(route.connection_Bps))
      route.connection = {fresh_[route.connection.first], fresh_[route.connection.second]};
  }
  bool halves(EndpointId endpoint, std::vector<LinkId>& out, std::vector<LinkId>& in) const override {
    return router_->halves(old_[endpoint], out, in);
  }

 private:
  std::shared_ptr<const Router> router_;
  std::vector<EndpointId> old_, fresh_;
};

}  // namespace

void shorten(Plan& plan) {
  Service* const service = plan.service();
  if (!service) return;
  service->compute_spread = service->step_jitter = 0;
  service->drifts = false;
  service->warm_up_steps = 0;
  service->measured_steps = 3;
}

void for_random_plans(unsigned count, const std::function<void(const Experiment&, Dice&)>& law) {
  for (const StrategyRow& row : strategy_rows())
    for (unsigned seed = 1; seed <= count; ++seed) {
      Dice dice(seed);
      const std::string model = random_model(dice);
      const Setting setting = seed % 2 == 0 ? exact_machine(dice) : catalogue_machine(dice);
      const auto layers = static_cast<int>(read_model(parse_yaml(model, "model")).layers.size());
      const std::string strategy = row.strategy(dice, {setting.hosts, setting.devices, layers});
      CAPTURE(row.name);
      CAPTURE(seed);
      CAPTURE(model);
      CAPTURE(setting.cluster);
      CAPTURE(strategy);
      Experiment experiment = row.global_batch
                                  ? Experiment::with_global_batch(model, setting.cluster, strategy,
                                                                  images_a_device * setting.devices)
                                  : Experiment(model, setting.cluster, strategy, images_a_device);
      shorten(experiment.plan());
      law(experiment, dice);
    }
}

void check_follows(const ReplayResult& from, const ReplayResult& result, const Expected& expected) {
  const auto is = [](double value, double wanted, double scale) {
    return std::abs(value - wanted) <= 1e-9 * std::max({std::abs(value), std::abs(wanted), scale});
  };
  const double step_s = from.step_time_s * expected.time_factor;
  const auto times = [&](double before_s, double after_s) {
    return is(after_s, before_s * expected.time_factor, step_s);
  };
  const auto bytes = [&](double before, double after) { return is(after, before * expected.byte_factor, 1); };
  CAPTURE(from.step_time_s);
  CAPTURE(result.step_time_s);
  CHECK(times(from.step_time_s, result.step_time_s));
  CHECK(bytes(from.comm_bytes, result.comm_bytes));
  CHECK(times(from.input_wait_s, result.input_wait_s));
  REQUIRE(from.endpoints.size() == result.endpoints.size());
  for (std::size_t e = 0; e < from.endpoints.size(); ++e) {
    CAPTURE(e);
    const EndpointUsage one = from.endpoints[e];
    const EndpointUsage other = result.endpoints[expected.endpoint.empty() ? e : expected.endpoint[e]];
    CHECK(times(one.compute_s, other.compute_s));
    CHECK(times(one.issue_wait_s, other.issue_wait_s));
    CHECK(times(one.exposed_comm_s, other.exposed_comm_s));
    CHECK(times(one.hidden_comm_s, other.hidden_comm_s));
    CHECK(times(one.comm_slack_s, other.comm_slack_s));
    CHECK(times(one.end_s, other.end_s));
    CHECK(bytes(one.sent_bytes, other.sent_bytes));
    CHECK(bytes(one.received_bytes, other.received_bytes));
    CHECK(is(other.peak_memory_bytes, one.peak_memory_bytes, 1));
  }
  REQUIRE(from.links.size() == result.links.size());
  for (std::size_t l = 0; l < from.links.size(); ++l) {
    CAPTURE(l);
    CHECK(bytes(from.links[l].bytes, result.links[l].bytes));
    CHECK(times(from.links[l].busy_s, result.links[l].busy_s));
  }
  REQUIRE(from.port_busy_s.size() == result.port_busy_s.size());
  for (std::size_t p = 0; p < from.port_busy_s.size(); ++p) {
    CAPTURE(p);
    CHECK(times(from.port_busy_s[p], result.port_busy_s[p]));
  }
  REQUIRE(from.staleness.has_value() == result.staleness.has_value());
  if (!from.staleness) return;
  CHECK(is(result.staleness->mean, from.staleness->mean, 1));
  CHECK(is(result.staleness->max, from.staleness->max, 1));
  CHECK(result.staleness->max_lead == from.staleness->max_lead);
}

Machine renumbered(const Machine& machine, const std::vector<std::uint32_t>& host,
                   const std::vector<EndpointId>& device) {
  Machine result = machine;
  std::vector<EndpointId> old(machine.endpoint_count()), fresh(machine.endpoint_count());
  for (EndpointId d = 0; d < machine.devices.size(); ++d) {
    result.devices[device[d]] = machine.devices[d];
    result.devices[device[d]].host = host[machine.devices[d].host];
    fresh[d] = device[d];
  }
  for (std::uint32_t h = 0; h < machine.hosts.size(); ++h) {
    Host& moved = result.hosts[host[h]] = machine.hosts[h];
    for (std::uint32_t d = 0; d < moved.device_count; ++d) {
      const EndpointId here = device[machine.hosts[h].first_device + d];
      moved.first_device = d == 0 ? here : std::min(moved.first_device, here);
    }
    fresh[machine.host_endpoint(h)] = machine.host_endpoint(host[h]);
  }
  for (EndpointId e = 0; e < fresh.size(); ++e) old[fresh[e]] = e;
  result.router = std::make_shared<const RenumberedRouter>(machine.router, std::move(old), std::move(fresh));
  return result;
}

}  // namespace convoy::lab
