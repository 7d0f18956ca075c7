// SPDX-License-Identifier: MIT
#include "sim/calibration/least_squares.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace convoy::inline calibration {

double smooth_l1(double r) { return std::copysign(std::sqrt(2 * (std::sqrt(1 + r * r) - 1)), r); }

double smooth_l1_slope(double r) {
  const double value = smooth_l1(r);
  return std::abs(value) < 1e-9 ? 1 : r / std::sqrt(1 + r * r) / value;
}

Minimum minimise_squares(const SumOfSquares& sum, Eigen::VectorXd x, const DescentOptions& options) {
  constexpr int max_tries = 16;
  Minimum found{std::move(x), 0, 0};
  found.before = found.after = sum.value(found.x);
  double damping = options.damping;
  int small = 0;
  for (int step = 0; step < options.max_steps; ++step) {
    const auto [normal, gradient] = sum.normal_equations(found.x);
    double gain = 0;
    for (int attempt = 0; attempt < max_tries && gain <= 0; ++attempt) {
      Eigen::MatrixXd damped = normal;
      damped.diagonal() *= 1 + damping;
      const Eigen::VectorXd candidate = found.x - damped.llt().solve(gradient);
      const double moved = sum.value(candidate);
      if (std::isfinite(moved) && moved < found.after) {
        gain = found.after - moved;
        found.x = candidate;
        found.after = moved;
        damping = std::max(damping / 5, 1e-6);
      } else {
        damping *= 4;
      }
    }
    small = gain > options.tolerance * found.after ? 0 : small + 1;
    if (gain <= 0 || small == options.small_gains) break;
  }
  return found;
}

}  // namespace convoy::calibration
