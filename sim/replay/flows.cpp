// SPDX-License-Identifier: MIT
#include "sim/replay/flows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/replay/colours.h"

namespace convoy::inline replays {
namespace {

class Expansion {
 public:
  Expansion(const Plan& plan, const Machine& machine, Listing listing,
            const std::vector<std::uint32_t>& owner)
      : plan_(plan), machine_(machine), listing_(listing), owner_(owner) {}

  FlowTable expand() {
    table_.flows.reserve(count_listed());
    for (std::uint32_t p = 0; p < plan_.patterns.size(); ++p) {
      const Pattern& pattern = plan_.patterns[p];
      if (!owner_.empty() && p > 0 && owner_[p] != owner_[p - 1]) connections_.clear();
      table_.first_group.push_back(size_of(table_.groups));
      for (std::uint32_t g = 0; g < pattern.groups.size(); ++g) {
        FlowGroup group{p, g, size_of(table_.flows), 0, size_of(table_.paths), 0};
        rounds_.clear();
        last_ = {};
        for (std::uint32_t r = 0; r < pattern.rounds.size(); ++r)
          add_round(pattern.groups[g], pattern.rounds[r], r);
        group.flow_count = size_of(table_.flows) - group.first_flow;
        group.path_count = size_of(table_.paths) - group.first_path;
        table_.groups.push_back(group);
      }
    }
    table_.first_group.push_back(size_of(table_.groups));
    return std::move(table_);
  }

 private:
  struct Message {
    EndpointId from, to;
    double fraction;
    std::optional<std::uint32_t> path{};  ///< nothing: has to be looked up
  };
  /// Messages are listed this many at a time, so that what they are looked up in is there when it is needed.
  static constexpr std::size_t most_ahead = 32;
  /// A round of listed messages.
  struct ListedRound {
    std::uint32_t first = 0, past_last = 0;  ///< of flows
    std::optional<double> latency_s{};
  };

  /// Messages that are listed whatever is found out about all-to-alls. (There may be millions: a list that grows would be
  /// moved several times.)
  std::size_t count_listed() const {
    std::size_t count = 0;
    for (const Pattern& pattern : plan_.patterns)
      for (const Round& round : pattern.rounds)
        count += pattern.groups.size() *
                 (listing_ == Listing::always ? round.message_count() : round.pairs.size());
    return count;
  }

  template <class T>
  static std::uint32_t size_of(const std::vector<T>& list) {
    return static_cast<std::uint32_t>(list.size());
  }

  void add_round(const std::vector<EndpointId>& members, const Round& round, std::uint32_t number) {
    if (round.all_to_all && add_all_to_all(members, *round.all_to_all, number)) return;
    const std::uint32_t first = size_of(table_.flows);
    std::uint32_t pair = 0;
    const auto list = [&] {
      for (const Message& message : messages_) {
        table_.flows.push_back(
            {message.path ? *message.path : path_of(message, round.latency_s), number, message.fraction});
        if (round.rotation) table_.flows.back().pair = pair++;
      }
      messages_.clear();
    };
    round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
      Message message{members[from], members[to], fraction};
      if (size_of(table_.flows) == first && messages_.empty()) look_at_like(message, round.latency_s);
      message.path = path_before(message);
      if (!message.path) known_paths_.fetch(colour_of(message, round.latency_s));
      messages_.push_back(message);
      if (messages_.size() == most_ahead) list();
    });
    list();
    last_ = {first, size_of(table_.flows), round.latency_s};
    if (first == last_.past_last) return;
    const FlowPath& path = table_.path(table_.flows[first]);
    rounds_.insert_or_assign({path.from, path.to}, last_);
  }

  bool add_all_to_all(const std::vector<EndpointId>& members, const AllToAll& all_to_all,
                      std::uint32_t round) {
    if (listing_ == Listing::always) return false;
    const Pairs one_host = pairs_of_one_host(all_to_all, members, machine_);
    const std::size_t first_link = table_.links.size();
    std::optional<AllToAllFlows> flows =
        between_hosts(all_to_all, members, one_host, group(), round, machine_, table_.links);
    if (flows && std::isfinite(flows->connection_Bps) && !number_peers(*flows)) {
      table_.links.resize(first_link);
      return false;
    }
    if (!flows) return false;
    for (const auto& [sender, receiver] : one_host) {
      const AllToAll::Part &from = all_to_all.senders[sender], &to = all_to_all.receivers[receiver];
      if (from.member == to.member) continue;
      const Message message{members[from.member], members[to.member], from.share * to.share};
      table_.flows.push_back({path_of(message, std::nullopt), round, message.fraction});
    }
    if (!flows->senders.empty()) table_.all_to_all.push_back(std::move(*flows));
    return true;
  }

