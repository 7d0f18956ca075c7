// SPDX-License-Identifier: MIT
#include "sim/results/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/page/text.h"
#include "sim/results/field_text.h"

namespace convoy::inline results {
namespace {

using Coordinates = std::vector<std::pair<std::string, YamlNode>>;

/// Equal for values that mean the same, however the keys of their mappings are ordered.
std::string value_key(YamlNode node) {
  const auto order = [](auto& self, YamlNode& each) -> void {
    for (YamlNode& item : each.items) self(self, item);
    for (auto& [name, value] : each.entries) self(self, value);
    std::sort(each.entries.begin(), each.entries.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  };
  order(order, node);
  return to_flow(node);
}

std::string point_key(const Coordinates& point) {
  std::map<std::string, std::string> values;
  for (const auto& [path, value] : point) values.emplace(path, value_key(value));
  return fmt::format("{}", values);
}

std::string written(const YamlNode* node) {
  constexpr std::size_t longest = 60;
  return node ? shortened(to_flow(*node), longest) : "not given";
}

/// Adds "training.batch_per_device: 64 -> 128" for each value that differs.
void add_changed_keys(const std::string& path, const YamlNode* a, const YamlNode* b,
                      std::vector<std::string>& because) {
  if (a && b && value_key(*a) == value_key(*b) && a->kind == b->kind) return;
  if (a && b && a->kind == YamlNode::Kind::mapping && b->kind == YamlNode::Kind::mapping) {
    const auto inner = [&](const std::string& name) { return path.empty() ? name : path + "." + name; };
    for (const auto& [name, value] : a->entries)
      add_changed_keys(inner(name), &value, b->find(name), because);
    for (const auto& [name, value] : b->entries)
      if (!a->find(name)) add_changed_keys(inner(name), nullptr, &value, because);
    return;
  }
  if (a && b && a->kind == YamlNode::Kind::sequence && b->kind == YamlNode::Kind::sequence &&
      a->items.size() == b->items.size()) {
    for (std::size_t i = 0; i < a->items.size(); ++i)
      add_changed_keys(fmt::format("{}.{}", path, i), &a->items[i], &b->items[i], because);
    return;
  }
  because.push_back(fmt::format("{}: {} -> {}", path, written(a), written(b)));
}

/// The experiment as it was at the point.
YamlNode resolved(const Origin& origin, const Coordinates& point) {
  YamlNode tree = origin.experiment;
  for (const char* name : {"experiment", "jobs"})
    std::erase_if(tree.entries, [&](const auto& entry) { return entry.first == name; });
  for (const auto& [path, value] : point) set_path(tree, path, value);
  return tree;
}

/// "a", or "a, b" of the words that only one side has: what a run says of itself.
std::vector<std::pair<const char*, std::string>> words_of(const RunResult& run) {
  return {{"model", run.model},
          {"cluster", run.cluster},
          {"servers", run.servers},
          {"devices", fmt::format("{} x {}", run.devices, run.device_type)},
          {"global batch", fmt::format("{}", run.global_batch)},
          {"strategy", run.strategy},
          {"framework", run.software.framework},
          {"execution", run.software.execution},
          {"layout", run.software.layout},
          {"precision", run.software.precision},
          {"update", run.software.update},
          {"transport", run.software.transport},
          {"input", run.software.input}};
}

void add_changed_words(const RunResult& a, const RunResult& b, std::vector<std::string>& because) {
  const auto before = words_of(a), after = words_of(b);
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i].second != after[i].second)
      because.push_back(fmt::format("{}: {} -> {}", before[i].first, before[i].second, after[i].second));
}

/// Whether the entry of the catalogue or of the zoo, a file of which the name is `stem`, is one that the run
/// names.
bool names_entry(const RunResult& run, const std::string& stem) {
  const auto words = words_of(run);
  return std::any_of(words.begin(), words.end(), [&](const auto& word) {
    const std::size_t at = word.second.find(stem);
    if (at == std::string::npos) return false;
    const auto ends = [](char c) { return c == ' ' || c == ',' || c == ':' || c == '('; };
    const std::size_t end = at + stem.size();
    return (at == 0 || ends(word.second[at - 1])) && (end == word.second.size() || ends(word.second[end]));
  });
}

std::string stem_of(const std::string& file) {
  const std::size_t begin = file.rfind('/') + 1;  // npos + 1 is 0
  return file.substr(begin, file.rfind('.') - begin);
}

/// Files that are there twice and have other content: those that the run names, then the others as a number.
void add_changed_files(const Origin& a, const Origin& b, const RunResult& run,
                       std::vector<std::string>& because) {
  constexpr std::size_t most = 5;
  const std::map<std::string, std::string> after(b.files.begin(), b.files.end());
  std::vector<std::string> named, others;
  for (const auto& [file, digest] : a.files)
    if (const auto now = after.find(file); now != after.end() && now->second != digest)
      (names_entry(run, stem_of(file)) ? named : others).push_back(file);
  for (const std::string& file : named) because.push_back(fmt::format("{} has other content", file));
  for (std::size_t i = 0; i < std::min(most, others.size()); ++i)
    because.push_back(fmt::format("{} has other content (not named by the run)", others[i]));
  if (others.size() > most)
    because.push_back(fmt::format("{} more files have other content", others.size() - most));
}

void add_changed_program(const ComparedResults& a, const ComparedResults& b,
                         std::vector<std::string>& because) {
  const auto text = [](const ComparedResults& side) {
    const std::string build = side.origin ? " (build " + side.origin->build.substr(0, 12) + ")" : "";
    return fmt::format("convoy {}{}, SimGrid {}", side.results.manifest.version, build,
                       side.results.manifest.simgrid);
  };
  const bool both = a.origin && b.origin;
  if (a.results.manifest.version != b.results.manifest.version ||
      a.results.manifest.simgrid != b.results.manifest.simgrid ||
      (both && a.origin->build != b.origin->build))
    because.push_back(fmt::format("program: {} -> {}", text(a), text(b)));
}

std::vector<std::string> reasons(const ComparedResults& a, const ComparedResults& b, const RunResult& run_a,
                                 const RunResult& run_b) {
  std::vector<std::string> because;
  const Manifest &before = a.results.manifest, &after = b.results.manifest;
  if (a.origin && b.origin) {
    const YamlNode tree_a = resolved(*a.origin, run_a.point), tree_b = resolved(*b.origin, run_b.point);
    add_changed_keys("", &tree_a, &tree_b, because);
    add_changed_files(*a.origin, *b.origin, run_b, because);
  } else {
    add_changed_words(run_a, run_b, because);
    if (before.set != after.set)
      because.push_back(fmt::format(
          "--set: {} -> {}", before.set.empty() ? "none" : fmt::format("{}", fmt::join(before.set, ", ")),
          after.set.empty() ? "none" : fmt::format("{}", fmt::join(after.set, ", "))));
    if (because.empty() && before.config_sha256 != after.config_sha256)
      because.push_back(
          "a key of the experiment: their digests differ (the folders' stores would say which)");
  }
  if (run_a.network_model != run_b.network_model)
    because.push_back(fmt::format("network model: {} -> {}", run_a.network_model, run_b.network_model));
  add_changed_program(a, b, because);
  if (because.empty())
    because.push_back(a.origin && b.origin
                          ? "nothing that is recorded: other options of the command (--full, --explain)"
                          : "nothing that results.json records: the catalogue, or another build of the "
                            "program (the folders' stores would say which)");
  return because;
}

std::vector<ComparedTerm> terms_of(const RunResult& a, const RunResult& b) {
  const auto term = [&](const char* name, const auto& value) {
    return ComparedTerm{name, {std::optional<double>(value(a)), std::optional<double>(value(b))}};
  };
  return {term("global_batch", [](const RunResult& r) { return r.global_batch; }),
          term("compute_s", [](const RunResult& r) { return r.compute_s; }),
          term("exposed_comm_s", [](const RunResult& r) { return r.exposed_comm_s; }),
          term("idle_s", [](const RunResult& r) { return r.idle_s; }),
          term("throughput_images_per_s", [](const RunResult& r) { return r.throughput_images_per_s; }),
          term("comm_bytes", [](const RunResult& r) { return r.comm_bytes; }),
          term("peak_memory_bytes", [](const RunResult& r) { return r.peak_memory_bytes; }),
          term("process_memory_bytes", [](const RunResult& r) { return r.process_memory_bytes; }),
          term("energy_j", [](const RunResult& r) { return r.energy_j; }),
          term("epoch_time_s", [](const RunResult& r) { return r.epoch_time_s; }),
          term("cost_usd_per_epoch", [](const RunResult& r) { return r.cost_usd_per_epoch; })};
}

/// The numbers that results.json has of a run, without its place in the sweep and without the words for what
/// they are of.
std::string numbers_of(RunResult run) {
  run.model = run.cluster = run.servers = run.device_type = run.strategy = {};
  run.algorithms = run.warnings = {};
  run.software = {};
  run.bottleneck.name = run.bottleneck.text = {};
  for (DeviceResult& device : run.per_device) device.name = {};
  for (LinkResult& link : run.per_link) link.name = {};
  return to_text(run, run_body_fields);
}

double change_of(const ChangedPoint& point) {
  const auto [a, b] = point.same_batch() ? point.step_time_s : point.images_per_s;
  return a > 0 && b > 0 ? std::abs(std::log(b / a)) : (a == b ? 0 : INFINITY);
}

}  // namespace

