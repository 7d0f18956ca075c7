// SPDX-License-Identifier: MIT
#include "sim/replay/fold.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace convoy {
namespace {

using Colour = std::uint64_t;

/// Finaliser of splitmix64 (Steele, Lea & Flood, OOPSLA 2014): every input bit changes half of the output
/// bits.
Colour mix(Colour x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
Colour mix(Colour a, Colour b) { return mix(mix(a) ^ (b * 0xd6e8feb86659fd93u + 0x2545f4914f6cdd1du)); }
Colour bits(double value) { return std::bit_cast<Colour>(value); }

/// Sums of mixed colours stand for multisets of them.
struct Colours {
  std::vector<Colour> endpoints, flows, groups, links;
};

std::size_t distinct(const std::vector<Colour>& colours) {
  std::vector<Colour> sorted = colours;
  std::sort(sorted.begin(), sorted.end());
  return static_cast<std::size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
}
std::size_t distinct(const Colours& c) {
  return distinct(c.endpoints) + distinct(c.flows) + distinct(c.groups) + distinct(c.links);
}

class Refiner {
 public:
  Refiner(const Plan& plan, const Machine& machine, const FlowTable& table,
          const std::vector<bool>& one_by_one)
      : plan_(plan), table_(table), one_by_one_(one_by_one) {
    colour_.endpoints.assign(machine.endpoint_count(), 0);
    for (std::size_t r = 0; r < plan.roles.size(); ++r)
      for (const EndpointId e : plan.roles[r].members) {
        const bool device = e < machine.devices.size();
        const Colour place = device ? mix(machine.devices[e].type, bits(machine.devices[e].speed)) : 1;
        colour_.endpoints[e] = mix(r + 1, place);
        if (device && plan.input)
          colour_.endpoints[e] =
              mix(colour_.endpoints[e], bits(plan.input->interval_s[machine.devices[e].host]));
      }
    if (plan.service) {
      for (const Service::Client& client : plan.service->clients)
        colour_.endpoints[client.device] =
            mix(colour_.endpoints[client.device],
                mix(mix(bits(client.start_s), client.head_start), bits(client.images)));
      way_back_ = answers(plan, table);
    }
    colour_.flows.reserve(table.flows.size());
    for (const Flow& flow : table.flows)
      colour_.flows.push_back(mix(mix(table.groups[flow.group].pattern, flow.round),
                                  mix(mix(bits(flow.fraction), bits(flow.latency_s)), flow.link_count)));
    for (const FlowGroup& group : table.groups)
      colour_.groups.push_back(mix(group.pattern, plan.patterns[group.pattern].groups[group.index].size()));
    colour_.links.reserve(machine.links.size());
    for (const Link& link : machine.links) colour_.links.push_back(bits(link.bandwidth_Bps));
    for (const double connection_Bps : table.connections_Bps) colour_.links.push_back(bits(connection_Bps));
  }

  Colours refine() {
    for (std::size_t count = 0, next = distinct(colour_); next != count;) {
      count = next;
      step();
      next = distinct(colour_);
    }
    return std::move(colour_);
  }

 private:
  /// One round: every colour becomes a hash of itself and its neighbours' colours.
  void step() {
    const Colours old = colour_;
    for (std::size_t f = 0; f < table_.flows.size(); ++f) {
      const Flow& flow = table_.flows[f];
      const bool ranks = one_by_one_[table_.groups[flow.group].pattern];
      Colour crossed = 0;
      for (const LinkId link : table_.route(flow)) crossed += mix(old.links[link]);
      colour_.flows[f] = mix(mix(old.flows[f], crossed), old.groups[flow.group]);
      if (ranks)
        colour_.flows[f] = mix(colour_.flows[f], mix(old.endpoints[flow.from], old.endpoints[flow.to]));
      if (!way_back_.empty()) colour_.flows[f] = mix(colour_.flows[f], old.flows[way_back_[f]]);
      for (const LinkId link : table_.route(flow)) colour_.links[link] += mix(old.flows[f]);
      colour_.groups[flow.group] += mix(old.flows[f]);
      if (ranks) {
        colour_.endpoints[flow.from] += mix(old.flows[f], 1);
        colour_.endpoints[flow.to] += mix(old.flows[f], 2);
      }
    }
    for (std::size_t g = 0; g < table_.groups.size(); ++g) {
      const FlowGroup& group = table_.groups[g];
      for (const EndpointId e : plan_.patterns[group.pattern].groups[group.index]) {
        colour_.groups[g] += mix(old.endpoints[e], 3);
        colour_.endpoints[e] += mix(old.groups[g], 4);
      }
    }
    // A sum of neighbours must not be mistaken for the old colour plus other neighbours.
    for (std::vector<Colour>* colours : {&colour_.endpoints, &colour_.groups, &colour_.links})
      for (Colour& c : *colours) c = mix(c);
  }

  const Plan& plan_;
  const FlowTable& table_;
  const std::vector<bool>& one_by_one_;
  Colours colour_;
  std::vector<std::uint32_t>
      way_back_;  ///< plans with a service: by flow, the flow that answers it or is answered
};

/// Numbers colours by first appearance among the members that `in_use` says take part.
template <class InUse>
void number(const std::vector<Colour>& colours, InUse in_use, std::vector<std::uint32_t>& class_of,
            std::vector<std::uint32_t>& representatives) {
  std::unordered_map<Colour, std::uint32_t> known;
  class_of.assign(colours.size(), Folding::none);
  for (std::uint32_t i = 0; i < colours.size(); ++i) {
    if (!in_use(i)) continue;
    const auto [it, fresh] = known.emplace(colours[i], static_cast<std::uint32_t>(representatives.size()));
    if (fresh) representatives.push_back(i);
    class_of[i] = it->second;
  }
}

/// How often each flow class crosses the representative of each link class.
void find_routes(const FlowTable& table, Folding& folding) {
  const auto is_representative = [&](LinkId link) { return folding.links[folding.link_class[link]] == link; };
  std::unordered_map<std::uint64_t, std::uint32_t> multiplicity;
  for (std::uint32_t f = 0; f < table.flows.size(); ++f)
    for (const LinkId link : table.route(table.flows[f]))
      if (is_representative(link))
        ++multiplicity[(std::uint64_t{folding.flow_class[f]} << 32) | folding.link_class[link]];
  folding.flow_route.resize(folding.flows.size());
  for (std::size_t c = 0; c < folding.flows.size(); ++c) {
    std::vector<LinkUse>& route = folding.flow_route[c];
    for (const LinkId link : table.route(table.flows[folding.flows[c]])) {
      const std::uint32_t link_class = folding.link_class[link];
      if (std::none_of(route.begin(), route.end(),
                       [&](const LinkUse& use) { return use.link == link_class; }))
        route.push_back({link_class, multiplicity.at((std::uint64_t{c} << 32) | link_class)});
    }
  }
}

}  // namespace

std::vector<std::uint32_t> answers(const Plan& plan, const FlowTable& table) {
  std::vector<std::uint32_t> result(table.flows.size());
  for (const Service::Exchange& exchange : plan.service->exchanges) {
    const std::uint32_t push = table.first_group[plan.communications[exchange.push].pattern];
    const std::uint32_t pull = table.first_group[plan.communications[exchange.pull].pattern];
    const std::uint32_t count = table.first_group[plan.communications[exchange.push].pattern + 1] - push;
    for (std::uint32_t g = 0; g < count; ++g)
      for (std::uint32_t f = 0; f < table.groups[push + g].flow_count; ++f) {
        const std::uint32_t there = table.groups[push + g].first_flow + f;
        const std::uint32_t back = table.groups[pull + g].first_flow + f;
        result[there] = back;
        result[back] = there;
      }
  }
  return result;
}

Folding fold(const Plan& plan, const Machine& machine, const FlowTable& table,
             const std::vector<bool>& one_by_one, bool fold) {
  Colours colours;
  if (fold) {
    colours = Refiner(plan, machine, table, one_by_one).refine();
  } else {
    const auto own_colours = [](std::size_t n) {
      std::vector<Colour> result(n);
      for (std::size_t i = 0; i < n; ++i) result[i] = i;
      return result;
    };
    colours = {own_colours(machine.endpoint_count()), own_colours(table.flows.size()),
               own_colours(table.groups.size()),
               own_colours(machine.links.size() + table.connections_Bps.size())};
  }

  std::vector<std::uint32_t> role_of(machine.endpoint_count(), Folding::none);
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r)
    for (const EndpointId e : plan.roles[r].members) role_of[e] = r;
  std::vector<bool> crossed(colours.links.size(), false);
  for (const LinkId link : table.links) crossed[link] = true;

  Folding folding;
  number(
      colours.endpoints, [&](auto e) { return role_of[e] != Folding::none; }, folding.endpoint_class,
      folding.endpoints);
  for (const EndpointId e : folding.endpoints) folding.endpoint_role.push_back(role_of[e]);
  const auto all = [](auto) { return true; };
  number(colours.flows, all, folding.flow_class, folding.flows);
  number(colours.groups, all, folding.group_class, folding.groups);
  number(
      colours.links, [&](auto l) { return bool{crossed[l]}; }, folding.link_class, folding.links);
  find_routes(table, folding);
  return folding;
}

}  // namespace convoy
