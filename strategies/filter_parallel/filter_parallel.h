// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// `kind: filter_parallel`: only convolutions are distributed, by filters; one device, the master, does the
/// rest.
///
/// For each convolution of C x H x W inputs, K filters of k x k and H' x W' outputs, B images, e bytes a
/// value and k_i filters on worker i:
///   forward   the master sends each worker the inputs (B C H W e) and its filters (k_i C k^2 e); all
///             compute; the workers return their outputs (k_i H' W' B e)
///   backward  the master sends each worker its slice of the output gradient (k_i H' W' B e); all compute
///             data and weight gradient; the workers return their weight gradients (k_i C k^2 e) and, where
///             the layer has a data gradient, a partial one of full size (B C H W e), which the master adds
///             up.
/// Biases, and everything that is no convolution, stay on the master. The master begins its own share when
/// its messages have been delivered (blocking sends) unless `overlap: true`. A device without filters of a
/// layer takes no part in it. One device: exactly `single`.
/// Source: Marques, Falcao & Alexandre, arXiv:1712.02546 (abstract: the same inputs and different kernels on
/// every machine, results to the master); the formulas are our reconstruction, the texts were not available.
StrategyEntry filter_parallel_entry();

}  // namespace convoy::strategies
