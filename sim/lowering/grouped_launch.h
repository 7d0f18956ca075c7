// SPDX-License-Identifier: MIT
#pragma once

#include "sim/costs/cost_model.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Whether one process drives the devices of a host, and sums gradients with NCCL while backward goes on,
/// from a graph that is not compiled.
bool one_process_overlaps(const GroupSync& group, const TrainingGraph& graph, const Machine& machine);

/// Collectives of devices that one process drives. NCCL starts a collective of such devices when the threads
/// of all of them have called it; one thread then launches its kernel on every device, with a change of CUDA
/// context for each and as one cooperative launch, which leaves less to run beside it than separate launches
/// (NVIDIA/nccl, issues 297 and 613, and release notes 2.1.4: "may induce increased latencies in
/// multi-threaded programs"; a process a device launches for itself). Each keeps its devices from computing
/// for as long, whatever the bytes, the network and the batch: with TensorFlow 1.15 steps of ResNet-50 and
/// InceptionV3 are 0.08 to 0.14 ms a gradient longer than those of one card on 2, 4 and 8 Quadro RTX 8000
/// with 256 images and on 2 RTX 2080 Ti with 64, the collectives themselves and jitter included.
///
/// TensorFlow 2.2 has such an NCCL too: 1.15 is built with commit 0ceaec9 of NCCL, 2.2 with 3701130
/// (tensorflow/workspace.bzl), and NCCL launched together at that time unless NCCL_LAUNCH_MODE was set to
/// PARALLEL (src/init.cc). A100 need a later one; TensorFlow 2.3's steps on them grow by 0.02 ms a gradient
/// in all.
///
/// Adds that time to what each collective of the role's program waits for. Nothing where collectives are
/// launched otherwise (GroupSync::launches), with compiled graphs, without overlap, and with one ring in the
/// devices' order, which is NCCL 1 and has no such launches.
/// @param type of the role's devices
void add_grouped_launches(Role& role, const GroupSync& group, const TrainingGraph& graph,
                          const Machine& machine, const CostModel& cost, const DeviceType& type);

}  // namespace convoy::lowering
