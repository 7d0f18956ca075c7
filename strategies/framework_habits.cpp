// SPDX-License-Identifier: MIT
#include "strategies/framework_habits.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/clean_text.h"
#include "sim/base/data_path.h"
#include "sim/base/names.h"

namespace convoy::inline strategies {
namespace {

constexpr const char* folder = "topologies/catalog/synchronization";

/// The keys of a framework; nullptr if there is no file of it.
const YamlNode* habit(const std::string& written) {
  const std::string name = meant(written, habit_names());
  if (!std::binary_search(habit_names().begin(), habit_names().end(), name)) return nullptr;
  const YamlNode& file = data_yaml(folder, name);
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

const std::vector<std::string>& habit_names() { return data_names(folder); }

FrameworkHabit load_habit(const std::string& name, const SourcePos& pos) {
  if (!std::binary_search(habit_names().begin(), habit_names().end(), name))
    throw InputError(pos, fmt::format("unknown framework '{}'{}; there are {}", excerpt(name),
                                      suggestion(name, habit_names()), list_of(habit_names())));
  YamlMap file(data_yaml(folder, name), "");
  FrameworkHabit loaded{file.text("title"), {}, read_sources(file)};
  for (const auto& [key, value] : habit(name)->entries) loaded.keys.emplace_back(key, to_flow(value));
  return loaded;
}

std::vector<std::string> habits_with(const std::string& sync) {
  std::vector<std::string> names;
  for (const std::string& name : habit_names())
    if (says(*habit(name), "sync", sync)) names.push_back(name);
  return names;
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
