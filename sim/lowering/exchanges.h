// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/lowering/gradient_sync.h"
#include "sim/lowering/graph_schedule.h"
#include "sim/lowering/part_layouts.h"
#include "topologies/machine.h"

namespace convoy::inline lowering {

/// How exchanges are sent.
struct ExchangeOptions {
  const GradientSync& sync;  ///< whose algorithm and rings they use
  SourcePos pos;             ///< of the strategy, for errors
};

/// The devices of each stage, in groups whose devices share all layers of the stage:
/// [stage][replica][device].
using DeviceGroups = std::vector<std::vector<std::vector<EndpointId>>>;

/// The communications of a plan that carry out a schedule's exchanges, by micro-batch and exchange;
/// GraphSchedule::none where nothing is sent.
using ExchangeComms = std::vector<std::vector<CommId>>;

/// Adds the schedule's exchanges to a plan, once for each micro-batch.
/// @param layouts of the schedule, if communications are to say what they carry (Plan::meaning)
/// @throws InputError where a group is too large for its exchanges.
ExchangeComms add_exchanges(Plan& plan, const Machine& machine, const DeviceGroups& groups,
                            const GraphSchedule& schedule, const ExchangeOptions& communication,
                            std::int64_t micro_batches, PartLayouts* layouts = nullptr);

}  // namespace convoy::lowering
