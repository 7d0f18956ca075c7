// SPDX-License-Identifier: MIT
#include "topologies/device.h"

#include <fmt/format.h>

#include "topologies/catalogue_files.h"
#include "topologies/power_limit.h"

namespace convoy {
namespace {

std::map<Precision, double> read_peaks(YamlMap& device) {
  YamlMap map = device.map("peak");
  std::map<Precision, double> peaks;
  for (const Precision p : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
    if (const YamlNode* peak = map.find(to_string(p)))
      peaks[p] = read_quantity(*peak, map.path_of(to_string(p)), Dimension::flop_rate, true);
  map.finish();
  if (peaks.empty()) device.fail("peak", "give the peak of at least one precision: fp32, tf32, fp16 or bf16");
  return peaks;
}

void read_chip(YamlMap& map, DeviceType& device) {
  if (map.find("generation")) {
    const std::vector<std::string>& names = generation_names();
    device.generation = names[map.choice("generation", names)];
  }
  device.sms = static_cast<int>(map.integer_or("sms", 0, 1, 100'000));
  device.clock_hz = map.quantity_or("clock", Dimension::frequency, 0, true);
  device.l2_bytes = map.quantity_or("l2", Dimension::bytes, 0, true);
}

}  // namespace

const std::vector<std::string>& generation_names() {
  static const std::vector<std::string> names{
      "kepler",    "maxwell", "pascal", "volta",   "turing",  "ampere", "ada",  "hopper",
      "blackwell", "adreno",  "mali",   "haswell", "skylake", "zen3",   "zen4", "sapphire_rapids"};
  return names;
}

bool DeviceType::has_tensor_cores() const {
  for (const char* const known : {"volta", "turing", "ampere", "ada", "hopper", "blackwell"})
    if (generation == known) return true;
  return false;
}

DeviceType read_device(const YamlNode& node, const std::string& name) {
  YamlMap map(node, "devices." + name);
  DeviceType device;
  device.name = name;
  device.title = map.text_or("title", "");
  device.cpu = map.choice_or("kind", {"gpu", "cpu"}, 0) == 1;
  device.peak_flops = read_peaks(map);
  device.memory_bytes = map.quantity("memory", Dimension::bytes, true);
  device.memory_bandwidth_Bps = map.quantity("memory_bandwidth", Dimension::bandwidth, true);
  device.efficiency = read_efficiency(map);
  device.launch_overhead_s = map.quantity_or("launch_overhead", Dimension::time, 0);
  device.issue_factor = map.number_or("issue_factor", 0, 0, 100);
  if (map.find("evidence")) {
    YamlMap evidence = map.map("evidence");
    device.evidence_rows = static_cast<int>(evidence.integer("rows", 0, 1'000'000));
    device.evidence_spread = evidence.number("spread", 0, 10);
    evidence.finish();
  }
  device.reserved_bytes = map.quantity_or("reserved", Dimension::bytes, 0);
  if (device.reserved_bytes >= device.memory_bytes)
    map.fail("reserved", "must be less than the device's memory");
  device.usable_memory_bytes = map.quantity_or("usable_memory", Dimension::bytes, device.memory_bytes, true);
  if (device.usable_memory_bytes > device.memory_bytes || device.usable_memory_bytes <= device.reserved_bytes)
    map.fail("usable_memory", "must be more than reserved and at most the device's memory");
  read_chip(map, device);
  device.idle_power_w = map.quantity_or("idle_power", Dimension::power, 0);
  device.peak_power_w = map.quantity_or("peak_power", Dimension::power, device.idle_power_w);
  if (device.peak_power_w < device.idle_power_w) map.fail("peak_power", "must be at least idle_power");
  device.peer_to_peer = map.flag_or("peer_to_peer", true);
  if (map.find("power_limit")) {
    const double limit_w = map.quantity("power_limit", Dimension::power, true);
    if (limit_w <= device.idle_power_w) map.fail("power_limit", "must be above idle_power");
    limit_power(device, limit_w);
  }
  if (const YamlNode* texts = map.find("sources")) {
    YamlMap sources(*texts, map.path_of("sources"));
    for (const std::string& key : sources.keys()) device.sources.emplace_back(key, sources.text(key));
  }
  map.finish();
  return device;
}

DeviceType load_device(const std::string& name, const SourcePos& pos) {
  const CatalogueEntry entry = load_catalogue_entry(CatalogueKind::device, name, pos);
  DeviceType device = read_device(entry.node, name);
  device.framework_reserves = !entry.node.find("reserved");
  return device;
}

std::vector<std::string> device_names() { return catalogue_names(CatalogueKind::device); }

}  // namespace convoy
