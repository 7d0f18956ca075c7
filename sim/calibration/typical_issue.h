// SPDX-License-Identifier: MIT
#pragma once

#include "models/framework.h"

namespace convoy::inline calibration {

/// Host times of issuing an operation, by phase, as they are believed to be before any measurement of a step.
struct TypicalIssue {
  double forward_s, backward_s, update_s;
};

/// PyTorch's operators from Python take 6 to 17 us, twice that with autograd; graphs are below it. MXNet's
/// engine launches the nodes of a graph in bulks of 15 from threads of its own, while an update is an
/// imperative operator, 30 to 60 us from Python, of four parameters from version 1.5 on
/// (MXNET_OPTIMIZER_AGGREGATION_SIZE, apache/mxnet pull request 13346); before, the host is ahead, since
/// every update is waited for (typical_update_wait_s). Source of the times: results/published/host_issue.csv.
TypicalIssue typical_issue(Framework framework, ExecutionMode execution);

/// DeviceType::launch_overhead_s of a network's operation before any measurement of a step: the start and end
/// of its one to three kernels on the device alone, 1.1 to 1.3 us between kernels of a CUDA graph, 3.3 us from
/// a stream's kernel to its next (same source). Its spread is narrow, since the rest belongs to the host's
/// queue and to kernels that fill no device.
constexpr double typical_launch_s = 5e-6, typical_launch_spread = 0.2;

/// MXNet's engine waits for its stream after every operation that is pushed to it (ThreadedEnginePerDevice):
/// before 1.5 a parameter's push, pull and update, some 20 us each from a kernel's launch to its start on a
/// V100 (same source).
constexpr double typical_update_wait_s = 60e-6;

/// SoftwareCosts::issue_step_s before any measurement of a step, 0 for frameworks of which no figure tells of
/// it. Keras's fit() goes through Python for every step and reads its metrics back (tf.keras of TensorFlow 2:
/// engine/training.py, CallbackList and Metric.result). That it takes some 1.5 ms is a judgement, no source's
/// figure: tens of Python calls and a read-back of tens of us each; hence the wide spread of its fit.
double typical_issue_step_s(Framework framework);

/// SoftwareCosts::feed_Bps before any measurement: a judgement within the 4 to 12 GB/s at which one thread
/// copies pageable memory for the device, nearer to the lower end, since the batch is written there too.
constexpr double typical_feed_Bps = 5e9;

/// Whether batch normalization computes the sum and the activation after it as well: in MXNet's graphs in
/// channels-last order, which are NVIDIA's in half precision (DeepLearningExamples, MxNet: --fuse-bn-relu and
/// --fuse-bn-add-relu; all published figures of that order were run with both).
bool normalization_is_fused(Framework framework, ExecutionMode execution, Layout layout);

/// SoftwareCosts::fused there before any measurement. Of the passes over values that sums and activations of a
/// residual block of width w, w and 4w take on their own, 5 w for each of two activations, 20 w for the last
/// and 12 w for the sum, the fused kernels keep the 4 w of reading the other branch and the 4 w of writing its
/// gradient.
constexpr double typical_left_of_fused = 8.0 / 42.0;

/// SoftwareCosts::one_thread before any measurement: of frameworks that hand a CPU's products to BLAS alone
/// (im2col of Caffe's and Torch7's sources: util/im2col.cpp, lib/THNN/generic/SpatialConvolutionMM.c); 0 for
/// others.
double typical_one_thread(Framework framework);

}  // namespace convoy::calibration
