// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// A link whose load alone keeps the step from being shorter.
struct FullLink {
  LinkId link = 0;
  double bytes = 0;  ///< bytes that cross it after `free_until_s`
  double free_until_s = 0;
};

/// A bound that no replay of a plan can go below, found without sharing links.
struct LowerBound {
  double step_time_s = 0;
  /// Time for which operations run, by device, exactly as the replay will find it; empty if steps are means
  /// (services, endless runs). The time for which a device waits for its host is not included, since it
  /// depends on when tasks begin.
  std::vector<double> running_s;
  double critical_compute_s = 0;  ///< of the device that finishes last if messages never share a link
  std::optional<FullLink> link;   ///< set if this link, and not the longest path, gives the bound
  double input_wait_s = 0;        ///< of step_time_s, what hosts need for their images beyond these two
};

/// The larger of two bounds, and what the input pipeline makes of it (step_with_input_s, which grows with the
/// step). Of an endless run, whose step has no bound, it is what the hosts need for its images.
///
/// Path: the plan is replayed as if every message had all its links to itself. In a plan without service, it
/// is fixed what waits for what (streams are in order, tasks wait for given tasks and messages), so the time
/// of every event is a maximum over sums of durations. It can only grow when durations grow, and sharing a
/// link makes no message shorter. With a service whose clients do not wait for each other, every step of a
/// client is such a sum, and the mean over clients of their rates falls when steps get longer; a bound on the
/// lead (ssp) only adds waiting and is left out, and drawn compute times are replaced by their means (with_clients_alone). What a quorum answers depends on the order of arrivals,
/// which sharing changes, and the step of an endless run is a difference of two times, which may shrink when
/// both grow: there is no bound (0) in these cases, except that of the input.
///
/// Links: let r be the earliest time at which the messages of a set of communications can begin to cross a
/// link, by the path above, B their bytes on that link, and q the least compute time that follows the end of
/// one of them on some receiver. A link of bandwidth b carries B in no less than B / b, so the step takes at
/// least r + B / b + q. The sets are, for each communication, all communications that begin no earlier than
/// it. (This is the one-machine bound with heads and tails: Carlier, EJOR 11, 1982; sharing is a preemptive
/// schedule, for which it holds too.)
/// @throws std::runtime_error as replay() does
LowerBound lower_bound(const Plan& plan, const Machine& machine, const CostModel& cost);

}  // namespace convoy::replays
