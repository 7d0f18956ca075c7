// SPDX-License-Identifier: MIT
#pragma once

#include "sim/costs/cost_model.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Batch normalization that an all-reduce holds up. In half precision with channels last cuDNN's backward
/// pass of a batch normalization is a persistent kernel (batchnorm_bwtr_nhwc_semiPersist): blocks that wait
/// for one another and of which all have to be on the device at once. NCCL's kernel occupies multiprocessors
/// from the moment at which the device has come to a gradient until the all-reduce is done, for which all
/// devices of the group have to come, so that the normalization waits for the last device and for the
/// transfer (pytorch/pytorch, issue 80259; NVIDIA/nccl, issues 338 and 661; cuDNN's kernels with channels
/// first, and XLA's, do not). Devices that one process drives come to a gradient at different moments: a pool
/// of threads issues what is ready in any order. With N moments spread evenly over a time W, the last is
/// W (N - 1) / (N + 1) behind the first (David & Nagaraja, Order Statistics, 3rd ed. 2003, section 2.3). W
/// goes with the time of backward between two normalizations; the ratio is fitted by release of TensorFlow.
///
/// In the role's program every such normalization waits for the all-reduces that have begun since the
/// normalization before it, and the last of these begins only when the last device has come to it
/// (Communication::overhead_s, which counts as communication and not as computing). Nothing where gradients
/// are summed after backward, where each device has a process of its own, in other precisions and layouts,
/// and with compiled graphs.
/// @param plan has the group's communications; programs of several roles share them: the longest wait counts
/// @param group that sums the role's gradients
/// @param type of the role's devices
void hold_normalizations(Plan& plan, Role& role, const GroupSync& group, const TrainingGraph& graph,
                         const Machine& machine, const CostModel& cost, const DeviceType& type);

}  // namespace convoy::lowering
