// SPDX-License-Identifier: MIT
#include "sim/calibration/efficiency_fit.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/calibration/fit_parameters.h"
#include "sim/calibration/measurements.h"
#include "sim/costs/issue_queue.h"

namespace convoy {
namespace {

constexpr std::array<Precision, 4> precisions{Precision::fp32, Precision::tf32, Precision::fp16,
                                              Precision::bf16};

constexpr std::size_t index(KernelClass c) { return static_cast<std::size_t>(c); }
constexpr std::size_t index(Precision p) { return static_cast<std::size_t>(p); }
constexpr bool on_tensor_cores(Precision p) { return p != Precision::fp32; }

// A parameter of the fit: where it lives, and what is believed of it before any measurement. Fitted in
// logarithms, which keeps it positive and makes "twice" and "half" equally far.
struct Parameter {
  std::string_view key;  // of the YAML
  double typical;        // on ordinary cores; 0: means nothing there, stays neutral
  double tensor_cores;  // on tensor cores, which starve on memory and have no Winograd algorithm; 0: likewise
  double spread;        // standard deviation of the logarithm
  void (*set)(Efficiency&, double);
  double (*get)(const Efficiency&);
  double cpu = -1;  // on a CPU, where it is not `typical`; 0: not there
};

template <KernelClass c>
void set_compute(Efficiency& e, double value) {
  e.compute[index(c)] = value;
}
template <KernelClass c>
double get_compute(const Efficiency& e) {
  return e.compute[index(c)];
}
template <KernelClass c>
void set_bandwidth(Efficiency& e, double value) {
  e.bandwidth[index(c)] = value;
}
template <KernelClass c>
double get_bandwidth(const Efficiency& e) {
  return e.bandwidth[index(c)];
}
void set_streaming(Efficiency& e, double value) {
  for (std::size_t c = 0; c <= index(KernelClass::matmul); ++c) e.bandwidth[c] = value;
}

template <KernelClass c>
constexpr Parameter compute_share(double typical, double tensor_cores, double spread) {
  return {kernel_class_names[index(c)], typical, tensor_cores, spread, set_compute<c>, get_compute<c>};
}
template <KernelClass c>
constexpr Parameter bandwidth_share(double typical, double spread) {
  return {kernel_class_names[index(c)], typical, typical, spread, set_bandwidth<c>, get_bandwidth<c>};
}

using enum KernelClass;
const std::array<Parameter, 25> device_parameters{
    compute_share<convolution_1x1>(0.7, 0.4, 0.3),
    compute_share<convolution_3x3>(1.0, 0.5, 0.4),
    compute_share<convolution_5x5>(1.0, 0.5, 0.4),
    compute_share<convolution_other>(0.6, 0.35, 0.3),
    compute_share<convolution_grouped>(0.5, 0.25, 0.4),
    compute_share<convolution_depthwise>(0.2, 0.05, 0.4),
    compute_share<matmul>(0.7, 0.5, 0.3),
    {"bandwidth", 0.75, 0.75, 0.15, set_streaming, get_bandwidth<matmul>},
    bandwidth_share<normalization>(0.55, 0.25),
    bandwidth_share<elementwise>(0.75, 0.15),
    bandwidth_share<pooling>(0.6, 0.25),
    bandwidth_share<softmax_loss>(0.5, 0.25),
    bandwidth_share<update>(0.7, 0.15),
    {"data_gradient", 0.95, 0.95, 0.1, [](Efficiency& e, double v) { e.data_gradient = v; },
     [](const Efficiency& e) { return e.data_gradient; }},
    {"weight_gradient", 0.85, 0.85, 0.1, [](Efficiency& e, double v) { e.weight_gradient = v; },
     [](const Efficiency& e) { return e.weight_gradient; }},
    // As in a file, the first three stand for the next four where these are not there.
    {"half_outputs", 20, 40, 0.5, [](Efficiency& e, double v) { e.half_outputs = e.half_weight_outputs = v; },
     [](const Efficiency& e) { return e.half_outputs; }, 12},
    {"half_reduction", 30, 100, 0.5,
     [](Efficiency& e, double v) { e.half_reduction = e.half_weight_reduction = v; },
     [](const Efficiency& e) { return e.half_reduction; }, 24},
    {"half_rows", 4000, 5000, 0.7,
     [](Efficiency& e, double v) { e.half_rows = e.half_weight_rows = e.half_matmul_rows = v; },
     [](const Efficiency& e) { return e.half_rows; }, 300},
    {"half_weight_outputs", 40, 100, 0.5, [](Efficiency& e, double v) { e.half_weight_outputs = v; },
     [](const Efficiency& e) { return e.half_weight_outputs; }, 0},
    {"half_weight_reduction", 60, 250, 0.5, [](Efficiency& e, double v) { e.half_weight_reduction = v; },
     [](const Efficiency& e) { return e.half_weight_reduction; }, 0},
    {"half_weight_rows", 500, 300, 0.7, [](Efficiency& e, double v) { e.half_weight_rows = v; },
     [](const Efficiency& e) { return e.half_weight_rows; }, 0},
    {"half_matmul_rows", 70, 100, 0.7, [](Efficiency& e, double v) { e.half_matmul_rows = v; },
     [](const Efficiency& e) { return e.half_matmul_rows; }, 0},
    {"strided_data_gradient", 0.5, 0.8, 0.3, [](Efficiency& e, double v) { e.strided_data_gradient = v; },
     [](const Efficiency& e) { return e.strided_data_gradient; }, 0},
    {"half_winograd", 28, 0, 0.5, [](Efficiency& e, double v) { e.half_winograd = v; },
     [](const Efficiency& e) { return e.half_winograd; }, 0},
    {"unaligned", 0, 0.65, 0.5, [](Efficiency& e, double v) { e.unaligned = v; },
     [](const Efficiency& e) { return e.unaligned; }, 0},
};
constexpr double launch_alone_s = 10e-6;
constexpr double launch_alone_spread = 1.0;

double prior(const Parameter& p, Precision precision, const DeviceType& device) {
  if (device.cpu && p.cpu >= 0) return p.cpu;
  // Tiles fill multiprocessors: the more of these a device is known to have, the more it takes (the
  // catalogue's typical values).
  if (p.key == "half_rows" && device.sms > 0)
    for (const FitParameter& of_catalogue : fit_parameters())
      if (of_catalogue.key == p.key)
        return device.sms * (on_tensor_cores(precision) ? of_catalogue.tensor : of_catalogue.cores);
  return on_tensor_cores(precision) ? p.tensor_cores : p.typical;
}

bool applies(const Parameter& p, Precision precision, const DeviceType& device) {
  return prior(p, precision, device) > 0;
}

Efficiency prior_efficiency(Precision precision, const DeviceType& device) {
  Efficiency e;
  for (const Parameter& p : device_parameters)
    if (applies(p, precision, device)) p.set(e, prior(p, precision, device));
  return e;
}

// Smooth L1 as a residual whose square is minimised: r for small r, grows with the root of |r| beyond 1.
double smooth_l1(double r) { return std::copysign(std::sqrt(2 * (std::sqrt(1 + r * r) - 1)), r); }

// An unknown of the fit: a parameter of a precision.
struct Unknown {
  const Parameter* parameter;
  Precision precision;
};

// The fit's unknowns as one vector of logarithms: the launch overhead, then the `device_parameters` of each
// fitted precision that mean something on it.
class Problem {
 public:
  Problem(const DeviceType& device, const std::vector<Observation>& observations, const Belief& believed)
      : device_(device), observations_(observations) {
    for (const Precision p : precisions)
      if (std::any_of(observations.begin(), observations.end(),
                      [p](const Observation& o) { return o.software.precision == p; }))
        fitted_.push_back(p);
    for (const Precision precision : fitted_)
      for (const Parameter& p : device_parameters)
        if (applies(p, precision, device)) unknowns_.push_back({&p, precision});
    start_.resize(1 + static_cast<Eigen::Index>(unknowns_.size()));
    start_[0] = std::log(believed.launch_s > 0 ? believed.launch_s : launch_alone_s);
    Eigen::Index i = 1;
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
    for (const Unknown& u : unknowns_)
      u.parameter->set(result.efficiency[index(u.precision)], std::exp(x[i++]));
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
    r[row++] = away[0] / launch_alone_spread;
    Eigen::Index i = 1;
    for (const Unknown& u : unknowns_) r[row++] = away[i++] / u.parameter->spread;
    return r;
  }

