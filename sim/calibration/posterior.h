// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Cholesky>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/calibration/hierarchy.h"

namespace convoy::inline calibration {

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
  /// Hosts that rows of whole networks were measured on: those of a repository with a device.
  struct MeasuredHost {
    double factor = 1;  ///< how slow, relative to the typical host
    double weight = 0;  ///< sum over rows of the square of how much their time depends on their host
    std::size_t rows = 0;
  };
  /// How slow the hosts were, relative to the typical one: a factor of each, times one of the framework and
  /// its execution for what all hosts of its rows have in common. By least squares of the logarithms, with
  /// the rows' weights.
  struct HostFactors {
    std::map<std::pair<std::string, std::size_t>, MeasuredHost> hosts;  ///< by repository and device
    std::map<std::pair<Framework, ExecutionMode>, double> software;
  };
  /// Weight with which each factor of HostFactors is believed to be 1: a row that depends on its host by a
  /// third, so that rows that hardly depend on theirs say little.
  static constexpr double typical_weight = 0.1;
  HostFactors host_factors();
  /// A row on the typical host, as the catalogue has it (catalogue_fit.cpp).
  struct OnTypicalHost {
    double seconds = 0;
    /// Of log(seconds) by log(how slow the host is), between hosts that are 1.4 times slower and quicker.
    double slope = 0;
    /// The same by log(time of products), where that is up to the framework (products_follow_framework); else 0.
    double generation_slope = 0;
    /// The same by log(time of the copy of a batch from the host's memory), for rows that have one; else 0.
    double feed_slope = 0;
  };
  OnTypicalHost on_typical_host(HierarchyRow row, const HostFactors& hosts);
  /// Standard deviation of log(seconds) that the posterior leaves of a typical step on a device, which is its
  /// evidence in the catalogue: ResNet-50 on 64 images, in half precision where it has units for that. Where
  /// products are up to the framework (products_follow_framework), with the least known of the frameworks that
  /// have rows on the device's generation: another one is an unknown of its own (Unknown::generation).
  double device_spread(std::size_t device);
  /// By framework with counted rows of networks on GPUs of this generation: by how much it lengthens products there
  /// (SoftwareCosts::kepler).
  std::map<Framework, double> factors_on(const std::string& generation);
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

}  // namespace convoy::calibration
