// SPDX-License-Identifier: MIT
#include <utility>

#include "sim/replay/colours.h"
#include "sim/replay/fold.h"

namespace convoy {
namespace {

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
    for (const AllToAllFlows& flows : table_.all_to_all) step_all_to_all(flows);
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

  /// What the messages of an all-to-all are to their links, ends and group: those of one class of senders to
  /// one class of receivers are alike, so that what a sender has is what its class has to all receivers, less
  /// what would go to its own host.
  void step_all_to_all(const AllToAllFlows& flows) {
    const bool ranks = one_by_one_[table_.groups[flows.group].pattern];
    const EndClasses from = classes_of(flows.senders, table_, old_, ranks),
                     to = classes_of(flows.receivers, table_, old_, ranks);
    std::vector<Colour> count_from(from.colour.size(), 0), count_to(to.colour.size(), 0);
    for (const std::uint32_t c : from.class_of) ++count_from[c];
    for (const std::uint32_t c : to.class_of) ++count_to[c];
    std::vector<Sums> of_sender(from.colour.size()), of_receiver(to.colour.size());
    for (std::size_t s = 0; s < from.colour.size(); ++s)
      for (std::size_t r = 0; r < to.colour.size(); ++r) {
        const Colour own = mix(colour_of(flows, table_, old_, from.colour[s], to.colour[r]));
        of_sender[s].add(own, mix(own, 1), count_to[r]);
        of_receiver[r].add(own, mix(own, 2), count_from[s]);
      }
    std::vector<Sums> sent, got;
    for (const std::uint32_t c : from.class_of) sent.push_back(of_sender[c]);
    for (const std::uint32_t c : to.class_of) got.push_back(of_receiver[c]);
    for (const auto& [s, r] : flows.apart) {
      const Colour own =
          mix(colour_of(flows, table_, old_, from.colour[from.class_of[s]], to.colour[to.class_of[r]]));
      sent[s].add(own, mix(own, 1), ~Colour{0});  // once less
      got[r].add(own, mix(own, 2), ~Colour{0});
    }
    for (const Sums& sums : sent) colour_.groups[flows.group] += sums.messages;
    take(flows.senders, sent, ranks);
    take(flows.receivers, got, ranks);
  }

  /// Of an end's messages, as they look to links and group, and to endpoints.
  struct Sums {
    Colour messages = 0, of_endpoint = 0;
    void add(Colour message, Colour to_endpoint, Colour count) {
      messages += message * count;
      of_endpoint += to_endpoint * count;
    }
  };
  void take(const std::vector<AllToAllFlows::End>& ends, const std::vector<Sums>& sums, bool ranks) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      for (const LinkId link : table_.half(ends[i])) colour_.links[link] += sums[i].messages;
      if (ranks) colour_.endpoints[ends[i].endpoint] += sums[i].of_endpoint;
    }
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

}  // namespace

EndClasses classes_of(const std::vector<AllToAllFlows::End>& ends, const FlowTable& table,
                      const Colours& colours, bool one_by_one) {
  EndClasses classes;
  ColourTable known;
  for (std::uint32_t i = 0; i < ends.size(); ++i) {
    const AllToAllFlows::End& end = ends[i];
    Colour colour = mix(mix(bits(end.share), bits(end.latency_s)), end.link_count);
    Colour crossed = 0;
    for (const LinkId link : table.half(end)) crossed += mix(colours.links[link]);
    colour = mix(colour, crossed);
    if (one_by_one) colour = mix(colour, colours.endpoints[end.endpoint]);
    classes.class_of.push_back(known.number(colour));
    if (classes.class_of.back() < classes.colour.size()) continue;
    classes.colour.push_back(colour);
    classes.first.push_back(i);
  }
  return classes;
}

Colour colour_of(const AllToAllFlows& flows, const FlowTable& table, const Colours& colours, Colour sender,
                 Colour receiver) {
  return mix(mix(mix(table.groups[flows.group].pattern, flows.round), colours.groups[flows.group]),
             mix(sender, receiver));
}

Colours refined_colours(const Plan& plan, const Machine& machine, const FlowTable& table,
                        const std::vector<bool>& one_by_one, const Disturbances& disturbances) {
  return Refiner(plan, machine, table, one_by_one, disturbances).refine();
}

}  // namespace convoy
