// SPDX-License-Identifier: MIT
#include "topologies/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/data_path.h"
#include "sim/base/key_parts.h"
#include "topologies/catalogue_files.h"
#include "topologies/catalogue_memo.h"
#include "topologies/cluster_keys.h"
#include "topologies/power_limit.h"
#include "topologies/typical_efficiency.h"

namespace convoy::inline topologies {
namespace {

Keys<DeviceType> peak_keys() {
  Keys<DeviceType> keys;
  for (const Precision p : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16}) {
    const std::string name{to_string(p)};
    keys.push_back({key_text(name, "none", forms::quantity(Dimension::flop_rate, true),
                             "FLOP/s of dense products; without it the precision cannot be run"),
                    [name, p](YamlMap& map, DeviceType& device) {
                      if (map.find(name))
                        device.peak_flops[p] = map.quantity(name, Dimension::flop_rate, true);
                    }});
  }
  return keys;
}

Keys<DeviceType> evidence_keys() {
  return {optional_integer_key<DeviceType>("rows", "", 0, 1'000'000, "published rows of this device itself",
                                           &DeviceType::evidence_rows)
              .required(),
          optional_number_key<DeviceType>("spread", "", 0, 10,
                                          "standard deviation of log(time) that the fit leaves",
                                          &DeviceType::evidence_spread)
              .required(),
          optional_quantity_key<DeviceType>(
              "left_out_error", "none", Dimension::fraction, false,
              "mean error of networks of one's own, each left out of the fit in turn (`convoy calibrate`)",
              &DeviceType::evidence_left_out_error)};
}

void read_device_kind(YamlMap& map, DeviceType& device) {
  device.kind = &device_kinds[map.choice_or("kind", device_kind_names(), 0)];
}

void read_device_peer_to_peer(YamlMap& map, DeviceType& device) {
  device.peer_to_peer = map.flag_or("peer_to_peer", true);
}

void read_generation(YamlMap& map, DeviceType& device) {
  const std::vector<std::string>& names = generation_names();
  if (map.find("generation")) device.generation = names[map.choice("generation", names)];
}

void read_peak_power(YamlMap& map, DeviceType& device) {
  device.peak_power_w = map.quantity_or("peak_power", Dimension::power, device.idle_power_w);
  if (device.peak_power_w < device.idle_power_w) map.fail("peak_power", "must be at least idle_power");
}

void read_device_power_limit(YamlMap& map, DeviceType& device) {
  if (!map.find("power_limit")) return;
  const double limit_w = map.quantity("power_limit", Dimension::power, true);
  if (limit_w <= device.idle_power_w) map.fail("power_limit", "must be above idle_power");
  limit_power(device, limit_w);
}

void read_reserved(YamlMap& map, DeviceType& device) {
  device.reserved_bytes = map.quantity_or("reserved", Dimension::bytes, 0);
  if (device.reserved_bytes >= device.memory_bytes)
    map.fail("reserved", "must be less than the device's memory");
}

void read_usable_memory(YamlMap& map, DeviceType& device) {
  device.usable_memory_bytes = map.quantity_or("usable_memory", Dimension::bytes, device.memory_bytes, true);
  if (device.usable_memory_bytes > device.memory_bytes || device.usable_memory_bytes <= device.reserved_bytes)
    map.fail("usable_memory", "must be more than reserved and at most the device's memory");
}

/// What a chip computes and how fast.
Keys<DeviceType> computing_keys() {
  using D = DeviceType;
  const auto itself = [](D& device) -> D& { return device; };
  return {
      mapping_key<D>("peak", "", "FLOP/s by precision, at least one", peak_keys(), itself).required(),
      optional_quantity_key<D>("memory", "", Dimension::bytes, true, "of the data sheet", &D::memory_bytes)
          .required(),
      optional_quantity_key<D>("memory_bandwidth", "", Dimension::bandwidth, true, "of the data sheet",
                               &D::memory_bandwidth_Bps)
          .required(),
      custom_key<D>("efficiency", "those of the nearest device of the catalogue",
                    forms::either({forms::number(Efficiency::min_share, Efficiency::max_share),
                                   forms::parts("a mapping")}),
                    "share of peak and bandwidth that kernels reach, 1: the roofline (docs/cost_model.md)",
                    [](YamlMap& map, D& device) { device.efficiency = read_efficiency(map); })
          .with_parts(efficiency_keys()),
      optional_quantity_key<D>("launch_overhead", "0us", Dimension::time, false,
                               "of an operation with work, before its kernel runs", &D::launch_overhead_s),
      optional_number_key<D>(
          "issue_factor", "0", 0, 100,
          "time a host takes to issue an operation to it, relative to the framework's; 0: issuing costs "
          "nothing",
          &D::issue_factor),
      mapping_key<D>("evidence", "none", "what the efficiencies rest on", evidence_keys(), itself),
      custom_key<D>("generation", "not told", forms::name(generation_names()), "of the chip",
                    &read_generation),
      optional_integer_key<D>("sms", "not told", 1, 100'000, "multiprocessors; cores of a CPU", &D::sms),
      optional_quantity_key<D>("clock", "not told", Dimension::frequency, true,
                               "at which peak.fp32 is stated", &D::clock_hz),
      optional_quantity_key<D>("l2", "not told", Dimension::bytes, true, "last-level cache", &D::l2_bytes)};
}

Keys<DeviceType> make_device_keys() {
  using D = DeviceType;
  Keys<D> keys{optional_text_key<D>("title", "none", "a text", "for people", &D::title),
               custom_key<D>("kind", "", forms::name(device_kind_names()),
                             "which libraries' algorithms it runs", &read_device_kind)};
  append_keys(keys, computing_keys());
  append_keys(
      keys,
      Keys<D>{custom_key<D>(
                  "reserved", "0B", forms::quantity(Dimension::bytes),
                  "what a process takes before its first tensor; of a GPU of the catalogue the framework "
                  "decides it",
                  &read_reserved),
              custom_key<D>("usable_memory", "as memory", forms::quantity(Dimension::bytes, true),
                            "what the driver leaves to processes", &read_usable_memory),
              optional_quantity_key<D>("idle_power", "0W", Dimension::power, false,
                                       "while a process holds the device and nothing runs", &D::idle_power_w),
              custom_key<D>("peak_power", "as idle_power", forms::quantity(Dimension::power), "at most (TDP)",
                            &read_peak_power),
              custom_key<D>("power_limit", "none", forms::quantity(Dimension::power, true),
                            "a lower limit: the clock falls until it is kept", &read_device_power_limit),
              custom_key<D>("peer_to_peer", "", forms::flag(),
                            "two of them reach each other over PCIe without host memory",
                            &read_device_peer_to_peer),
              custom_key<D>("sources", "none", sources_form(), "where the numbers are from",
                            [](YamlMap& map, D& device) { device.sources = read_sources(map); })});
  return keys;
}

const Keys<DeviceType>& all_device_keys() {
  static const Keys<DeviceType> keys = make_device_keys();
  return keys;
}

}  // namespace

const std::vector<std::string>& device_kind_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const DeviceKind& kind : device_kinds) all.emplace_back(kind.name);
    return all;
  }();
  return names;
}

