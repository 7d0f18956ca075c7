// SPDX-License-Identifier: MIT
#pragma once

#include "sim/costs/cost_model.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/plan/plan.h"

namespace convoy {

/// Batch normalization that an all-reduce holds up. In half precision with channels last cuDNN's backward
/// pass of a batch normalization is a persistent kernel (batchnorm_bwtr_nhwc_semiPersist): blocks that wait
/// for one another and of which all have to be on the device at once. NCCL's kernel occupies multiprocessors
/// from the moment at which the device has come to a gradient until the last device of the group has, so
/// that the normalization waits for that device (pytorch/pytorch, issue 80259; NVIDIA/nccl, issues 338 and
/// 661; cuDNN's kernels with channels first, and XLA's, do not). Devices that one TensorFlow process drives
/// come to a gradient at different moments: a pool of threads issues what is ready in any order. With N
/// moments spread evenly over a time W, the last is W (N - 1) / (N + 1) behind the first (David & Nagaraja,
/// Order Statistics, 3rd ed. 2003, section 2.3). W goes with the time of backward between two
/// normalizations; the ratio is fitted to eight A100 (results/published/scaling_transports.yaml).
///
/// Adds to the role's program, before every such normalization since the one before which the device has
/// begun an all-reduce, the time that it waits. Nothing where gradients are summed after backward, in
/// programs without TensorFlow or on several hosts (a process each), in other precisions and layouts, and
/// with compiled graphs.
/// @param group that sums the role's gradients
/// @param type of the role's devices
void hold_normalizations(Role& role, const GroupSync& group, const TrainingGraph& graph,
                         const Machine& machine, const CostModel& cost, const DeviceType& type);

}  // namespace convoy
