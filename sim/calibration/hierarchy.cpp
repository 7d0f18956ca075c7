// SPDX-License-Identifier: MIT
#include "sim/calibration/hierarchy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "sim/calibration/typical_issue.h"
#include "sim/costs/issue_queue.h"
#include "sim/costs/kernel_layout.h"

namespace convoy::inline calibration {
namespace {

// Deviations of a use, a generation, a chip and a device from what is above, over a parameter's own spread.
constexpr double of_use = 0.4, of_generation = 0.5, of_chip = 0.3, of_device = 0.12, of_tiles = 0.3;
constexpr double of_version = 0.3;        // of a framework
constexpr double typical_call_s = 10e-6;  // of a library that runs one kernel
constexpr double launch_spread_of_generation = 0.1;  // of typical_launch_s
constexpr double of_captured = 0.3;  // the same of kernels in CUDA graphs, by generation
constexpr std::array<Precision, 3> path_precisions{Precision::fp32, Precision::tf32, Precision::fp16};
constexpr std::array<std::string_view, 3> path_names{"cores", "tf32", "fp16"};

Efficiency& of_path(DeviceType& device, std::size_t path) {
  return device.efficiency[static_cast<std::size_t>(path_precisions[path])];
}

/// Chips for computing, with HBM: multiprocessors with much bandwidth and few units that share a scheduler.
bool is_compute_chip(const DeviceType& device) {
  static constexpr std::array<std::string_view, 4> chips{"gp100", "gv100", "ga100", "gh100"};
  return std::find(chips.begin(), chips.end(), chip_of(device)) != chips.end() ||
         device.name.starts_with("b200");
}

/// What the chip is made for.
std::string use_of(const DeviceType& device) {
  if (device.kind->in_process) return "programs.";
  return is_compute_chip(device) ? "compute." : "graphics.";
}

/// Boards of one design: a generation's compute chips, or its others.
std::string design_of(const DeviceType& device) {
  return fit_family(device) + (is_compute_chip(device) ? " compute" : "");
}

/// GeForce, Titan, Quadro and RTX boards run beyond the boost clock of their data sheet where power allows
/// it; Tesla boards and their successors do not.
bool exceeds_boost(const DeviceType& device) {
  static constexpr std::array<std::string_view, 4> names{"gtx", "rtx", "titan", "quadro"};
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return device.name.starts_with(name); });
}
constexpr double highest_over_boost = 1.2;

template <std::size_t path>
void put_on(double value, std::size_t parameter, DeviceType& device, Software&) {
  put_parameter(fit_parameters()[parameter], value, static_cast<ComputePath>(path), device,
                of_path(device, path));
}

/// What is left for computing of a board's power, a multiprocessor.
double watts_a_multiprocessor(const DeviceType& device) {
  return (device.peak_power_w - device.idle_power_w) / device.sms;
}

/// The clock that a board runs at under load is no fact of its data sheet: where a link has put it on the
/// peaks, it goes to the shares of the stated ones that kernels reach. Narrow groups are a share of
/// convolution_other, which has it already.
void put_clock_on_shares(const DeviceType& stated, DeviceType& device) {
  const auto& [precision, peak] = *device.peak_flops.begin();
  const double clock = peak / stated.peak_flops.at(precision);
  device.peak_flops = stated.peak_flops;
  const auto put = [clock](double& share) { share = std::min(share * clock, Efficiency::max_share); };
  for (Efficiency& e : device.efficiency) {
    for (std::size_t c = 0; c <= static_cast<std::size_t>(KernelClass::matmul); ++c)
      if (static_cast<KernelClass>(c) != KernelClass::convolution_grouped || e.half_group == 0)
        put(e.compute[c]);
    put(e.wide_groups_nhwc);
  }
}

}  // namespace

std::vector<DeviceType> fitted_devices() {
  static constexpr std::array generations{"kepler", "maxwell", "pascal", "volta",    "turing",
                                          "ampere", "ada",     "hopper", "blackwell"};
  std::vector<DeviceType> devices;
  for (const std::string& name : device_names()) {
    DeviceType device = load_device(name, {});
    device.sources.clear();
    const bool is_nvidia =
        std::find(generations.begin(), generations.end(), device.generation) != generations.end();
    if (device.kind->in_process || is_nvidia) devices.push_back(std::move(device));
  }
  return devices;
}

