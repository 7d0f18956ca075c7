// SPDX-License-Identifier: MIT
#include "topologies/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/data_path.h"

namespace convoy {
namespace {

AccuracyRow accuracy_row(const Measurement& m, const DeviceType& device, const std::vector<Work>& works) {
  AccuracyRow row;
  row.device = m.device;
  row.model = m.model.empty() ? m.kernel : m.layer.empty() ? m.model : m.model + " " + m.layer;
  row.batch = m.batch;
  row.precision = to_string(m.precision);
  row.published = m.images_per_s;
  double seconds = 0;
  for (const Work& work : works) seconds += operation_time_s(work, m.batch, m.precision, device);
  row.predicted = m.batch / seconds;
  row.error = row.predicted / row.published - 1;
  row.framework = m.framework;
  row.source = m.source;
  row.role = m.fit ? "fit" : "test";
  row.note = m.note;
  return row;
}

void require_precision(const Measurement& m, const DeviceType& device) {
  if (!device.runs(m.precision))
    throw InputError(m.pos, fmt::format("{} has no peak for {}", device.name, to_string(m.precision)));
}

bool does_something(const std::vector<Work>& works) {
  return std::any_of(works.begin(), works.end(), [](const Work& w) {
    return w.flops_per_image > 0 || w.flops_fixed > 0 || w.bytes_per_image > 0 || w.bytes_fixed > 0;
  });
}

// A share that no kernel can reach tells of a wrong unit, batch or device, not of an efficiency.
void require_plausible(const DeviceType& device, const std::string& profile_csv) {
  for (const Efficiency& e : device.efficiency)
    for (std::size_t c = 0; c < kernel_class_count; ++c)
      for (const double share : {e.compute[c], e.bandwidth[c]})
        if (!(share >= Efficiency::min_share && share <= Efficiency::max_share))
          throw InputError(
              {profile_csv, 0, 0},
              fmt::format("{} would have to run {} at {:.3g} times {}: check images_per_s, batch "
                          "and device of its rows",
                          device.name, kernel_class_names[c], share,
                          share == e.compute[c] ? "its peak" : "its bandwidth"));
}

}  // namespace

CalibrationReport calibrate(const std::string& profile_csv, const std::string& device_name) {
  const std::vector<Measurement> measurements = read_measurements(profile_csv);
  CalibrationReport report;
  report.device = load_device(device_name, {profile_csv, 0, 0});
  std::vector<std::pair<const Measurement*, std::vector<Work>>> ours;
  std::vector<Observation> observations;
  for (const Measurement& m : measurements) {
    if (m.device != device_name) continue;
    require_precision(m, report.device);
    ours.emplace_back(&m, measured_work(m));
    if (!does_something(ours.back().second))
      throw InputError(m.pos, "what was measured computes and moves nothing");
    // Parts of a step are noisier and harder to compare (start-up, other algorithms) than whole networks.
    if (m.fit)
      observations.push_back(
          {ours.back().second, m.batch, m.precision, m.seconds(), m.whole_network() ? 0.05 : 0.2});
  }
  if (observations.empty())
    throw InputError({profile_csv, 0, 0},
                     fmt::format("holds no row with device {} and role fit", device_name));
  report.device = fit_efficiencies(report.device, observations);
  require_plausible(report.device, profile_csv);
  report.yaml = efficiency_yaml(report.device);
  for (const auto& [m, works] : ours) {
    report.rows.push_back(accuracy_row(*m, report.device, works));
    if (!m->fit) continue;
    report.mean_error += std::abs(report.rows.back().error) / static_cast<double>(observations.size());
    report.worst_error = std::max(report.worst_error, std::abs(report.rows.back().error));
  }
  return report;
}

std::vector<AccuracyRow> single_device_accuracy() {
  std::map<std::string, DeviceType> devices;
  std::vector<AccuracyRow> rows;
  for (const Measurement& m : read_measurements(data_path("results/published") + "/single_device.csv")) {
    const bool training = m.step == MeasuredStep::train || m.step == MeasuredStep::forward_backward;
    if (!m.whole_network() || !training) continue;
    if (!devices.contains(m.device)) devices.emplace(m.device, load_device(m.device, m.pos));
    const DeviceType& device = devices.at(m.device);
    require_precision(m, device);
    rows.push_back(accuracy_row(m, device, measured_work(m)));
  }
  return rows;
}

}  // namespace convoy
