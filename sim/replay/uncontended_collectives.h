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

/// A communication of a group whose ranks proceed in step and that has its links to itself. All flows of a
/// round begin at the same moment, so a round takes its latency and, for each byte of the communication, a
/// constant time. Rounds follow one another, and the communication takes their sum.
struct UncontendedCollective {
  /// How long a link or a port (LinkClock) is used.
  struct Use {
    std::uint32_t clock;
    double latency_s, s_per_byte;
  };
  double latency_s = 0, s_per_byte = 0;  ///< of the whole communication
  std::vector<Use> uses;
};

/// Finds such groups and their times. If links are shared in a round, the round is simulated once by a flow
/// model.
class UncontendedCollectives {
 public:
  /// @param link_bandwidth_Bps by link class
  UncontendedCollectives(const Folding& folding, const LinkClock& clock,
                         std::vector<double> link_bandwidth_Bps);

  /// @param flows flow classes of each round of a group whose pattern has its links to itself
  /// @return nothing if the flows of a round have different latencies: which of them ends last then depends
  /// on the number of bytes
  std::optional<UncontendedCollective> find(std::span<const std::vector<std::uint32_t>> flows,
                                            const std::vector<Round>& rounds);

 private:
  bool add_round(const std::vector<std::uint32_t>& flows, const Round& round, UncontendedCollective& group);
  bool add_rotation(const std::vector<std::uint32_t>& flows, const Round& round,
                    UncontendedCollective& group);
  UncontendedCollective::Use& use_of(std::uint32_t clock, UncontendedCollective& group);
  bool share_links(const std::vector<std::uint32_t>& flows);
  std::vector<double> times_s_per_byte(const std::vector<std::uint32_t>& flows);
  std::vector<double> shared_times_s_per_byte(const std::vector<std::uint32_t>& flows);

  const Folding& folding_;
  const LinkClock& clock_;
  std::vector<double> link_bandwidth_Bps_;
  std::vector<std::uint32_t> number_;  ///< by link class, during the analysis of a round
  std::vector<std::uint32_t> place_;   ///< by clock: in UncontendedCollective::uses
  std::vector<double> round_s_;        ///< by clock, during the analysis of a round: its time per byte
};

}  // namespace convoy::replays
