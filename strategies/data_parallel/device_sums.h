// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/data_parallel/server_plan.h"

namespace convoy::inline strategies {

/// The plan of parameter servers with `local_aggregation: owner` or `ring`: the devices of a node add up
/// their gradients among themselves, and the node's sum goes to the servers once.
///
/// owner: every tensor has one device of each node (the one that owns the fewest bytes so far), which the
/// others send their gradients to, which pushes the sum and hands out the parameters that come back: its PCIe
/// lanes carry most (MXNet's `device` store, TensorFlow's variables on GPUs). ring: a reduce-scatter round
/// the node's devices, each of which then pushes its part of every tensor and gets it back, and an all-gather
/// (BytePS). On a single node with colocated servers nothing leaves the devices: owners, or all, update their
/// own part.
/// @throws InputError as plan_parameter_server
Plan plan_device_sums(const ServerOptions& options, const StrategyInput& input);

}  // namespace convoy::strategies
