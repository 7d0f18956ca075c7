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
///
/// `broadcast: scatter_allgather` sends as many bytes, and most of them between workers. The master sends each of
/// the w workers of a layer the inputs of B / w images; the workers send these to each other, so that all have
/// all. Of partial data gradients each worker gets the parts for its B / w images from the others, adds them to
/// its own and sends the master the sum. This is the broadcast of long messages by van de Geijn, and its mirror
/// image: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005, sections 4.2 and 4.4. Layers with fewer images than
/// workers, or with one worker, are sent directly.
/// `micro_batches` and `replicas` as placed_replicas.h has them: each micro-batch sends all of this, and the
/// master adds the filters' gradients to those of the micro-batches before.
/// Source: Marques, Falcao & Alexandre, arXiv:1712.02546 (abstract: the same inputs and different kernels on
/// every machine, results to the master); the formulas are our reconstruction, the texts were not available.
StrategyEntry filter_parallel_entry();

}  // namespace convoy::strategies
