// SPDX-License-Identifier: MIT
#include "sim/replay/fold.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "sim/replay/colours.h"
#include "sim/replay/refine.h"

namespace convoy::inline replays {
namespace {

/// Numbers classes by first appearance among the members for which `in_use` is true.
template <class InUse>
void number(std::span<const std::uint32_t> classes, InUse in_use, std::vector<std::uint32_t>& class_of,
            std::vector<std::uint32_t>& representatives) {
  ColourTable known;
  class_of.assign(classes.size(), Folding::none);
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    if (!in_use(i)) continue;
    class_of[i] = known.number(mix(classes[i]));
    if (class_of[i] == representatives.size()) representatives.push_back(i);
  }
}

/// Classes of one side of an all-to-all.
struct EndClasses {
  std::vector<std::uint32_t> class_of;  ///< by end
  std::vector<std::uint32_t> first;     ///< by class: an end
};

EndClasses end_classes(std::span<const std::uint32_t> classes) {
  EndClasses result;
  number(
      classes, [](auto) { return true; }, result.class_of, result.first);
  return result;
}

/// Classes of flows, with their routes over link classes.
class FlowClasses {
 public:
  FlowClasses(const FlowTable& table, const NodeClasses& classes, const Machine& machine, Folding& folding)
      : table_(table), classes_(classes), machine_(machine), folding_(folding) {}

  void find() {
    folding_.flow_class = flow_classes(table_, classes_.paths());
    for (std::uint32_t f = 0; f < table_.flows.size(); ++f)
      if (folding_.flow_class[f] == folding_.first_flow.size()) folding_.first_flow.push_back(f);
    find_routes();
    list_of_groups();
    std::vector<std::uint32_t> groups_of_class(folding_.groups.size(), 0);
    for (const std::uint32_t c : folding_.group_class) ++groups_of_class[c];
    std::size_t first_end = 0;
    for (const AllToAllFlows& flows : table_.all_to_all) {
      find(flows, classes_.ends().subspan(first_end),
           groups_of_class[folding_.group_class[flows.group]] == 1);
      first_end += flows.senders.size() + flows.receivers.size();
    }
  }

 private:
  bool represents(LinkId link) const { return folding_.links[folding_.link_class[link]] == link; }

  /// @param out,in the two halves of the route
  void add_route(std::span<const LinkId> out, std::span<const LinkId> in) {
    ClassRoutes& routes = folding_.routes;
    const std::size_t own = routes.size();
    routes.add_class();
    for (const std::span<const LinkId> links : {out, in})
      for (const LinkId link : links) {
        const std::uint32_t c = folding_.link_class[link];
        if (const std::span<LinkUse> route = routes[own]; use_of(route, c) == route.end())
          routes.push_back({c, 0});
      }
  }

  static std::span<LinkUse>::iterator use_of(std::span<LinkUse> route, std::uint32_t link_class) {
    return std::ranges::find(route, link_class, &LinkUse::link);
  }

  /// Counts how many flows, of each class that has the route, cross a link that represents its class.
  void add_crossings(std::uint32_t route_class, LinkId link, std::uint64_t flows) {
    use_of(folding_.routes[route_class], folding_.link_class[link])->multiplicity +=
        static_cast<std::uint32_t>(flows);
  }

  /// By class of listed flows: how many of them are on each of their paths.
  std::vector<std::uint32_t> flows_a_path() const {
    std::vector<std::uint32_t> flows(folding_.first_flow.size(), 0);
    for (std::size_t f = 0; f < table_.flows.size(); ++f) {
      const std::uint32_t c = folding_.flow_class[f];
      if (table_.flows[f].path == table_.flows[folding_.first_flow[c]].path) ++flows[c];
    }
    return flows;
  }

