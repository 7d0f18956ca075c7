// SPDX-License-Identifier: MIT
#include "sim/replay/refine.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/replay/first_colours.h"
#include "sim/replay/fold.h"
#include "sim/replay/splitting_classes.h"

namespace convoy::inline replays {
namespace {

/// For each object of one kind, the objects that see it; all lists are in one vector.
class Viewers {
 public:
  /// @param for_each calls its argument with every object (from 0) and each of its viewers
  template <class ForEach>
  Viewers(std::size_t things, ForEach for_each) : first_(things + 1, 0) {
    for_each([&](std::uint32_t thing, std::uint32_t) { ++first_[thing + 1]; });
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    viewers_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for_each([&](std::uint32_t thing, std::uint32_t viewer) { viewers_[next[thing]++] = viewer; });
  }
  std::span<const std::uint32_t> of(std::uint32_t thing) const {
    return {viewers_.data() + first_[thing], first_[thing + 1] - first_[thing]};
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<std::uint32_t> viewers_;
};

class Refiner {
 public:
  Refiner(const Plan& plan, const Machine& machine, const FlowTable& table,
          const std::vector<bool>& one_by_one, const Disturbances& disturbances)
      : plan_(plan),
        table_(table),
        one_by_one_(one_by_one),
        numbers_(machine, table),
        classes_(first_colours(plan, machine, table, numbers_, disturbances)),
        messages_changed_(table.all_to_all.size(), false) {
    if (!plan.service()) return;
    const std::vector<std::uint32_t> way_back = answering_paths();
    of_answers_.emplace(way_back.size(), [&](auto see) {
      for (std::uint32_t p = 0; p < way_back.size(); ++p) see(way_back[p], numbers_.paths + p);
    });
  }

  /// First every object shows its class to those that see it, then only objects whose class has changed do.
  NodeClasses refine() {
    show_all();
    for (auto changed = classes_.split(); !changed.empty(); changed = classes_.split()) {
      if (!of_links_) list_viewers();
      for (const std::uint32_t thing : changed) show(thing);
      show_messages();
    }
    return {numbers_, classes_.take()};
  }

 private:
  /// The role of an object for another one that sees it.
  enum class As : Colour {
    member = 1,
    sender,
    receiver,
    sent,
    received,
    crossing,
    group,
    link,
    answer,
    pair,
    end,
    peer
  };
  /// For each path the one whose flows answer its flows, or which these answer.
  std::vector<std::uint32_t> answering_paths() const {
    const std::vector<std::uint32_t> way_back = answers(plan_, table_);
    std::vector<std::uint32_t> result(table_.paths.size());
    for (std::uint32_t f = 0; f < way_back.size(); ++f)
      result[table_.flows[f].path] = table_.flows[way_back[f]].path;
    return result;
  }

  Colour look(std::uint32_t thing, As as) const {
    return mix(static_cast<Colour>(as) << 32 | classes_.of(thing));
  }

  template <class See>
  void see_endpoints(See see) const {
    for (std::uint32_t g = 0; g < table_.groups.size(); ++g) {
      const FlowGroup& group = table_.groups[g];
      for (const EndpointId e : members(group)) see(e, numbers_.groups + g);
      if (!one_by_one_[group.pattern]) continue;
      for (std::uint32_t p = group.first_path; p < group.first_path + group.path_count; ++p) {
        see(table_.paths[p].from, numbers_.paths + p);
        if (table_.paths[p].to != table_.paths[p].from) see(table_.paths[p].to, numbers_.paths + p);
      }
    }
    for_each_end([&](const AllToAllFlows& flows, const AllToAllFlows::End& end, std::uint32_t number) {
      if (one_by_one_[table_.groups[flows.group].pattern]) see(end.endpoint, number);
    });
  }
  template <class See>
  void see_links(See see) const {
    for (std::uint32_t p = 0; p < table_.paths.size(); ++p)
      for (const LinkId link : table_.route(table_.paths[p])) see(link, numbers_.paths + p);
    for_each_end([&](const AllToAllFlows&, const AllToAllFlows::End& end, std::uint32_t number) {
      for (const LinkId link : table_.half(end)) see(link, number);
    });
  }
  template <class See>
  void see_peers(See see) const {
    if (table_.peers == 0) return;
    std::uint32_t number = numbers_.ends;
    for (const AllToAllFlows& flows : table_.all_to_all) {
      for (const AllToAllFlows::End& end : flows.senders) see(end.peer, number++);
      for (const AllToAllFlows::End& end : flows.receivers) see(table_.peers + end.peer, number++);
    }
  }
  template <class Use>
  void for_each_end(Use use) const {
    std::uint32_t number = numbers_.ends;
    for (const AllToAllFlows& flows : table_.all_to_all)
      for (const auto* ends : {&flows.senders, &flows.receivers})
        for (const AllToAllFlows::End& end : *ends) use(flows, end, number++);
  }
  const std::vector<EndpointId>& members(const FlowGroup& group) const {
    return plan_.patterns[group.pattern].groups[group.index];
  }

