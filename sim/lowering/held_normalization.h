// SPDX-License-Identifier: MIT
#pragma once

#include "sim/costs/cost_model.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Batch normalizations that an all-reduce delays. In half precision with channels last, cuDNN computes the
/// backward pass of a batch normalization in a persistent kernel (batchnorm_bwtr_nhwc_semiPersist), whose
/// blocks wait for one another, so that all of them have to be on the device at once. NCCL's kernel occupies
/// multiprocessors from the moment at which the device reaches a gradient until the all-reduce is done. Since
/// the all-reduce needs all devices of the group, the normalization waits for the last device and for the
/// transfer (pytorch/pytorch, issue 80259; NVIDIA/nccl, issues 338 and 661; cuDNN's kernels with channels
/// first, and XLA's kernels, do not wait). Devices that one process drives reach a gradient at different
/// moments, because a pool of threads issues what is ready in any order. With N moments spread evenly over a
/// time W, the last one is W (N - 1) / (N + 1) after the first (David & Nagaraja, Order Statistics, 3rd ed.
/// 2003, section 2.3). W is proportional to the time of backward between two normalizations; the ratio is
/// fitted for each release of TensorFlow.
///
/// In the role's program every such normalization waits for the all-reduces that have begun since the
/// normalization before it, and the last of these begins only when the last device has reached it
/// (Communication::overhead_s, which counts as communication and not as computing). There is no wait if
/// gradients are summed after backward, if each device has a process of its own, in other precisions and
/// layouts, and with compiled graphs.
/// @param plan has the group's communications; programs of several roles share them, and the longest wait
/// counts
/// @param group sums the role's gradients
/// @param type the type of the role's devices
void hold_normalizations(Plan& plan, Role& role, const GroupSync& group, const TrainingGraph& graph,
                         const Machine& machine, const CostModel& cost, const DeviceType& type);

}  // namespace convoy::lowering
