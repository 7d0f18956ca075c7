// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/plan/held_states.h"
#include "sim/plan/phases.h"
#include "topologies/machine.h"

namespace convoy::inline strategies {

/// Brings every device of a phase what it keeps in it and has not kept in the phase before, all at once, each value
/// from one of those who have it: of the receiver's own host where there is one, of these the one that sends
/// least so far.
/// @param machine of all devices of both phases
std::vector<StateMove> moves_between(const HeldStates& before, const HeldStates& after,
                                     const ParameterElements& elements, const Machine& machine);

/// The same where all devices keep everything: those to whom a pattern sends get it from those who send.
std::vector<StateMove> moves_of_everything(const Pattern& pattern, const ParameterElements& elements);

/// One round of messages, one for each sender and receiver, and the bytes of all of them.
struct MoveTraffic {
  Pattern pattern;
  double bytes = 0;
};
/// @param devices of both phases
MoveTraffic traffic_of(const std::vector<StateMove>& moves, const ParameterElements& elements,
                       EndpointId devices);

}  // namespace convoy::strategies