  /// Of the listed flows.
  void find_routes() {
    const NodeClasses::Span paths = classes_.paths();
    const std::vector<std::uint32_t> flows = flows_a_path();
    // The last class of routes over paths of each class, and by class of routes the one before over the same: there are
    // as many as there are different numbers of flows a path, mostly one.
    std::vector<std::uint32_t> last(paths.empty() ? 0 : *std::ranges::max_element(paths) + 1, Folding::none);
    std::vector<std::uint32_t> flows_of_route, before;
    std::size_t most_uses = 0;  // nothing of a million of them is to be there twice while it grows
    for (const std::uint32_t f : folding_.first_flow) most_uses += table_.route(table_.flows[f]).size();
    folding_.routes.reserve(flows.size(), most_uses);
    folding_.route_class.reserve(flows.size());
    flows_of_route.reserve(flows.size());
    before.reserve(flows.size());
    for (std::size_t c = 0; c < flows.size(); ++c) {
      const Flow& flow = table_.flows[folding_.first_flow[c]];
      std::uint32_t& last_of_paths = last[paths[flow.path]];
      std::uint32_t route = last_of_paths;
      while (route != Folding::none && flows_of_route[route] != flows[c]) route = before[route];
      if (route == Folding::none) {
        route = static_cast<std::uint32_t>(folding_.routes.size());
        add_route(table_.route(flow), {});
        flows_of_route.push_back(flows[c]);
        before.push_back(std::exchange(last_of_paths, route));
      }
      folding_.route_class.push_back(route);
    }
    for (std::size_t p = 0; p < paths.size(); ++p)
      for (const LinkId link : table_.route(table_.paths[p])) {
        if (!represents(link)) continue;
        for (std::uint32_t route = last[paths[p]]; route != Folding::none; route = before[route])
          add_crossings(route, link, flows_of_route[route]);
      }
  }

  /// The listed flows of the groups that represent their classes.
  void list_of_groups() {
    std::vector<bool> seen(folding_.first_flow.size(), false);
    for (const std::uint32_t g : folding_.groups) {
      std::vector<std::uint32_t>& flows = folding_.group_flows.emplace_back();
      const FlowGroup& group = table_.groups[g];
      for (std::uint32_t f = group.first_flow; f < group.first_flow + group.flow_count; ++f) {
        const std::uint32_t c = folding_.flow_class[f];
        if (!seen[c]) flows.push_back(c);
        seen[c] = true;
      }
    }
  }

  /// @param ends classes of its ends, and those of the other all-to-alls
  /// @param only no other group has ends of these classes, so that each pair of them is found once
  void find(const AllToAllFlows& flows, std::span<const std::uint32_t> ends, bool only) {
    const EndClasses from = end_classes(ends.first(flows.senders.size())),
                     to = end_classes(ends.subspan(flows.senders.size(), flows.receivers.size()));
    const std::uint32_t group_class = folding_.group_class[flows.group];
    class_of_pair_.assign(from.first.size() * to.first.size(), Folding::none);
    std::vector<std::uint64_t> senders_of_peer, receivers_of_peer;
    if (table_.peers > 0) {
      senders_of_peer = ends_of_peer(flows.senders, from.class_of);
      receivers_of_peer = ends_of_peer(flows.receivers, to.class_of);
    }
    ClassPairs(flows, from.class_of, to.class_of).all_of([&](const ClassPairs::Pair& pair) {
      const std::uint32_t sender = from.first[pair.sender_class], receiver = to.first[pair.receiver_class];
      const auto before = static_cast<std::uint32_t>(folding_.flow_class_count());
      const std::uint32_t c =
          only ? before : number_of(mix(ends[sender], ends[flows.senders.size() + receiver]));
      if (c == before) add_class(flows, flows.senders[sender], flows.receivers[receiver]);
      if (table_.peers > 0 && c == before)
        add_connection(flows.senders[sender].peer, flows.receivers[receiver].peer,
                       senders_of_peer[sender] * receivers_of_peer[receiver]);
      class_of_pair_[pair.sender_class * to.first.size() + pair.receiver_class] = c;
      if (folding_.groups[group_class] == flows.group) folding_.group_flows[group_class].push_back(c);
      return true;
    });
    count_crossings(flows.senders, from, to, flows.apart,
                    [&](auto sender, auto receiver) { return sender * to.first.size() + receiver; });
    Pairs turned;
    for (const auto& [sender, receiver] : flows.apart) turned.emplace_back(receiver, sender);
    count_crossings(flows.receivers, to, from, turned,
                    [&](auto receiver, auto sender) { return sender * to.first.size() + receiver; });
  }

  /// The class of the flows from one class of senders to one class of receivers, which both have this colour; where they are
  /// new, the one that is to be added.
  std::uint32_t number_of(Colour colour) {
    const std::uint32_t known = known_.number(colour);
    if (known == class_of_known_.size())
      class_of_known_.push_back(static_cast<std::uint32_t>(folding_.flow_class_count()));
    return class_of_known_[known];
  }

