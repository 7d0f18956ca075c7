// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/busy_clock.h"
#include "sim/replay/executor.h"
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
  UncontendedCollectives(const FoldedPlan& folded, const LinkClock& clock);

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
  bool cross(std::uint32_t link_class);
  bool share_links(const std::vector<std::uint32_t>& flows);
  std::vector<double> times_s_per_byte(const std::vector<std::uint32_t>& flows);
  std::vector<double> shared_times_s_per_byte(const std::vector<std::uint32_t>& flows);

  const Flow& flow(std::uint32_t flow_class) const { return folding_.flow(table_, flow_class); }
  double latency_s(std::uint32_t flow_class) const { return folding_.path(table_, flow_class).latency_s; }
  std::span<const LinkUse> route(std::uint32_t flow_class) const { return folding_.route(flow_class); }
  double link_Bps(std::uint32_t link_class) const {
    return bandwidth_Bps(machine_, table_, folding_.links[link_class]);
  }

  const Machine& machine_;
  const FlowTable& table_;
  const Folding& folding_;
  const LinkClock& clock_;
  std::vector<bool> crossed_;  ///< by link class, during the analysis of a round
  std::vector<std::uint32_t>
      number_;  ///< the same, of a round that shares links; empty before the first of these
  std::vector<std::uint32_t> place_;   ///< by clock: in UncontendedCollective::uses
  /// By clock, during the analysis of a round: its time per byte. Empty before the first round that is not its group's first.
  std::vector<double> round_s_;
};

}  // namespace convoy::replays
