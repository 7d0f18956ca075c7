// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/training_graph.h"
#include "sim/costs/input_pipeline.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline lowering {

/// Gives a plan its input pipeline: what the hosts need to make a step's images ready and to copy them to the
/// devices, one batch made while another is copied (Plan::input), and what devices do of it themselves, as an
/// operation before the first of each micro-batch. A host's images are those that the first operation of its
/// devices' programs reads, all together no more than the global batch (devices that share an image's work
/// read it once). @throws InputError as input_rate()
void add_input(Plan& plan, const TrainingGraph& graph, const Machine& machine, const InputSpec& spec);

/// What the hosts of a plan would need with an input: that of add_input(), or, of a plan that has one, with other
/// rates of its library. @pre not synthetic @throws InputError as input_rate()
InputFeed feed_of(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                  const InputSpec& spec);

/// Images that the devices of each host read in a step, each image once. Of clients of a service in a step of
/// the global batch.
std::vector<double> images_by_host(const Plan& plan, const Machine& machine);

}  // namespace convoy::lowering
