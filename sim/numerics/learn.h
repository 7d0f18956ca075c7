// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/training_graph.h"
#include "sim/costs/cost_model.h"
#include "sim/numerics/data.h"
#include "sim/numerics/missing_value.h"
#include "sim/numerics/numerics_spec.h"
#include "sim/plan/phases.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline numerics {

/// What a network has learnt when so many steps of a global batch are done.
struct LearntPoint {
  std::int64_t step = 0;
  double time_s = 0;    ///< since the beginning of training
  double loss = 0;      ///< mean over the images that were learnt from since the last point
  double accuracy = 0;  ///< share of the held-out images that are classified right
};

/// Why a plan cannot learn here, in words that follow "numerics: "; "" if it can.
std::string refuses_plan(const Plan& plan, const TrainingGraph& graph);

/// The same of how many steps are asked for.
std::string refuses_steps(const NumericsSpec& spec, const Plan& plan);

/// Classes that the network tells apart: values of its last output.
std::int64_t classes_of(const TrainingGraph& graph);

/// Steps that follow one another by one plan, of a run whose plan changes.
struct LearningPhase {
  const Plan& plan;
  const Machine& machine;
  std::int64_t first_step = 0;
  double start_s = 0;
  /// From the phase before; nullptr in the first one.
  const Reconfiguration* change = nullptr;
};

/// The same of a run in phases.
std::string refuses_phase(const Plan& plan);
/// Trains the network phase by phase, as learn().
/// @param phases all but the last have plans of one step
/// @pre refuses_plan, refuses_phase and refuses_numerics are ""
std::vector<LearntPoint> learn_in_phases(const NumericsSpec& spec, const LearningData& data,
                                         const std::vector<LearningPhase>& phases, const TrainingGraph& graph,
                                         const CostModel& cost);

/// Trains the network as the plan says, in the order and at the times of replays made for this. The same
/// values on every machine whose mathematical library rounds alike.
/// @pre refuses_plan and refuses_numerics are ""
/// @throws MissingValue: the plan needs what is not there
std::vector<LearntPoint> learn(const NumericsSpec& spec, const LearningData& data, const Plan& plan,
                               const TrainingGraph& graph, const Machine& machine, const CostModel& cost);

}  // namespace convoy::numerics
