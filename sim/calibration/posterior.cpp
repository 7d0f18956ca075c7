// SPDX-License-Identifier: MIT
#include "sim/calibration/posterior.h"

#include <algorithm>
#include <cmath>

#include "sim/calibration/least_squares.h"
#include "sim/costs/software_evidence.h"

namespace convoy::inline calibration {
namespace {

constexpr double step = 1e-4;  // of a logarithm, for derivatives

/// Sorts derivatives by their unknown and adds up those by the same one.
void merge_same(std::vector<std::pair<Eigen::Index, double>>& gradient) {
  std::sort(gradient.begin(), gradient.end());
  std::size_t kept = 0;
  for (const auto& [unknown, derivative] : gradient) {
    if (kept > 0 && gradient[kept - 1].first == unknown)
      gradient[kept - 1].second += derivative;
    else
      gradient[kept++] = {unknown, derivative};
  }
  gradient.resize(kept);
}

}  // namespace

Posterior::Posterior(Hierarchy& hierarchy, std::vector<HierarchyRow> rows)
    : hierarchy_(hierarchy), rows_(std::move(rows)), counted_(rows_.size(), true) {
  for (const HierarchyRow& row : rows_) links_.push_back(hierarchy_.links(row));
  register_rest();
  x_ = prior_ = hierarchy_.prior();
  weight_ = hierarchy_.spread().cwiseAbs2().cwiseInverse();
  find_active();
}

void Posterior::use(std::vector<bool> counted) {
  counted_ = std::move(counted);
  find_active();
}

void Posterior::find_active() {
  place_of_.assign(static_cast<std::size_t>(x_.size()), -1);
  active_.clear();
  for (std::size_t r = 0; r < rows_.size(); ++r)
    if (counted_[r])
      for (const Hierarchy::Link& link : links_[r])
        for (const Hierarchy::Term& term : link.terms) place_of_[static_cast<std::size_t>(term.unknown)] = 0;
  for (Eigen::Index i = 0; i < x_.size(); ++i) {
    Eigen::Index& place = place_of_[static_cast<std::size_t>(i)];
    if (place < 0) {
      x_[i] = prior_[i];
      continue;
    }
    place = static_cast<Eigen::Index>(active_.size());
    active_.push_back(i);
  }
}

/// A step waits for its host or for its device, and what is far from being waited for moves no step. So the
/// search begins with slow hosts, from where both sides of the bend are seen.
void Posterior::minimise() {
  constexpr double slow = 3;
  for (const Eigen::Index i : hierarchy_.issue_times())
    if (place_of_[static_cast<std::size_t>(i)] >= 0) x_[i] += std::log(slow);
  descend(1e-2, 3);
}

void Posterior::minimise_again() { descend(1e-4, 1); }

void Posterior::descend(double damping, int small_gains) {
  constexpr int max_steps = 60;
  constexpr double tolerance = 2e-4;
  const auto at = [&](const Eigen::VectorXd& active) {
    Eigen::VectorXd x = x_;
    x(active_) = active;
    return x;
  };
  const SumOfSquares sum{[&](const Eigen::VectorXd& active) { return cost(at(active)); },
                         [&](const Eigen::VectorXd& active) { return normal_equations(at(active)); }};
  const Minimum minimum = minimise_squares(sum, x_(active_), {damping, tolerance, small_gains, max_steps});
  x_(active_) = minimum.x;
  cost_before_ = minimum.before;
  cost_ = minimum.after;
  posterior_ = normal_equations(x_).first.llt();
}

double Posterior::spread_of(const HierarchyRow& row) {
  Links links = hierarchy_.links(row);
  Hierarchy::set_values(links, x_);
  const double base = std::log(hierarchy_.predict(row, links));
  Eigen::VectorXd derivative = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(active_.size()));
  double variance = 0;  // of unknowns that no row is about: their priors'
  for (Hierarchy::Link& link : links) {
    const double value = link.value;
    link.value *= std::exp(step);
    const double d = (std::log(hierarchy_.predict(row, links)) - base) / step;
    link.value = value;
    for (const auto& [unknown, coefficient] : link.terms) {
      const Eigen::Index place = place_of_[static_cast<std::size_t>(unknown)];
      if (place >= 0)
        derivative[place] += d * coefficient;
      else
        variance += d * d * coefficient * coefficient / weight_[unknown];
    }
  }
  return std::sqrt(variance + std::max(0.0, derivative.dot(posterior_.solve(derivative))));
}

