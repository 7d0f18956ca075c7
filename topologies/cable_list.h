// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/keys.h"
#include "sim/base/yaml_map.h"
#include "topologies/link_kind.h"
#include "topologies/repeat_rule.h"
#include "topologies/shortest_paths.h"

namespace convoy::inline topologies {

/// The key `efficiency`: share of the nominal bandwidth that payload can use, 1 by default. @throws
/// InputError above 1
double read_payload_share(YamlMap& map);

/// Cables between named places, as users list them: `links: [{from, to, bandwidth, latency, name}]`.
struct CableEntry {
  std::string from, to, name;  ///< name: "from-to" unless given
  double bandwidth_Bps = 0;    ///< payload
  double latency_s = 0;
  LinkKind kind = LinkKind::pcie;
  SourcePos from_pos, to_pos, name_pos;
  std::string path;   ///< "cluster.fabric.links[3]"
  RepeatRule repeat;  ///< of an entry as it is read; names may be rules (NameRule)
};

/// An entry of `switches`: a name, or a rule for several.
struct PlaceEntry {
  std::string name;
  SourcePos pos;
  std::string path;
  RepeatRule repeat;
};

/// Where a list of cables stands: those of a fabric are of kind `network`, those of a server say theirs.
enum class CablePlace : std::uint8_t { fabric, server };

/// Reads `links`. @throws InputError
std::vector<CableEntry> read_cable_list(YamlMap& map, double efficiency, CablePlace place);

/// Entries by rule written out, in their order. Cables of one name (two between the same places, say) must be given
/// names. @param names that formulas may use (`hosts`) @throws InputError
std::vector<CableEntry> written_out(const std::vector<CableEntry>& entries, const RuleNames& names);

/// Reads `switches`; empty where the key is absent. @throws InputError
std::vector<PlaceEntry> read_places(YamlMap& map);
/// Names of the places. @throws InputError: double names
std::vector<std::string> written_out(const std::vector<PlaceEntry>& places, const RuleNames& names);
/// The keys of an entry of `switches` by rule, and what may be written for the list.
std::vector<KeyText> place_keys();
ValueForm place_list_form();

/// The keys of an entry of `links`.
std::vector<KeyText> cable_entry_keys(CablePlace place);
/// What may be written for a list of cables, and for a list of names.
ValueForm cable_list_form(CablePlace place);
ValueForm name_list_form();

/// Reads a list of names (`nics_at`); empty where the key is absent. @throws InputError: double names
std::vector<std::string> read_name_list(YamlMap& map, std::string_view key);

/// The cables between vertices, with their latency as cost. @throws InputError: a place that `vertices` does
/// not have
std::vector<Cable> resolve_cables(const std::vector<CableEntry>& entries,
                                  const std::map<std::string, std::uint32_t>& vertices);

}  // namespace convoy::topologies
