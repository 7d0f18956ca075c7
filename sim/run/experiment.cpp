// SPDX-License-Identifier: MIT
#include "sim/run/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/keys.h"
#include "sim/base/named_file.h"
#include "sim/base/names.h"
#include "sim/base/yaml_map.h"

namespace convoy {
namespace {

const std::vector<std::string> sweepable{"model", "training", "cluster", "strategy", "variability"};

std::string_view first_step(std::string_view path) { return path.substr(0, path.find('.')); }

bool is_inside(std::string_view path, std::string_view outer) {
  return path.size() > outer.size() && path.starts_with(outer) && path[outer.size()] == '.';
}

YamlNode* find_entry(YamlNode& mapping, std::string_view key) {
  for (auto& [name, value] : mapping.entries)
    if (name == key) return &value;
  return nullptr;
}

void erase_entry(YamlNode& mapping, std::string_view key) {
  std::erase_if(mapping.entries, [&](const auto& entry) { return entry.first == key; });
}

/// `sweep.PATH=list`: PATH is one key of the sweep, dots and all.
void set_axis(YamlNode& tree, const std::string& path, YamlNode value) {
  YamlNode* sweep = find_entry(tree, "sweep");
  if (!sweep || sweep->kind == YamlNode::Kind::null) {
    YamlNode empty;
    empty.kind = YamlNode::Kind::mapping;
    empty.pos = empty.key_pos = value.pos;
    set_path(tree, "sweep", std::move(empty));
    sweep = find_entry(tree, "sweep");
  }
  value.key_pos = value.pos;
  if (YamlNode* old = find_entry(*sweep, path))
    *old = std::move(value);
  else
    sweep->entries.emplace_back(path, std::move(value));
}

void apply_setting(YamlNode& tree, const std::string& setting) {
  const std::size_t equals = setting.find('=');
  const std::string path = setting.substr(0, equals);
  const SourcePos pos{"--set " + path, 1, 1};
  if (equals == std::string::npos || path.empty())
    throw InputError(pos, "write --set key.path=value, such as --set cluster.nodes=4");
  const std::string text = setting.substr(equals + 1);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw InputError(pos, fmt::format("the value after '{}=' is missing", path));
  YamlNode value = parse_yaml(text, pos.file);
  if (path.starts_with("sweep.")) return set_axis(tree, path.substr(6), std::move(value));
  if (const YamlNode* sweep = tree.find("sweep"); sweep && path != "sweep")
    for (const auto& [axis, values] : sweep->entries)
      if (axis == path || is_inside(path, axis) || is_inside(axis, path))
        throw InputError(pos,
                         fmt::format("the experiment sweeps '{}', which would override this; write --set "
                                     "sweep.{}=[...]",
                                     axis, axis));
  set_path(tree, path, std::move(value));
}

std::string read_name(YamlMap& map) {
  if (!map.has("experiment") && map.has("network"))
    map.fail("is a network for convoy partition, not an experiment");
  const std::string name = map.text("experiment");
  const auto good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  if (name.empty() || name.size() > 100 || name[0] == '.' || !std::all_of(name.begin(), name.end(), good))
    map.fail("experiment",
             fmt::format("'{}' cannot name a folder of results: use up to 100 letters, digits, '-', "
                         "'_' and '.', not beginning with '.'",
                         name));
  return name;
}

Anchor read_anchor(YamlMap map) {
  Anchor anchor;
  anchor.pos = map.pos();
  anchor.images_per_s = map.number("images_per_s", 1e-6, 1e12);
  anchor.batch = map.integer("batch", 1, 1'000'000'000);
  if (map.find("device")) anchor.device = map.text("device");
  map.finish();
  return anchor;
}

/// A file's name, or {file, device}.
ProfileSpec read_profile(YamlMap& training) {
  ProfileSpec profile;
  profile.pos = training.pos("profile");
  if (training.node("profile").kind != YamlNode::Kind::mapping) {
    profile.file = named_file(training, "profile");
    return profile;
  }
  YamlMap map = training.map("profile");
  profile.file = named_file(map, "file");
  if (map.find("device")) profile.device = map.text("device");
  map.finish();
  return profile;
}

template <class Enum, std::size_t n>
Enum choice_of(YamlMap& map, std::string_view key, const std::array<std::string_view, n>& names,
               Enum fallback = Enum{}) {
  return read_choice(map, key, std::vector<std::string>(names.begin(), names.end()), fallback);
}

Training read_training(YamlMap map) {
  constexpr std::int64_t largest_batch = 1'000'000'000;
  Training training;
  const bool per_device = map.find("batch_per_device"), global = map.find("global_batch");
  if (per_device && global)
    map.fail("global_batch",
             "batch_per_device is given too; give one of the two (a sweep over one of them needs a "
             "file without the other)");
  if (!per_device && !global) map.fail("the batch is missing: give batch_per_device or global_batch");
  const char* const key = per_device ? "batch_per_device" : "global_batch";
  (per_device ? training.batch.per_device : training.batch.global) = map.integer(key, 1, largest_batch);
  training.batch.pos = map.pos(key);
  training.options.precision =
      read_choice(map, "precision", {"fp32", "tf32", "fp16", "bf16"}, Precision::fp32);
  training.precision_given = map.find("precision");
  training.precision_pos = map.pos("precision");
  training.options.optimizer = read_choice(map, "optimizer", {"sgd", "momentum", "adam"}, Optimizer::sgd);
  training.options.recompute = read_choice(map, "recompute", {"none", "blocks", "sqrt"}, Recomputation::none);
  training.recompute_pos = map.pos("recompute");
  training.options.framework = choice_of<Framework>(map, "framework", framework_names);
  training.options.execution =
      choice_of(map, "execution", execution_names, default_execution(training.options.framework));
  training.options.one_process_a_host = map.choice_or("processes", {"per_device", "per_host"}, 0) == 1;
  training.layout_given = map.find("layout");
  training.options.layout = choice_of<Layout>(map, "layout", layout_names);
  if (map.find("dataset")) {
    YamlMap dataset = map.map("dataset");
    training.samples = dataset.integer("samples", 1);
    dataset.finish();
  }
  if (map.find("anchor")) training.anchor = read_anchor(map.map("anchor"));
  if (map.find("profile")) training.profile = read_profile(map);
  if (const YamlNode* input = map.find("input")) training.input = read_input(*input, map.path_of("input"));
  map.finish();
  return training;
}

void append_counted(const std::string& part, std::string& text) {
  text += std::to_string(part.size());
  text += ':';
  text += part;
}

void append_fingerprint(const YamlNode& node, std::string& text) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      text += '~';
      return;
    case YamlNode::Kind::scalar:
      text += node.quoted ? 'q' : 's';
      append_counted(node.scalar, text);
      return;
    case YamlNode::Kind::sequence:
      text += '[';
      for (const YamlNode& item : node.items) append_fingerprint(item, text);
      text += ']';
      return;
    case YamlNode::Kind::mapping:
      text += '{';
      for (const auto& [key, value] : node.entries) {
        append_counted(key, text);
        append_fingerprint(value, text);
      }
      text += '}';
      return;
  }
}

}  // namespace

