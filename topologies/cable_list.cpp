// SPDX-License-Identifier: MIT
#include "topologies/cable_list.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "sim/base/key_parts.h"
#include "sim/base/names.h"

namespace convoy::inline topologies {

double read_payload_share(YamlMap& map) {
  const double share = map.quantity_or("efficiency", Dimension::fraction, 1.0, true);
  if (share > 1) map.fail("efficiency", "must be at most 100%");
  return share;
}

namespace {

Keys<CableEntry> make_cable_entry_table(CablePlace place) {
  using C = CableEntry;
  Keys<C> keys{optional_text_key<C>("from", "", "a name", "of a host, device or switch", &C::from)
                   .required()
                   .at(&C::from_pos),
               optional_text_key<C>("to", "", "a name", "likewise", &C::to).required().at(&C::to_pos),
               optional_quantity_key<C>("bandwidth", "", Dimension::bandwidth, true, "in one direction",
                                        &C::bandwidth_Bps)
                   .required(),
               optional_quantity_key<C>("latency", "0s", Dimension::time, false, "one way", &C::latency_s),
               optional_text_key<C>("name", "FROM-TO", "a text", "of the cable", &C::name)};
  if (place == CablePlace::server)
    keys.push_back(choice_key<C>("kind", cable_kind_names,
                                 "what it is: staging and NCCL's choice of algorithms depend on it",
                                 &C::kind));
  return keys;
}

const Keys<CableEntry>& cable_entry_table(CablePlace place) {
  static const std::array tables{make_cable_entry_table(CablePlace::fabric),
                                 make_cable_entry_table(CablePlace::server)};
  return tables.at(static_cast<std::size_t>(place));
}

}  // namespace

ValueForm cable_list_form(CablePlace place) {
  const std::string mapping = keys_detail::mapping_text(cable_entry_keys(place));
  return forms::list(forms::parts(mapping), "a list of " + mapping);
}

ValueForm name_list_form() { return forms::list(forms::text("a name"), "a list of names"); }

std::vector<KeyText> cable_entry_keys(CablePlace place) { return texts_of(cable_entry_table(place)); }

std::vector<CableEntry> read_cable_list(YamlMap& map, double efficiency, CablePlace place) {
  std::vector<CableEntry> entries;
  std::set<std::string> names;
  for (YamlMap& link : map.maps("links")) {
    CableEntry entry;
    entry.path = link.path();
    read_part(cable_entry_table(place), link, entry);
    if (entry.from == entry.to) link.fail("to", fmt::format("a cable from '{}' to itself", entry.to));
    if (place == CablePlace::fabric) entry.kind = LinkKind::network;
    entry.bandwidth_Bps *= efficiency;
    if (!link.has("name")) entry.name = entry.from + '-' + entry.to;
    if (!names.insert(entry.name).second)
      link.fail("name", fmt::format("there is a cable '{}' already; give this one a `name`", entry.name));
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<std::string> read_name_list(YamlMap& map, std::string_view key) {
  std::vector<std::string> names;
  const YamlNode* list = map.find(key);
  if (!list) return names;
  if (list->kind != YamlNode::Kind::sequence)
    map.fail(key, fmt::format("expected a list of names, found {}", describe(*list)));
  std::set<std::string> seen;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", map.path_of(key), i);
    names.push_back(read_text(list->items[i], path));
    if (!seen.insert(names.back()).second)
      throw InputError(list->items[i].pos, fmt::format("{}: '{}' is listed twice", path, names.back()));
  }
  return names;
}

std::vector<Cable> resolve_cables(const std::vector<CableEntry>& entries,
                                  const std::map<std::string, std::uint32_t>& vertices) {
  const auto vertex = [&](const std::string& name, const SourcePos& pos, const std::string& path) {
    if (const auto it = vertices.find(name); it != vertices.end()) return it->second;
    std::vector<std::string> known;
    for (const auto& [place, index] : vertices) known.push_back(place);
    throw InputError(pos, fmt::format("{}: there is no '{}'{}; there are: {}", path, name,
                                      suggestion(name, known), list_of(known)));
  };
  std::vector<Cable> cables;
  for (const CableEntry& entry : entries)
    cables.push_back({vertex(entry.from, entry.from_pos, entry.path + ".from"),
                      vertex(entry.to, entry.to_pos, entry.path + ".to"), entry.bandwidth_Bps,
                      entry.latency_s, entry.latency_s, entry.kind, entry.name});
  return cables;
}

}  // namespace convoy::topologies
