// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/partition/dag.h"

namespace convoy::inline partition {

/// A graph as its file gives it. Nodes of `dag` are in the order of their ids, so that "the smaller id" of
/// every rule is the smaller NodeId.
struct DagFile {
  std::string name;
  Dag dag;
  std::vector<std::string> node_names;  ///< by NodeId
  std::vector<NodeId> listed;           ///< NodeIds in the order of the file's `nodes`
};

/// Reads {"nodes": [{"id", "name", "time_us", "output_bytes", "memory_bytes", "colocate_with"}],
/// "edges": [[from, to]]} (docs/partition.md). ids are whole numbers in any order; time_us is required, the
/// other figures are 0 where absent; `colocate_with` names a node that must share the device. Beside these
/// the file may have `name` and `source` (text) and `notes` (anything).
/// @throws InputError with the place of whatever else it finds.
DagFile read_dag(const std::string& file);
DagFile parse_dag(const std::string& text, const std::string& file);

}  // namespace convoy::partition
