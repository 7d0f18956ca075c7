// SPDX-License-Identifier: MIT
#include "sim/calibration/catalogue_fit.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/calibration/hierarchy.h"
#include "sim/costs/residuals.h"

namespace convoy {
namespace {

using Links = std::vector<Hierarchy::Link>;

// Smooth L1 as a residual whose square is minimised: r for small r, grows with the root of |r| beyond 1.
double smooth_l1(double r) { return std::copysign(std::sqrt(2 * (std::sqrt(1 + r * r) - 1)), r); }
// Its derivative.
double slope(double r) {
  const double value = smooth_l1(r);
  return std::abs(value) < 1e-9 ? 1 : r / std::sqrt(1 + r * r) / value;
}

/// The generations that are fitted: GPUs of NVIDIA's, and CPUs together.
bool is_fitted(const DeviceType& device) {
  if (device.cpu) return true;
  static constexpr std::array names{"kepler", "maxwell", "pascal", "volta",    "turing",
                                    "ampere", "ada",     "hopper", "blackwell"};
  return std::find(names.begin(), names.end(), device.generation) != names.end();
}

class Fit {
 public:
  Fit(Hierarchy& hierarchy, std::vector<HierarchyRow> rows) : hierarchy_(hierarchy), rows_(std::move(rows)) {
    for (const HierarchyRow& row : rows_) links_.push_back(hierarchy_.links(row));
    register_rest();
    x_ = prior_ = hierarchy_.prior();
    weight_ = hierarchy_.spread().cwiseAbs2().cwiseInverse();
  }

  /// Levenberg-Marquardt with Marquardt's scaling (Nocedal and Wright, Numerical Optimization, section 10.3).
  void minimise() {
    constexpr int max_steps = 60, max_tries = 16, small_gains = 3;
    constexpr double tolerance = 2e-4;
    double damping = 1e-2;
    int small = 0;  // steps that gained little, in a row
    cost_ = cost_before_ = cost(x_);
    for (int step = 0; step < max_steps; ++step) {
      const auto [normal, gradient] = normal_equations();
      double gain = 0;
      for (int attempt = 0; attempt < max_tries && gain <= 0; ++attempt) {
        Eigen::MatrixXd damped = normal;
        damped.diagonal() *= 1 + damping;
        const Eigen::VectorXd candidate = x_ - damped.llt().solve(gradient);
        const double moved = cost(candidate);
        if (std::isfinite(moved) && moved < cost_) {
          gain = cost_ - moved;
          x_ = candidate;
          cost_ = moved;
          damping = std::max(damping / 5, 1e-6);
        } else {
          damping *= 4;
        }
      }
      small = gain > tolerance * cost_ ? 0 : small + 1;
      if (gain <= 0 || small == small_gains) break;
    }
    posterior_ = normal_equations().first.llt();
  }

  /// Standard deviation of log(seconds) of a row that the posterior leaves.
  double spread_of(const HierarchyRow& row) {
    Links links = hierarchy_.links(row);
    Hierarchy::set_values(links, x_);
    const double base = std::log(hierarchy_.predict(row, links));
    Eigen::VectorXd derivative = Eigen::VectorXd::Zero(x_.size());
    for (Hierarchy::Link& link : links) {
      const double value = link.value;
      link.value *= std::exp(step_);
      const double d = (std::log(hierarchy_.predict(row, links)) - base) / step_;
      link.value = value;
      for (const Eigen::Index i : link.unknowns) derivative[i] += d;
    }
    return std::sqrt(std::max(0.0, derivative.dot(posterior_.solve(derivative))));
  }

  const Eigen::VectorXd& x() const { return x_; }
  double cost_before() const { return cost_before_; }
  double cost_after() const { return cost_; }
  const std::vector<HierarchyRow>& rows() const { return rows_; }
  double residual(std::size_t r) {
    Hierarchy::set_values(links_[r], x_);
    return std::log(hierarchy_.predict(rows_[r], links_[r]) / rows_[r].seconds);
  }

 private:
  /// Devices and ways to run a framework that no row is about have unknowns too: their priors.
  void register_rest() {
    for (std::size_t d = 0; d < hierarchy_.devices().size(); ++d)
      for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16}) {
        HierarchyRow row;
        row.device = d;
        row.software.precision = precision;
        if (hierarchy_.devices()[d].runs(precision)) hierarchy_.links(row);
      }
    for (std::size_t f = 0; f < framework_count; ++f)
      for (const ExecutionMode execution :
           {ExecutionMode::eager, ExecutionMode::graph, ExecutionMode::compiled})
        for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
          HierarchyRow row;
          row.framework = static_cast<Framework>(f);
          row.software.execution = execution;
          row.software.layout = layout;
          hierarchy_.links(row);
        }
  }

  double cost(const Eigen::VectorXd& x) {
    double sum = (x - prior_).cwiseAbs2().cwiseProduct(weight_).sum();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      Hierarchy::set_values(links_[r], x);
      const double seconds = hierarchy_.predict(rows_[r], links_[r]);
      const double residual = smooth_l1(std::log(seconds / rows_[r].seconds) / rows_[r].spread);
      sum += residual * residual;
    }
    return sum;
  }

  std::pair<Eigen::MatrixXd, Eigen::VectorXd> normal_equations() {
    Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(x_.size(), x_.size());
    Eigen::VectorXd gradient = (x_ - prior_).cwiseProduct(weight_);
    normal.diagonal() = weight_;
    std::vector<std::pair<Eigen::Index, double>> row_gradient;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      Links& links = links_[r];
      Hierarchy::set_values(links, x_);
      const auto residual = [&] {
        return std::log(hierarchy_.predict(rows_[r], links) / rows_[r].seconds) / rows_[r].spread;
      };
      const double raw = residual(), value = smooth_l1(raw), by_raw = slope(raw);
      row_gradient.clear();
      for (Hierarchy::Link& link : links) {
        const double before = link.value;
        link.value *= std::exp(step_);
        const double d = (residual() - raw) / step_ * by_raw;
        link.value = before;
        if (std::abs(d) < 1e-9) continue;
        for (const Eigen::Index i : link.unknowns) row_gradient.emplace_back(i, d);
      }
      for (const auto& [i, di] : row_gradient) {
        gradient[i] += di * value;
        for (const auto& [j, dj] : row_gradient) normal(i, j) += di * dj;
      }
    }
    return {std::move(normal), std::move(gradient)};
  }

  static constexpr double step_ = 1e-4;  // of a logarithm
  Hierarchy& hierarchy_;
  std::vector<HierarchyRow> rows_;
  std::vector<Links> links_;
  Eigen::VectorXd x_, prior_, weight_;
  Eigen::LLT<Eigen::MatrixXd> posterior_;
  double cost_before_ = 0, cost_ = 0;
};

