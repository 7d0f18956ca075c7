// SPDX-License-Identifier: MIT
#pragma once

#include "models/training_graph.h"
#include "topologies/device.h"

namespace convoy::inline costs {

/// Which of the efficiencies applies to `work`.
KernelClass kernel_class(const Work& work);

/// Whether kernels of the class are matrix products, to which all convolutions belong.
bool is_product(KernelClass kernel);

/// The largest share of peak that kernels of the class can reach: the factor by which the fastest algorithm saves
/// multiplications.
double largest_share(KernelClass kernel, Precision precision);

/// Share of peak that `work` reaches on `images` images, by which its FLOPs are divided; at most largest_share().
/// @param precision the precision to which `efficiency` applies: tensor cores want channels in multiples of
/// 16 bytes
/// @param rate of the device's tensor cores (tensor_rate.h): at half the rate they reach more of their peak
double compute_efficiency(const Work& work, double images, Precision precision, const Efficiency& efficiency,
                          Layout layout = Layout::nchw, double rate = 1);

}  // namespace convoy::costs