Hierarchy::Hierarchy(std::vector<DeviceType> devices) : devices_(std::move(devices)) {
  std::map<std::string, double> boards;
  for (const DeviceType& device : devices_) {
    if (device.kind->in_process || device.clock_hz <= 0) continue;
    Design& design = designs_[design_of(device)];
    ++boards[design_of(device)];
    design.log_clock_hz += std::log(device.clock_hz);
    design.log_watts += std::log(watts_a_multiprocessor(device));
  }
  for (auto& [name, design] : designs_) {
    design.log_clock_hz /= boards[name];
    design.log_watts /= boards[name];
  }
}

std::optional<std::size_t> Hierarchy::find(const std::string& device) const {
  const auto found = std::ranges::find(devices_, device, &DeviceType::name);
  if (found == devices_.end()) return std::nullopt;
  return board_of(static_cast<std::size_t>(found - devices_.begin()));
}

std::size_t Hierarchy::board_of(std::size_t device) const {
  const auto key = [](const DeviceType& d) {
    return std::tie(d.generation, d.peak_flops, d.memory_bandwidth_Bps, d.sms, d.clock_hz, d.l2_bytes,
                    d.idle_power_w, d.peak_power_w);
  };
  const auto same = [&](const DeviceType& other) { return key(other) == key(devices_[device]); };
  if (devices_[device].kind->in_process) return device;  // of which there are no such facts
  return static_cast<std::size_t>(std::ranges::find_if(devices_, same) - devices_.begin());
}

Hierarchy::Term Hierarchy::unknown(const std::string& name, double prior, double spread, double coefficient) {
  const auto [it, is_new] = index_.emplace(name, size());
  if (is_new) {
    prior_.push_back(prior);
    spread_.push_back(spread);
  }
  return {it->second, coefficient};
}

/// The layout that a row's kernels ran in.
static Layout layout_of(const Measurement& m) {
  return m.whole_network() ? kernel_layout(measured_options(m)) : layout_of_kernels(m.precision);
}

HierarchyRow Hierarchy::row_of(const Measurement& m, std::size_t device) const {
  HierarchyRow row;
  row.device = device;
  row.images = m.batch;
  row.seconds = m.seconds();
  row.is_kernel = !m.whole_network();
  row.spread = row.is_kernel ? 0.5 : 0.08;
  row.beside = beside_step(m);
  row.framework = m.software;
  if (!row.is_kernel) row.repository = m.repository();
  row.software.precision = m.precision;
  row.software.execution = m.execution;
  row.software.layout = layout_of(m);
  std::vector<Work> works = measured_work(m);
  find_in_cache(m, devices_[device], works);
  for (Work work : works) {
    work.layer = Work::no_layer;
    const auto known = std::find(row.works.begin(), row.works.end(), work);
    row.order.push_back(static_cast<std::size_t>(known - row.works.begin()));
    if (known == row.works.end()) row.works.push_back(work);
  }
  return row;
}

