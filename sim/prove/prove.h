// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "models/training_graph.h"
#include "sim/plan/plan.h"
#include "sim/plan/strategy_report.h"
#include "topologies/machine.h"

namespace convoy::inline prove {

/// What is known of a plan.
struct Proof {
  enum class Outcome : std::uint8_t {
    proved,
    refuted,      ///< `text` says where and what is missing
    not_covered,  ///< `text` says what of it is not understood
  };
  Outcome outcome = Outcome::proved;
  std::string text{};
  /// What of a proved plan is otherwise than on one device, because the strategy is so: "gradients up to 3
  /// updates old"; "": nothing.
  std::string allowed{};
  /// Replicas are averaged instead of being updated with the gradients of all images: what is proved of such
  /// a plan is that each image updates one replica (or those that sum their gradients), once, and that all
  /// replicas take part in the averages.
  bool is_averaged = false;
  std::size_t tasks = 0;  ///< of all roles
};

/// Shows that a plan computes what one device computes, or averages what its replicas do, in whatever order an
/// engine runs it: docs/proof.md has the rules. They are checked over the partial order that streams,
/// dependencies and messages make, role by role; only who sends to whom is looked at member by member.
/// @param plan one that says what its tasks mean (Plan::meaning), else it is not covered
/// @param report which versions of parameters a stage keeps
/// @param images of the global batch, as the experiment asks for it
/// @pre validate(plan, machine)
Proof prove_plan(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                 const Machine& machine, double images);

/// How many devices the plan is for: that have a program, or among whom the strategy shares out layers.
std::size_t devices_used(const Plan& plan, const Machine& machine);

}  // namespace convoy::prove