Posterior::HostFactors Posterior::host_factors() {
  struct Seen {
    std::pair<std::string, std::size_t> host;
    std::pair<Framework, ExecutionMode> software;
    double weight, log_factor;
  };
  HostFactors factors;
  std::vector<Seen> seen;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    Links& links = links_[r];
    const auto host = std::find_if(links.begin(), links.end(), [](const auto& link) { return link.is_host; });
    if (!counted_[r] || host == links.end()) continue;
    Hierarchy::set_values(links, x_);
    const double value = host->value, base = std::log(hierarchy_.predict(rows_[r], links));
    host->value *= std::exp(step);
    const double slope = (std::log(hierarchy_.predict(rows_[r], links)) - base) / step;
    seen.push_back({{rows_[r].repository, rows_[r].device},
                    {rows_[r].framework, rows_[r].software.execution},
                    slope * slope,
                    std::log(value)});
    MeasuredHost& measured = factors.hosts[seen.back().host];
    measured.weight += slope * slope;
    ++measured.rows;
  }
  // In turns, each the means of what the others leave.
  constexpr int turns = 50;
  std::map<std::pair<std::string, std::size_t>, double> hosts;
  std::map<std::pair<Framework, ExecutionMode>, double> software;
  const auto means = [&](auto key_of, auto other_of, auto& logs) {
    std::map<typename std::decay_t<decltype(logs)>::key_type, std::pair<double, double>> sums;
    for (const Seen& row : seen) {
      auto& [weights, weighted] = sums[key_of(row)];
      weights += row.weight;
      weighted += row.weight * (row.log_factor - other_of(row));
    }
    for (const auto& [key, sum] : sums) logs[key] = sum.second / (sum.first + typical_weight);
  };
  for (int turn = 0; turn < turns; ++turn) {
    means([](const Seen& row) { return row.host; }, [&](const Seen& row) { return software[row.software]; },
          hosts);
    means([](const Seen& row) { return row.software; }, [&](const Seen& row) { return hosts[row.host]; },
          software);
  }
  for (const auto& [host, log_factor] : hosts) factors.hosts[host].factor = std::exp(log_factor);
  for (const auto& [framework, log_factor] : software) factors.software[framework] = std::exp(log_factor);
  return factors;
}

Posterior::OnTypicalHost Posterior::on_typical_host(HierarchyRow row, const HostFactors& hosts) {
  row.repository.clear();
  Links links = hierarchy_.links(row);
  Hierarchy::set_values(links, x_);
  const auto host = std::find_if(links.begin(), links.end(), [](const auto& link) { return link.is_host; });
  OnTypicalHost on_host;
  if (host == links.end()) {
    on_host.seconds = hierarchy_.predict(row, links);
    return on_host;
  }
  const auto software = hosts.software.find({row.framework, row.software.execution});
  const double typical = software == hosts.software.end() ? 1 : software->second;
  constexpr double factor = 1.4;
  const auto seconds_at = [&](double value) {
    host->value = value;
    return hierarchy_.predict(row, links);
  };
  on_host.seconds = seconds_at(typical);
  on_host.slope =
      std::log(seconds_at(typical * factor) / seconds_at(typical / factor)) / (2 * std::log(factor));
  const auto slope_by = [&](Hierarchy::Link& link) {
    const double usual = link.value;
    const auto seconds_with = [&](double times) {
      link.value = usual * times;
      return seconds_at(typical);
    };
    const double slope = std::log(seconds_with(factor) / seconds_with(1 / factor)) / (2 * std::log(factor));
    link.value = usual;
    return slope;
  };
  for (Hierarchy::Link& link : links) {
    if (link.is_generation && products_follow_framework(hierarchy_.devices()[row.device]))
      on_host.generation_slope = slope_by(link);
    if (link.is_feed) on_host.feed_slope = std::max(0.0, -slope_by(link));  // a rate
  }
  return on_host;
}