const std::vector<std::string>& generation_names() {
  static const std::vector<std::string> names{
      "kepler",    "maxwell", "pascal", "volta",   "turing",  "ampere", "ada",  "hopper",
      "blackwell", "adreno",  "mali",   "haswell", "skylake", "zen3",   "zen4", "sapphire_rapids"};
  return names;
}

bool DeviceType::is_exact() const {
  return evidence_spread == 0 && std::all_of(peak_flops.begin(), peak_flops.end(), [&](const auto& peak) {
           return efficiency[static_cast<std::size_t>(peak.first)] == Efficiency(1.0);
         });
}

bool DeviceType::has_tensor_cores() const {
  for (const char* const known : {"volta", "turing", "ampere", "ada", "hopper", "blackwell"})
    if (generation == known) return true;
  return false;
}

DeviceType read_device(const YamlNode& node, const std::string& name) {
  if (node.kind == YamlNode::Kind::mapping && !node.find("efficiency")) {
    YamlNode exact = node;  // whatever else is wrong is told before
    exact.entries.emplace_back("efficiency", parse_yaml("1", "efficiency"));
    return read_device(with_typical_efficiency(node, read_device(exact, name)), name);
  }
  const YamlMap map(node, "devices." + name);
  DeviceType device;
  device.name = name;
  read_part(all_device_keys(), map, device);
  if (device.peak_flops.empty())
    map.fail("peak", "give the peak of at least one precision: fp32, tf32, fp16 or bf16");
  return device;
}

double left_out_device_spread() {
  static const double spread = [] {
    const YamlNode file = load_yaml(data_path("topologies/catalog/software") + "/devices.yaml");
    YamlMap map(file, "");
    const double left_out = map.number("left_out", 0, 10);
    map.finish();
    return left_out;
  }();
  return spread;
}

KeySection device_keys() {
  KeySection section{"device", "an entry of a cluster's `devices`, or `{base: NAME}` with what differs",
                     texts_of(all_device_keys())};
  section.derived = true;
  return section;
}

DeviceType load_device(const std::string& written, const SourcePos& pos) {
  const std::string name = catalogue_name(CatalogueKind::device, written);
  return from_catalogue<DeviceType>(name, [&] {
    const CatalogueEntry entry = load_catalogue_entry(CatalogueKind::device, name, pos);
    DeviceType device = read_device(entry.node, name);
    device.framework_reserves = !entry.node.find("reserved");
    return device;
  });
}

std::vector<std::string> device_names() { return catalogue_names(CatalogueKind::device); }

}  // namespace convoy::topologies
