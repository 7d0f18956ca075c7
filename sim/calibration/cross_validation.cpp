// SPDX-License-Identifier: MIT
#include "sim/calibration/cross_validation.h"

#include <cmath>
#include <map>

#include "sim/calibration/posterior.h"

namespace convoy::inline calibration {
namespace {

std::string group_of(const Measurement& m, const DeviceType& device, LeaveOut by) {
  switch (by) {
    case LeaveOut::device:
      return m.device;
    case LeaveOut::generation:
      return device.cpu ? "cpu" : device.generation;
    case LeaveOut::source:
      return m.whole_network() ? m.repository() : "";
    case LeaveOut::family:
      return m.whole_network() ? network_family(m.model) : "";
  }
  return "";
}

}  // namespace

std::vector<LeftOutRow> cross_validate(const std::vector<Measurement>& measurements, LeaveOut by) {
  Hierarchy hierarchy(fitted_devices());
  std::vector<HierarchyRow> rows;
  std::vector<const Measurement*> of_row;
  std::vector<std::string> group;
  std::map<std::string, std::vector<std::size_t>> networks;  ///< of a group
  for (const Measurement& m : measurements) {
    const std::optional<std::size_t> device = hierarchy.find(m.device);
    if (!m.fit || !device) continue;
    group.push_back(group_of(m, hierarchy.devices()[*device], by));
    if (m.whole_network()) networks[group.back()].push_back(rows.size());
    of_row.push_back(&m);
    rows.push_back(hierarchy.row_of(m, *device));
  }
  Posterior fit(hierarchy, std::move(rows));
  fit.minimise();
  const Eigen::VectorXd with_all = fit.x();
  std::vector<LeftOutRow> result;
  for (const auto& [name, members] : networks) {
    const std::size_t begin = result.size();
    for (const std::size_t r : members)
      result.push_back({*of_row[r], name, fit.rows()[r].seconds * std::exp(fit.residual(r)), 0});
    std::vector<bool> counted(fit.rows().size());
    for (std::size_t r = 0; r < counted.size(); ++r) counted[r] = group[r] != name;
    fit.use(std::move(counted));
    fit.minimise_again();
    for (std::size_t i = 0; i < members.size(); ++i)
      result[begin + i].without_s = fit.rows()[members[i]].seconds * std::exp(fit.residual(members[i]));
    fit.set_x(with_all);
  }
  return result;
}

}  // namespace convoy::calibration