double Posterior::device_spread(std::size_t device) {
  const DeviceType& type = hierarchy_.devices()[device];
  Measurement typical;
  typical.model = "resnet50";
  typical.batch = 64;
  typical.images_per_s = 1;
  const bool tensor = type.has_tensor_cores() && type.runs(Precision::fp16);
  typical.precision = tensor ? Precision::fp16 : Precision::fp32;
  double spread = 0;
  if (products_follow_framework(type))
    for (const auto& [framework, factor] : factors_on(type.generation)) {
      typical.software = framework;
      typical.execution = default_execution(framework);
      spread = std::max(spread, spread_of(hierarchy_.row_of(typical, device)));
    }
  return spread > 0 ? spread : spread_of(hierarchy_.row_of(typical, device));
}

std::map<Framework, double> Posterior::factors_on(const std::string& generation) {
  std::map<Framework, double> factors;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (!counted_[r] || rows_[r].is_kernel) continue;
    if (hierarchy_.devices()[rows_[r].device].generation != generation) continue;
    const auto link = std::find_if(links_[r].begin(), links_[r].end(),
                                   [](const Hierarchy::Link& each) { return each.is_generation; });
    if (link == links_[r].end()) continue;  // of a CPU
    Hierarchy::set_values(links_[r], x_);
    factors[rows_[r].framework] = link->value;
  }
  return factors;
}

double Posterior::residual(std::size_t row) {
  Hierarchy::set_values(links_[row], x_);
  return std::log(hierarchy_.predict(rows_[row], links_[row]) / rows_[row].seconds);
}

void Posterior::register_rest() {
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

double Posterior::cost(const Eigen::VectorXd& x) {
  double sum = (x - prior_).cwiseAbs2().cwiseProduct(weight_).sum();
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (!counted_[r]) continue;
    Hierarchy::set_values(links_[r], x);
    const double seconds = hierarchy_.predict(rows_[r], links_[r]);
    const double residual = smooth_l1(std::log(seconds / rows_[r].seconds) / rows_[r].spread);
    sum += residual * residual;
  }
  return sum;
}

std::pair<Eigen::MatrixXd, Eigen::VectorXd> Posterior::normal_equations(const Eigen::VectorXd& x) {
  const auto count = static_cast<Eigen::Index>(active_.size());
  Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(count, count);
  Eigen::VectorXd gradient = (x - prior_).cwiseProduct(weight_)(active_);
  normal.diagonal() = weight_(active_);
  std::vector<std::pair<Eigen::Index, double>> row_gradient;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (!counted_[r]) continue;
    Links& links = links_[r];
    Hierarchy::set_values(links, x);
    const auto residual = [&] {
      return std::log(hierarchy_.predict(rows_[r], links) / rows_[r].seconds) / rows_[r].spread;
    };
    const double raw = residual(), value = smooth_l1(raw), by_raw = smooth_l1_slope(raw);
    row_gradient.clear();
    for (Hierarchy::Link& link : links) {
      const double before = link.value;
      link.value *= std::exp(step);
      const double d = (residual() - raw) / step * by_raw;
      link.value = before;
      if (std::abs(d) < 1e-9) continue;
      for (const auto& [unknown, coefficient] : link.terms)
        row_gradient.emplace_back(place_of_[static_cast<std::size_t>(unknown)], d * coefficient);
    }
    merge_same(row_gradient);
    for (auto column = row_gradient.begin(); column != row_gradient.end(); ++column) {
      gradient[column->first] += column->second * value;
      for (auto entry = column; entry != row_gradient.end(); ++entry)
        normal(entry->first, column->first) += entry->second * column->second;
    }
  }
  return {std::move(normal), std::move(gradient)};
}

}  // namespace convoy::calibration
