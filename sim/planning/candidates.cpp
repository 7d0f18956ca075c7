// SPDX-License-Identifier: MIT
#include "sim/planning/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "sim/run/search/search_spec.h"

namespace convoy::inline planning {
namespace {

YamlNode scalar(std::string text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.scalar = std::move(text);
  return node;
}

YamlNode number(std::int64_t value) { return scalar(std::to_string(value)); }

YamlNode mapping(std::vector<std::pair<std::string, YamlNode>> entries) {
  YamlNode node;
  node.kind = YamlNode::Kind::mapping;
  node.entries = std::move(entries);
  return node;
}

std::vector<Order> orders_of(const PlanSpec& spec, const ServerTable& servers) {
  std::vector<Order> orders;
  std::vector<std::string> names;
  for (const auto& [name, server] : servers) names.push_back(name);
  const auto alone = [&](const std::string& name) { return !servers.at(name).fabric; };
  for (const std::string& name : names)
    for (const std::int64_t n : spec.nodes)
      if (n == 1 || !alone(name)) orders.push_back({{name, n}});
  if (!spec.mixtures) return orders;
  for (std::size_t a = 0; a < names.size(); ++a)
    for (std::size_t b = a + 1; b < names.size(); ++b) {
      const Fabric *one = servers.at(names[a]).fabric.get(), *other = servers.at(names[b]).fabric.get();
      if (!one || !other || !one->mixes() || !other->mixes()) continue;
      if (names[a].substr(0, names[a].find('-')) != names[b].substr(0, names[b].find('-'))) continue;
      for (const std::int64_t m : spec.nodes)
        for (const std::int64_t n : spec.nodes) orders.push_back({{names[a], m}, {names[b], n}});
    }
  return orders;
}

std::int64_t devices_of(const Order& order, const ServerTable& servers) {
  std::int64_t devices = 0;
  for (const auto& [name, count] : order) devices += count * servers.at(name).device_count();
  return devices;
}

/// Batches that all kinds of servers of the order are tried with.
std::vector<std::int64_t> common_batches(const Order& order, Precision precision,
                                         const BatchesThatFit& batches) {
  std::vector<std::int64_t> common = batches(order.front().first, precision);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::vector<std::int64_t> others = batches(order[i].first, precision);
    std::erase_if(common,
                  [&](std::int64_t b) { return std::find(others.begin(), others.end(), b) == others.end(); });
  }
  return common;
}

/// Whether a batch is tried on so many devices: those that stand there for a batch of the goal's runs are, where
/// they come to one.
bool is_tried(std::int64_t batch, std::int64_t devices, const PlanSpec& spec) {
  if (!spec.batches.empty() || std::has_single_bit(static_cast<std::uint64_t>(batch))) return true;
  const std::vector<double> runs = spec.goal.batches();
  return std::find(runs.begin(), runs.end(), static_cast<double>(batch * devices)) != runs.end();
}

/// What an hour of a server costs: by the price table, else what its own description says. One that is written
/// out in the plan is no rented one, whatever its base costs; it has one price in all regions.
std::optional<Price> price_of(const PlanSpec& spec, const HostType& host, Market market,
                              const std::string& region) {
  if (std::optional<Price> price = spec.prices().find(host.server, market, region)) return price;
  if (market != Market::on_demand) return std::nullopt;
  Price price;
  price.server = host.server;
  if (host.price_usd_per_h && host.price_origin.empty()) {
    price.usd_per_hour = *host.price_usd_per_h;
    price.source = "the server's description";
    return price;
  }
  if (!spec.own_servers.contains(host.server) || !spec.electricity_usd_per_j) return std::nullopt;
  price.source = "one's own";
  return price;
}

/// Whether the machines that are left can go on: replicas that all have the weights.
bool can_go_on(const YamlNode& strategy) {
  const auto is = [&](std::string_view key, std::string_view text) {
    const YamlNode* value = strategy.find(key);
    return value && value->scalar == text;
  };
  return is("kind", "data_parallel") && is("sync", "all_reduce") && !strategy.find("zero");
}

/// Whether an offer is one of a setup's: only what may be interrupted needs to choose what to do then.
bool applies(const Candidate& offer, const Order& order, const YamlNode& strategy, const PlanSpec& spec) {
  std::int64_t hosts = 0;
  for (const auto& [name, count] : order) hosts += count;
  const bool interrupted = offer.market == Market::spot || spec.failures;
  const bool goes_on = interrupted && hosts > 1 && can_go_on(strategy);
  const bool may_wait = spec.reactions.front() == OnInterruption::wait;
  return offer.reaction == OnInterruption::wait ? may_wait || !goes_on : goes_on;
}

/// "": the price table's first.
std::vector<std::string> regions_of(const PlanSpec& spec) {
  return spec.regions.empty() ? std::vector<std::string>{""} : spec.regions;
}

/// Markets, regions and reactions, with the prices there; for a setup that is still to be named.
std::vector<Candidate> offers_of(const Order& order, const PlanSpec& spec, const ServerTable& servers) {
  std::vector<Candidate> offers;
  for (const Market market : spec.markets)
    for (const std::string& region : regions_of(spec)) {
      Candidate offer{0, market, region, {}, OnInterruption::wait};
      for (const auto& [name, count] : order) {
        const std::optional<Price> price = price_of(spec, servers.at(name).host, market, offer.region);
        if (!price) break;
        if (offer.region.empty()) offer.region = price->region;  // all of an order in one
        offer.prices.push_back(*price);
      }
      if (offer.prices.size() < order.size()) offer.prices.clear();
      offers.push_back(offer);
      if (spec.reactions.back() == OnInterruption::wait) continue;
      offer.reaction = OnInterruption::go_on;
      offers.push_back(std::move(offer));
    }
  return offers;
}

std::vector<std::shared_ptr<const YamlNode>> shared(const std::vector<YamlNode>& strategies) {
  std::vector<std::shared_ptr<const YamlNode>> all;
  for (const YamlNode& strategy : strategies) all.push_back(std::make_shared<const YamlNode>(strategy));
  return all;
}

}  // namespace

