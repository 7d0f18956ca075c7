// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// The messages between hosts of a Round::all_to_all, if routes consist of two halves (Router::halves). They
/// are not listed, since N senders and S receivers have N x S of them. Messages within a host are flows.
struct AllToAllFlows {
  struct End {
    EndpointId endpoint;
    double share;  ///< AllToAll::Part
    double latency_s;
    std::uint32_t first_link, link_count;  ///< its half of the route, in FlowTable::links
    std::uint32_t partners;  ///< number of ends on other hosts with which it exchanges messages, at least 1
    /// The name that Route::connection uses for it. Once it is in a FlowTable whose connections limit
    /// messages, the number of that name (FlowTable::peers).
    std::uint32_t peer;
  };
  std::uint32_t group;  ///< index into FlowTable::groups
  std::uint32_t round;
  std::vector<End> senders, receivers;
  /// Pairs (positions in senders and receivers) without a message here, because they are on the same host.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> apart;
  /// The rate of the connection of each pair of peers; infinite: no connection limits the messages.
  double connection_Bps = std::numeric_limits<double>::infinity();
};

/// For each end: the number of ends on its side that have the same peer and the same class.
std::vector<std::uint64_t> ends_of_peer(const std::vector<AllToAllFlows::End>& ends,
                                        std::span<const std::uint32_t> class_of);

/// Pairs (positions in senders and receivers) of endpoints on the same host, including an endpoint and
/// itself; in order.
using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
Pairs pairs_of_one_host(const AllToAll& all_to_all, const std::vector<EndpointId>& members,
                        const Machine& machine);

/// @param members the endpoints of the group
/// @param one_host its pairs_of_one_host
/// @param links the halves of the ends are appended here
/// @return nothing if routes do not consist of two halves
std::optional<AllToAllFlows> between_hosts(const AllToAll& all_to_all, const std::vector<EndpointId>& members,
                                           const Pairs& one_host, std::uint32_t group, std::uint32_t round,
                                           const Machine& machine, std::vector<LinkId>& links);

/// Numbers of messages from each class of senders to each class of receivers.
class ClassPairs {
 public:
  struct Pair {
    std::uint32_t sender_class, receiver_class;
    std::uint64_t messages;  ///< at least 1
  };
  /// @param sender_class,receiver_class by position in senders and receivers, from 0
  ClassPairs(const AllToAllFlows& flows, std::span<const std::uint32_t> sender_class,
             std::span<const std::uint32_t> receiver_class);

  /// Whether `holds` is true for all pairs that have messages; called in the order of the classes, up to the
  /// first for which it is false.
  template <class Holds>
  bool all_of(Holds holds) const {
    auto without = apart_.begin();
    for (std::uint32_t s = 0; s < senders_.size(); ++s)
      for (std::uint32_t r = 0; r < receivers_.size(); ++r) {
        std::uint64_t messages = senders_[s] * receivers_[r];
        for (; without != apart_.end() && *without == std::pair{s, r}; ++without) --messages;
        if (messages > 0 && !holds(Pair{s, r, messages})) return false;
      }
    return true;
  }

 private:
  std::vector<std::uint64_t> senders_, receivers_;  ///< number of members by class
  Pairs apart_;                                     ///< classes of flows.apart, in order
};

}  // namespace convoy::replays
