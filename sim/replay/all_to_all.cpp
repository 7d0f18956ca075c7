// SPDX-License-Identifier: MIT
#include "sim/replay/all_to_all.h"

#include <algorithm>

#include "sim/replay/colours.h"

namespace convoy::inline replays {
namespace {

using End = AllToAllFlows::End;

/// The hosts of `parts` with the positions on each, in order.
Pairs by_host(const std::vector<AllToAll::Part>& parts, const std::vector<EndpointId>& members,
              const Machine& machine) {
  Pairs result;
  for (std::uint32_t i = 0; i < parts.size(); ++i)
    result.emplace_back(machine.host_of(members[parts[i].member]), i);
  std::sort(result.begin(), result.end());
  return result;
}

/// Adds the ends that have partners, each with its half of the route.
class EndWriter {
 public:
  EndWriter(const std::vector<EndpointId>& members, const Machine& machine, std::vector<LinkId>& links)
      : members_(members), machine_(machine), links_(links) {}

  /// @param partners by position in `parts`
  /// @return false if routes do not consist of two halves
  bool add(const std::vector<AllToAll::Part>& parts, const std::vector<std::uint32_t>& partners, bool sends,
           std::vector<End>& ends) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (partners[i] == 0) continue;
      const EndpointId endpoint = members_[parts[i].member];
      if (!machine_.router->halves(endpoint, out_, in_)) return false;
      const std::vector<LinkId>& half = sends ? out_ : in_;
      double latency_s = 0;
      for (const LinkId link : half) latency_s += machine_.links[link].latency_s;
      ends.push_back({endpoint, parts[i].share, latency_s, static_cast<std::uint32_t>(links_.size()),
                      static_cast<std::uint32_t>(half.size()), partners[i], endpoint});
      links_.insert(links_.end(), half.begin(), half.end());
    }
    return true;
  }

 private:
  const std::vector<EndpointId>& members_;
  const Machine& machine_;
  std::vector<LinkId>& links_;
  std::vector<LinkId> out_, in_;
};

/// Names the peers of the ends, and says how much their connections carry. @pre every end has a partner
void find_peers(const Machine& machine, AllToAllFlows& flows) {
  Route way;
  const auto find = [&](std::vector<End>& ends, const std::vector<End>& others, bool sends) {
    for (End& end : ends) {
      const auto partner = std::find_if(others.begin(), others.end(), [&](const End& other) {
        return machine.host_of(other.endpoint) != machine.host_of(end.endpoint);
      });
      machine.router->route(sends ? end.endpoint : partner->endpoint,
                            sends ? partner->endpoint : end.endpoint, way);
      flows.connection_Bps = way.connection_Bps;
      end.peer = sends ? way.connection.first : way.connection.second;
    }
  };
  find(flows.senders, flows.receivers, true);
  find(flows.receivers, flows.senders, false);
}

/// New positions after those without partners have been removed.
std::vector<std::uint32_t> positions_with(const std::vector<std::uint32_t>& partners) {
  std::vector<std::uint32_t> result;
  std::uint32_t next = 0;
  for (const std::uint32_t count : partners) result.push_back(count > 0 ? next++ : next);
  return result;
}

/// Number of members by class.
std::vector<std::uint64_t> sizes(std::span<const std::uint32_t> class_of) {
  std::vector<std::uint64_t> result;
  for (const std::uint32_t c : class_of) {
    if (c >= result.size()) result.resize(c + 1, 0);
    ++result[c];
  }
  return result;
}

}  // namespace

Pairs pairs_of_one_host(const AllToAll& all_to_all, const std::vector<EndpointId>& members,
                        const Machine& machine) {
  const Pairs senders = by_host(all_to_all.senders, members, machine),
              receivers = by_host(all_to_all.receivers, members, machine);
  Pairs result;
  auto first = receivers.begin();
  for (const auto& [host, sender] : senders) {
    while (first != receivers.end() && first->first < host) ++first;
    for (auto it = first; it != receivers.end() && it->first == host; ++it)
      result.emplace_back(sender, it->second);
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::optional<AllToAllFlows> between_hosts(const AllToAll& all_to_all, const std::vector<EndpointId>& members,
                                           const Pairs& one_host, std::uint32_t group, std::uint32_t round,
                                           const Machine& machine, std::vector<LinkId>& links) {
  const std::vector<AllToAll::Part>&senders = all_to_all.senders, &receivers = all_to_all.receivers;
  AllToAllFlows flows{group, round, {}, {}, one_host};
  std::vector<std::uint32_t> of_sender(senders.size(), static_cast<std::uint32_t>(receivers.size())),
      of_receiver(receivers.size(), static_cast<std::uint32_t>(senders.size()));
  for (const auto& [sender, receiver] : flows.apart) --of_sender[sender], --of_receiver[receiver];
  const std::size_t first_link = links.size();
  EndWriter writer(members, machine, links);
  if (!writer.add(senders, of_sender, true, flows.senders) ||
      !writer.add(receivers, of_receiver, false, flows.receivers)) {
    links.resize(first_link);
    return std::nullopt;
  }
  std::erase_if(flows.apart, [&](const auto& pair) {
    return of_sender[pair.first] == 0 || of_receiver[pair.second] == 0;
  });
  const std::vector<std::uint32_t> sender_at = positions_with(of_sender),
                                   receiver_at = positions_with(of_receiver);
  for (auto& [sender, receiver] : flows.apart) sender = sender_at[sender], receiver = receiver_at[receiver];
  find_peers(machine, flows);
  return flows;
}

std::vector<std::uint64_t> ends_of_peer(const std::vector<End>& ends,
                                        std::span<const std::uint32_t> class_of) {
  ColourTable known;
  std::vector<std::uint64_t> count;
  std::vector<std::uint32_t> kind;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    kind.push_back(known.number(mix(ends[i].peer, class_of[i])));
    count.resize(known.size(), 0);
    ++count[kind.back()];
  }
  std::vector<std::uint64_t> result;
  for (const std::uint32_t k : kind) result.push_back(count[k]);
  return result;
}

ClassPairs::ClassPairs(const AllToAllFlows& flows, std::span<const std::uint32_t> sender_class,
                       std::span<const std::uint32_t> receiver_class)
    : senders_(sizes(sender_class)), receivers_(sizes(receiver_class)) {
  for (const auto& [sender, receiver] : flows.apart)
    apart_.emplace_back(sender_class[sender], receiver_class[receiver]);
  std::sort(apart_.begin(), apart_.end());
}

}  // namespace convoy::replays