void Hierarchy::add_device_links(const HierarchyRow& row, std::vector<Link>& links) {
  const DeviceType& device = devices_[row.device];
  const std::string family = fit_family(device);
  const std::string chip = chip_of(device);
  const auto main = static_cast<std::size_t>(compute_path(device, row.software.precision));
  static constexpr std::array put{&put_on<0>, &put_on<1>, &put_on<2>};
  for (std::size_t path = 0; path < path_names.size(); ++path) {
    if (path != 0 && path != main) continue;
    for (std::size_t p = 0; p < fit_parameters().size(); ++p) {
      const FitParameter& parameter = fit_parameters()[p];
      const double typical = typical_value(parameter, static_cast<ComputePath>(path), device);
      if (typical <= 0) continue;
      const std::string name = fmt::format("{}.{}", path_names[path], parameter.key);
      Link& link = links.emplace_back();
      link.put = put[path];
      link.parameter = p;
      // Tiles of a product are spread over multiprocessors alike in all generations.
      const double spread = parameter.of_multiprocessor ? of_tiles * parameter.spread : parameter.spread;
      // What is typical of CPUs alone is theirs alone.
      const double of_gpus = path == 0 ? parameter.cores : parameter.tensor;
      link.terms = {
          unknown((typical == of_gpus ? "all." : "cpus.") + name, std::log(typical), parameter.spread),
          unknown(use_of(device) + name, 0, of_use * spread),
          unknown(family + "." + name, 0, of_generation * spread)};
      if (chip != device.name) link.terms.push_back(unknown(chip + " chip." + name, 0, of_chip * spread));
      if (parameter.of_device)
        link.terms.push_back(unknown(device.name + " device." + name, 0, of_device * spread));
    }
  }
  add_launch_link(row, family, links);
  if (row.is_kernel) return;
  add_clock_link(device, links);
  if (device.kind->in_process) return;
  Link& host = links.emplace_back();
  host.is_host = true;
  host.put = [](double v, std::size_t, DeviceType& d, Software&) { d.issue_factor = v; };
  if (row.repository.empty()) return;  // typical hosts
  host.terms = {unknown("hosts of " + row.repository, 0, 0.25),
                unknown(fmt::format("host of {} with {}", row.repository, device.name), 0, 0.25)};
}

/// Benchmarks of kernels count what their library does around a kernel too.
void Hierarchy::add_launch_link(const HierarchyRow& row, const std::string& family,
                                std::vector<Link>& links) {
  Link& launch = links.emplace_back();
  launch.put = [](double v, std::size_t, DeviceType& d, Software&) { d.launch_overhead_s = v; };
  if (row.is_kernel && row.software.execution == ExecutionMode::graph)
    launch.terms = {unknown("captured.launch", std::log(typical_launch_s), typical_launch_spread),
                    unknown(family + ".captured.launch", 0, of_captured)};
  else if (row.is_kernel)
    launch.terms = {unknown("kernels.launch", std::log(typical_call_s), 0.5),
                    unknown(family + ".kernels.launch", 0, 0.5)};
  else
    launch.terms = {unknown("all.launch", std::log(typical_launch_s), typical_launch_spread),
                    unknown(family + ".launch", 0, launch_spread_of_generation)};
}

/// Under load a board runs at the clock that its power allows, whatever the boost clock of its data sheet:
/// within a design with a power of the watts a multiprocessor that are left when the board's idle power is
/// taken off. The exponent is 1/3 where voltage follows the clock and 1 where it is at its lowest.
void Hierarchy::add_clock_link(const DeviceType& device, std::vector<Link>& links) {
  Link& clock = links.emplace_back();
  clock.parameter = exceeds_boost(device) ? 1 : 0;
  clock.put = [](double v, std::size_t beyond, DeviceType& d, Software&) {
    for (auto& [precision, peak] : d.peak_flops) peak *= std::min(v, beyond != 0 ? highest_over_boost : 1.0);
  };
  const auto design = designs_.find(design_of(device));
  if (design == designs_.end() || device.clock_hz <= 0) {
    clock.terms = {unknown(device.name + " device.clock", 0, 0.1)};
    return;
  }
  clock.terms = {
      unknown(design->first + ".clock", 0, 0.1),
      unknown("all.clock_by_power", 0.5, 0.1,
              std::log(watts_a_multiprocessor(device)) - design->second.log_watts),
      unknown(device.name + " device.clock", design->second.log_clock_hz - std::log(device.clock_hz), 0.07)};
}

