// SPDX-License-Identifier: MIT
#include "sim/calibration/efficiency_fit.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/calibration/fit_parameters.h"
#include "sim/calibration/least_squares.h"
#include "sim/calibration/measurements.h"
#include "sim/calibration/typical_issue.h"
#include "sim/costs/issue_queue.h"
#include "sim/costs/residuals.h"

namespace convoy::inline calibration {
namespace {

constexpr std::array<Precision, 4> precisions{Precision::fp32, Precision::tf32, Precision::fp16,
                                              Precision::bf16};

constexpr std::size_t index(Precision p) { return static_cast<std::size_t>(p); }

/// Of kernels and layers, timed with what their library does around them, before any measurement.
constexpr double launch_alone_s = 10e-6, launch_alone_spread = 1.0;

double prior(const FitParameter& p, Precision precision, const DeviceType& device) {
  const ComputePath path = compute_path(device, precision);
  return typical_value(p, path, device) * times_on_device(p, path, device);
}

bool applies(const FitParameter& p, Precision precision, const DeviceType& device) {
  return prior(p, precision, device) > 0;
}

Efficiency prior_efficiency(Precision precision, const DeviceType& device) {
  Efficiency e;
  for (const FitParameter& p : fit_parameters())
    if (applies(p, precision, device)) p.set(e, prior(p, precision, device));
  return e;
}

// An unknown of the fit: a parameter of a precision.
struct Unknown {
  const FitParameter* parameter;
  Precision precision;
};

// The fit's unknowns as one vector of logarithms: the launch overhead, how slow the host is, then the
// parameters of each fitted precision that mean something on it.
class Problem {
 public:
  Problem(const DeviceType& device, const std::vector<Observation>& observations, const Belief& believed)
      : device_(device),
        observations_(observations),
        launch_spread_(believed.of_networks ? typical_launch_spread : launch_alone_spread) {
    for (const Precision p : precisions)
      if (std::any_of(observations.begin(), observations.end(),
                      [p](const Observation& o) { return o.software.precision == p; }))
        fitted_.push_back(p);
    for (const Precision precision : fitted_)
      for (const FitParameter& p : fit_parameters())
        if (applies(p, precision, device)) unknowns_.push_back({&p, precision});
    start_.resize(common + static_cast<Eigen::Index>(unknowns_.size()));
    start_[0] = std::log(believed.launch_s > 0 ? believed.launch_s
                         : believed.of_networks  ? typical_launch_s
                                                 : launch_alone_s);
    start_[1] = 0;
    Eigen::Index i = common;
    for (const Unknown& u : unknowns_) {
      const bool known = std::find(believed.precisions.begin(), believed.precisions.end(), u.precision) !=
                         believed.precisions.end();
      start_[i++] = std::log(known ? u.parameter->get(believed.device.efficiency[index(u.precision)])
                                   : prior(*u.parameter, u.precision, device));
    }
  }

  const Eigen::VectorXd& start() const { return start_; }

  DeviceType device(const Eigen::VectorXd& x) const {
    DeviceType result = device_;
    Eigen::Index i = 0;
    result.launch_overhead_s = std::exp(x[i++]);
    result.issue_factor *= std::exp(x[i++]);
    for (const Unknown& u : unknowns_)
      u.parameter->set(result.efficiency[index(u.precision)], within_bounds(*u.parameter, std::exp(x[i++])));
    return result;
  }

  /// One residual an observation, one an unknown's prior; all with standard deviation 1.
  Eigen::VectorXd residuals(const Eigen::VectorXd& x) const {
    const DeviceType candidate = device(x);
    Eigen::VectorXd r(static_cast<Eigen::Index>(observations_.size()) + x.size());
    Eigen::Index row = 0;
    for (const Observation& o : observations_) {
      const double residual = std::log(predicted_s(o, candidate) / o.seconds) / o.spread;
      r[row++] = o.has_outliers ? smooth_l1(residual) : residual;
    }
    const Eigen::VectorXd away = x - start();
    r[row++] = away[0] / launch_spread_;
    r[row++] = away[1] / unknown_spread(costs::Unknown::hosts);
    Eigen::Index i = common;
    for (const Unknown& u : unknowns_) r[row++] = away[i++] / u.parameter->spread;
    return r;
  }

  const std::vector<Precision>& fitted() const { return fitted_; }

 private:
  static constexpr Eigen::Index common = 2;  ///< unknowns that are no parameters of a precision

  const DeviceType& device_;
  const std::vector<Observation>& observations_;
  double launch_spread_;
  std::vector<Precision> fitted_;
  std::vector<Unknown> unknowns_;
  Eigen::VectorXd start_;
};

Eigen::MatrixXd jacobian(const Problem& problem, const Eigen::VectorXd& x, const Eigen::VectorXd& r) {
  constexpr double step = 1e-5;
  Eigen::MatrixXd j(r.size(), x.size());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    Eigen::VectorXd moved = x;
    moved[i] += step;
    j.col(i) = (problem.residuals(moved) - r) / step;
  }
  return j;
}

Eigen::VectorXd minimise(const Problem& problem) {
  const SumOfSquares sum{[&](const Eigen::VectorXd& x) { return problem.residuals(x).squaredNorm(); },
                         [&](const Eigen::VectorXd& x) {
                           const Eigen::VectorXd r = problem.residuals(x);
                           const Eigen::MatrixXd j = jacobian(problem, x, r);
                           return std::pair<Eigen::MatrixXd, Eigen::VectorXd>(j.transpose() * j,
                                                                              j.transpose() * r);
                         }};
  return minimise_squares(sum, problem.start(), DescentOptions()).x;
}

}  // namespace

double predicted_s(const Observation& o, const DeviceType& device) {
  IssueQueue queue(begin_time_s(o.software, device));
  double launches_s = 0;
  for (const Work& work : o.works) {
    queue.run(issue_time_s(work, o.images, o.software, device),
              operation_time_s(work, o.images, o.software, device));
    launches_s += launches(work, o.software, device) * device.launch_overhead_s;
  }
  return (o.without_launch ? queue.end_s() - launches_s : queue.end_s()) +
         beside_step_s(o.beside, o.software, device);
}

DeviceType fit_efficiencies(const DeviceType& device, const std::vector<Observation>& observations,
                            const Belief& believed) {
  const Problem problem(device, observations, believed);
  if (problem.fitted().empty()) return device;
  DeviceType result = problem.device(minimise(problem));
  const auto is_in = [](const std::vector<Precision>& list, Precision p) {
    return std::find(list.begin(), list.end(), p) != list.end();
  };
  for (const Precision p : precisions) {
    if (is_in(problem.fitted(), p)) continue;
    // What is believed; else the nearest fitted one: bf16 and fp16 run on the same units; else what is
    // typical.
    const Precision like = p == Precision::bf16 ? Precision::fp16 : p;
    if (is_in(believed.precisions, p))
      result.efficiency[index(p)] = believed.device.efficiency[index(p)];
    else if (is_in(problem.fitted(), like))
      result.efficiency[index(p)] = result.efficiency[index(like)];
    else if (is_in(believed.precisions, like))
      result.efficiency[index(p)] = believed.device.efficiency[index(like)];
    else
      result.efficiency[index(p)] = prior_efficiency(p, device);
  }
  return result;
}

}  // namespace convoy::calibration