std::string cost_line(const SoftwareCosts& costs) {
  return fmt::format("convolution: {:.3g}, normalization: {:.3g}, elementwise: {:.3g}{}", costs.convolution,
                     costs.normalization, costs.elementwise,
                     costs.fused < 1 ? fmt::format(", fused: {:.3g}", costs.fused) : "");
}

std::string software_yaml(Hierarchy& hierarchy, Framework framework, const Eigen::VectorXd& x) {
  std::string text;
  for (std::size_t e = 0; e < execution_names.size(); ++e) {
    const auto execution = static_cast<ExecutionMode>(e);
    const SoftwareCosts issue = hierarchy.software_at(framework, execution, Layout::nchw, x);
    text +=
        fmt::format("{}:\n  issue_forward: {:.3g}us\n  issue_backward: {:.3g}us\n  issue_update: {:.3g}us\n",
                    execution_names[e], 1e6 * issue.issue_forward_s, 1e6 * issue.issue_backward_s,
                    1e6 * issue.issue_update_s);
    for (const Layout layout : {Layout::nchw, Layout::nhwc})
      text += fmt::format("  {}: {{{}}}\n", to_string(layout),
                          cost_line(hierarchy.software_at(framework, execution, layout, x)));
  }
  return text;
}

/// What is left of rows of one kind: the 80 % quantile of |log error|, as the standard deviation of a normal
/// distribution.
std::string residuals_yaml(Fit& fit) {
  std::array<std::vector<double>, residual_kind_count> left;
  for (std::size_t r = 0; r < fit.rows().size(); ++r) {
    const HierarchyRow& row = fit.rows()[r];
    if (row.is_kernel) continue;
    const double error = std::abs(fit.residual(r));
    left[residual_kind(row.works, row.images, row.software.precision)].push_back(error);
  }
  std::string text;
  for (std::size_t k = 0; k < residual_kind_count; ++k) {
    std::sort(left[k].begin(), left[k].end());
    const double quantile = left[k].empty() ? 0.2 : left[k][left[k].size() * 4 / 5];
    text += fmt::format("{}: {:.3g}  # of {} rows\n", residual_kind_name(k), quantile / quantile_80,
                        left[k].size());
  }
  return text;
}

}  // namespace

CatalogueFit fit_catalogue(const std::vector<Measurement>& measurements) {
  std::vector<DeviceType> devices;
  std::map<std::string, std::size_t> index;
  for (const std::string& name : device_names()) {
    DeviceType device = load_device(name, {});
    if (!is_fitted(device)) continue;
    device.sources.clear();
    index.emplace(name, devices.size());
    devices.push_back(std::move(device));
  }
  Hierarchy hierarchy(std::move(devices));
  std::vector<HierarchyRow> rows;
  std::map<std::size_t, int> rows_of;
  for (const Measurement& m : measurements) {
    const auto device = index.find(m.device);
    if (!m.fit || device == index.end()) continue;
    rows.push_back(hierarchy.row_of(m, device->second));
    ++rows_of[device->second];
  }
  Fit fit(hierarchy, std::move(rows));
  fit.minimise();
  CatalogueFit result;
  result.rows = fit.rows().size();
  result.unknowns = static_cast<std::size_t>(fit.x().size());
  result.cost_before = fit.cost_before();
  result.cost_after = fit.cost_after();
  for (std::size_t d = 0; d < hierarchy.devices().size(); ++d) {
    DeviceType device = hierarchy.device_at(d, fit.x());
    Measurement typical;  // of which the posterior's spread is told
    typical.model = "resnet50";
    typical.batch = 64;
    typical.images_per_s = 1;
    const bool tensor = device.has_tensor_cores() && device.runs(Precision::fp16);
    typical.precision = tensor ? Precision::fp16 : Precision::fp32;
    device.evidence_rows = rows_of.contains(d) ? rows_of.at(d) : 0;
    device.evidence_spread = fit.spread_of(hierarchy.row_of(typical, d));
    result.devices.emplace(device.name, catalogue_yaml(device));
  }
  for (std::size_t f = 0; f < framework_count; ++f)
    result.software.emplace(framework_names[f], software_yaml(hierarchy, static_cast<Framework>(f), fit.x()));
  result.residuals = residuals_yaml(fit);
  return result;
}

}  // namespace convoy