  void show_all() {
    see_endpoints([&](EndpointId e, std::uint32_t viewer) { show_endpoint(e, viewer); });
    see_links([&](LinkId link, std::uint32_t viewer) {
      classes_.show(viewer, look(numbers_.links + link, As::link));
    });
    for (std::uint32_t thing = numbers_.paths; thing < numbers_.links; ++thing) show(thing);
    for (std::uint32_t thing = numbers_.ends; thing < numbers_.peers; ++thing) show_end(thing);
    see_peers([&](std::uint32_t peer, std::uint32_t end) {
      classes_.show(numbers_.peers + peer, look(end, As::end));
      classes_.show(end, look(numbers_.peers + peer, As::peer));
    });
    show_messages();
  }

  /// What show() needs, but not on equal machines.
  void list_viewers() {
    of_endpoints_.emplace(numbers_.paths, [&](auto see) { see_endpoints(see); });
    of_links_.emplace(numbers_.ends - numbers_.links, [&](auto see) { see_links(see); });
    of_peers_.emplace(numbers_.count - numbers_.peers, [&](auto see) { see_peers(see); });
    peer_of_end_.resize(table_.peers > 0 ? numbers_.peers - numbers_.ends : 0);
    see_peers([&](std::uint32_t peer, std::uint32_t end) {
      peer_of_end_[end - numbers_.ends] = numbers_.peers + peer;
    });
  }

  /// Shows its class to all that see it.
  void show(std::uint32_t thing) {
    if (thing < numbers_.paths)
      for (const std::uint32_t viewer : of_endpoints_->of(thing)) show_endpoint(thing, viewer);
    else if (thing < numbers_.groups)
      show_path(thing);
    else if (thing < numbers_.links)
      show_group(thing);
    else if (thing < numbers_.ends)
      show_link(thing);
    else if (thing < numbers_.peers)
      show_end(thing);
    else
      show_peer(thing);
  }

  void show_endpoint(EndpointId e, std::uint32_t viewer) {
    if (viewer >= numbers_.groups) {
      classes_.show(viewer, look(e, As::member));
      return;
    }
    const FlowPath& path = table_.paths[viewer - numbers_.paths];
    if (path.from == e) classes_.show(viewer, look(e, As::sender));
    if (path.to == e) classes_.show(viewer, look(e, As::receiver));
  }

  void show_path(std::uint32_t thing) {
    const std::uint32_t p = thing - numbers_.paths;
    const FlowPath& path = table_.paths[p];
    const Colour crossing = look(thing, As::crossing);
    for (const LinkId link : table_.route(path)) classes_.show(numbers_.links + link, crossing);
    classes_.show(numbers_.groups + path.group, crossing);
    if (one_by_one_[table_.groups[path.group].pattern]) {
      classes_.show(path.from, look(thing, As::sent));
      classes_.show(path.to, look(thing, As::received));
    }
    if (!of_answers_) return;
    for (const std::uint32_t viewer : of_answers_->of(p)) classes_.show(viewer, look(thing, As::answer));
  }

  void show_group(std::uint32_t thing) {
    const std::uint32_t g = thing - numbers_.groups;
    const FlowGroup& group = table_.groups[g];
    const Colour own = look(thing, As::group);
    for (std::uint32_t p = group.first_path; p < group.first_path + group.path_count; ++p)
      classes_.show(numbers_.paths + p, own);
    for (const EndpointId e : members(group)) classes_.show(e, own);
    const auto its = std::ranges::equal_range(table_.all_to_all, g, {}, &AllToAllFlows::group);
    for (auto it = its.begin(); it != its.end(); ++it) {
      const std::uint32_t first = first_end(*it);
      for (std::uint32_t i = 0; i < it->senders.size() + it->receivers.size(); ++i)
        classes_.show(first + i, own);
    }
  }

