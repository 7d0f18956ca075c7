// SPDX-License-Identifier: MIT
#pragma once

#include "models/framework.h"
#include "sim/base/precision.h"
#include "topologies/device.h"

namespace convoy::inline costs {

struct SoftwareCosts;

/// How many published figures the kernels of a framework's way of execution were fitted to
/// (topologies/catalog/software/*.yaml, `rows`; a prepared graph launches those of eager execution). 0: their
/// factors are typical values. @throws InputError where the catalogue's file is wrong.
int software_kernel_rows(Framework framework, ExecutionMode execution);

/// Standard deviation of log(time of kernels) that typical factors leave: that of a framework's factor on
/// convolutions before any measurement (docs/cost_model.md). 0 where figures were fitted.
double software_spread(Framework framework, ExecutionMode execution);

/// Standard deviation of log(time) that is left where no published figure of a catalogue device's kernels was
/// fitted, though there may be some of the device: that of the typical `convolution_3x3` before any
/// measurement (docs/cost_model.md). 0 elsewhere. Such kernels are
///   - those of CPUs that read convolutions' inputs in place: the figures that there are of a CPU are
///     Torch7's, of products of copied inputs (SoftwareCosts::one_thread); not of one that its owner
///     calibrated;
///   - those of half precision on GPUs without tensor cores.
double unseen_kernels_spread(const DeviceType& device, Precision precision, const SoftwareCosts& costs);

}  // namespace convoy::costs