Comparison compare(const ComparedResults& a, const ComparedResults& b) {
  Comparison comparison{{a.name, b.name}, 0, {}, {}};
  std::multimap<std::string, const RunResult*> of_b;
  for (const RunResult& run : b.results.runs) of_b.emplace(point_key(run.point), &run);
  std::set<const RunResult*> joined;
  for (const RunResult& run : a.results.runs) {
    const auto [other, behind] = of_b.equal_range(point_key(run.point));
    if (other == behind) {
      comparison.only[0].push_back(run.point);
      continue;
    }
    const RunResult& with = *other->second;
    joined.insert(&with);
    of_b.erase(other);
    if (numbers_of(run) == numbers_of(with))
      ++comparison.same;
    else
      comparison.changed.push_back({run.point,
                                    {run.id, with.id},
                                    {run.step_time_s, with.step_time_s},
                                    {run.global_batch, with.global_batch},
                                    {run.throughput_images_per_s, with.throughput_images_per_s},
                                    terms_of(run, with),
                                    reasons(a, b, run, with)});
  }
  for (const RunResult& run : b.results.runs)
    if (!joined.contains(&run)) comparison.only[1].push_back(run.point);
  std::stable_sort(comparison.changed.begin(), comparison.changed.end(),
                   [](const ChangedPoint& x, const ChangedPoint& y) { return change_of(x) > change_of(y); });
  return comparison;
}

}  // namespace convoy::results
