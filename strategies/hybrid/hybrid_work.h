// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "strategies/hybrid/hybrid_schedule.h"

namespace convoy {

/// A device's part of an operation.
struct ShareOfWork {
  Work work;
  double images;
};

/// A device's part of a step: the kernel on its images, or its channels' or rows' share of the FLOPs and of
/// the bytes that it reads and writes (halos and inputs that everyone reads count on each device).
ShareOfWork share_of(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                     const HybridSchedule& schedule, const HybridSchedule::Step& step, std::size_t device);

/// The optimizer's step on the parameters of a layer that a device has.
Work share_of_update(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings, OpId update,
                     std::size_t device);

}  // namespace convoy