  /// @return false if other messages may use the same connections, or may do so only between some of the
  /// peers: then they have to be distinguished one by one
  bool number_peers(AllToAllFlows& flows) {
    if (!peers_meet_alike_) peers_meet_alike_ = peers_meet_alike();
    if (!*peers_meet_alike_) return false;
    table_.peer_connection_Bps = flows.connection_Bps;
    for (auto* ends : {&flows.senders, &flows.receivers})
      for (AllToAllFlows::End& end : *ends)
        end.peer = peers_.emplace(end.peer, static_cast<std::uint32_t>(peers_.size())).first->second;
    table_.peers = static_cast<std::uint32_t>(peers_.size());
    return true;
  }

  /// Whether all messages between hosts are all-to-alls within one group each: then the load of a connection
  /// follows from what either of its peers sends and receives.
  bool peers_meet_alike() const {
    return std::all_of(plan_.patterns.begin(), plan_.patterns.end(), [&](const Pattern& pattern) {
      return std::all_of(pattern.rounds.begin(), pattern.rounds.end(), [&](const Round& round) {
        if (round.all_to_all) return pattern.groups.size() == 1;
        return std::all_of(pattern.groups.begin(), pattern.groups.end(), [&](const auto& group) {
          return std::all_of(round.pairs.begin(), round.pairs.end(), [&](const auto& pair) {
            return machine_.host_of(group[pair.first]) == machine_.host_of(group[pair.second]);
          });
        });
      });
    });
  }

  /// Chooses the round of this group that is most like the one that begins with this message: the last that began
  /// with it, too (the half of an all-reduce that gathers sends as the other half does), or else the one before.
  void look_at_like(const Message& first, std::optional<double> latency_s) {
    const auto same = rounds_.find({first.from, first.to});
    like_ = same != rounds_.end() ? same->second : last_;
    if (like_.latency_s != latency_s) like_ = {};
  }

  /// The path in the round that is like this one, most of whose messages it has again, in their order.
  std::optional<std::uint32_t> path_before(const Message& message) {
    constexpr std::uint32_t looked_at = 4;
    for (std::uint32_t f = like_.first; f < std::min(like_.past_last, like_.first + looked_at); ++f) {
      const FlowPath& path = table_.path(table_.flows[f]);
      if (path.from != message.from || path.to != message.to) continue;
      like_.first = f + 1;
      return table_.flows[f].path;
    }
    return std::nullopt;
  }

  /// @param latency_s nothing: the route's
  Colour colour_of(const Message& message, std::optional<double> latency_s) const {
    const Colour ends = mix(Colour{message.from} << 32 | message.to, group());
    return latency_s ? mix(ends, bits(*latency_s)) : ends;
  }

  /// The path of the current group; a new one, with its route, where there is none yet.
  std::uint32_t path_of(const Message& message, std::optional<double> latency_s) {
    const std::uint32_t number = known_paths_.number(colour_of(message, latency_s));
    if (number < table_.paths.size()) return number;
    machine_.router->route(message.from, message.to, route_);
    if (std::isfinite(route_.connection_Bps)) {
      const auto next = static_cast<LinkId>(machine_.links.size() + table_.connections_Bps.size());
      const auto [known, fresh] = connections_.emplace(route_.connection, next);
      if (fresh) table_.connections_Bps.push_back(route_.connection_Bps);
      route_.links.push_back(known->second);
    }
    table_.paths.push_back({group(), message.from, message.to, latency_s.value_or(route_.latency_s),
                            size_of(table_.links), size_of(route_.links)});
    table_.links.insert(table_.links.end(), route_.links.begin(), route_.links.end());
    return number;
  }

  /// The current group.
  std::uint32_t group() const { return size_of(table_.groups); }

  const Plan& plan_;
  const Machine& machine_;
  Listing listing_;
  const std::vector<std::uint32_t>& owner_;
  FlowTable table_;
  std::vector<Message> messages_;  ///< to be listed next
  std::map<std::pair<EndpointId, EndpointId>, ListedRound>
      rounds_;               ///< of the current group, by their first messages
  ListedRound last_;         ///< of the current group
  ListedRound like_;         ///< whose messages the current round may have again; `first` is the next of them
  ColourTable known_paths_;  ///< by group, ends and, where a round gives it, latency
  Route route_;
  std::map<std::pair<EndpointId, EndpointId>, LinkId> connections_;  ///< of the current owner
  std::unordered_map<EndpointId, std::uint32_t> peers_;  ///< numbers by name
  std::optional<bool> peers_meet_alike_;
};

}  // namespace

LinkId link_of_peers(const Machine& machine, const FlowTable& table) {
  return static_cast<LinkId>(machine.links.size() + table.connections_Bps.size());
}

double bandwidth_Bps(const Machine& machine, const FlowTable& table, LinkId link) {
  if (link == link_of_peers(machine, table)) return table.peer_connection_Bps;
  return link < machine.links.size() ? machine.links[link].bandwidth_Bps
                                     : table.connections_Bps[link - machine.links.size()];
}

FlowTable expand_flows(const Plan& plan, const Machine& machine, Listing listing,
                       const std::vector<std::uint32_t>& owner) {
  return Expansion(plan, machine, listing, owner).expand();
}

}  // namespace convoy::replays
