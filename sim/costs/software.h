// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"

namespace convoy::inline costs {

/// What a framework, its way of execution and its layout of activations make of a device's kernels and of the
/// host that issues them (topologies/catalog/software/*.yaml, fitted with the devices; docs/cost_model.md).
struct SoftwareCosts {
  /// Host time from one operation to the next, by phase. One process a device, or one with a thread for each.
  double issue_forward_s = 0, issue_backward_s = 0, issue_update_s = 0;
  /// What the host does in every step before it issues the first operation: the training loop's own work,
  /// with the metrics that it reads back.
  double issue_step_s = 0;
  /// Bytes a second at which the host copies a batch that lies in its memory as an array to a device.
  double feed_Bps = 5e9;
  /// The device idles so long after an update, where the host waits for each one's end before it starts the
  /// next.
  double wait_update_s = 0;
  double convolution = 1, normalization = 1, elementwise = 1;  ///< factors on the time of these kernels
  double depthwise = 1;  ///< the same of depthwise convolutions, whose kernels are the framework's own
  double kepler = 1;  ///< the same of all products on GPUs of that generation, whose kernels cuDNN has let age
  /// The same of all products in half precision on tensor cores, where the framework was built with the first
  /// releases of cuDNN that have kernels for them.
  double half = 1;
  /// Share of the bytes of kernels that is left where they are one with others (Fusion): by a compiler, or,
  /// without one, with the normalization before them where it is below 1. They have no launch of their own.
  double fused = 1;
  /// On a CPU: one thread copies each image's inputs into a matrix before a convolution's product (im2col)
  /// and runs what is no product, and takes so many times as long as a core's share of the memory's bandwidth
  /// lets it. 0: all cores share all work, and convolutions read their inputs in place (oneDNN, Eigen).
  double one_thread = 0;
  /// On a CPU: tensors are in the framework's plain order between operations, and oneDNN's convolutions put
  /// what they read in their own order and what they make back in the plain one, in every call (PyTorch,
  /// aten/src/ATen/native/mkldnn/Conv.cpp).
  bool plain_tensors = false;
  bool operator==(const SoftwareCosts&) const = default;
};

/// Of a framework as it is run. @throws InputError where the catalogue's file is wrong.
SoftwareCosts software_costs(Framework framework, ExecutionMode execution, Layout layout);

/// All that the time of a kernel depends on beside the work and the device.
struct Software {
  Precision precision;
  Layout layout = Layout::nchw;
  ExecutionMode execution = ExecutionMode::eager;
  SoftwareCosts costs{};
  bool one_process_a_host = false;  ///< its thread issues to all devices of the host, one after the other
  /// A framework that costs nothing beside its kernels.
  Software(Precision computes_in = Precision::fp32)
      : precision(computes_in) {}  // NOLINT: a precision says it all
  /// @throws InputError where the catalogue's file of the framework is wrong.
  explicit Software(const TrainingOptions& options);
  bool operator==(const Software&) const = default;
};

}  // namespace convoy::costs
