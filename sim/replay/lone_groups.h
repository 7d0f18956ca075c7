// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/busy_clock.h"
#include "sim/replay/flows.h"
#include "sim/replay/fold.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// A communication of a group whose ranks go in step and that has its links for itself: all flows of a round
/// begin at one moment, so that the round takes its latency and, for each byte of the communication, a time
/// that is always the same. Rounds follow one another, and their sum is the communication.
struct LoneGroup {
  /// Of a link or a port (LinkClock): how long it is used.
  struct Use {
    std::uint32_t clock;
    double latency_s, s_per_byte;
  };
  double latency_s = 0, s_per_byte = 0;  ///< of the whole communication
  std::vector<Use> uses;
};

/// Finds lone groups and their times. A round in which links are shared goes through a flow model once.
class LoneGroups {
 public:
  /// @param link_bandwidth_Bps by link class
  LoneGroups(const Folding& folding, const LinkClock& clock, std::vector<double> link_bandwidth_Bps);

  /// @param flows flow classes of each round of a group whose pattern nobody meets
  /// @return nothing where the flows of a round have different latencies: which of them ends last then
  ///         depends on how many bytes there are
  std::optional<LoneGroup> find(std::span<const std::vector<std::uint32_t>> flows,
                                const std::vector<Round>& rounds);

 private:
  bool add_round(const std::vector<std::uint32_t>& flows, double repeat, LoneGroup& group);
  std::vector<double> times_s_per_byte(const std::vector<std::uint32_t>& flows);
  std::vector<double> shared_times_s_per_byte(const std::vector<std::uint32_t>& flows);

  const Folding& folding_;
  const LinkClock& clock_;
  std::vector<double> link_bandwidth_Bps_;
  std::vector<std::uint32_t> number_;  ///< by link class, while a round is looked at
  std::vector<std::uint32_t> place_;   ///< by clock: in LoneGroup::uses
  std::vector<double> round_s_;        ///< by clock, while a round is looked at: its time for each byte
};

}  // namespace convoy::replays