  const std::vector<Precision>& fitted() const { return fitted_; }

 private:
  const DeviceType& device_;
  const std::vector<Observation>& observations_;
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

// Levenberg-Marquardt with Marquardt's scaling (Nocedal and Wright, Numerical Optimization, section 10.3).
Eigen::VectorXd minimise(const Problem& problem) {
  constexpr int max_steps = 200;
  constexpr double tolerance = 1e-9;
  Eigen::VectorXd x = problem.start();
  Eigen::VectorXd r = problem.residuals(x);
  double damping = 1e-3;
  for (int step = 0; step < max_steps; ++step) {
    const Eigen::MatrixXd j = jacobian(problem, x, r);
    const Eigen::MatrixXd normal = j.transpose() * j;
    const Eigen::VectorXd gradient = j.transpose() * r;
    double gain = 0;
    for (; damping < 1e12; damping *= 4) {
      Eigen::MatrixXd damped = normal;
      damped.diagonal() *= 1 + damping;
      const Eigen::VectorXd candidate = x - damped.ldlt().solve(gradient);
      const Eigen::VectorXd moved = problem.residuals(candidate);
      gain = r.squaredNorm() - moved.squaredNorm();
      if (std::isfinite(gain) && gain > 0) {
        x = candidate;
        r = moved;
        damping = std::max(damping / 8, 1e-9);
        break;
      }
    }
    if (!(gain > tolerance * r.squaredNorm())) break;
  }
  return x;
}

}  // namespace

double predicted_s(const Observation& o, const DeviceType& device) {
  IssueQueue queue;
  for (const Work& work : o.works)
    queue.run(issue_time_s(work, o.images, o.software, device),
              operation_time_s(work, o.images, o.software, device));
  const double launches_s = device.launch_overhead_s * static_cast<double>(o.works.size());
  return (o.without_launch ? queue.end_s() - launches_s : queue.end_s()) +
         after_step_s(o.operations_after, o.software, device);
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

}  // namespace convoy
