// SPDX-License-Identifier: MIT
#include "topologies/typical_efficiency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/data_path.h"
#include "topologies/catalogue_files.h"

namespace convoy::inline topologies {
namespace {

constexpr const char* folder = "topologies/catalog/devices";

YamlNode scalar(std::string text, const SourcePos& pos) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.scalar = std::move(text);
  node.pos = pos;
  return node;
}

/// How far two devices are from each other. Peaks are compared in the first precision that both have.
double distance(const DeviceType& a, const DeviceType& b) {
  for (const auto& [precision, peak] : a.peak_flops)
    if (const auto other = b.peak_flops.find(precision); other != b.peak_flops.end())
      return std::abs(std::log(peak / other->second)) +
             std::abs(std::log(a.memory_bandwidth_Bps / b.memory_bandwidth_Bps));
  return std::numeric_limits<double>::max();
}

std::string nearest_device(const DeviceType& stated) {
  std::string nearest;
  bool of_generation = false;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& name : data_names(folder)) {
    const DeviceType known = read_device(data_yaml(folder, name), name);
    if (known.kind != stated.kind) continue;
    const bool alike = !stated.generation.empty() && known.generation == stated.generation;
    const double away = distance(stated, known);
    if (alike < of_generation || (alike == of_generation && away >= least)) continue;
    nearest = name;
    of_generation = alike;
    least = away;
  }
  return nearest;
}

}  // namespace

YamlNode with_typical_efficiency(const YamlNode& node, const DeviceType& stated) {
  const std::string nearest = nearest_device(stated);
  YamlNode changes;
  changes.kind = YamlNode::Kind::mapping;
  changes.pos = node.pos;
  changes.entries.emplace_back("base", scalar(nearest, node.pos));
  if (const YamlNode* sms = node.find("sms")) changes.entries.emplace_back("sms", *sms);
  const YamlNode like = derive_entry(CatalogueKind::device, stated.name, changes, {}).node;
  YamlNode result = node;
  for (const char* key : {"efficiency", "launch_overhead", "issue_factor"})
    if (const YamlNode* value = like.find(key); value && !node.find(key))
      result.entries.emplace_back(key, *value);
  const double spread = left_out_device_spread();
  if (!node.find("evidence"))
    result.entries.emplace_back("evidence",
                                parse_yaml(fmt::format("{{rows: 0, spread: {}}}", spread), "evidence"));
  YamlNode source = scalar(fmt::format("{} +-{:.0f}%: those of {}, the nearest {} of the catalogue",
                                       to_string(Grade::unstated), 100 * spread, nearest, stated.kind->text),
                           node.pos);
  const auto sources = std::find_if(result.entries.begin(), result.entries.end(),
                                    [](const auto& entry) { return entry.first == "sources"; });
  if (sources == result.entries.end()) {
    YamlNode mapping;
    mapping.kind = YamlNode::Kind::mapping;
    mapping.pos = node.pos;
    mapping.entries.emplace_back("efficiency", std::move(source));
    result.entries.emplace_back("sources", std::move(mapping));
  } else if (!sources->second.find("efficiency")) {
    sources->second.entries.emplace_back("efficiency", std::move(source));
  }
  return result;
}

bool states_no_efficiency(const DeviceType& device) {
  const Source* source = find_source(device.sources, "efficiency");
  return source != nullptr && source->grade == Grade::unstated;
}

}  // namespace convoy::topologies
