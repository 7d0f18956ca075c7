// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/base/key_kinds.h"
#include "sim/base/keys.h"
#include "topologies/sources.h"

namespace convoy::inline strategies {

/// How a framework or library synchronises replicas, as keys of `kind: data_parallel`: a file each in
/// topologies/catalog/synchronization/SYNC, with a source for every key.

/// Names of these files, sorted.
const std::vector<std::string>& habit_names();

/// One of these files.
struct FrameworkHabit {
  std::string title;                                      ///< for people
  std::vector<std::pair<std::string, std::string>> keys;  ///< of `strategy`, as they are written
  Sources sources;                                        ///< by key
};

/// @throws InputError at `pos` for a name that there is not
FrameworkHabit load_habit(const std::string& name, const SourcePos& pos);

/// The names of those with this `sync`, of which each has a folder. @param sync all_reduce or parameter_server
const std::vector<std::string>& habits_with(const std::string& sync);

/// The mapping with what its key `like` stands for: every key of the framework that it does not have itself.
/// Mappings in it likewise (`inner`). One whose `like` is none or unknown, or goes with another `sync`, stays
/// as it is (check_habit tells). @throws InputError: a file of the catalogue is wrong
YamlNode with_habits(const YamlNode& strategy);

/// Reads `like` of a mapping with this `sync`. @throws InputError at the key for an unknown name, and where
/// the framework does something else
void check_habit(YamlMap& map, const std::string& sync);

/// @throws InputError for a mapping without `sync` whose `like` says which one it is
void check_sync_is_there(YamlMap& map);

/// The key `like` of strategies with this `sync`: one of habits_with(sync), which with_habits has put in.
template <class Options>
Key<Options> like_key(std::string sync) {
  return {key_text("like", "none", forms::name(habits_with(sync)),
                   "what is not written is as this framework or library does it (docs/strategies.md, "
                   "Frameworks)"),
          [sync = std::move(sync)](YamlMap& map, Options&) { check_habit(map, sync); }};
}

}  // namespace convoy::strategies
