// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/yaml_node.h"
#include "strategies/auto_options.h"
#include "topologies/cluster.h"

namespace convoy::inline search {

/// A strategy that is tried.
struct SearchCandidate {
  YamlNode mapping;                            ///< with its keys in the order of their table
  std::shared_ptr<const Strategy> strategy{};  ///< nullptr: no strategy can be read from the mapping
  std::string wrong{};                         ///< why not
};

/// `strategy: {kind: auto, ...}` as it was read.
struct SearchSpec {
  static constexpr std::size_t max_candidates = 10'000;

  Objective objective = Objective::step_time;
  SourcePos objective_pos;
  std::vector<SearchCandidate> candidates;  ///< with every list of values multiplied out
  std::optional<std::int64_t> budget{};     ///< largest number of simulations
  SourcePos pos;                            ///< of the candidates
};

/// Whether a `strategy:` asks for a search.
bool is_search(const YamlNode& strategy);

/// Reads the search. Without `candidates`, they are those of the registry for this cluster.
/// @throws InputError for errors of the search, or of a candidate whatever values its lists give it
SearchSpec read_search(const YamlNode& strategy, const ClusterSpec& cluster);

/// What read_search uses without `candidates`: those of the registry for this cluster, multiplied out.
std::vector<YamlNode> usual_candidates(const ClusterSpec& cluster);

/// A `strategy:` mapping with its keys, and those of mappings in it, in the order of the key tables, so that
/// the order in which they were written changes nothing: kind, the keys of that kind, and then by name those
/// that are in no table.
YamlNode in_table_order(YamlNode strategy);

/// The mappings for which a mapping with lists of values stands; the last key changes fastest. A key whose
/// value is itself a list (according to the registry) takes a list of lists. @throws InputError: more than
/// max_candidates
std::vector<YamlNode> multiplied_out(const YamlNode& mapping);

/// Makes labels unique as far as possible: equal labels get the keys in which their candidates differ, "ring
/// all-reduce (bucket: 5MiB)".
std::vector<std::string> telling_names(const std::vector<std::string>& labels,
                                       const std::vector<const YamlNode*>& candidates);

}  // namespace convoy::search
