// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace convoy {

/// Expected maximum of `n` independent standard normal variables: the integral of x n phi(x) Phi(x)^(n-1).
/// Source: David & Nagaraja, Order Statistics, 3rd ed. 2003, section 3.1. 0 for n = 1, 0.564 for 2, 1.424
/// for 8.
double expected_maximum(std::size_t n);

/// Expected k-th smallest of `n` independent standard normal variables (k from 1; k = n is the maximum): the
/// integral of x n!/((k-1)!(n-k)!) phi(x) Phi(x)^(k-1) (1-Phi(x))^(n-k). Source: as above, section 3.1.
/// @pre 1 <= k <= n
double expected_order_statistic(std::size_t n, std::size_t k);

/// By how much a synchronous step of `devices` devices is longer than a device's mean, when the time of a
/// device's step varies from step to step with the standard deviation `jitter` (relative), each device on its
/// own: 1 + jitter E[max].
double synchronous_slowdown(double jitter, std::size_t devices);

}  // namespace convoy
