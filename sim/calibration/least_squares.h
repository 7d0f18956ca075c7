// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <functional>
#include <utility>

namespace convoy::inline calibration {

/// Smooth L1 as a residual whose square is minimised: r for small r, grows with the root of |r| beyond 1.
double smooth_l1(double r);
/// Its derivative.
double smooth_l1_slope(double r);

/// A sum of squares to be minimised.
struct SumOfSquares {
  std::function<double(const Eigen::VectorXd&)> value;
  /// At a point: J^T J, of which the lower triangle is read, and J^T r.
  std::function<std::pair<Eigen::MatrixXd, Eigen::VectorXd>(const Eigen::VectorXd&)> normal_equations;
};

struct DescentOptions {
  double damping = 1e-3;    ///< at first
  double tolerance = 1e-9;  ///< share of the sum below which a step gains little
  int small_gains = 1;      ///< so many steps in a row that gain little end it
  int max_steps = 200;
};

struct Minimum {
  Eigen::VectorXd x;
  double before = 0, after = 0;  ///< the sum where it began, and at x
};

/// Levenberg-Marquardt with Marquardt's scaling (Nocedal and Wright, Numerical Optimization, section 10.3).
Minimum minimise_squares(const SumOfSquares& sum, Eigen::VectorXd x, const DescentOptions& options);

}  // namespace convoy::calibration
