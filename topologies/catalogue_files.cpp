// SPDX-License-Identifier: MIT
#include "topologies/catalogue_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "sim/base/data_path.h"
#include "sim/base/names.h"
#include "sim/base/yaml_map.h"
#include "topologies/device.h"
#include "topologies/sources.h"

namespace convoy::inline topologies {
namespace {
namespace fs = std::filesystem;

constexpr int max_bases = 16;  // more than anybody's; a circle has no end

struct KindOfEntry {
  const char *folder, *what, *defining_key;
};

const KindOfEntry& text_of(CatalogueKind kind) {
  static const KindOfEntry kinds[] = {
      {"devices", "device", "peak"}, {"servers", "server", "devices"}, {"clusters", "cluster", "nodes"}};
  return kinds[static_cast<std::size_t>(kind)];
}

std::string program_folder(CatalogueKind kind) {
  return fmt::format("topologies/catalog/{}", text_of(kind).folder);
}

fs::path user_file(CatalogueKind kind, const std::string& name) {
  const std::string folder = user_catalogue();
  return folder.empty() ? fs::path() : fs::path(folder) / text_of(kind).folder / (name + ".yaml");
}

const std::vector<std::string>& program_names(CatalogueKind kind) { return data_names(program_folder(kind)); }

bool has_program_entry(CatalogueKind kind, const std::string& name) {
  const std::vector<std::string>& names = program_names(kind);
  return std::binary_search(names.begin(), names.end(), name);
}

[[noreturn]] void unknown_entry(CatalogueKind kind, const std::string& name, const SourcePos& pos) {
  const char* what = text_of(kind).what;
  const std::vector<std::string> names = catalogue_names(kind);
  const std::string hint = suggestion(name, names);
  // Devices are few enough to be told at once, where nothing is near.
  const std::string known = kind == CatalogueKind::device && hint.empty()
                                ? fmt::format("the catalogue has {}", list_of(names, names.size()))
                                : fmt::format("`convoy show {}s` lists them", what);
  throw InputError(pos, fmt::format("unknown {} '{}'{}; {}", what, name, hint, known));
}

YamlNode* find_value(YamlNode& mapping, const std::string& key) {
  for (auto& [name, value] : mapping.entries)
    if (name == key) return &value;
  return nullptr;
}

void merge(YamlNode& base, const YamlNode& changes) {
  for (const auto& [key, change] : changes.entries) {
    YamlNode* old = find_value(base, key);
    if (!old)
      base.entries.emplace_back(key, change);
    else if (old->kind == YamlNode::Kind::mapping && change.kind == YamlNode::Kind::mapping &&
             !change.find("kind"))
      merge(*old, change);
    else
      *old = change;
  }
}

/// What the driver leaves of a device's memory stays the same share of it when only `memory` is changed.
void keep_usable_share(YamlNode& device, const YamlNode& changes, const std::string& name) {
  const YamlNode* memory = changes.find("memory");
  const YamlNode* whole = device.find("memory");
  YamlNode* usable = find_value(device, "usable_memory");
  if (!memory || changes.find("usable_memory") || !whole || !usable) return;
  const auto bytes = [&](const YamlNode& node, const char* key) {
    return read_quantity(node, fmt::format("devices.{}.{}", name, key), Dimension::bytes, true);
  };
  const double share = bytes(*usable, "usable_memory") / bytes(*whole, "memory");
  usable->scalar = fmt::format("{:.0f}B", share * bytes(*memory, "memory"));
}

/// Whether the changes say another value of a quantity that the device has.
bool differs(const YamlNode& device, const YamlNode& changes, const std::string& key, Dimension dimension) {
  const YamlNode *old = device.find(key), *change = changes.find(key);
  return old && change && read_quantity(*old, key, dimension) != read_quantity(*change, key, dimension);
}

/// How many multiprocessors there are now for one before.
double growth_in_sms(const YamlNode& device, const YamlNode& changes) {
  const YamlNode *old = device.find("sms"), *change = changes.find("sms");
  if (!old || !change) return 1;
  constexpr std::int64_t least = 1;
  return static_cast<double>(read_integer(*change, "sms", least)) /
         static_cast<double>(read_integer(*old, "sms", least));
}

/// The rows at which half the peak is reached are so many for each multiprocessor that has to be filled.
void scale_half_rows(YamlNode& efficiency, double factor) {
  constexpr double largest = std::numeric_limits<double>::max();
  for (auto& [key, value] : efficiency.entries) {
    if (value.kind == YamlNode::Kind::mapping) scale_half_rows(value, factor);
    if (key == "half_rows" || key == "half_weight_rows" || key == "half_matmul_rows")
      value.scalar = fmt::format("{}", factor * read_number(value, key, 0, largest));
  }
}

/// A chip with another peak, bandwidth or number of multiprocessors is none that anybody measured: its
/// efficiencies are those of its base for want of better ones, as sure as those of any device without rows.
/// Whoever writes all of them himself has given them.
void keep_what_holds_of_chip(YamlNode& device, const YamlNode& changes) {
  const YamlNode* efficiency = changes.find("efficiency");
  const double growth = growth_in_sms(device, changes);
  if (YamlNode* old = find_value(device, "efficiency"); old && !efficiency && growth != 1)
    scale_half_rows(*old, growth);
  YamlNode* evidence = find_value(device, "evidence");
  if (!evidence || changes.find("evidence")) return;
  if (efficiency && efficiency->kind == YamlNode::Kind::scalar) {
    std::erase_if(device.entries, [](const auto& entry) { return entry.first == "evidence"; });
    return;
  }
  bool other_chip =
      efficiency || growth != 1 || differs(device, changes, "memory_bandwidth", Dimension::bandwidth);
  const YamlNode *peaks = device.find("peak"), *changed = changes.find("peak");
  if (peaks && changed)
    for (const auto& [precision, peak] : changed->entries)
      other_chip =
          other_chip || !peaks->find(precision) || differs(*peaks, *changed, precision, Dimension::flop_rate);
  if (!other_chip) return;
  const YamlNode* spread = evidence->find("spread");
  const double least = spread ? read_number(*spread, "evidence.spread", 0, 10) : 0;
  *evidence = parse_yaml(fmt::format("{{rows: 0, spread: {}}}", std::max(least, left_out_device_spread())),
                         "evidence");
}

/// Where a number comes from is not where its replacement comes from: that is given.
void replace_sources(YamlNode& sources, const YamlNode& changes, const std::string& prefix) {
  for (const auto& [key, change] : changes.entries) {
    const std::string path = prefix + key;
    if (path == "sources") continue;
    if (change.kind == YamlNode::Kind::mapping && !change.find("kind")) {
      replace_sources(sources, change, path + ".");
      continue;
    }
    std::erase_if(sources.entries, [&](const auto& source) {
      return source.first == path || source.first.starts_with(path + ".");
    });
    YamlNode given;
    given.kind = YamlNode::Kind::scalar;
    given.scalar = std::string(to_string(Grade::given));
    given.pos = change.pos;
    sources.entries.emplace_back(path, std::move(given));
  }
}

YamlNode with_changes(CatalogueKind kind, const std::string& name, YamlNode base, const YamlNode& changes) {
  YamlNode nested;
  nested.kind = YamlNode::Kind::mapping;
  for (const auto& [key, change] : changes.entries) {
    if (key == "base") continue;
    if (key.find('.') != std::string::npos)
      set_path(nested, key, change);
    else
      nested.entries.emplace_back(key, change);
  }
  if (kind == CatalogueKind::device) {
    keep_usable_share(base, nested, name);
    keep_what_holds_of_chip(base, nested);
  }
  if (YamlNode* sources = find_value(base, "sources")) replace_sources(*sources, nested, "");
  merge(base, nested);
  base.pos = changes.pos;  // what is wrong with the whole is the changes' fault
  return base;
}

std::string base_of(const YamlNode& node) {
  const YamlNode* base = node.find("base");
  return base ? read_text(*base, "base") : "";
}

CatalogueEntry load_entry_at(CatalogueKind kind, const std::string& name, const SourcePos& pos, bool of_user,
                             int depth) {
  if (depth > max_bases) throw InputError(pos, fmt::format("base: '{}' comes back to itself", name));
  const fs::path own = user_file(kind, name);
  std::error_code ignored;
  if (of_user && !own.empty() && fs::exists(own, ignored)) {
    YamlNode node = load_yaml(own.string());
    std::string base = base_of(node);
    if (base.empty()) return {std::move(node), name};
    base = catalogue_name(kind, base);
    CatalogueEntry from = load_entry_at(kind, base, node.find("base")->pos, base != name, depth + 1);
    return {with_changes(kind, name, std::move(from.node), node), from.root};
  }
  if (!has_program_entry(kind, name)) unknown_entry(kind, name, pos);
  return {data_yaml(program_folder(kind), name), name};
}

CatalogueEntry derive_at(CatalogueKind kind, const std::string& name, const YamlNode& node,
                         const OwnEntries& own, int depth) {
  if (depth > max_bases) throw InputError(node.pos, fmt::format("base: '{}' comes back to itself", name));
  if (node.kind != YamlNode::Kind::mapping) return {node, ""};
  std::string base = base_of(node);
  SourcePos pos = node.pos;
  if (!base.empty()) {
    pos = node.find("base")->pos;
    if (!own.contains(base)) base = catalogue_name(kind, base);
  } else {
    if (node.find(text_of(kind).defining_key)) return {node, ""};
    const std::vector<std::string> names = catalogue_names(kind);
    if (!std::binary_search(names.begin(), names.end(), name)) return {node, ""};
    base = name;
  }
  const auto sibling = base == name ? own.end() : own.find(base);
  CatalogueEntry from = sibling != own.end() ? derive_at(kind, base, *sibling->second, own, depth + 1)
                                             : load_entry_at(kind, base, pos, true, 0);
  return {with_changes(kind, name, std::move(from.node), node), from.root};
}

}  // namespace

std::string user_catalogue() {
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config && *config)
    return std::string(config) + "/convoy/catalog";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.config/convoy/catalog";
  return "";
}

std::vector<std::string> catalogue_names(CatalogueKind kind) {
  std::vector<std::string> names = program_names(kind);
  const std::string folder = user_catalogue();
  std::error_code ignored;
  if (!folder.empty())
    for (const fs::directory_entry& entry :
         fs::directory_iterator(fs::path(folder) / text_of(kind).folder, ignored))
      if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string catalogue_name(CatalogueKind kind, const std::string& written) {
  if (has_program_entry(kind, written)) return written;  // without looking at the user's folder
  return meant(written, catalogue_names(kind));
}

CatalogueEntry load_catalogue_entry(CatalogueKind kind, const std::string& name, const SourcePos& pos) {
  return load_entry_at(kind, name, pos, true, 0);
}

CatalogueEntry derive_entry(CatalogueKind kind, const std::string& name, const YamlNode& node,
                            const OwnEntries& own) {
  return derive_at(kind, name, node, own, 0);
}

}  // namespace convoy::topologies
