// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/training_graph.h"
#include "sim/costs/input_pipeline.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline lowering {

/// Adds the input pipeline to a plan: the time that hosts need to prepare a step's images and to copy them to
/// the devices, with one batch prepared while another is copied (Plan::input), and the part of it that the
/// devices do themselves, as an operation before the first one of each micro-batch. The images of a host are
/// those that the first operations of its devices' programs read, all hosts together no more than the global
/// batch (devices that share the work on an image read it once). @throws InputError as input_rate()
void add_input(Plan& plan, const TrainingGraph& graph, const Machine& machine, const InputSpec& spec);

/// The input pipeline that add_input() adds to a plan; for a plan that has one already, the same with other
/// rates of its library. @pre not synthetic @throws InputError as input_rate()
InputFeed feed_of(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                  const InputSpec& spec);

/// The images that the devices of each host read in a step, each image once. For clients of a service, in a
/// step of the global batch.
std::vector<double> images_by_host(const Plan& plan, const Machine& machine);

}  // namespace convoy::lowering
