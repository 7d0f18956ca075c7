// SPDX-License-Identifier: MIT
#include "sim/lowering/jitter.h"

#include <cmath>
#include <numbers>

namespace convoy {

double expected_order_statistic(std::size_t n, std::size_t k) {
  if (n <= 1) return 0;
  // Simpson's rule; outside [-10, 10] the integrand is below 1e-13 for all n up to 10^8.
  constexpr int intervals = 4000;
  constexpr double low = -10, high = 10, h = (high - low) / intervals;
  const double below_count = static_cast<double>(k - 1), above_count = static_cast<double>(n - k);
  const double log_ways =
      std::lgamma(static_cast<double>(n) + 1) - std::lgamma(below_count + 1) - std::lgamma(above_count + 1);
  const auto integrand = [&](double x) {
    const double below = std::erfc(-x / std::numbers::sqrt2) / 2,
                 above = std::erfc(x / std::numbers::sqrt2) / 2;
    const double log_density = -x * x / 2 - std::log(2 * std::numbers::pi) / 2;
    // A count of 0 must not meet the logarithm of 0.
    const double log_below = below_count > 0 ? below_count * std::log(below) : 0;
    const double log_above = above_count > 0 ? above_count * std::log(above) : 0;
    return x * std::exp(log_ways + log_density + log_below + log_above);
  };
  double sum = integrand(low) + integrand(high);
  for (int i = 1; i < intervals; ++i) sum += integrand(low + i * h) * (i % 2 == 1 ? 4 : 2);
  return sum * h / 3;
}

double expected_maximum(std::size_t n) { return n == 0 ? 0 : expected_order_statistic(n, n); }

double synchronous_slowdown(double jitter, std::size_t devices) {
  if (jitter == 0) return 1;  // without the integral
  return 1 + jitter * expected_maximum(devices);
}

}  // namespace convoy
