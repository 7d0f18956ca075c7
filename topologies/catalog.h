// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topologies/catalogue_files.h"
#include "topologies/cluster.h"
#include "topologies/server.h"

namespace convoy::inline topologies {

/// Names of topologies/catalog/servers/*.yaml and topologies/catalog/clusters/*.yaml, sorted.
std::vector<std::string> server_names();
std::vector<std::string> cluster_names();

/// A server or cluster of the catalogue; a server has the latest on-demand price of the price table that
/// comes with the program (topologies/prices.h). @throws InputError at `pos` where the name is unknown
ServerSpec load_server(const std::string& name, const SourcePos& pos);
ClusterSpec load_cluster(const std::string& name, const SourcePos& pos);

/// A server of the catalogue, or one of an experiment that derives from it: where it says no price it has the
/// table's of the entry that it derives from. @throws InputError
ServerSpec read_catalogue_server(const CatalogueEntry& entry, const std::string& path,
                                 const std::string& name, const DeviceLookup& devices);

/// "24.48 USD/h (on demand, us-east-1, 2022-06-23 to 2026-07-20)", or "no price".
std::string price_text(const HostType& host);

/// What a server or cluster is, for `convoy show`: label and text, in order ("fabric", "switch, 1.18
/// GB/s, 36.0 us").
using Description = std::vector<std::pair<std::string, std::string>>;
Description describe(const ServerSpec& server);
Description describe(const ClusterSpec& cluster);

}  // namespace convoy::topologies