std::string text_of(const Order& order) {
  std::string text;
  for (const auto& [name, count] : order)
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", count, name);
  return text;
}

std::string kinds_of(const Order& order) {
  std::string text;
  for (const auto& [name, count] : order) text += (text.empty() ? "" : " + ") + name;
  return text;
}

YamlNode cluster_node(const PlanSpec& spec, const Order& order) {
  YamlNode own = mapping({});
  for (const auto& [server, count] : order)
    if (const auto found = spec.own_servers.find(server); found != spec.own_servers.end())
      own.entries.emplace_back(server, found->second);
  const auto with_own = [&](std::vector<std::pair<std::string, YamlNode>> entries) {
    if (!own.entries.empty()) entries.emplace_back("servers", std::move(own));
    return mapping(std::move(entries));
  };
  if (order.size() == 1)
    return with_own({{"server", scalar(order.front().first)}, {"nodes", number(order.front().second)}});
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  char name = 'a';
  for (const auto& [server, count] : order)
    list.items.push_back(mapping(
        {{"name", scalar(std::string(1, name++))}, {"count", number(count)}, {"server", scalar(server)}}));
  return with_own({{"name", scalar(text_of(order))}, {"nodes", std::move(list)}});
}

bool has_price(const PlanSpec& spec, const ServerSpec& server) {
  for (const Market market : spec.markets)
    for (const std::string& region : regions_of(spec))
      if (price_of(spec, server.host, market, region)) return true;
  return false;
}

CandidateSpace enumerate(const PlanSpec& spec, const ServerTable& servers, const BatchesThatFit& batches) {
  CandidateSpace space;
  const std::vector<std::shared_ptr<const YamlNode>> given = shared(spec.strategies);
  for (const Order& order : orders_of(spec, servers)) {
    const std::int64_t devices = devices_of(order, servers);
    const SharedList<Order::value_type> shared_order(order);
    const std::vector<Candidate> offers = offers_of(order, spec, servers);
    const std::vector<std::shared_ptr<const YamlNode>> strategies =
        spec.strategies.empty() ? shared(usual_candidates(read_cluster(cluster_node(spec, order)))) : given;
    for (const Precision precision : spec.precisions)
      for (const std::int64_t batch : common_batches(order, precision, batches)) {
        if (!is_tried(batch, devices, spec)) continue;
        for (const std::shared_ptr<const YamlNode>& strategy : strategies) {
          space.setups.push_back({shared_order, precision, batch, devices, batch * devices, strategy});
          for (const Candidate& offer : offers) {
            if (!applies(offer, order, *strategy, spec)) continue;
            space.candidates.push_back(offer);
            space.candidates.back().setup = space.setups.size() - 1;
          }
          if (space.candidates.size() > PlanSpec::max_candidates)
            throw InputError(spec.goal.pos(),
                             fmt::format("plan: more than {} candidates; name fewer servers, nodes, "
                                         "batches or strategies",
                                         PlanSpec::max_candidates));
        }
      }
  }
  return space;
}

Point point_of(const PlanSpec& spec, const Setup& setup) {
  YamlNode training = spec.training;
  training.entries.emplace_back("precision", scalar(std::string(to_string(setup.precision))));
  training.entries.emplace_back("batch_per_device", number(setup.batch_per_device));
  return read_point(mapping({{"model", spec.model},
                             {"training", std::move(training)},
                             {"cluster", cluster_node(spec, setup.order)},
                             {"strategy", *setup.strategy}}));
}

}  // namespace convoy::planning
