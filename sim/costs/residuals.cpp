// SPDX-License-Identifier: MIT
#include "sim/costs/residuals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "sim/costs/software_evidence.h"
#include "topologies/typical_efficiency.h"

namespace convoy::inline costs {
namespace {

constexpr std::array<std::string_view, residual_kind_count> names{
    "plain_fp32_short",   "plain_fp32_long",   "plain_tf32_short",   "plain_tf32_long",
    "plain_fp16_short",   "plain_fp16_long",   "grouped_fp32_short", "grouped_fp32_long",
    "grouped_tf32_short", "grouped_tf32_long", "grouped_fp16_short", "grouped_fp16_long"};

bool has_groups(const Work& work) {
  return work.kind == KernelKind::depthwise_convolution ||
         (work.kind == KernelKind::convolution && work.groups > 2);
}

constexpr std::array<std::string_view, comm_kind_count + 1> comm_names{"tcp", "rdma", "staged", "links",
                                                                       "devices"};

/// Reads numbers by name from a file of topologies/catalog/software.
template <std::size_t count>
std::array<double, count> read_spreads(const char* name, const std::array<std::string_view, count>& keys) {
  const YamlNode file = load_yaml(data_path("topologies/catalog/software") + name);
  YamlMap map(file, "");
  std::array<double, count> spreads{};
  for (std::size_t k = 0; k < count; ++k) spreads[k] = map.number(std::string(keys[k]), 0, 10);
  map.finish();
  return spreads;
}

const std::array<double, comm_kind_count + 1>& comm_spreads() {
  static const std::array<double, comm_kind_count + 1> spreads =
      read_spreads("/communication.yaml", comm_names);
  return spreads;
}

/// Numbers of published figures that something was fitted to, by kind of network.
using FittedNetworks = std::array<double, network_kind_count>;
constexpr std::string_view kernels_alone = "kernels";  ///< of devices of which no network was measured

struct FittedFigures {
  std::map<std::string, FittedNetworks> devices;  ///< their efficiencies
  /// By device of the catalogue; the factors of a framework's kernels were fitted to those of its GPUs.
  std::map<std::string, std::map<std::string, FittedNetworks>> frameworks;
};

FittedFigures read_fitted_figures() {
  const std::vector<std::string> columns{"device", "framework", "networks", "figures"};
  const CsvTable table(data_path("topologies/catalog/software") + "/networks.csv", columns, columns);
  FittedFigures fitted;
  for (const CsvRow& row : table.rows()) {
    const CsvCell& kind = *table.find(row, "networks");
    FittedNetworks& of_device = fitted.devices[table.text(row, "device")];
    if (kind.text == kernels_alone) continue;
    std::size_t k = 0;
    while (k < network_kind_count && network_kind_name(k) != kind.text) ++k;
    if (k == network_kind_count)
      throw InputError(kind.pos, fmt::format("networks: unknown kind '{}'", kind.text));
    const double figures = table.number(row, "figures", true);
    of_device[k] += figures;
    fitted.frameworks[table.text(row, "framework")][table.text(row, "device")][k] += figures;
  }
  return fitted;
}

const FittedFigures& fitted_figures() {
  static const FittedFigures figures = read_fitted_figures();
  return figures;
}

/// A device of the catalogue, read when it is asked for: most runs ask for one or two of them.
const DeviceType& catalogue_device(const std::string& name) {
  static std::map<std::string, DeviceType> devices;
  if (!devices.contains(name)) devices.emplace(name, load_device(name, {}));
  return devices.at(name);
}

bool is_of_generation(const std::string& catalogued, const DeviceType& device) {
  return catalogue_device(catalogued).generation == device.generation;
}

/// Whether a network with grouped or depthwise convolutions was fitted with this framework on a GPU.
bool has_grouped_networks(Framework framework) {
  const auto fitted = fitted_figures().frameworks.find(std::string(to_string(framework)));
  if (fitted == fitted_figures().frameworks.end()) return false;
  return std::ranges::any_of(fitted->second, [](const auto& device) {
    if (catalogue_device(device.first).kind->in_process) return false;
    for (std::size_t k = 0; k < network_kind_count; ++k)
      if (is_grouped(k) && device.second[k] > 0) return true;
    return false;
  });
}

/// Of the device of the catalogue that has this device's efficiencies; nullptr: none has, they are its
/// owner's.
const FittedNetworks* fitted_networks(const DeviceType& device) {
  const std::map<std::string, FittedNetworks>& all = fitted_figures().devices;
  const auto same = [&](const std::string& name) {
    return catalogue_device(name).efficiency == device.efficiency;
  };
  const auto own = all.find(device.name);
  if (own != all.end() && same(own->first)) return &own->second;
  for (const auto& [name, fitted] : all)
    if (same(name)) return &fitted;
  return nullptr;
}

/// Standard deviation of log(step time) that one of log(factor) gives: half of what lies between the steps at the
/// ends of the factor's 80 % interval.
double spread_between(const std::function<double(double factor)>& step_s, double of_factor) {
  const double end = std::exp(quantile_80 * of_factor), quicker_s = step_s(1 / end);
  return quicker_s > 0 ? std::log(step_s(end) / quicker_s) / (2 * quantile_80) : 0;
}

/// By its owner: the fit told how far networks are off that it had not seen.
bool is_calibrated(const DeviceType& device) { return device.evidence_left_out_error > 0; }

const std::array<double, residual_kind_count>& residual_spreads() {
  static const std::array<double, residual_kind_count> spreads = read_spreads("/residuals.yaml", names);
  return spreads;
}

}  // namespace

std::string_view residual_kind_name(std::size_t kind) { return names.at(kind); }

double residual_spread(std::size_t kind) { return residual_spreads().at(kind); }

double machine_spread(const DeviceType& device) {
  return is_calibrated(device) ? 0 : unknown_spread(Unknown::machine);
}

std::string_view network_kind_name(std::size_t network_kind) {
  const std::string_view name = names.at(2 * network_kind);
  return name.substr(0, name.rfind('_'));
}

double unknown_spread(Unknown unknown) {
  static const std::array<double, unknown_names.size()> spreads =
      read_spreads("/unknowns.yaml", unknown_names);
  return spreads[static_cast<std::size_t>(unknown)];
}

bool device_is_seen(const DeviceType& device) {
  for (std::size_t kind = 0; kind < network_kind_count; ++kind)
    if (networks_are_seen(device, kind)) return true;
  return false;
}

bool networks_are_seen(const DeviceType& device, std::size_t network_kind) {
  if (device.evidence_rows == 0) return false;
  const FittedNetworks* fitted = fitted_networks(device);
  return !fitted || fitted->at(network_kind) > 0;
}

std::string unseen_device_text(const DeviceType& device) {
  if (device.evidence_spread == 0 || device_is_seen(device)) return {};
  if (device.evidence_rows > 0)
    return fmt::format("nobody measured a network on {}: its efficiencies are those of {} times of kernels",
                       device.name, device.evidence_rows);
  if (states_no_efficiency(device))
    return fmt::format("{} states no `efficiency`: it has {}", device.name,
                       find_source(device.sources, "efficiency")->text);
  if (device.generation.empty())
    return fmt::format("nobody measured {}: its efficiencies are those of others like it", device.name);
  const bool others_are_fitted = std::ranges::any_of(
      fitted_figures().devices, [&](const auto& of) { return is_of_generation(of.first, device); });
  return fmt::format(
      "nobody measured {}{} ({}){}", device.name,
      others_are_fitted ? ": its efficiencies are those of its generation" : " or another of its generation",
      device.generation, others_are_fitted ? "" : ": its efficiencies are assumed");
}

double unseen_convolutions_spread(const DeviceType& device, std::size_t network_kind, Framework framework) {
  if (device.evidence_spread == 0 || device.kind->in_process || is_calibrated(device) ||
      !is_grouped(network_kind) || has_grouped_networks(framework))
    return 0;
  return unknown_spread(Unknown::convolutions);
}

double unseen_generation_spread(const DeviceType& device, Framework framework,
                                const std::function<double(double factor)>& step_s) {
  if (device.evidence_spread == 0 || is_calibrated(device) || !products_follow_framework(device)) return 0;
  const auto fitted = fitted_figures().frameworks.find(std::string(to_string(framework)));
  if (fitted != fitted_figures().frameworks.end() &&
      std::ranges::any_of(fitted->second, [&](const auto& of) { return is_of_generation(of.first, device); }))
    return 0;
  return spread_between(step_s, unknown_spread(Unknown::generation));
}

double device_spread(const DeviceType& device, bool seen) {
  if (device.evidence_spread == 0 || seen) return device.evidence_spread;
  return std::max({device.evidence_spread, unknown_spread(Unknown::networks),
                   device_is_seen(device) ? 0 : left_out_device_spread()});
}

double anchored_spread(double images, double measured_images) {
  static const std::array<double, 2> spreads = read_spreads<2>("/anchors.yaml", {"repeated", "batch"});
  return std::hypot(spreads[0], spreads[1] * std::log(images / measured_images));
}

double unknown_host_spread(const DeviceType& device, const std::function<double(const DeviceType&)>& step_s) {
  if (device.issue_factor <= 0 || is_calibrated(device)) return 0;
  const auto on_host = [&](double factor) {
    DeviceType other = device;
    other.issue_factor *= factor;
    return step_s(other);
  };
  return spread_between(on_host, unknown_spread(Unknown::hosts));
}

std::size_t residual_kind(const std::vector<Work>& works, double images, Precision precision) {
  constexpr double few_images = 16;
  bool grouped = false;
  for (const Work& work : works) grouped = grouped || has_groups(work);
  const std::size_t unit = precision == Precision::fp32 ? 0 : precision == Precision::tf32 ? 1 : 2;
  return 2 * ((grouped ? network_kind_count / 2 : 0U) + unit) + (images > few_images ? 1U : 0U);
}

std::string_view comm_kind_name(CommKind kind) { return comm_names.at(static_cast<std::size_t>(kind)); }

std::optional<CommKind> comm_kind(const Machine& machine) {
  if (machine.transport.ideal()) return std::nullopt;
  if (machine.hosts.size() > 1)
    return machine.transport.protocol == Protocol::rdma ? CommKind::rdma : CommKind::tcp;
  if (machine.devices.size() < 2) return std::nullopt;
  return machine.host_types[machine.hosts.front().type].staged ? CommKind::staged : CommKind::links;
}

double comm_spread(CommKind kind) { return comm_spreads().at(static_cast<std::size_t>(kind)); }

double devices_spread() { return comm_spreads().back(); }

double memory_spread(Framework framework) {
  static constexpr std::array<std::string_view, 4> keys{"mxnet", "pytorch", "pytorch1", "other"};
  static const std::array<double, 4> spreads = read_spreads("/memory.yaml", keys);
  const auto found =
      std::find(keys.begin(), keys.end() - 1, to_string(is_mxnet(framework) ? Framework::mxnet : framework));
  return spreads[static_cast<std::size_t>(found - keys.begin())];
}

double memory_factor(Framework framework) { return std::exp(quantile_80 * memory_spread(framework)); }

}  // namespace convoy::costs