  void show_link(std::uint32_t thing) {
    const Colour own = look(thing, As::link);
    for (const std::uint32_t viewer : of_links_->of(thing - numbers_.links)) classes_.show(viewer, own);
  }

  void show_peer(std::uint32_t thing) {
    const Colour own = look(thing, As::peer);
    for (const std::uint32_t end : of_peers_->of(thing - numbers_.peers)) classes_.show(end, own);
  }

  /// Its messages change with it.
  void show_end(std::uint32_t thing) {
    if (!peer_of_end_.empty()) classes_.show(peer_of_end_[thing - numbers_.ends], look(thing, As::end));
    const auto next = std::upper_bound(numbers_.first_end.begin(), numbers_.first_end.end(), thing);
    messages_changed_[static_cast<std::size_t>(next - numbers_.first_end.begin()) - 1] = true;
  }

  std::uint32_t first_end(const AllToAllFlows& flows) const {
    return numbers_.first_end[static_cast<std::size_t>(&flows - table_.all_to_all.data())];
  }

  void show_messages() {
    for (std::size_t i = 0; i < table_.all_to_all.size(); ++i) {
      if (messages_changed_[i]) show_messages(table_.all_to_all[i]);
      messages_changed_[i] = false;
    }
  }

  /// Ends of one side of an all-to-all, by class.
  struct Side {
    std::vector<std::uint32_t> place;  ///< by end: of its class in `ids`
    std::vector<std::uint32_t> ids;
    std::vector<Colour> counts;               ///< by place: ends
    std::vector<std::uint32_t> all, changed;  ///< places
  };
  Side side(std::uint32_t first, std::size_t ends) const {
    Side result;
    ColourTable known;
    for (std::uint32_t i = 0; i < ends; ++i) {
      const std::uint32_t id = classes_.of(first + i), place = known.number(mix(id));
      if (place == result.ids.size()) {
        result.ids.push_back(id);
        result.counts.push_back(0);
        result.all.push_back(place);
        if (classes_.is_new(id)) result.changed.push_back(place);
      }
      ++result.counts[place];
      result.place.push_back(place);
    }
    return result;
  }

  /// How the messages of an end look to links and groups, and to endpoints.
  struct Sums {
    Colour messages = 0, of_endpoint = 0;
  };

  /// Shows the messages of an all-to-all that have changed to their links, ends and group. Those from one
  /// class of senders to one class of receivers are alike, so what a sender has is what its class has to all
  /// receivers, minus what would go to its own host.
  void show_messages(const AllToAllFlows& flows) {
    const bool ranks = one_by_one_[table_.groups[flows.group].pattern];
    const std::uint32_t first = first_end(flows);
    const Side from = side(first, flows.senders.size()),
               to = side(first + static_cast<std::uint32_t>(flows.senders.size()), flows.receivers.size());
    const auto look_of = [&](std::uint32_t s, std::uint32_t r) {
      return mix(static_cast<Colour>(from.ids[s]) << 32 | to.ids[r], static_cast<Colour>(As::pair));
    };
    std::vector<Sums> of_sender(from.ids.size()), of_receiver(to.ids.size());
    for (std::uint32_t s = 0; s < from.ids.size(); ++s)
      for (const std::uint32_t r : classes_.is_new(from.ids[s]) ? to.all : to.changed) {
        const Colour own = look_of(s, r);
        of_sender[s].messages += own * to.counts[r];
        of_receiver[r].messages += own * from.counts[s];
        if (!ranks) continue;
        of_sender[s].of_endpoint += mix(own, static_cast<Colour>(As::sent)) * to.counts[r];
        of_receiver[r].of_endpoint += mix(own, static_cast<Colour>(As::received)) * from.counts[s];
      }
    std::vector<Sums> sent, got;
    for (const std::uint32_t place : from.place) sent.push_back(of_sender[place]);
    for (const std::uint32_t place : to.place) got.push_back(of_receiver[place]);
    for (const auto& [s, r] : flows.apart) {
      if (!classes_.is_new(from.ids[from.place[s]]) && !classes_.is_new(to.ids[to.place[r]])) continue;
      const Colour own = look_of(from.place[s], to.place[r]);
      sent[s].messages -= own;
      got[r].messages -= own;
      sent[s].of_endpoint -= mix(own, static_cast<Colour>(As::sent));
      got[r].of_endpoint -= mix(own, static_cast<Colour>(As::received));
    }
    Colour of_group = 0;
    for (const Sums& sums : sent) of_group += sums.messages;
    classes_.show(numbers_.groups + flows.group, of_group);
    show_sums(flows.senders, sent, ranks);
    show_sums(flows.receivers, got, ranks);
  }

