// SPDX-License-Identifier: MIT
#include "sim/planning/candidate_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/costs/residuals.h"
#include "strategies/strategy.h"

namespace convoy::inline planning {
namespace {

/// What of the network between hosts of these servers the catalogue does not know; "" where it knows all.
std::string doubt_of_network(const Order& order, const ServerTable& servers) {
  std::vector<const ServerSpec*> kinds;
  for (const auto& [name, count] : order) kinds.push_back(&servers.at(name));
  if (const SpokenProtocol spoken = protocol_between(kinds); spoken.assumed()) return assumption_text(spoken);
  for (const ServerSpec* server : kinds)
    if (const Source* source = find_source(server->sources, "fabric.bandwidth");
        source && is_guess(source->grade))
      return fmt::format("the bandwidth between hosts of {} is assumed: {}", server->host.server,
                         source->text);
  return {};
}

/// Share of an order's power, with all devices at their peak, that machines written out in the plan draw.
double own_share(const PlanSpec& spec, const Order& order, const ServerTable& servers) {
  double own_w = 0, all_w = 0;
  for (const auto& [name, count] : order) {
    const ServerSpec& server = servers.at(name);
    double of_one_w = server.host.host_power_w;
    for (const auto& [type, devices] : server.devices) of_one_w += type.peak_power_w * devices;
    all_w += of_one_w * static_cast<double>(count);
    if (spec.own_servers.contains(name)) own_w += of_one_w * static_cast<double>(count);
  }
  return all_w > 0 ? own_w / all_w : 0;
}

/// Of machines of one's own: what the electricity of a region emits, whoever has a data centre there.
const GridRegion* grid_of(const std::string& region) {
  const std::vector<GridRegion>& all = grid_regions();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const GridRegion& row) { return row.region == region; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

CandidateFacts::CandidateFacts(const PlanSpec& spec, const ServerTable& servers, const CandidateSpace& space)
    : spec_(spec), servers_(servers), space_(space) {
  for (const Setup& setup : space.setups) add_setup(setup);
  for (const Candidate& candidate : space.candidates) add_candidate(candidate);
}

void CandidateFacts::add_setup(const Setup& setup) {
  const auto [epochs, is_new_batch] = epochs_of_batch_.try_emplace(setup.global_batch);
  if (is_new_batch) epochs->second = spec_.goal.epochs(static_cast<double>(setup.global_batch));
  epochs_.push_back(&epochs->second);
  double idle_w = 0;
  std::int64_t hosts = 0;
  for (const auto& [name, count] : setup.order) {
    const ServerSpec& server = servers_.at(name);
    double of_one = server.host.host_power_w;
    for (const auto& [type, devices] : server.devices) of_one += type.idle_power_w * devices;
    idle_w += of_one * static_cast<double>(count);
    hosts += count;
  }
  idle_w_.push_back(idle_w);
  hosts_.push_back(hosts);
  kinds_.push_back(&*all_kinds_.insert(kinds_of(setup.order)).first);
  const auto [doubt_of_method, is_new_method] = doubts_of_strategies_.try_emplace(setup.strategy.get());
  if (is_new_method) doubt_of_method->second = read_strategy(*setup.strategy)->trains_otherwise();
  method_doubts_.push_back(&doubt_of_method->second);
  doubtful_setups_.push_back(!method_doubts(setup, doubt_of_method->second).empty());
  if (hosts > 1)
    if (const auto [doubt, is_new] = network_doubts_.try_emplace(*kinds_.back()); is_new)
      doubt->second = doubt_of_network(setup.order, servers_);
}

void CandidateFacts::add_candidate(const Candidate& candidate) {
  const OfferKey key{&space_.setups[candidate.setup].order.get(), &candidate.prices.get(), candidate.market,
                     candidate.region};
  auto known = all_offers_.find(key);
  if (known == all_offers_.end()) known = all_offers_.emplace(key, offer_of(candidate)).first;
  offers_.push_back(&known->second);
}

CandidateFacts::Offer CandidateFacts::offer_of(const Candidate& candidate) {
  const Order& order = space_.setups[candidate.setup].order;
  const std::string& first = order.front().first;
  Offer offer;
  offer.electricity_usd_per_j = spec_.electricity_usd_per_j.value_or(0) * own_share(spec_, order, servers_);
  if (candidate.prices.empty()) offer.usd_per_h = std::numeric_limits<double>::infinity();
  for (std::size_t kind = 0; kind < candidate.prices.size(); ++kind)
    offer.usd_per_h += candidate.prices[kind].usd_per_hour * static_cast<double>(order[kind].second);
  offer.grid = spec_.own_servers.contains(first)
                   ? grid_of(candidate.region)
                   : find_grid_region(first.substr(0, first.find('-')), candidate.region);
  for (const Price& price : candidate.prices)
    if (const auto [doubt, is_new] = price_doubts_.try_emplace({price.server, price.region, price.market});
        is_new)
      doubt->second = spec_.prices().doubt(price);
  if (candidate.market == Market::spot)
    for (const auto& [name, count] : order)
      if (const auto [risk, is_new] = spot_risks_.try_emplace({name, candidate.region}); is_new)
        risk->second = find_spot_risk(interruption_rates(), name, candidate.region, spec_.interruptions);
  offer.risk = risk_of(candidate, order);
  offer.doubtful = !price_doubts(candidate).empty() || !machine_doubts(candidate).empty();
  return offer;
}

std::vector<std::string> CandidateFacts::doubts(std::size_t c) const {
  const Candidate& candidate = space_.candidates[c];
  std::vector<std::string> all = price_doubts(candidate);
  for (const auto& more : {method_doubts(space_.setups[candidate.setup], *method_doubts_[candidate.setup]),
                           machine_doubts(candidate)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> CandidateFacts::price_doubts(const Candidate& candidate) const {
  std::vector<std::string> doubts;
  for (const Price& price : candidate.prices)
    if (const std::string& doubt = price_doubts_.at({price.server, price.region, price.market});
        !doubt.empty())
      doubts.push_back(fmt::format("{}: {}", price.server, doubt));
  return doubts;
}

std::vector<std::string> CandidateFacts::method_doubts(const Setup& setup,
                                                       const std::string& of_strategy) const {
  std::vector<std::string> doubts;
  if (const auto doubt = spec_.goal.batch_doubt(static_cast<double>(setup.global_batch)))
    doubts.push_back(*doubt);
  if (!of_strategy.empty()) doubts.push_back(of_strategy);
  return doubts;
}

/// Of the network between machines, of their devices, and of how often they are taken away.
std::vector<std::string> CandidateFacts::machine_doubts(const Candidate& candidate) const {
  const Setup& setup = space_.setups[candidate.setup];
  std::vector<std::string> doubts;
  if (hosts_[candidate.setup] > 1)
    if (const std::string& doubt = network_doubts_.at(kinds(candidate.setup)); !doubt.empty())
      doubts.push_back(doubt);
  for (const auto& [name, count] : setup.order)
    for (const auto& [type, devices] : servers_.at(name).devices)
      if (std::string doubt = unseen_device_text(type);
          !doubt.empty() && std::find(doubts.begin(), doubts.end(), doubt) == doubts.end())
        doubts.push_back(std::move(doubt));
  if (candidate.market != Market::spot) return doubts;
  for (const auto& [name, count] : setup.order) {
    const std::optional<SpotRisk>& risk = spot_risks_.at({name, candidate.region});
    if (!risk)
      doubts.push_back(
          fmt::format("how often {} is taken away is not known: no interruption is counted", name));
    else
      doubts.insert(doubts.end(), risk->doubts.begin(), risk->doubts.end());
  }
  return doubts;
}

/// Interruptions of spot machines and, where they count, failures of hosts: the means over the order's hosts.
std::optional<CandidateFacts::Risk> CandidateFacts::risk_of(const Candidate& candidate,
                                                            const Order& order) const {
  const PlanSpec& spec = spec_;
  const bool spot = candidate.market == Market::spot;
  if (!spot && !spec.failures) return std::nullopt;
  double taken_s = 0, failing_s = 0, at_once = 0, wait_s = 0;  // hosts a second, of one host
  double least_s = 0, most_s = 0;                              // between which taken_s lies
  for (const auto& [name, count] : order) {
    const double share = static_cast<double>(count) / static_cast<double>(hosts_[candidate.setup]);
    if (spec.failures) {
      const auto& [type, devices] = servers_.at(name).devices.front();
      constexpr double devices_of_table = 8, seconds_a_day = 24 * seconds_an_hour;
      failing_s +=
          share * failure_rate_of(type.name).per_host_day * devices / devices_of_table / seconds_a_day;
    }
    if (!spot) continue;
    const std::optional<SpotRisk>& known = spot_risks_.at({name, candidate.region});
    if (!known) return std::nullopt;
    taken_s += share * known->per_host_h / seconds_an_hour;
    least_s += share * known->least_per_host_h / seconds_an_hour;
    most_s += share * known->most_per_host_h / seconds_an_hour;
    at_once += share * known->lost_at_once;
    wait_s += share * known->wait_h * seconds_an_hour;
  }
  Risk risk;
  risk.faults.per_host_s = taken_s + failing_s;
  if (risk.faults.per_host_s <= 0) return risk;
  // Hosts that fail go one by one.
  const double events = (spot ? taken_s / at_once : 0) + failing_s;
  risk.faults.lost_at_once = risk.faults.per_host_s / events;
  risk.wait_s = (taken_s * wait_s + failing_s * spec.repair_s) / risk.faults.per_host_s;
  risk.least_rate = (least_s + failing_s) / risk.faults.per_host_s;
  risk.most_rate = (most_s + failing_s) / risk.faults.per_host_s;
  return risk;
}

}  // namespace convoy::planning
