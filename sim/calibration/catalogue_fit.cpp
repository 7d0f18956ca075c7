// SPDX-License-Identifier: MIT
#include "sim/calibration/catalogue_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "sim/calibration/posterior.h"
#include "sim/costs/residuals.h"

namespace convoy::inline calibration {
namespace {

std::string cost_line(const SoftwareCosts& costs) {
  return fmt::format("convolution: {:.3g}, depthwise: {:.3g}, normalization: {:.3g}, elementwise: {:.3g}{}",
                     costs.convolution, costs.depthwise, costs.normalization, costs.elementwise,
                     costs.fused < 1 ? fmt::format(", fused: {:.3g}", costs.fused) : "");
}

/// Figures by framework and way of execution.
using SoftwareRows = std::map<std::pair<Framework, ExecutionMode>, int>;

std::string software_yaml(Hierarchy& hierarchy, Framework framework, const Posterior::HostFactors& hosts,
                          const SoftwareRows& rows, const Eigen::VectorXd& x) {
  std::string text;
  for (std::size_t e = 0; e < execution_names.size(); ++e) {
    const auto execution = static_cast<ExecutionMode>(e);
    const SoftwareCosts issue = hierarchy.software_at(framework, execution, Layout::nchw, x);
    const auto host = hosts.software.find({framework, execution});
    const double us = 1e6 * (host == hosts.software.end() ? 1 : host->second);
    const auto figures = rows.find({framework, execution});
    text += fmt::format("{}:\n  rows: {}\n", execution_names[e], figures == rows.end() ? 0 : figures->second);
    text += fmt::format("  issue_forward: {:.3g}us\n  issue_backward: {:.3g}us\n  issue_update: {:.3g}us\n",
                        us * issue.issue_forward_s, us * issue.issue_backward_s, us * issue.issue_update_s);
    if (issue.issue_step_s > 0) text += fmt::format("  issue_step: {:.3g}us\n", us * issue.issue_step_s);
    text += fmt::format("  feed: {:.3g}GB/s\n", 1e-9 * issue.feed_Bps);
    if (issue.kepler != 1) text += fmt::format("  kepler: {:.3g}\n", issue.kepler);
    if (issue.half != 1) text += fmt::format("  half: {:.3g}\n", issue.half);
    if (issue.wait_update_s > 0) text += fmt::format("  wait_update: {:.3g}us\n", us * issue.wait_update_s);
    if (issue.one_thread > 0) text += fmt::format("  one_thread: {:.3g}\n", issue.one_thread);
    for (const Layout layout : {Layout::nchw, Layout::nhwc})
      text += fmt::format("  {}: {{{}}}\n", to_string(layout),
                          cost_line(hierarchy.software_at(framework, execution, layout, x)));
  }
  return text;
}

/// What is left of rows of one kind: the 80 % quantile of |log error|, as the standard deviation of a normal
/// distribution.
std::string residuals_yaml(Posterior& fit) {
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

/// Whether rows depend on their host enough for its factor to be theirs more than the prior's, which is 1.
bool is_told(const Posterior::MeasuredHost& host) { return host.weight >= Posterior::typical_weight; }

std::string hosts_csv(const Hierarchy& hierarchy, const Posterior::HostFactors& hosts) {
  std::string text = "repository,device,issue_factor,rows\n";
  for (const auto& [where, host] : hosts.hosts)
    for (std::size_t d = 0; d < hierarchy.devices().size() && is_told(host); ++d)
      if (hierarchy.board_of(d) == where.second)
        text += fmt::format("{},{},{:.3g},{}\n", where.first, hierarchy.devices()[d].name, host.factor,
                            host.rows);
  return text;
}

}  // namespace

CatalogueFit fit_catalogue(const std::vector<Measurement>& measurements) {
  Hierarchy hierarchy(fitted_devices());
  std::vector<HierarchyRow> rows;
  std::map<std::size_t, int> rows_of;
  SoftwareRows rows_of_software;
  for (const Measurement& m : measurements) {
    const std::optional<std::size_t> device = hierarchy.find(m.device);
    if (!m.fitted() || !device) continue;
    rows.push_back(hierarchy.row_of(m, *device));
    ++rows_of[*device];
    if (m.whole_network()) ++rows_of_software[{m.software, m.execution}];
  }
  Posterior fit(hierarchy, std::move(rows));
  fit.minimise();
  CatalogueFit result;
  result.rows = fit.rows().size();
  result.unknowns = static_cast<std::size_t>(fit.x().size());
  result.cost_before = fit.cost_before();
  result.cost_after = fit.cost_after();
  const Posterior::HostFactors hosts = fit.host_factors();
  for (std::size_t d = 0; d < hierarchy.devices().size(); ++d) {
    const std::size_t board = hierarchy.board_of(d);
    const DeviceType fitted = hierarchy.device_at(board, fit.x());
    DeviceType device = hierarchy.devices()[d];
    device.launch_overhead_s = fitted.launch_overhead_s;
    device.issue_factor = fitted.issue_factor;
    device.efficiency = fitted.efficiency;
    device.evidence_rows = rows_of.contains(board) ? rows_of.at(board) : 0;
    device.evidence_spread = fit.device_spread(board);
    result.devices.emplace(device.name, catalogue_yaml(device));
  }
  for (std::size_t f = 0; f < framework_count; ++f)
    result.software.emplace(framework_names[f], software_yaml(hierarchy, static_cast<Framework>(f), hosts,
                                                              rows_of_software, fit.x()));
  result.residuals = residuals_yaml(fit);
  result.hosts = hosts_csv(hierarchy, hosts);
  return result;
}

}  // namespace convoy::calibration
