// SPDX-License-Identifier: MIT
#include "sim/calibration/cross_validation.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "sim/calibration/fit_parameters.h"
#include "sim/calibration/posterior.h"
#include "sim/costs/residuals.h"
#include "sim/costs/software_evidence.h"

namespace convoy::inline calibration {
namespace {

std::string group_of(const Measurement& m, const DeviceType& device, LeaveOut by) {
  switch (by) {
    case LeaveOut::device:
      return device.name;
    case LeaveOut::generation:
      return fit_family(device);
    case LeaveOut::source:
      return m.whole_network() ? m.repository() : "";
    case LeaveOut::family:
      return m.whole_network() ? network_family(m.model) : "";
    case LeaveOut::framework:
      return m.whole_network() ? fmt::format("{} on {}", to_string(m.software), fit_family(device)) : "";
  }
  return "";
}

/// The kernels of a way of execution: of a framework's libraries, or of its compiler (software_kernel_rows).
std::pair<Framework, bool> kernels_of(const Measurement& m) {
  return {m.software, m.execution == ExecutionMode::compiled};
}

/// What rows of networks tell that are fitted.
struct Seen {
  std::set<std::pair<std::size_t, std::size_t>> networks;  ///< board (Hierarchy::find), network_kind
  std::set<std::size_t> boards;
  std::set<std::pair<Framework, bool>> software;
  std::set<Framework> with_grouped;  ///< on GPUs

  void add(const Measurement& m, std::size_t board, std::size_t kind, bool on_gpu) {
    networks.insert({board, network_kind(kind)});
    boards.insert(board);
    software.insert(kernels_of(m));
    if (on_gpu && is_grouped(network_kind(kind))) with_grouped.insert(m.software);
  }
  void tell(LeftOutRow& row, std::size_t board, bool on_gpu) const {
    const Measurement& m = row.measurement;
    row.device_unseen = !boards.contains(board);
    row.software_unseen = !software.contains(kernels_of(m));
    row.networks_unseen = !row.device_unseen && !networks.contains({board, network_kind(row.kind)});
    row.convolutions_unseen =
        on_gpu && is_grouped(network_kind(row.kind)) && !with_grouped.contains(m.software);
  }
};

}  // namespace

std::vector<LeftOutRow> cross_validate(const std::vector<Measurement>& measurements, LeaveOut by) {
  Hierarchy hierarchy(fitted_devices());
  std::vector<HierarchyRow> rows;
  std::vector<const Measurement*> of_row;
  std::vector<std::string> group;
  std::vector<std::size_t> kinds;
  std::map<std::string, std::vector<std::size_t>> networks;  ///< of a group
  for (const Measurement& m : measurements) {
    const std::optional<std::size_t> device = hierarchy.find(m.device);
    const bool tests = (by == LeaveOut::source || by == LeaveOut::framework) && m.whole_network();
    if (!device || !(m.fitted() || tests)) continue;
    group.push_back(group_of(m, hierarchy.devices()[*device], by));
    if (m.whole_network()) networks[group.back()].push_back(rows.size());
    of_row.push_back(&m);
    rows.push_back(hierarchy.row_of(m, *device));
    kinds.push_back(residual_kind(rows.back().works, m.batch, m.precision));
  }
  Posterior fit(hierarchy, std::move(rows));
  const auto use_all_but = [&](const std::string* left_out) {
    std::vector<bool> counted(fit.rows().size());
    for (std::size_t r = 0; r < counted.size(); ++r)
      counted[r] = of_row[r]->fitted() && (!left_out || group[r] != *left_out);
    fit.use(std::move(counted));
  };
  use_all_but(nullptr);
  fit.minimise();
  const Eigen::VectorXd with_all = fit.x();
  std::vector<LeftOutRow> result;
  for (const auto& [name, members] : networks) {
    const std::size_t begin = result.size();
    for (const std::size_t r : members)
      result.push_back({*of_row[r], name, fit.rows()[r].seconds * std::exp(fit.residual(r)), 0});
    use_all_but(&name);
    fit.minimise_again();
    const Posterior::HostFactors hosts = fit.host_factors();
    Seen seen;
    for (std::size_t r = 0; r < of_row.size(); ++r)
      if (of_row[r]->fitted() && of_row[r]->whole_network() && group[r] != name)
        seen.add(*of_row[r], fit.rows()[r].device, kinds[r],
                 !hierarchy.devices()[fit.rows()[r].device].kind->in_process);
    for (std::size_t i = 0; i < members.size(); ++i) {
      LeftOutRow& row = result[begin + i];
      const Posterior::OnTypicalHost on_host = fit.on_typical_host(fit.rows()[members[i]], hosts);
      row.without_s = on_host.seconds;
      row.host_slope = on_host.slope;
      row.feed_slope = on_host.feed_slope;
      row.kind = kinds[members[i]];
      const HierarchyRow& fitted = fit.rows()[members[i]];
      const DeviceType& device = hierarchy.devices()[fitted.device];
      seen.tell(row, fitted.device, !device.kind->in_process);
      if (products_follow_framework(device)) {
        const std::map<Framework, double> factors = fit.factors_on(device.generation);
        row.generation_unseen = !factors.contains(row.measurement.software);
        if (row.generation_unseen) {
          row.generation_slope = on_host.generation_slope;
          for (const auto& [framework, factor] : factors) row.generation_factors.push_back(factor);
        }
      }
      row.of_device = fit.device_spread(fitted.device);
      row.of_kernels = unseen_kernels_spread(device, row.measurement.precision, fitted.software.costs);
    }
    fit.set_x(with_all);
  }
  return result;
}

}  // namespace convoy::calibration
