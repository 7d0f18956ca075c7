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

/// The messages between hosts of a Round::all_to_all, where ways are two halves each (Router::halves): not
/// listed, since N senders and S receivers have N x S of them. Messages within a host are flows.
struct AllToAllFlows {
  struct End {
    EndpointId endpoint;
    double share;  ///< AllToAll::Part
    double latency_s;
    std::uint32_t first_link, link_count;  ///< its half of the way, into FlowTable::links
    std::uint32_t partners;                ///< ends on other hosts that it has messages with, at least 1
    /// What Route::connection names it by; once in a FlowTable whose connections limit messages, the number
    /// of that name (FlowTable::peers).
    std::uint32_t peer;
  };
  std::uint32_t group;  ///< index into FlowTable::groups
  std::uint32_t round;
  std::vector<End> senders, receivers;
  /// Pairs (positions in senders and receivers) that have no message here, because they are on one host.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> apart;
  /// What each pair of peers' connection carries; infinite: no connection limits the messages.
  double connection_Bps = std::numeric_limits<double>::infinity();
};

/// By end: how many ends of its side have its peer and its class.
std::vector<std::uint64_t> ends_of_peer(const std::vector<AllToAllFlows::End>& ends,
                                        std::span<const std::uint32_t> class_of);

/// Pairs (positions in senders and receivers) of endpoints of one host, an endpoint and itself among them; in
/// order.
using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
Pairs pairs_of_one_host(const AllToAll& all_to_all, const std::vector<EndpointId>& members,
                        const Machine& machine);

/// @param members the group's endpoints
/// @param one_host its pairs_of_one_host
/// @param links where the ends' halves are appended
/// @return nothing where ways are not two halves
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

  /// Whether `holds` for all pairs that have messages; asked in the order of the classes up to the first for
  /// which it does not.
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
  std::vector<std::uint64_t> senders_, receivers_;  ///< by class: how many
  Pairs apart_;                                     ///< classes of flows.apart, in order
};

}  // namespace convoy::replays
