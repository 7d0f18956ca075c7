// SPDX-License-Identifier: MIT
#include "topologies/catalogue_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "sim/base/data_path.h"
#include "sim/base/names.h"
#include "sim/base/yaml_map.h"

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

/// Where a number comes from is not where its replacement comes from.
void drop_sources(YamlNode& sources, const YamlNode& changes, const std::string& prefix) {
  for (const auto& [key, change] : changes.entries) {
    const std::string path = prefix + key;
    if (change.kind == YamlNode::Kind::mapping && !change.find("kind")) {
      drop_sources(sources, change, path + ".");
      continue;
    }
    std::erase_if(sources.entries, [&](const auto& source) {
      return source.first == path || source.first.starts_with(path + ".");
    });
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
  if (kind == CatalogueKind::device) keep_usable_share(base, nested, name);
  if (YamlNode* sources = find_value(base, "sources")) drop_sources(*sources, nested, "");
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
    const std::vector<std::string> names = catalogue_names(kind);
    if (node.find(text_of(kind).defining_key) || !std::binary_search(names.begin(), names.end(), name))
      return {node, ""};
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
