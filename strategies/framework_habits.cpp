// SPDX-License-Identifier: MIT
#include "strategies/framework_habits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "sim/base/clean_text.h"
#include "sim/base/data_path.h"
#include "sim/base/names.h"

namespace convoy::inline strategies {
namespace {

constexpr std::array syncs{"all_reduce", "parameter_server"};  ///< each has a folder

std::string folder_of(const std::string& sync) { return "topologies/catalog/synchronization/" + sync; }

/// @pre one of habit_names
const YamlNode& file_of(const std::string& name) {
  const std::vector<std::string>& names = habits_with(syncs.front());
  return data_yaml(folder_of(std::ranges::binary_search(names, name) ? syncs.front() : syncs.back()), name);
}

/// The keys of a framework; nullptr if there is no file of it.
const YamlNode* habit(const std::string& written) {
  const std::string name = meant(written, habit_names());
  if (!std::binary_search(habit_names().begin(), habit_names().end(), name)) return nullptr;
  const YamlNode& file = file_of(name);
  const YamlNode* keys = file.find("strategy");
  if (!keys || !keys->find("sync"))
    throw InputError(file.pos, "strategy: expected a mapping with the key 'sync'");
  return keys;
}

bool says(const YamlNode& mapping, const char* key, const std::string& value) {
  const YamlNode* found = mapping.find(key);
  return found && found->kind == YamlNode::Kind::scalar && found->scalar == value;
}

}  // namespace

const std::vector<std::string>& habits_with(const std::string& sync) { return data_names(folder_of(sync)); }

const std::vector<std::string>& habit_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const char* sync : syncs) std::ranges::copy(habits_with(sync), std::back_inserter(all));
    std::ranges::sort(all);
    return all;
  }();
  return names;
}

FrameworkHabit load_habit(const std::string& name, const SourcePos& pos) {
  if (!std::binary_search(habit_names().begin(), habit_names().end(), name))
    throw InputError(pos, fmt::format("unknown framework '{}'{}; there are {}", excerpt(name),
                                      suggestion(name, habit_names()), list_of(habit_names())));
  YamlMap file(file_of(name), "");
  FrameworkHabit loaded{file.text("title"), {}, read_sources(file)};
  for (const auto& [key, value] : habit(name)->entries) loaded.keys.emplace_back(key, to_flow(value));
  return loaded;
}

YamlNode with_habits(const YamlNode& strategy) {
  YamlNode result = strategy;
  for (auto& [key, value] : result.entries)
    if (value.kind == YamlNode::Kind::mapping) value = with_habits(value);
  const YamlNode* like = strategy.find("like");
  if (!like || like->kind != YamlNode::Kind::scalar) return result;
  const YamlNode* keys = habit(like->scalar);
  if (!keys || !says(strategy, "sync", keys->find("sync")->scalar)) return result;
  for (const auto& [key, value] : keys->entries) {
    if (strategy.find(key)) continue;
    if (key == "first_bucket" && strategy.find("bucket")) continue;  // is of the framework's own buckets
    YamlNode put = value;
    put.pos = put.key_pos = like->pos;  // what does not go with other keys is told there
    result.entries.emplace_back(key, std::move(put));
  }
  return result;
}

void check_sync_is_there(YamlMap& map) {
  const YamlNode* like = map.find("sync") ? nullptr : map.find("like");
  if (!like || like->kind != YamlNode::Kind::scalar) return;
  if (const YamlNode* keys = habit(like->scalar))
    map.fail(fmt::format("key 'sync' is missing; like: {} goes with sync: {}", like->scalar,
                         keys->find("sync")->scalar));
}

void check_habit(YamlMap& map, const std::string& sync) {
  const YamlNode* like = map.find("like");
  if (!like) return;
  if (const YamlNode* keys = like->kind == YamlNode::Kind::scalar ? habit(like->scalar) : nullptr;
      keys && !says(*keys, "sync", sync))
    map.fail("like", fmt::format("'{}' has sync: {}, and here is sync: {}; change one of the two",
                                 like->scalar, keys->find("sync")->scalar, sync));
  std::vector<std::string> names = habits_with(sync);
  names.insert(names.begin(), "none");
  map.choice("like", names);
}

}  // namespace convoy::strategies