void Hierarchy::add_software_links(Framework framework, ExecutionMode execution, Layout layout,
                                   std::vector<Link>& links) {
  struct Cost {
    std::string_view name;
    double typical, spread;
    bool of_layout;
    void (*put)(double, std::size_t, DeviceType&, Software&);
  };
  const TypicalIssue issue = typical_issue(framework, execution);
  const std::array<Cost, 7> costs{
      Cost{"issue_forward", issue.forward_s, 0.4, false,
           [](double v, std::size_t, DeviceType&, Software& s) { s.costs.issue_forward_s = v; }},
      Cost{"issue_backward", issue.backward_s, 0.4, false,
           [](double v, std::size_t, DeviceType&, Software& s) { s.costs.issue_backward_s = v; }},
      Cost{"issue_update", issue.update_s, 0.4, false,
           [](double v, std::size_t, DeviceType&, Software& s) { s.costs.issue_update_s = v; }},
      Cost{"convolution", 1, 0.12, true,
           [](double v, std::size_t, DeviceType&, Software& s) { s.costs.convolution = v; }},
      Cost{"depthwise", 1, 0.5, true,
           [](double v, std::size_t, DeviceType&, Software& s) { s.costs.depthwise = v; }},
      Cost{"normalization", 1, 0.3, true,
           [](double v, std::size_t, DeviceType&, Software& s) { s.costs.normalization = v; }},
      Cost{"elementwise", 1, 0.2, true,
           [](double v, std::size_t, DeviceType&, Software& s) { s.costs.elementwise = v; }}};
  // Versions of a framework share most. Graphs launch eager execution's kernels, compiled ones their own.
  std::string family(to_string(framework));
  while (family.back() >= '0' && family.back() <= '9') family.pop_back();
  const std::string_view kernels = execution == ExecutionMode::compiled ? "compiled" : "library";
  for (const Cost& cost : costs) {
    const std::string what = cost.of_layout ? fmt::format("{} {}.{}", kernels, to_string(layout), cost.name)
                                            : fmt::format("{}.{}", to_string(execution), cost.name);
    Link& link = links.emplace_back();
    link.put = cost.put;
    link.terms = {unknown(family + " family " + what, std::log(cost.typical), cost.spread),
                  unknown(fmt::format("{} {}", to_string(framework), what), 0, of_version * cost.spread)};
    if (cost.name.starts_with("issue")) issue_times_.insert(link.terms.front().unknown);
  }
  if (framework == Framework::mxnet1) {
    Link& wait = links.emplace_back();
    wait.put = [](double v, std::size_t, DeviceType&, Software& s) { s.costs.wait_update_s = v; };
    wait.terms = {unknown("mxnet1.wait_update", std::log(typical_update_wait_s), 0.4)};
    // The releases of cuDNN that it was built with were the first with kernels for tensor cores.
    Link& half = links.emplace_back();
    half.put = [](double v, std::size_t, DeviceType&, Software& s) { s.costs.half = v; };
    half.terms = {unknown("mxnet1.half", 0, 0.4)};
  }
  // Which of its kernels cuDNN has for an old generation is up to its version, and so to the framework's.
  Link& kepler = links.emplace_back();
  kepler.is_generation = true;
  kepler.put = [](double v, std::size_t, DeviceType&, Software& s) { s.costs.kepler = v; };
  kepler.terms = {unknown(std::string(to_string(framework)) + ".kepler", 0, 0.2)};
  Link& feed = links.emplace_back();
  feed.is_feed = true;
  feed.put = [](double v, std::size_t, DeviceType&, Software& s) { s.costs.feed_Bps = v; };
  feed.terms = {unknown("all.feed", std::log(typical_feed_Bps), 0.5),
                unknown(family + " family.feed", 0, 0.25)};
  if (const double step_s = typical_issue_step_s(framework); step_s > 0) {
    Link& step = links.emplace_back();
    step.put = [](double v, std::size_t, DeviceType&, Software& s) { s.costs.issue_step_s = v; };
    step.terms = {unknown(std::string(to_string(framework)) + ".issue_step", std::log(step_s), 0.7)};
  }
  add_one_thread_link(framework, links);
  const bool compiled = execution == ExecutionMode::compiled;
  if (!compiled && !normalization_is_fused(framework, execution, layout)) return;
  Link& fused = links.emplace_back();
  fused.put = [](double v, std::size_t, DeviceType&, Software& s) { s.costs.fused = v; };
  fused.terms = {compiled ? unknown("compiled.fused", std::log(0.4), 0.5)
                          : unknown("normalization.fused", std::log(typical_left_of_fused), 0.3)};
}

