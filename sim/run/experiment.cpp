// SPDX-License-Identifier: MIT
#include "sim/run/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "sim/base/document_kind.h"
#include "sim/base/key_parts.h"
#include "sim/base/memo.h"
#include "sim/base/names.h"
#include "sim/base/yaml_map.h"
#include "sim/costs/residuals.h"
#include "sim/results/json_writer.h"
#include "sim/run/search/search_spec.h"
#include "sim/run/sweep_hint.h"

namespace convoy::inline runs {
namespace {

const std::vector<std::string> sweepable{"model",    "training",    "cluster",
                                         "strategy", "variability", "numerics"};

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

/// `sweep.PATH=list`: PATH, with all its dots, is one key of the sweep.
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

std::string path_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }

SourcePos place_of(const std::string& path) { return {"--set " + path, 1, 1}; }

void apply_setting(YamlNode& tree, const std::string& setting) {
  const std::size_t equals = setting.find('=');
  const std::string path = path_of(setting);
  const SourcePos pos = place_of(path);
  if (equals == std::string::npos || path.empty())
    throw InputError(pos, "write --set key.path=value, such as --set cluster.nodes=4");
  const std::string text = setting.substr(equals + 1);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw InputError(pos, fmt::format("the value after '{}=' is missing", path));
  YamlNode value = parse_yaml(text, pos.file);
  if (path.starts_with("sweep.")) return set_axis(tree, path.substr(6), std::move(value));
  set_path(tree, path, std::move(value));
}

/// Refuses a setting that the sweep, as all settings together leave it, would override.
void refuse_overridden(const YamlNode& tree, const std::string& setting) {
  const std::string path = path_of(setting);
  const YamlNode* sweep = tree.find("sweep");
  if (!sweep || path == "sweep") return;
  for (const auto& [axis, values] : sweep->entries)
    if (axis == path || is_inside(path, axis) || is_inside(axis, path))
      throw InputError(place_of(path),
                       fmt::format("the experiment sweeps '{}', which would override this; write --set "
                                   "sweep.{}=[...], or --set sweep=null for one point",
                                   axis, axis));
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

/// Read when the experiment is loaded, or by the reader of jobs.
void take_elsewhere(YamlMap& map, Point&) {
  for (const char* key : {"experiment", "sweep", "jobs", "study", "spread"}) map.find(key);
}

bool same_text(const YamlNode& a, const YamlNode& b) {
  return a.kind == b.kind && a.scalar == b.scalar && a.quoted == b.quoted && a.pos == b.pos &&
         a.key_pos == b.key_pos && std::ranges::equal(a.items, b.items, same_text) &&
         std::ranges::equal(a.entries, b.entries, [](const auto& one, const auto& other) {
           return one.first == other.first && same_text(one.second, other.second);
         });
}

/// A mapping as it was written, with its place, which errors name.
struct WrittenTraining {
  YamlNode node;
  std::string path;
  bool operator==(const WrittenTraining& other) const {
    return path == other.path && same_text(node, other.node);
  }
  std::size_t hash() const {
    std::size_t hash = std::hash<std::string>{}(path);
    for (const auto& [key, value] : node.entries)
      hash = hash_with(hash, std::hash<std::string>{}(value.scalar));
    return hash;
  }
};

/// The points of a sweep that changes something else have the same text.
Training training_of(YamlMap& map) {
  static thread_local Memo<WrittenTraining, Training> memo(64);
  const YamlNode* node = map.find("training");
  if (!node || node->find("profile")) return read_training(map.map("training"));  // a file is looked for
  return memo.of({*node, map.path()},
                 [&](const WrittenTraining&) { return read_training(map.map("training")); });
}

const Keys<Point>& point_keys() {
  static const Keys<Point> keys{
      // Experiment::load requires it of files; the candidates of plans have none.
      custom_key<Point>("experiment", "", forms::text("a name"),
                        "of the experiment and of its folder of results", &take_elsewhere)
          .told_required(),
      node_key<Point>("model",
                      forms::either({forms::text("a model of the zoo", "models"),
                                     forms::section("model", "{layers: ...} | {file} | {onnx} | {profile}")}),
                      "what is trained (docs/models.md)", &Point::model)
          .required(),
      custom_key<Point>("training", "", forms::section("training", "a mapping"),
                        "how it is trained (`convoy show keys training`)",
                        [](YamlMap& map, Point& point) { point.training = training_of(map); })
          .required(),
      node_key<Point>(
          "cluster",
          forms::either({forms::section("cluster", "{...}"), forms::text("a cluster", "clusters")})
              .said("{server, nodes} | a cluster of the catalogue | {nodes: [...], fabric}"),
          "on what (docs/clusters.md)", &Point::cluster)
          .required(),
      node_key<Point>("strategy", forms::section("strategy", "{kind, ...}"),
                      "how the work is divided (`convoy show strategies`)", &Point::strategy)
          .required(),
      custom_key<Point>("sweep", "none", forms::section("sweep", "{path: [value, ...], ...}"),
                        "lists of values to try, by dotted paths; all combinations are points",
                        &take_elsewhere),
      custom_key<Point>("variability", "none", forms::section("variability", "a mapping"),
                        "what differs from step to step, and what interrupts training (`convoy show keys "
                        "variability`)",
                        [](YamlMap& map, Point& point) {
                          if (const YamlNode* varies = map.find("variability"))
                            point.variability = read_variability(*varies);
                        }),
      custom_key<Point>("numerics", "none", forms::section("numerics", "a mapping"),
                        "the network learns from real values, as the plan says (`convoy show keys numerics`)",
                        [](YamlMap& map, Point& point) {
                          const YamlNode* node = map.find("numerics");
                          if (!node) return;
                          if (is_search(point.strategy))
                            map.fail("numerics",
                                     "`kind: auto` tries many plans; write the strategy with which the "
                                     "network is to learn");
                          point.numerics = read_numerics(*node);
                          point.numerics_identity = fingerprint(*node);
                        }),
      custom_key<Point>(
          "spread", "none", forms::entries(forms::quantity(Dimension::fraction, true), "{path: 20%, ...}"),
          "how far off numbers of this file may be, by dotted paths: one standard deviation, by "
          "which the interval of each run is wider",
          &take_elsewhere),
      custom_key<Point>("jobs", "none", forms::section("jobs", "a mapping"),
                        "a queue of jobs for which the runs are throughput (docs/strategies.md)",
                        &take_elsewhere),
      custom_key<Point>("study", "none", forms::section("study", "a mapping"),
                        "for which inputs claims hold, which `convoy study` answers (docs/studies.md)",
                        &take_elsewhere)};
  return keys;
}

}  // namespace

std::string point_id(std::size_t index) { return std::to_string(index + 1); }
std::size_t point_index(const std::string& id) { return std::stoull(id) - 1; }

Experiment Experiment::load(const std::string& file, const std::vector<std::string>& settings,
                            std::size_t shards) {
  return read(load_yaml(file), settings, shards);
}

Experiment Experiment::parse(const std::string& text, const std::string& place,
                             const std::vector<std::string>& settings) {
  return read(parse_yaml(text, place), settings, 1);
}

Experiment Experiment::read(YamlNode read_tree, const std::vector<std::string>& settings,
                            std::size_t shards) {
  Experiment experiment;
  YamlNode& tree = experiment.tree_;
  tree = std::move(read_tree);
  YamlMap(tree, "");  // a mapping, before settings are put into it
  refuse_other_document(tree, DocumentKind::experiment);
  for (const std::string& setting : settings) apply_setting(tree, setting);
  for (const std::string& setting : settings) refuse_overridden(tree, setting);
  YamlMap map(tree, "");
  experiment.name_ = read_name(map);
  if (const YamlNode* sweep = map.find("sweep")) experiment.read_sweep(*sweep, shards);
  erase_entry(tree, "sweep");
  return experiment;
}

void Experiment::read_sweep(const YamlNode& sweep, std::size_t shards) {
  YamlMap map(sweep, "sweep");
  const std::size_t most =
      std::min(shards, std::numeric_limits<std::size_t>::max() / max_points) * max_points;
  std::vector<SweepPoints::Axis> axes;
  std::size_t size = 1;
  for (const std::string& path : map.keys()) {
    const YamlNode& list = map.node(path);
    if (const std::string step(first_step(path));
        std::find(sweepable.begin(), sweepable.end(), step) == sweepable.end())
      throw InputError(list.key_pos, fmt::format("sweep.{}: only parts of {} can be swept{}", path,
                                                 list_of(sweepable), suggestion(step, sweepable)));
    if (list.kind != YamlNode::Kind::sequence || list.items.empty())
      map.fail(path, fmt::format("expected a list of values such as [1, 2, 4], found {}",
                                 list.kind == YamlNode::Kind::sequence ? "an empty list" : describe(list)));
    for (const auto& [earlier, values] : axes)
      if (is_inside(earlier, path))
        throw InputError(
            list.key_pos,
            fmt::format("sweep.{}: replaces what sweep.{} above it sets; put it first", path, earlier));
    if (list.items.size() > most / size)
      throw InputError(
          list.key_pos,
          fmt::format("sweep.{}: with this list the sweep has {} points; at most {} are run in one piece; "
                      "`--shard I/N` runs every N-th of them",
                      path, static_cast<double>(size) * static_cast<double>(list.items.size()), max_points));
    size *= list.items.size();
    axes.emplace_back(path, list.items);
  }
  sweep_ = std::make_shared<const SweepPoints>(SweepPoints::product_of(std::move(axes)));
}

Experiment Experiment::at_points(std::vector<Coordinates> points) const {
  Experiment experiment = *this;
  erase_entry(experiment.tree_, "study");
  experiment.sweep_ = std::make_shared<const SweepPoints>(SweepPoints::listed(std::move(points)));
  return experiment;
}

std::string Experiment::content() const { return fingerprint(tree_) + sweep_->fingerprint(); }

YamlNode Experiment::resolved(std::size_t index) const {
  if (const YamlNode* plan = this->plan())
    throw InputError(plan->key_pos,
                     "plan: this file asks what to rent, and names no one cluster: use `convoy plan FILE`");
  if (const YamlNode* study = this->study())
    throw InputError(study->key_pos,
                     "study: this file asks for which inputs claims hold: use `convoy study FILE`");
  YamlNode tree = tree_;
  for (auto& [path, value] : coordinates(index)) set_path(tree, path, std::move(value));
  return tree;
}

Point Experiment::point(std::size_t index) const {
  return hinting_at_sweep(*this, index, [&] { return read_point(resolved(index)); });
}

namespace {

/// The number with which a scalar begins, and the unit behind it: "10" and "Gbps". Nothing for other text.
std::optional<std::pair<double, std::string>> number_and_unit(const YamlNode* node) {
  if (node == nullptr || node->kind != YamlNode::Kind::scalar) return std::nullopt;
  const char* const begin = node->scalar.data();
  double number = 0;
  const auto [rest, wrong] = std::from_chars(begin, begin + node->scalar.size(), number);
  if (wrong != std::errc{} || !std::isfinite(number)) return std::nullopt;
  return std::pair{number, std::string(rest, begin + node->scalar.size())};
}

/// @param tree of the point, without `spread`
std::vector<WrittenSpread> read_spreads(const YamlNode& node, const YamlNode& tree) {
  YamlMap map(node, "spread");
  std::vector<WrittenSpread> spreads;
  for (const std::string& path : map.keys()) {
    const double share = map.quantity(path, Dimension::fraction, true);
    const YamlNode* value = find_path(tree, path);
    const auto number = number_and_unit(value);
    if (!number)
      map.fail(path,
               value == nullptr
                   ? "the file writes no number at this path; only numbers that the file or --set writes can "
                     "have a spread"
                   : fmt::format("expected a number at that path, found {}", describe(*value)));
    WrittenSpread& written = spreads.emplace_back(
        WrittenSpread{path, value->scalar, std::log1p(share), map.pos(path), nullptr, nullptr});
    const auto moved = [&](double factor) {
      YamlNode scalar = *value, other = tree;
      scalar.scalar = shortest(number->first * factor) + number->second;
      set_path(other, path, std::move(scalar));
      return std::make_shared<const Point>(read_point(other));
    };
    const double factor = std::exp(quantile_80 * written.spread);
    try {
      written.less = moved(1 / factor);
      written.more = moved(factor);
    } catch (const InputError& error) {
      map.fail(path, fmt::format("the experiment cannot be read with so much less or more of it: {}",
                                 error.what()));
    }
  }
  return spreads;
}

}  // namespace

Point read_point(const YamlNode& tree) {
  Point point;
  read_part(point_keys(), YamlMap(tree, ""), point);
  YamlMap map(tree, "");
  if (const YamlNode* spreads = map.find("spread")) {
    YamlNode exact = tree;
    erase_entry(exact, "spread");
    point.spreads = read_spreads(*spreads, exact);
  }
  return point;
}

const std::vector<std::string>& sweepable_parts() { return sweepable; }

KeySection experiment_keys() {
  return {"experiment", "the file that `convoy run` and `convoy check` take", texts_of(point_keys())};
}

}  // namespace convoy::runs