  void show_sums(const std::vector<AllToAllFlows::End>& ends, const std::vector<Sums>& sums, bool ranks) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (sums[i].messages == 0) continue;
      for (const LinkId link : table_.half(ends[i])) classes_.show(numbers_.links + link, sums[i].messages);
      if (ranks) classes_.show(ends[i].endpoint, sums[i].of_endpoint);
    }
  }

  const Plan& plan_;
  const FlowTable& table_;
  const std::vector<bool>& one_by_one_;
  const NodeIds numbers_;
  SplittingClasses classes_;
  std::optional<Viewers> of_endpoints_, of_links_, of_peers_;
  std::vector<std::uint32_t> peer_of_end_;  ///< empty: there are none, or they have not been needed yet
  std::vector<bool> messages_changed_;      ///< by FlowTable::all_to_all
  std::optional<Viewers>
      of_answers_;  ///< for plans with a service: by path, the paths that it answers or that answer it
};

}  // namespace

NodeIds::NodeIds(const Machine& machine, const FlowTable& table)
    : paths(static_cast<std::uint32_t>(machine.endpoint_count())),
      groups(paths + static_cast<std::uint32_t>(table.paths.size())),
      links(groups + static_cast<std::uint32_t>(table.groups.size())),
      ends(links + static_cast<std::uint32_t>(machine.links.size() + table.connections_Bps.size())),
      peers(ends) {
  for (const AllToAllFlows& flows_of_one : table.all_to_all) {
    first_end.push_back(peers);
    peers += static_cast<std::uint32_t>(flows_of_one.senders.size() + flows_of_one.receivers.size());
  }
  count = peers + 2 * table.peers;
}

std::vector<std::uint32_t> flow_classes(const FlowTable& table, NodeClasses::Span paths) {
  // Paths of one class have flows of the same rounds and fractions, each in the order of rounds: those that are known
  // of a class of paths stand one after the other, and each of the paths goes through them.
  constexpr std::uint32_t none = Folding::none;
  struct Known {
    std::uint32_t round = none, pair = 0;
    double fraction = 0;
    std::uint32_t number = 0;
  };
  std::vector<std::uint32_t> flows(paths.size(), 0), next(paths.size());  // by path; next: among the known
  for (const Flow& flow : table.flows) ++flows[flow.path];
  std::vector<std::uint32_t> first(paths.empty() ? 0 : *std::ranges::max_element(paths) + 1, none);
  std::uint32_t places = 0;
  for (std::uint32_t p = 0; p < paths.size(); ++p) {
    if (first[paths[p]] == none) first[paths[p]] = std::exchange(places, places + flows[p]);
    next[p] = first[paths[p]];
  }
  std::vector<Known> known(places + 1);
  std::uint32_t classes = 0;
  std::vector<std::uint32_t> result;
  result.reserve(table.flows.size());
  for (const Flow& flow : table.flows) {
    std::uint32_t& first_of_round = next[flow.path];
    while (known[first_of_round].round < flow.round) ++first_of_round;
    std::uint32_t i = first_of_round;
    while (known[i].round == flow.round && (known[i].pair != flow.pair || known[i].fraction != flow.fraction))
      ++i;
    if (known[i].round == none) known[i] = {flow.round, flow.pair, flow.fraction, classes++};
    result.push_back(known[i].number);
  }
  return result;
}

NodeClasses refined_classes(const Plan& plan, const Machine& machine, const FlowTable& table,
                            const std::vector<bool>& one_by_one, const Disturbances& disturbances) {
  return Refiner(plan, machine, table, one_by_one, disturbances).refine();
}

}  // namespace convoy::replays
