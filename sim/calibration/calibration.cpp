// SPDX-License-Identifier: MIT
#include "sim/calibration/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

#include "sim/base/data_path.h"
#include "sim/base/students_t.h"
#include "sim/calibration/fit_parameters.h"
#include "sim/calibration/measured_hosts.h"
#include "sim/costs/residuals.h"
#include "sim/costs/software_evidence.h"

namespace convoy::inline calibration {
namespace {

/// Kernels and layers are timed one by one: nobody waits for a host. On a CPU they are those of the framework
/// with all that it does for them.
Software software_of(const Measurement& m) {
  const Software whole(measured_options(m));
  if (m.whole_network()) return whole;
  Software alone(m.precision);
  alone.layout = layout_of_kernels(m.precision);
  alone.costs.plain_tensors = whole.costs.plain_tensors;
  return alone;
}

/// @param host_factor of the host that it was measured on (measured_hosts.h); nothing: not known
AccuracyRow accuracy_row(const Measurement& m, const DeviceType& device, const std::vector<Work>& works,
                         std::optional<double> host_factor) {
  AccuracyRow row;
  row.device = m.device;
  row.model = m.model.empty() ? m.kernel : m.layer.empty() ? m.model : m.model + " " + m.layer;
  row.batch = m.batch;
  row.precision = to_string(m.precision);
  row.published = m.images_per_s;
  const Observation observation{works, m.batch, software_of(m),   m.seconds(),
                                0,     false,   m.without_launch, beside_step(m)};
  const auto seconds_on = [&](const DeviceType& type) { return predicted_s(observation, type); };
  DeviceType on_host = device;
  on_host.issue_factor *= host_factor.value_or(1);
  row.host_known = host_factor.has_value();
  row.predicted = m.batch / seconds_on(on_host);
  row.on_typical_host = m.batch / seconds_on(device);
  row.error = row.predicted / row.published - 1;
  row.framework = m.framework;
  row.source = m.source;
  row.role = to_string(m.role);
  row.note = m.note;
  row.kind = m.kernel.substr(0, m.kernel.find(' '));
  row.step = m.step;
  row.software = fmt::format("{} {} {}", to_string(m.software), to_string(m.execution), to_string(m.layout));
  const double of_software =
      m.whole_network() && !device.kind->in_process ? software_spread(m.software, m.execution) : 0;
  const std::size_t kind = residual_kind(works, m.batch, m.precision);
  const bool seen =
      m.whole_network() ? networks_are_seen(device, network_kind(kind)) : device_is_seen(device);
  const double of_evidence = std::hypot(
      device_spread(device, seen),
      std::max(unseen_kernels_spread(device, m.precision, software_of(m).costs),
               m.whole_network() ? unseen_convolutions_spread(device, network_kind(kind), m.software) : 0));
  const double of_host = m.whole_network() && !host_factor ? unknown_host_spread(device, seconds_on) : 0;
  const double of_step = std::hypot(residual_spread(kind), machine_spread(device));
  const double spread = std::hypot(std::hypot(of_evidence, of_host), of_software, of_step);
  row.low = row.predicted * std::exp(-quantile_80 * spread);
  row.high = row.predicted * std::exp(quantile_80 * spread);
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
void require_plausible(const DeviceType& device, const SourcePos& profile) {
  for (const Efficiency& e : device.efficiency)
    for (std::size_t c = 0; c < kernel_class_count; ++c)
      for (const double share : {e.compute[c], e.bandwidth[c]})
        if (!(share >= Efficiency::min_share && share <= Efficiency::max_share))
          throw InputError(
              profile, fmt::format("{} would have to run {} at {:.3g} times {}: check images_per_s, batch "
                                   "and device of its rows",
                                   device.name, kernel_class_names[c], share,
                                   share == e.compute[c] ? "its peak" : "its bandwidth"));
}

// Standard deviation of log(time) that the fit allows for. Parts of a step are noisier and harder to compare
// (start-up, other algorithms) than whole networks.
constexpr double network_spread = 0.05, part_spread = 0.2;

void add_once(std::vector<Precision>& list, Precision precision) {
  if (std::find(list.begin(), list.end(), precision) == list.end()) list.push_back(precision);
}

/// A row that a device is fitted to.
struct Fitted {
  std::string network;  ///< that it is a step or a part of; "" for kernels
  bool whole = false;
  Observation observation;
};

/// Kernels and layers first: they tell how efficiency goes with size. Networks then move it to what a
/// framework reaches in a whole step.
/// @param believed its efficiencies are what is believed before, and not typical ones; nullptr: none
DeviceType fit_device(const DeviceType& device, const std::vector<Fitted>& rows, double launch_s,
                      const DeviceType* believed = nullptr) {
  std::vector<Observation> parts, networks;
  for (const Fitted& row : rows) (row.whole ? networks : parts).push_back(row.observation);
  Belief belief;
  belief.launch_s = launch_s;
  if (believed) {
    belief.device = *believed;
    for (const Fitted& row : rows) add_once(belief.precisions, row.observation.software.precision);
    return fit_efficiencies(device, networks, belief);
  }
  DeviceType fitted = fit_efficiencies(device, parts, belief);
  if (networks.empty()) return fitted;
  for (const Observation& o : parts) add_once(belief.precisions, o.software.precision);
  if (!parts.empty()) belief.launch_s = fitted.launch_overhead_s;
  belief.of_networks = parts.empty() && launch_s <= 0;
  belief.device = fitted;
  return fit_efficiencies(fitted, networks, belief);
}

/// |log| of how much the fitted rows, one of each, are predicted off together.
double missed_together(const DeviceType& fitted, const std::vector<Fitted>& rows) {
  double measured_s = 0, all_predicted_s = 0;
  for (const Fitted& row : rows) {
    measured_s += row.observation.seconds;
    all_predicted_s += predicted_s(row.observation, fitted);
  }
  return std::abs(std::log(all_predicted_s / measured_s));
}

/// What the fit to one's own rows leaves open, told by networks that it has not seen: each is left out in
/// turn, with its layers, and predicted by the fit to the others. The spread is the root mean square of
/// log(predicted / measured), less what steps of the kind are off by anyway, and wider for few networks, so
/// that 80 % of a t-distribution lie inside. With fewer than two networks it is that of devices that nobody
/// measured, and what the fit misses of its own rows.
/// @param fitted to all rows; gets the evidence @returns how many networks were left out
std::size_t add_evidence(const DeviceType& device, const std::vector<Fitted>& rows, double launch_s,
                         DeviceType& fitted, const DeviceType* believed = nullptr) {
  // Two measurements of one set-up differ by as much: no fit is surer of the next one.
  constexpr double repeated = 0.03;
  std::vector<std::string> networks;
  for (const Fitted& row : rows)
    if (row.whole && std::find(networks.begin(), networks.end(), row.network) == networks.end())
      networks.push_back(row.network);
  fitted.evidence_rows = static_cast<int>(rows.size());
  fitted.evidence_spread = std::hypot(left_out_device_spread(), missed_together(fitted, rows));
  fitted.evidence_left_out_error = 0;
  if (networks.size() < 2) return 0;
  double errors = 0, squares = 0, of_steps = 0, count = 0;
  for (const std::string& left_out : networks) {
    std::vector<Fitted> others;
    for (const Fitted& row : rows)
      if (row.network != left_out) others.push_back(row);
    const DeviceType without = fit_device(device, others, launch_s, believed);
    for (const Fitted& row : rows) {
      if (!row.whole || row.network != left_out) continue;
      const Observation& o = row.observation;
      const double log_error = std::log(predicted_s(o, without) / o.seconds);
      const double of_step = residual_spread(residual_kind(o.works, o.images, o.software.precision));
      errors += std::abs(std::expm1(-log_error));
      squares += log_error * log_error;
      of_steps += of_step * of_step;
      ++count;
    }
  }
  const double wider = students_t_quantile(static_cast<double>(networks.size()), 0.9) / quantile_80;
  fitted.evidence_left_out_error = errors / count;
  fitted.evidence_spread =
      std::sqrt(std::max(repeated * repeated, (wider * wider * squares - of_steps) / count));
  return networks.size();
}

}  // namespace

CalibrationReport calibrate(const std::vector<Measurement>& measurements, const DeviceType& before,
                            const SourcePos& pos, double launch_s) {
  // The shares become those of a fit, and predict as such ones do (tensor_rate(), kernels of CPUs) while they are fitted.
  DeviceType device = before;
  if (device.evidence_spread == 0) device.evidence_spread = left_out_device_spread();
  CalibrationReport report;
  std::vector<std::pair<const Measurement*, std::vector<Work>>> ours;
  std::vector<Fitted> fitted_to;
  for (const Measurement& m : measurements) {
    if (m.device != device.name) continue;
    require_precision(m, device);
    ours.emplace_back(&m, measured_work(m));
    std::vector<Work>& works = ours.back().second;
    find_in_cache(m, device, works);
    if (!does_something(works)) throw InputError(m.pos, "what was measured computes and moves nothing");
    if (!m.fitted()) continue;
    if (m.whole_network())
      fitted_to.push_back(
          {m.model,
           true,
           {works, m.batch, software_of(m), m.seconds(), network_spread, false, false, beside_step(m)}});
    else
      fitted_to.push_back(
          {m.model,
           false,
           {works, m.batch, software_of(m), m.seconds(), part_spread, true, m.without_launch, {}}});
  }
  if (fitted_to.empty())
    throw InputError(pos, fmt::format("holds no row with device {} and role fit", device.name));
  report.device = fit_device(device, fitted_to, launch_s);
  report.left_out_networks = add_evidence(device, fitted_to, launch_s, report.device);
  if (device.issue_factor > 0) {
    report.host_issue_factor = report.device.issue_factor / device.issue_factor;
    report.device.issue_factor = device.issue_factor;
  }
  const double fitted = static_cast<double>(fitted_to.size());
  require_plausible(report.device, pos);
  report.yaml = catalogue_yaml(report.device);
  for (const auto& [m, works] : ours) {
    report.rows.push_back(accuracy_row(*m, report.device, works, report.host_issue_factor));
    if (!m->fitted()) continue;
    report.mean_error += std::abs(report.rows.back().error) / fitted;
    report.worst_error = std::max(report.worst_error, std::abs(report.rows.back().error));
  }
  return report;
}

std::optional<Refit> refit_device(const DeviceType& device, const std::vector<OwnStep>& steps) {
  std::vector<Fitted> rows;
  Refit refit;
  for (const OwnStep& step : steps) {
    rows.push_back(
        {step.network,
         true,
         {step.works, step.images, step.software, step.seconds, network_spread, false, false, {}}});
    refit.before += std::abs(step.seconds / predicted_s(rows.back().observation, device) - 1);
  }
  if (rows.empty()) return std::nullopt;
  refit.before /= static_cast<double>(rows.size());
  refit.device = fit_device(device, rows, device.launch_overhead_s, &device);
  refit.networks = add_evidence(device, rows, device.launch_overhead_s, refit.device, &device);
  refit.after = refit.device.evidence_left_out_error;
  if (refit.networks < 2) return std::nullopt;
  return refit;
}

namespace {

template <class Wanted>
std::vector<AccuracyRow> accuracy(const std::string& profile, Wanted wanted) {
  const MeasuredHosts hosts = read_measured_hosts();
  std::map<std::string, DeviceType> devices;
  std::vector<AccuracyRow> rows;
  for (const Measurement& m : read_measurements(profile)) {
    if (!wanted(m)) continue;
    if (!devices.contains(m.device)) devices.emplace(m.device, load_device(m.device, m.pos));
    const DeviceType& device = devices.at(m.device);
    require_precision(m, device);
    const auto host = hosts.find({m.repository(), m.device});
    std::vector<Work> works = measured_work(m);
    find_in_cache(m, device, works);
    rows.push_back(
        accuracy_row(m, device, works, host == hosts.end() ? std::nullopt : std::optional(host->second)));
  }
  return rows;
}

}  // namespace

CalibrationReport calibrate(const std::vector<std::string>& profiles, const std::string& device) {
  std::vector<Measurement> measurements;
  for (const std::string& profile : profiles) {
    std::vector<Measurement> more = read_measurements(profile);
    std::move(more.begin(), more.end(), std::back_inserter(measurements));
  }
  const SourcePos pos{profiles.at(0), 0, 0};
  return calibrate(measurements, load_device(device, pos), pos);
}

std::vector<AccuracyRow> single_device_accuracy() {
  return accuracy(data_path("results/published") + "/single_device.csv",
                  [](const Measurement& m) { return m.whole_network(); });
}

std::vector<AccuracyRow> kernel_accuracy(const std::string& profile) {
  return accuracy(profile, [](const Measurement&) { return true; });
}

}  // namespace convoy::calibration
