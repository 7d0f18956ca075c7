// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/yaml_node.h"

namespace convoy::inline topologies {

/// The folders of the catalogue: "devices", "servers", "clusters".
enum class CatalogueKind : std::uint8_t { device, server, cluster };

/// Folder of the user's own catalogue: $XDG_CONFIG_HOME/convoy/catalog, or ~/.config/convoy/catalog; in it
/// devices/, servers/ and clusters/ as in topologies/catalog. "" where neither variable is set.
std::string user_catalogue();

/// Names of the program's and the user's entries, sorted, each once.
std::vector<std::string> catalogue_names(CatalogueKind kind);

/// The entry that a user means (meant, sim/base/names.h): the name itself where there is such an entry, or
/// none that it can only mean.
std::string catalogue_name(CatalogueKind kind, const std::string& written);

/// An entry with all that it derives from put together.
struct CatalogueEntry {
  YamlNode node;
  std::string root;  ///< the entry that it derives from in the end, its own name where it does not; "" inline
};

/// An entry by name: the user's, else the program's. @throws InputError at `pos` for an unknown name; in the
/// user's file for wrong YAML, an unknown base or bases in a circle
CatalogueEntry load_catalogue_entry(CatalogueKind kind, const std::string& name, const SourcePos& pos);

/// Entries of an experiment by name, which a base may name too.
using OwnEntries = std::map<std::string, const YamlNode*>;

/// Puts an entry of an experiment together. `{base: NAME, key: value}` is the entry NAME (one of `own`, else
/// of the catalogue) with changes: a dotted key is a path (`fabric.bandwidth: 50Gbps`), a mapping is merged
/// key by key, unless it has a `kind` and so is another thing altogether; other values replace. An entry that
/// is incomplete (a server without `devices`, a device without `peak`) and has the name of a catalogue entry
/// changes that one. Anything else is taken as it is. @throws InputError
CatalogueEntry derive_entry(CatalogueKind kind, const std::string& name, const YamlNode& node,
                            const OwnEntries& own);

}  // namespace convoy::topologies
