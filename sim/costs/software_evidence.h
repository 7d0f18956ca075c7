// SPDX-License-Identifier: MIT
#pragma once

#include "models/framework.h"
#include "sim/base/precision.h"
#include "topologies/device.h"

namespace convoy::inline costs {

struct SoftwareCosts;

/// The number of published figures to which the kernels of a framework's way of execution were fitted
/// (topologies/catalog/software/*.yaml, `rows`; a prepared graph launches the kernels of eager execution). 0:
/// their factors are typical values. @throws InputError if the catalogue's file is wrong.
int software_kernel_rows(Framework framework, ExecutionMode execution);

/// Standard deviation of log(time of kernels) with typical factors: unknown_spread(software). 0 if figures
/// were fitted.
double software_spread(Framework framework, ExecutionMode execution);

/// Whether the time of products on the device is up to the framework (SoftwareCosts::kepler): which kernels cuDNN
/// has for an old generation is up to its release.
inline bool products_follow_framework(const DeviceType& device) { return device.generation == "kepler"; }

/// Additional standard deviation of log(time) if no published figure was fitted to these kernels of a
/// catalogue device, even if there are figures of the device: that of the typical `convolution_3x3` before
/// any measurement (docs/cost_model.md). 0 elsewhere. Such kernels are
///   - those of CPUs that read convolutions' inputs in place: the only figures of a CPU are Torch7's, of
///     products of copied inputs (SoftwareCosts::one_thread), and not those of one that its owner
///     calibrated;
///   - those of half precision on GPUs without tensor cores.
double unseen_kernels_spread(const DeviceType& device, Precision precision, const SoftwareCosts& costs);

}  // namespace convoy::costs
