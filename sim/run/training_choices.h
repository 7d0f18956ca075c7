// SPDX-License-Identifier: MIT
#pragma once

#include "models/layer_profile.h"
#include "sim/costs/cost_model.h"
#include "sim/run/experiment.h"
#include "strategies/strategy.h"
#include "topologies/cluster.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

// What an experiment's training leaves open, or says of one kind of device, decided for a machine.

/// What the experiment leaves to the framework: its precision, if all devices have TF32, and its layout.
/// @throws InputError "training.precision: device 'k80' cannot run tf32; it runs fp32"
TrainingOptions resolve_software(const Training& training, const Machine& machine);

/// @throws InputError "training.recompute: cannot be used with this strategy (...); ..."
void check_recomputation(const Training& training, const Strategy& strategy);

/// The cost in software of the strategy's messages on this cluster.
Transport transport_of(const Strategy& strategy, const ClusterSpec& cluster, const Training& training,
                       Protocol protocol);

/// The kind of device in the cluster that was measured: `name`, or the only kind.
/// @param key "training.anchor"
/// @throws InputError: the cluster has no such device, or several kinds and no name is given
const DeviceType& measured_device(const std::string& key, const SourcePos& pos,
                                  const std::optional<std::string>& name, const Machine& machine);

/// Gives the layers of a profile the times that were measured.
/// @throws InputError: the model has no layer of such a name
void add_profile(const ProfileSpec& spec, const LayerProfile& profile, const TrainingGraph& graph,
                 const Machine& machine, CostModel& cost);

}  // namespace convoy::runs