std::string point_id(std::size_t index) { return std::to_string(index + 1); }
std::size_t point_index(const std::string& id) { return std::stoull(id) - 1; }

std::string fingerprint(const YamlNode& node) {
  std::string text;
  append_fingerprint(node, text);
  return text;
}

Experiment Experiment::load(const std::string& file, const std::vector<std::string>& settings) {
  Experiment experiment;
  YamlNode& tree = experiment.tree_;
  tree = load_yaml(file);
  YamlMap(tree, "");  // a mapping, before settings are put into it
  for (const std::string& setting : settings) apply_setting(tree, setting);
  YamlMap map(tree, "");
  experiment.name_ = read_name(map);
  if (const YamlNode* sweep = map.find("sweep"); sweep && sweep->kind != YamlNode::Kind::null)
    experiment.read_sweep(*sweep);
  erase_entry(tree, "sweep");
  return experiment;
}

void Experiment::read_sweep(const YamlNode& sweep) {
  YamlMap map(sweep, "sweep");
  for (const std::string& path : map.keys()) {
    const YamlNode& list = map.node(path);
    if (const std::string step(first_step(path));
        std::find(sweepable.begin(), sweepable.end(), step) == sweepable.end())
      throw InputError(list.key_pos, fmt::format("sweep.{}: only parts of {} can be swept{}", path,
                                                 list_of(sweepable), suggestion(step, sweepable)));
    if (list.kind != YamlNode::Kind::sequence || list.items.empty())
      map.fail(path, fmt::format("expected a list of values such as [1, 2, 4], found {}",
                                 list.kind == YamlNode::Kind::sequence ? "an empty list" : describe(list)));
    for (const auto& [earlier, values] : axes_)
      if (is_inside(earlier, path))
        throw InputError(
            list.key_pos,
            fmt::format("sweep.{}: replaces what sweep.{} above it sets; put it first", path, earlier));
    if (list.items.size() > max_points / size_)
      throw InputError(
          list.key_pos,
          fmt::format("sweep.{}: with this list the sweep has {} points; at most {} are run", path,
                      static_cast<double>(size_) * static_cast<double>(list.items.size()), max_points));
    size_ *= list.items.size();
    axes_.emplace_back(path, list.items);
  }
}

std::string Experiment::content() const {
  std::string text = fingerprint(tree_);
  for (const auto& [path, values] : axes_) {
    text += '\n' + path + ':';
    for (const YamlNode& value : values) text += fingerprint(value);
  }
  return text;
}

std::vector<std::pair<std::string, YamlNode>> Experiment::coordinates(std::size_t index) const {
  std::vector<std::pair<std::string, YamlNode>> result(axes_.size());
  for (std::size_t a = axes_.size(); a-- > 0;) {
    const auto& [path, values] = axes_[a];
    result[a] = {path, values[index % values.size()]};
    index /= values.size();
  }
  return result;
}

YamlNode Experiment::resolved(std::size_t index) const {
  if (const YamlNode* plan = this->plan())
    throw InputError(plan->key_pos,
                     "plan: this file asks what to rent, and names no one cluster: use `convoy plan FILE`");
  YamlNode tree = tree_;
  for (auto& [path, value] : coordinates(index)) set_path(tree, path, std::move(value));
  return tree;
}

Point Experiment::point(std::size_t index) const { return read_point(resolved(index)); }

Point read_point(const YamlNode& tree) {
  YamlMap map(tree, "");
  map.find("experiment");
  map.find("sweep");
  map.find("jobs");
  Point point;
  point.model = map.node("model");
  point.training = read_training(map.map("training"));
  point.cluster = map.node("cluster");
  point.strategy = map.node("strategy");
  if (const YamlNode* varies = map.find("variability")) point.variability = read_variability(*varies);
  map.finish();
  return point;
}

}  // namespace convoy
