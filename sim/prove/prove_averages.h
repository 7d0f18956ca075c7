// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/plan/strategy_report.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// What a role's program does with a bucket of parameters that are averaged. Places count compute tasks as
/// RoleOrder does, numbers the operations of the program.
struct AverageUse {
  struct At {
    std::uint32_t place;
    std::size_t number;
  };
  struct Message {
    std::string name;
    std::uint32_t begins, ends;
  };
  std::string role;               ///< "n0 and 7 more"
  std::vector<Message> messages;  ///< in the order of the program
  std::vector<At> means, slows;   ///< what is made of what has come
  std::vector<At> updates;        ///< of any of its tensors
  bool is_slow = false;           ///< each mean is followed by slow momentum
  bool with_all = true;           ///< of all devices after the last step; else with neighbours in every step
};

/// Nothing changes the parameters while they are under way, each message is taken into the parameters once,
/// after it has come; one of all devices comes after the last update, and those with neighbours one an
/// update.
/// @throws Refuted
void check_average(const AverageUse& use);

/// Messages of gossip: whole, from each device to those that the experiment names, and to no other. In all of these
/// graphs a device gets as many as it sends, as many for all, so that the mean of all parameters stays, and through
/// those of all steps something of every device reaches every other. Where hosts are neighbours, this holds for the
/// first device of each, and what these get is passed on once, whole, to each of the others.
/// @param comms of one bucket, by step  @param members all devices with replicas
/// @param of the positions that it counts are those of the messages' group: any order is as right
/// @throws Refuted
void check_exchanges(const Plan& plan, const Machine& machine, const std::vector<CommId>& comms,
                     const std::vector<EndpointId>& members, const GossipNeighbours& of);

/// Of devices that average at their own pace: each asks, with all of its parameters, those and only those who
/// answer it. @throws Refuted
void check_request(const Plan& plan, const Machine& machine, CommId request, CommId answer);

}  // namespace convoy::prove
