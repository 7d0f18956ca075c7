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
               optional_text_key<C>("name", "FROM-TO", "a text", "of the cable", &C::name).at(&C::name_pos)};
  append_keys(keys, repeat_keys(&C::repeat));
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
  for (YamlMap& link : map.maps("links")) {
    CableEntry& entry = entries.emplace_back();
    entry.path = link.path();
    entry.name_pos = link.pos();
    read_part(cable_entry_table(place), link, entry);
    if (place == CablePlace::fabric) entry.kind = LinkKind::network;
    entry.bandwidth_Bps *= efficiency;
  }
  return entries;
}

std::vector<CableEntry> written_out(const std::vector<CableEntry>& entries, const RuleNames& names) {
  std::vector<CableEntry> cables;
  std::set<std::string> taken;
  for (const CableEntry& entry : entries) {
    const NameRule from(entry.from, entry.from_pos, entry.path + ".from");
    const NameRule to(entry.to, entry.to_pos, entry.path + ".to");
    const NameRule name(entry.name, entry.name_pos, entry.path + ".name");
    entry.repeat.for_each(names, [&](const RuleNames& values) {
      CableEntry& cable = cables.emplace_back(entry);
      cable.from = from.text(values);
      cable.to = to.text(values);
      cable.name = entry.name.empty() ? cable.from + '-' + cable.to : name.text(values);
      if (cable.from == cable.to)
        throw InputError(entry.to_pos,
                         fmt::format("{}.to: a cable from '{}' to itself", entry.path, cable.to));
      if (!taken.insert(cable.name).second)
        throw InputError(entry.name_pos,
                         fmt::format("{}.name: there is a cable '{}' already; give this one a `name`",
                                     entry.path, cable.name));
    });
  }
  return cables;
}

namespace {

const Keys<PlaceEntry>& place_table() {
  using P = PlaceEntry;
  static const Keys<P> keys = [] {
    Keys<P> table{
        optional_text_key<P>("name", "", "a name", "of the place", &P::name).required().at(&P::pos)};
    append_keys(table, repeat_keys(&P::repeat));
    return table;
  }();
  return keys;
}

}  // namespace

std::vector<KeyText> place_keys() { return texts_of(place_table()); }

ValueForm place_list_form() {
  const std::string mapping = keys_detail::mapping_text(place_keys());
  return forms::list(forms::either({forms::text("a name"), forms::parts(mapping)}),
                     "a list of names or " + mapping);
}

std::vector<PlaceEntry> read_places(YamlMap& map) {
  std::vector<PlaceEntry> places;
  const YamlNode* list = map.find("switches");
  if (!list) return places;
  if (list->kind != YamlNode::Kind::sequence)
    map.fail("switches", fmt::format("expected a list of names, found {}", describe(*list)));
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& item = list->items[i];
    const std::string path = fmt::format("{}[{}]", map.path_of("switches"), i);
    PlaceEntry& place = places.emplace_back(PlaceEntry{{}, item.pos, path, {}});
    if (item.kind == YamlNode::Kind::mapping) {
      YamlMap entry(item, path);
      read_part(place_table(), entry, place);
    } else {
      place.name = read_text(item, path);
    }
  }
  return places;
}

std::vector<std::string> written_out(const std::vector<PlaceEntry>& places, const RuleNames& names) {
  std::vector<std::string> all;
  std::set<std::string> seen;
  for (const PlaceEntry& place : places) {
    const NameRule name(place.name, place.pos, place.path);
    place.repeat.for_each(names, [&](const RuleNames& values) {
      all.push_back(name.text(values));
      if (!seen.insert(all.back()).second)
        throw InputError(place.pos, fmt::format("{}: '{}' is listed twice", place.path, all.back()));
    });
  }
  return all;
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
