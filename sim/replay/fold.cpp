// SPDX-License-Identifier: MIT
#include "sim/replay/fold.h"

#include <algorithm>
#include <bit>

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

/// Numbers colours in the order in which they are first asked for. Open addressing: a colour is a hash
/// already.
class ColourTable {
 public:
  std::size_t size() const { return size_; }
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    size_ = 0;
  }
  std::uint32_t number(Colour colour) {
    if (2 * size_ >= slots_.size()) widen();
    Slot& slot = find(colour);
    if (slot.number == Folding::none) slot = {colour, static_cast<std::uint32_t>(size_++)};
    return slot.number;
  }

 private:
  struct Slot {
    Colour colour = 0;
    std::uint32_t number = Folding::none;
  };
  Slot& find(Colour colour) {
    std::size_t at = colour & (slots_.size() - 1);
    while (slots_[at].number != Folding::none && slots_[at].colour != colour)
      at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  void widen() {
    std::vector<Slot> narrow(std::max<std::size_t>(64, 4 * slots_.size()));
    narrow.swap(slots_);
    for (const Slot& slot : narrow)
      if (slot.number != Folding::none) find(slot.colour) = slot;
  }

  std::vector<Slot> slots_;  ///< a power of two
  std::size_t size_ = 0;
};

class Refiner {
 public:
  Refiner(const Plan& plan, const Machine& machine, const FlowTable& table,
          const std::vector<bool>& one_by_one, const Disturbances& disturbances)
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
    disturb(machine, disturbances);
  }

  Colours refine() {
    for (std::size_t count = 0, next = distinct(); next != count && next < things();) {
      count = next;
      step();
      next = distinct();
    }
    return std::move(colour_);
  }

 private:
  /// Those that something happens to are equal where the same happens to them; links of a transfer are each
  /// of a kind of their own.
  void disturb(const Machine& machine, const Disturbances& disturbances) {
    for (const Disturbances::LinkChange& change : disturbances.link_changes) {
      Colour& link = colour_.links[change.link];
      link = mix(link, mix(bits(change.at_s), bits(change.bandwidth_Bps)));
    }
    for (const Disturbances::Stop& stop : disturbances.stops) {
      Colour& endpoint = colour_.endpoints[stop.endpoint];
      endpoint = mix(endpoint, mix(bits(stop.at_s), bits(stop.until_s)));
    }
    Route route;
    Colour number = 1;
    for (const Disturbances::Transfer& transfer : disturbances.transfers) {
      machine.router->route(transfer.from, transfer.to, route);
      for (const LinkId link : route.links) colour_.links[link] = mix(colour_.links[link], ++number);
    }
  }

  std::size_t things() const {
    return colour_.endpoints.size() + colour_.flows.size() + colour_.groups.size() + colour_.links.size();
  }
  std::size_t distinct() {
    std::size_t count = 0;
    for (const auto* colours : {&colour_.endpoints, &colour_.flows, &colour_.groups, &colour_.links}) {
      known_.clear();
      for (const Colour colour : *colours) known_.number(colour);
      count += known_.size();
    }
    return count;
  }

  /// One round: every colour becomes a hash of itself and its neighbours' colours.
  void step() {
    old_ = colour_;
    for (Colour& link : old_.links) link = mix(link);
    for (std::size_t g = 0; g < table_.groups.size(); ++g) step_flows(g);
    if (!way_back_.empty())
      for (std::size_t f = 0; f < table_.flows.size(); ++f)
        colour_.flows[f] = mix(colour_.flows[f], old_.flows[way_back_[f]]);
    for (std::size_t g = 0; g < table_.groups.size(); ++g) {
      const FlowGroup& group = table_.groups[g];
      const Colour to_members = mix(old_.groups[g], 4);
      for (const EndpointId e : plan_.patterns[group.pattern].groups[group.index]) {
        colour_.groups[g] += mix(old_.endpoints[e], 3);
        colour_.endpoints[e] += to_members;
      }
    }
    // A sum of neighbours must not be mistaken for the old colour plus other neighbours.
    for (std::vector<Colour>* colours : {&colour_.endpoints, &colour_.groups, &colour_.links})
      for (Colour& c : *colours) c = mix(c);
  }

  /// Of a group's flows: their new colours, and what they are to their links, ends and group.
  void step_flows(std::size_t g) {
    const FlowGroup& group = table_.groups[g];
    const bool ranks = one_by_one_[group.pattern];
    for (std::size_t f = group.first_flow; f < group.first_flow + group.flow_count; ++f) {
      const Flow& flow = table_.flows[f];
      const Colour own = mix(old_.flows[f]);
      Colour crossed = 0;
      for (const LinkId link : table_.route(flow)) {
        crossed += old_.links[link];
        colour_.links[link] += own;
      }
      Colour& colour = colour_.flows[f];
      colour = mix(mix(colour, crossed), old_.groups[g]);
      colour_.groups[g] += own;
      if (!ranks) continue;
      colour = mix(colour, mix(old_.endpoints[flow.from], old_.endpoints[flow.to]));
      colour_.endpoints[flow.from] += mix(own, 1);
      colour_.endpoints[flow.to] += mix(own, 2);
    }
  }

  const Plan& plan_;
  const FlowTable& table_;
  const std::vector<bool>& one_by_one_;
  Colours colour_, old_;
  ColourTable known_;
  std::vector<std::uint32_t>
      way_back_;  ///< plans with a service: by flow, the flow that answers it or is answered
};

/// Numbers colours by first appearance among the members that `in_use` says take part.
template <class InUse>
void number(const std::vector<Colour>& colours, InUse in_use, std::vector<std::uint32_t>& class_of,
            std::vector<std::uint32_t>& representatives) {
  ColourTable known;
  class_of.assign(colours.size(), Folding::none);
  for (std::uint32_t i = 0; i < colours.size(); ++i) {
    if (!in_use(i)) continue;
    class_of[i] = known.number(colours[i]);
    if (class_of[i] == representatives.size()) representatives.push_back(i);
  }
}

/// How often each flow class crosses the representative of each link class.
void find_routes(const FlowTable& table, Folding& folding) {
  const auto use_of = [&](std::uint32_t flow_class, std::uint32_t link_class) {
    std::vector<LinkUse>& route = folding.flow_route[flow_class];
    return std::find_if(route.begin(), route.end(),
                        [&](const LinkUse& use) { return use.link == link_class; });
  };
  folding.flow_route.resize(folding.flows.size());
  for (std::uint32_t c = 0; c < folding.flows.size(); ++c) {
    const std::span<const LinkId> links = table.route(table.flows[folding.flows[c]]);
    folding.flow_route[c].reserve(links.size());
    for (const LinkId link : links)
      if (use_of(c, folding.link_class[link]) == folding.flow_route[c].end())
        folding.flow_route[c].push_back({folding.link_class[link], 0});
  }
  for (std::uint32_t f = 0; f < table.flows.size(); ++f)
    for (const LinkId link : table.route(table.flows[f])) {
      const std::uint32_t link_class = folding.link_class[link];
      if (folding.links[link_class] == link) ++use_of(folding.flow_class[f], link_class)->multiplicity;
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
             const std::vector<bool>& one_by_one, bool fold, const Disturbances& disturbances) {
  Colours colours;
  if (fold) {
    colours = Refiner(plan, machine, table, one_by_one, disturbances).refine();
  } else {
    const auto own_colours = [](std::size_t n) {
      std::vector<Colour> result(n);
      for (std::size_t i = 0; i < n; ++i) result[i] = mix(i);
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