  /// Adds a class of flows; any two ends of its classes can represent them.
  void add_class(const AllToAllFlows& flows, const AllToAllFlows::End& sender,
                 const AllToAllFlows::End& receiver) {
    double latency_s = sender.latency_s;
    for (const LinkId link : table_.half(receiver)) latency_s += machine_.links[link].latency_s;
    folding_.unlisted_flows.push_back({{flows.group, sender.endpoint, receiver.endpoint, latency_s, 0, 0},
                                       {Folding::none, flows.round, sender.share * receiver.share}});
    folding_.route_class.push_back(static_cast<std::uint32_t>(folding_.routes.size()));
    add_route(table_.half(sender), table_.half(receiver));
  }

  /// Counts how many of the class's flows use the connection of two peers that represent their classes.
  /// @pre the class is the last
  void add_connection(std::uint32_t from, std::uint32_t to, std::uint64_t flows) {
    const Colour colour = mix(classes_.peers()[from], classes_.peers()[table_.peers + to]);
    const std::uint32_t known = known_connections_.number(colour);
    if (known == connection_class_.size()) {
      connection_class_.push_back(static_cast<std::uint32_t>(folding_.links.size()));
      folding_.links.push_back(link_of_peers(machine_, table_));
    }
    folding_.routes.push_back({connection_class_[known], static_cast<std::uint32_t>(flows)});
  }

  /// Counts crossings on the links of ends that represent their classes: each end has flows with all ends of
  /// the other side except those from which it is apart.
  template <class PlaceOfPair>
  void count_crossings(const std::vector<AllToAllFlows::End>& ends, const EndClasses& classes,
                       const EndClasses& others, const Pairs& apart, PlaceOfPair place_of_pair) {
    std::vector<std::uint64_t> all(others.first.size(), 0);
    for (const std::uint32_t c : others.class_of) ++all[c];
    std::vector<std::vector<std::uint32_t>> without(ends.size());  // classes from which an end is apart
    for (const auto& [end, other] : apart) without[end].push_back(others.class_of[other]);
    for (std::uint32_t i = 0; i < ends.size(); ++i)
      for (const LinkId link : table_.half(ends[i])) {
        if (!represents(link)) continue;
        std::vector<std::uint64_t> flows = all;
        for (const std::uint32_t c : without[i]) --flows[c];
        for (std::uint32_t c = 0; c < flows.size(); ++c)
          if (flows[c] > 0)
            add_crossings(folding_.route_class[class_of_pair_[place_of_pair(classes.class_of[i], c)]], link,
                          flows[c]);
      }
  }

  const FlowTable& table_;
  const NodeClasses& classes_;
  const Machine& machine_;
  Folding& folding_;
  ColourTable known_;  ///< of flows that are not listed, of groups that have equals
  std::vector<std::uint32_t> class_of_known_;
  std::vector<std::uint32_t> class_of_pair_;  ///< of the all-to-all that is looked at
  ColourTable known_connections_;             ///< by the classes of their peers
  std::vector<std::uint32_t> connection_class_;
};

NodeClasses all_apart(const Machine& machine, const FlowTable& table) {
  NodeClasses classes{NodeIds(machine, table), {}};
  classes.class_of.resize(classes.numbers.count);
  std::iota(classes.class_of.begin(), classes.class_of.end(), 0u);
  return classes;
}

}  // namespace

std::vector<std::uint32_t> answers(const Plan& plan, const FlowTable& table) {
  std::vector<std::uint32_t> result(table.flows.size());
  for (const Service::Exchange& exchange : plan.service()->exchanges) {
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
  if (!fold && !table.all_to_all.empty()) throw std::logic_error("what is not listed cannot be told apart");
  const NodeClasses classes =
      fold ? refined_classes(plan, machine, table, one_by_one, disturbances) : all_apart(machine, table);
  std::vector<std::uint32_t> role_of(machine.endpoint_count(), Folding::none);
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r)
    for (const EndpointId e : plan.roles[r].members) role_of[e] = r;
  std::vector<bool> crossed(classes.links().size(), false);
  for (const LinkId link : table.links) crossed[link] = true;

  Folding folding;
  number(
      classes.endpoints(), [&](auto e) { return role_of[e] != Folding::none; }, folding.endpoint_class,
      folding.endpoints);
  for (const EndpointId e : folding.endpoints) folding.endpoint_role.push_back(role_of[e]);
  number(
      classes.groups(), [](auto) { return true; }, folding.group_class, folding.groups);
  number(
      classes.links(), [&](auto l) { return bool{crossed[l]}; }, folding.link_class, folding.links);
  FlowClasses(table, classes, machine, folding).find();
  return folding;
}

}  // namespace convoy::replays
