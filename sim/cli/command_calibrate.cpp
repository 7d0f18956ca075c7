// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <ostream>

#include "sim/base/input_file.h"
#include "sim/base/median.h"
#include "sim/base/names.h"
#include "sim/calibration/calibration.h"
#include "sim/calibration/catalogue_fit.h"
#include "sim/calibration/cross_validation.h"
#include "sim/calibration/kineto_trace.h"
#include "sim/calibration/nccl_log.h"
#include "sim/cli/commands.h"
#include "sim/cli/tell.h"
#include "sim/costs/residuals.h"
#include "sim/planning/convergence.h"
#include "sim/run/output_folder.h"
#include "topologies/cluster.h"

namespace convoy::inline cli {
namespace {

/// JSON is told by its first character: profiles begin with the name of a column.
bool is_json(const std::string& file) {
  std::ifstream stream = open_input(file);
  char first = 0;
  stream >> first;
  return first == '{' || first == '[' || first == '\x1f';
}

struct KernelErrors {
  std::vector<double> each;
  double measured_s = 0, fitted_s = 0;  ///< together
};

/// Parameters move a device within what hardware can do: rows that no such device has are of another one.
void tell_misfit(const CalibrationReport& report) {
  constexpr double far = 1.5;
  double sum = 0, rows = 0;
  for (const AccuracyRow& row : report.rows)
    if (row.role == "fit") sum += std::abs(std::log(row.predicted / row.published)), ++rows;
  const double factor = std::exp(sum / rows);
  if (factor > far)
    tell(
        "warning: the fitted rows are off by a factor of {:.2g} (geometric mean): check their batch, and "
        "`peak` and "
        "`memory_bandwidth` of {}, which are those of what computes, of one core, say\n",
        factor, report.device.name);
}

void print_rows(const CalibrationReport& report) {
  std::map<std::string, KernelErrors> kernels;  // by role and kind
  for (const AccuracyRow& row : report.rows) {
    if (!row.kind.empty()) {
      KernelErrors& of_kind = kernels[fmt::format("{:<6} {}", row.role, row.kind)];
      of_kind.each.push_back(std::abs(row.error));
      of_kind.measured_s += row.batch / row.published;
      of_kind.fitted_s += row.batch / row.predicted;
      continue;
    }
    tell("{:<6} {:<24} batch {:<5} {:>9.1f} images/s measured, {:>9.1f} fitted, {:+.1f} %\n", row.role,
         row.model, row.batch, row.published, row.predicted, 100 * row.error);
  }
  for (const auto& [name, errors] : kernels)
    tell("{:<19} {:>5} kernels, median error {:.1f} %; one of each {:>9.3f} ms measured, {:>9.3f} fitted\n",
         name, errors.each.size(), 100 * median(errors.each), 1e3 * errors.measured_s, 1e3 * errors.fitted_s);
  tell("mean error of the fit {:.1f} %, worst {:.1f} %\n", 100 * report.mean_error, 100 * report.worst_error);
  tell_misfit(report);
}

void print_trace(const KinetoTrace& trace, const std::string& file) {
  tell("{}: {} distinct kernels, {:.0f} % of the {}'s time\n", file, trace.measurements.size(),
       100 * trace.matched_s / trace.kernel_s, trace.on_cpu ? "CPU" : "GPU");
  constexpr std::size_t shown = 5;
  for (std::size_t i = 0; i < std::min(shown, trace.others.size()); ++i)
    tell("  passed over: {} ({:.0f} %)\n", trace.others[i].first,
         100 * trace.others[i].second / trace.kernel_s);
}

Exit calibrate_link(const std::string& file) {
  const AllReduceLog log = read_all_reduce_log(file);
  const LinkFit link = fit_link(log, file);
  // In a ring over several hosts every host sends on its NIC what a rank sends on its link.
  const bool network = log.hosts > 1;
  const std::string place = network ? fmt::format("{} hosts", log.hosts) : "one host";
  write_stdout([&](std::ostream& out) {
    if (network)
      out << fmt::format("fabric: {{kind: switch, bandwidth: {:.4g}Gbps, latency: {:.3g}us}}\n",
                         8e-9 * link.bandwidth_Bps, 1e6 * link.latency_s);
    else
      out << fmt::format("interconnect: {{kind: nvswitch, bandwidth: {:.4g}GB/s, latency: {:.3g}us}}\n",
                         1e-9 * link.bandwidth_Bps, 1e6 * link.latency_s);
  });
  tell("all-reduce of {} ranks on {}, {} sizes: mean error of the fit {:.1f} %\n", log.ranks, place,
       log.rows.size(), 100 * link.mean_error);
  return Exit::done;
}

/// Whether the first line of a CSV file names the columns of a table of epochs by batch.
bool looks_like_convergence(const std::string& file) {
  std::ifstream stream = open_input(file);
  std::string line;
  while (std::getline(stream, line) && (line.empty() || line[0] == '#')) {
  }
  const std::string columns = "," + line.substr(0, line.find('\r')) + ",";
  return columns.find(",batch,") != std::string::npos && columns.find(",epochs,") != std::string::npos;
}

/// Epochs by global batch become a gradient noise scale.
Exit calibrate_noise_scale(const std::string& file) {
  const ConvergenceTable table = read_convergence(file);
  if (table.optimizers.size() > 1)
    throw InputError({file, 0, 0},
                     "rows of several optimizers: a noise scale is that of one, so give a file for each");
  const std::optional<NoiseScale> fit = fit_noise_scale(table.points);
  if (!fit)
    throw InputError({file, 0, 0},
                     "no noise scale fits: epochs have to grow with the batch, over at least two batches");
  write_stdout([&](std::ostream& out) {
    out << fmt::format("goal: {{noise_scale: {:.6g}, epochs: {:.6g}}}\n", fit->noise_scale_images,
                       fit->epochs);
  });
  double sum = 0;
  for (const ConvergencePoint& point : table.points) {
    const double error = fit->at(point.batch) / point.needed.epochs - 1;
    sum += std::abs(error);
    tell("batch {:<8g} {:>8.2f} epochs, {:>8.2f} fitted, {:+.1f} %\n", point.batch, point.needed.epochs,
         fit->at(point.batch), 100 * error);
  }
  tell("mean error of the fit {:.1f} %\n", 100 * sum / static_cast<double>(table.points.size()));
  return Exit::done;
}

void write_part(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text;
  if (!stream.flush()) throw InputError({file.string(), 0, 0}, "cannot be written");
}

std::vector<Measurement> read_all(const std::vector<std::string>& profiles) {
  std::vector<Measurement> measurements;
  for (const std::string& file : profiles) {
    std::vector<Measurement> more = read_measurements(file);
    std::move(more.begin(), more.end(), std::back_inserter(measurements));
  }
  return measurements;
}

/// "device software": what the fit without the row's group has not seen.
std::string unknowns_of(const LeftOutRow& row) {
  std::string text;
  const auto add = [&](bool unseen, const char* what) {
    if (unseen) text += (text.empty() ? "" : " ") + std::string(what);
  };
  add(row.device_unseen, "device");
  add(row.networks_unseen, "networks");
  add(row.convolutions_unseen, "convolutions");
  add(row.software_unseen, "software");
  add(row.generation_unseen, "generation");
  return text;
}

/// Rows on stdout, a line a group on stderr.
Exit calibrate_leaving_out(const CalibrateArguments& arguments) {
  const auto name = std::find(leave_out_names.begin(), leave_out_names.end(), arguments.leave_out);
  const std::vector<LeftOutRow> rows =
      cross_validate(read_all(arguments.profiles), static_cast<LeaveOut>(name - leave_out_names.begin()));
  if (rows.empty())
    throw InputError(
        {arguments.profiles.front(), 0, 0},
        "holds no row to leave out: one of a whole network, with role fit, on a GPU of NVIDIA's or a CPU");
  std::map<std::string, std::vector<double>> sizes;  // of the errors by group
  write_stdout([&](std::ostream& out) {
    out << "left_out,device,model,batch,precision,step,software,execution,layout,measured_images_per_s,"
           "fitted,left_out_fitted,role,kind,unknown,of_device,of_kernels,host_slope,feed_slope,"
           "generation_slope,generation_factors\n";
    for (const LeftOutRow& row : rows) {
      const Measurement& m = row.measurement;
      const double with = m.batch / row.with_s, without = m.batch / row.without_s;
      out << fmt::format(
          "{},{},{},{:g},{},{},{},{},{},{:.5g},{:.5g},{:.5g},{},{},{},{:.3g},{:.3g},{:.3g},{:.3g},{:.3g},{:."
          "3g}\n",
          row.group, m.device, m.model, m.batch, to_string(m.precision), to_string(m.step),
          to_string(m.software), to_string(m.execution), to_string(m.layout), m.images_per_s, with, without,
          to_string(m.role), residual_kind_name(row.kind), unknowns_of(row), row.of_device, row.of_kernels,
          row.host_slope, row.feed_slope, row.generation_slope, fmt::join(row.generation_factors, " "));
      sizes[row.group].push_back(std::abs(without / m.images_per_s - 1));
      sizes["all"].push_back(sizes[row.group].back());
    }
  });
  for (const auto& [group, errors] : sizes)
    tell("{:<36} {:>4} rows, median error {:5.1f} %\n", group, errors.size(), 100 * median(errors));
  return Exit::done;
}

/// Parts of files in topologies/catalog, as scripts/calibrate puts them there.
Exit calibrate_catalogue(const CalibrateArguments& arguments) {
  const CatalogueFit fit = fit_catalogue(read_all(arguments.profiles));
  const std::filesystem::path folder = arguments.catalogue;
  std::filesystem::create_directories(folder / "devices");
  std::filesystem::create_directories(folder / "software");
  for (const auto& [name, text] : fit.devices) write_part(folder / "devices" / name, text);
  for (const auto& [name, text] : fit.software) write_part(folder / "software" / name, text);
  write_part(folder / "software" / "residuals.yaml", fit.residuals);
  write_part(folder / "hosts.csv", fit.hosts);
  tell("{} rows, {} unknowns: sum of squares from {:.0f} to {:.0f}\n", fit.rows, fit.unknowns,
       fit.cost_before, fit.cost_after);
  return Exit::done;
}

/// A device of the catalogue, or what an experiment's cluster means by the name.
DeviceType device_to_fit(const CalibrateArguments& arguments, const SourcePos& pos) {
  if (arguments.experiment.empty()) return load_device(arguments.device, pos);
  const YamlNode file = load_yaml(arguments.experiment);
  const YamlNode* cluster = file.find("cluster");
  if (!cluster) throw InputError(file.pos, "has no `cluster` that could describe a device");
  std::vector<std::string> names;
  for (const ServerSpec& server : read_cluster(*cluster).servers)
    for (const auto& [type, count] : server.devices) {
      if (type.name == arguments.device) return type;
      if (std::find(names.begin(), names.end(), type.name) == names.end()) names.push_back(type.name);
    }
  throw InputError(cluster->pos, fmt::format("no server here has a device '{}'; there are: {}",
                                             arguments.device, list_of(names, names.size())));
}

}  // namespace

CalibrationReport calibrated_device(
    const CalibrateArguments& arguments,
    const std::function<void(const KinetoTrace& trace, const std::string& file)>& told) {
  const SourcePos pos{arguments.profiles.front(), 0, 0};
  const DeviceType device = device_to_fit(arguments, pos);
  std::vector<Measurement> measurements;
  double launch_s = 0;
  for (const std::string& file : arguments.profiles) {
    std::vector<Measurement> more;
    if (is_json(file)) {
      KinetoTrace trace = read_kineto_trace(file, arguments.device);
      if (trace.on_cpu && !device.kind->in_process)
        throw InputError(
            {file, 0, 0},
            fmt::format("holds no GPU kernel, and {} is a {}: profile with ProfilerActivity.CUDA, or "
                        "name a device of `kind: cpu`",
                        device.name, device.kind->text));
      if (!trace.on_cpu && device.kind->in_process)
        throw InputError({file, 0, 0}, fmt::format("holds kernels of a GPU, and {} is a {}", device.name,
                                                   device.kind->text));
      told(trace, file);
      launch_s = trace.launch_s;
      more = std::move(trace.measurements);
    } else {
      more = read_measurements(file);
    }
    std::move(more.begin(), more.end(), std::back_inserter(measurements));
  }
  return calibrate(measurements, device, pos, launch_s);
}

Exit calibrate_command(const CalibrateArguments& arguments) {
  if (!arguments.catalogue.empty()) return calibrate_catalogue(arguments);
  if (!arguments.leave_out.empty()) return calibrate_leaving_out(arguments);
  const std::string& first = arguments.profiles.front();
  if (arguments.device.empty()) {
    if (arguments.profiles.size() == 1 && looks_like_nccl_log(first)) return calibrate_link(first);
    if (arguments.profiles.size() == 1 && looks_like_convergence(first)) return calibrate_noise_scale(first);
    throw InputError({first, 0, 0},
                     "is no log of nccl-tests and no table of batch and epochs; say with --device what "
                     "device a profile or trace is of");
  }
  const CalibrationReport report = calibrated_device(arguments, print_trace);
  write_stdout([&](std::ostream& out) { out << report.yaml; });
  print_rows(report);
  const DeviceType& fitted = report.device;
  if (report.left_out_networks > 0)
    tell(
        "evidence: {} rows; {} networks, each left out of the fit in turn, are off by {:.1f} % on "
        "average: spread {:.3g}\n",
        fitted.evidence_rows, report.left_out_networks, 100 * fitted.evidence_left_out_error,
        fitted.evidence_spread);
  else
    tell(
        "evidence: {} rows; with fewer than two networks none can be left out of the fit: spread {:.3g}, "
        "of devices that nobody measured, and of what the fit misses of its own rows\n",
        fitted.evidence_rows, fitted.evidence_spread);
  constexpr double noticeable = 0.02;
  if (std::abs(report.host_issue_factor - 1) > noticeable)
    tell(
        "the host issues an operation in {:.2f} of the typical time: `host: {{issue_factor: {:.2f}}}` "
        "of its server\n",
        report.host_issue_factor, report.host_issue_factor);
  tell("these keys replace those of the same names in {}\n",
       arguments.experiment.empty()
           ? fmt::format("devices/{}.yaml of the catalogue", arguments.device)
           : fmt::format("devices.{} of {}", arguments.device, arguments.experiment));
  return Exit::done;
}

}  // namespace convoy::cli
