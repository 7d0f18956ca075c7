// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Dense>
#include <map>
#include <utility>
#include <vector>

#include "sim/calibration/hierarchy.h"

namespace convoy {

/// The maximum of the posterior of a Hierarchy's unknowns, given rows (docs/cost_model.md, "Calibration").
class Posterior {
 public:
  /// Makes all unknowns of the hierarchy's devices and frameworks: those that no row is about keep their
  /// priors.
  Posterior(Hierarchy& hierarchy, std::vector<HierarchyRow> rows);

  /// Finds it (minimise_squares), from the priors but for slower hosts.
  void minimise();
  /// The same after use(), from the maximum that was found before: it is near.
  void minimise_again();
  /// Which rows count from now on, by their index; all of them at first.
  void use(std::vector<bool> counted);
  /// Standard deviation of log(seconds) of a row that the posterior leaves, after minimise().
  double spread_of(const HierarchyRow& row);
  /// How slow the hosts were that rows of whole networks were measured on, relative to the typical one: a
  /// factor of the device times one of the framework and its execution, since a catalogue knows these of a
  /// step and not whose host it runs on. By least squares of the logarithms, weighted by the square of how
  /// much each row's time depends on its host.
  struct HostFactors {
    std::map<std::size_t, double> devices;
    std::map<std::pair<Framework, ExecutionMode>, double> software;
  };
  HostFactors host_factors();
  /// log(predicted / measured seconds) of a row.
  double residual(std::size_t row);

  const Eigen::VectorXd& x() const { return x_; }
  void set_x(Eigen::VectorXd x) { x_ = std::move(x); }
  double cost_before() const { return cost_before_; }
  double cost_after() const { return cost_; }
  const std::vector<HierarchyRow>& rows() const { return rows_; }

 private:
  using Links = std::vector<Hierarchy::Link>;

  /// The unknowns that counted rows depend on: all others are at their priors and need no equations.
  void find_active();
  void register_rest();
  /// @param small_gains steps in a row that gain little end it
  void descend(double damping, int small_gains);
  double cost(const Eigen::VectorXd& x);
  /// Of the active unknowns at `x`; of the matrix, which is symmetric, the lower triangle.
  std::pair<Eigen::MatrixXd, Eigen::VectorXd> normal_equations(const Eigen::VectorXd& x);

  Hierarchy& hierarchy_;
  std::vector<HierarchyRow> rows_;
  std::vector<Links> links_;
  std::vector<bool> counted_;
  std::vector<Eigen::Index> active_;    ///< indices of unknowns
  std::vector<Eigen::Index> place_of_;  ///< of an unknown in active_, or -1
  Eigen::VectorXd x_, prior_, weight_;
  Eigen::LLT<Eigen::MatrixXd> posterior_;
  double cost_before_ = 0, cost_ = 0;
};

}  // namespace convoy