void Hierarchy::add_one_thread_link(Framework framework, std::vector<Link>& links) {
  const double typical = typical_one_thread(framework);
  if (typical <= 0) return;
  Link& thread = links.emplace_back();
  thread.put = [](double v, std::size_t, DeviceType&, Software& s) { s.costs.one_thread = v; };
  thread.terms = {unknown("one_thread", std::log(typical), 0.4)};
}

std::vector<Hierarchy::Link> Hierarchy::links(const HierarchyRow& row) {
  std::vector<Link> links;
  add_device_links(row, links);
  if (row.is_kernel) return links;
  if (devices_[row.device].kind->in_process)
    add_one_thread_link(row.framework, links);
  else
    add_software_links(row.framework, row.software.execution, row.software.layout, links);
  return links;
}

void Hierarchy::set_values(std::vector<Link>& links, const Eigen::VectorXd& x) {
  for (Link& link : links) {
    double sum = 0;
    for (const Term& term : link.terms) sum += term.coefficient * x[term.unknown];
    link.value = std::exp(sum);
  }
}

double Hierarchy::predict(const HierarchyRow& row, const std::vector<Link>& links) const {
  DeviceType device = devices_[row.device];
  device.issue_factor = 0;
  device.efficiency.fill(Efficiency());
  Software software = row.software;
  for (const Link& link : links) link.put(link.value, link.parameter, device, software);
  put_clock_on_shares(devices_[row.device], device);
  if (row.is_kernel && !device.kind->in_process)
    device.issue_factor = 1;  // so that both units are tried; issue times are 0
  device.efficiency[static_cast<std::size_t>(Precision::bf16)] =
      device.efficiency[static_cast<std::size_t>(Precision::fp16)];
  if (!device.has_tensor_cores()) device.efficiency.fill(device.efficiency.front());
  static thread_local std::vector<std::pair<double, double>> times;
  times.clear();
  for (const Work& work : row.works)
    times.emplace_back(issue_time_s(work, row.images, software, device),
                       operation_time_s(work, row.images, software, device));
  IssueQueue queue(begin_time_s(software, device));
  for (const std::size_t i : row.order) queue.run(times[i].first, times[i].second);
  return queue.end_s() + beside_step_s(row.beside, software, device);
}

DeviceType Hierarchy::device_at(std::size_t device, const Eigen::VectorXd& x) {
  DeviceType result = devices_[device];
  result.efficiency.fill(Efficiency());
  for (const Precision precision : path_precisions) {
    if (!result.runs(precision) || (precision != Precision::fp32 && !result.has_tensor_cores())) continue;
    HierarchyRow row;
    row.device = device;
    row.software.precision = precision;
    Software unused;
    std::vector<Link> all;
    add_device_links(row, all);
    for (Link& link : all)
      for (const Term& term : link.terms)
        if (term.unknown >= x.size()) throw std::logic_error("an unknown that was not fitted");
    set_values(all, x);
    result.peak_flops = devices_[device].peak_flops;  // the links of each precision have the clock
    for (const Link& link : all) link.put(link.value, link.parameter, result, unused);
  }
  put_clock_on_shares(devices_[device], result);
  if (!result.has_tensor_cores()) result.efficiency.fill(result.efficiency.front());
  result.efficiency[static_cast<std::size_t>(Precision::bf16)] =
      result.efficiency[static_cast<std::size_t>(Precision::fp16)];
  return result;
}

SoftwareCosts Hierarchy::software_at(Framework framework, ExecutionMode execution, Layout layout,
                                     const Eigen::VectorXd& x) {
  std::vector<Link> all;
  add_software_links(framework, execution, layout, all);
  set_values(all, x);
  Software software;
  DeviceType unused;
  for (const Link& link : all) link.put(link.value, link.parameter, unused, software);
  software.costs.fused = std::min(software.costs.fused, 1.0);
  return software.costs;
}

}  // namespace convoy::calibration
