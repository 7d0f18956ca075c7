// SPDX-License-Identifier: MIT
#include "sim/cli/show_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <ostream>
#include <stdexcept>

#include "models/model_keys.h"
#include "sim/base/key_kinds.h"
#include "sim/base/names.h"
#include "sim/collectives/schedule.h"
#include "sim/costs/input_pipeline.h"
#include "sim/planning/plan_spec.h"
#include "sim/results/json_writer.h"
#include "sim/run/experiment.h"
#include "sim/studies/job_study.h"
#include "sim/studies/regions/study_spec.h"
#include "strategies/pardnn/networks/networks.h"
#include "strategies/strategy.h"
#include "topologies/cluster_keys.h"

namespace convoy::inline cli {
namespace {

const std::vector<KeySection>& key_sections() {
  static const std::vector<KeySection> sections = [] {
    std::vector<KeySection> table{
        experiment_keys(), training_keys(),     input_keys(),   variability_keys(), numerics_keys(),
        model_keys(),      layer_keys(),        cluster_keys(), server_keys(),      device_keys(),
        fabric_keys(),     interconnect_keys(), job_keys(),     study_keys(),       operation_network_keys()};
    table.push_back(
        {"schedule", "a file of `algorithm: {file}`: an all-reduce as rounds", SumSchedule::key_texts()});
    for (KeySection& section : plan_keys()) table.push_back(std::move(section));
    table.push_back(goal_keys());
    return table;
  }();
  return sections;
}

/// Sections that other pages of `convoy show` tell.
const std::vector<KeySection>& further_sections() {
  static const std::vector<KeySection> sections = [] {
    std::vector<KeySection> kinds;
    for (const StrategyEntry& entry : strategy_registry())
      kinds.push_back({std::string(entry.kind), std::string(entry.summary), entry.keys, entry.decided_by,
                       entry.variants});
    return std::vector{section_of_kinds("strategy", "how the work is divided", std::move(kinds)),
                       described_server_keys()};
  }();
  return sections;
}

void print_keys(std::ostream& out, const std::vector<KeyText>& keys) {
  constexpr std::size_t usual_width = 18;
  const std::vector<KeyText> flat = by_path(keys);
  std::size_t width = usual_width;
  for (const KeyText& key : flat) width = std::max(width, key.name.size());
  const std::string margin(width + 5, ' ');
  for (const KeyText& key : flat)
    out << fmt::format("  {:<{}} {}\n{}{}\n", key.name, width, key.values, margin,
                       boost::replace_all_copy(key.meaning, "\n", "\n" + margin));
}

void write_keys(JsonWriter& json, const std::vector<KeyText>& keys) {
  json.key("keys");
  json.begin_array();
  for (const KeyText& key : keys) {
    json.begin_object();
    json.field("name", key.name);
    json.field("values", key.values);
    json.field("meaning", boost::replace_all_copy(key.meaning, "\n", " "));
    if (!key.parts.empty()) write_keys(json, key.parts);
    json.end_object();
  }
  json.end_array();
}

/// @param label what JSON calls the name: "kind"
void show_table(std::ostream& out, bool as_json, std::string_view label, const KeySection& section) {
  if (!as_json) {
    out << fmt::format("{}: {}\n", section.name, section.summary);
    print_keys(out, section.keys);
    return;
  }
  JsonWriter json(out);
  json.begin_object();
  json.field(label, section.name);
  json.field("summary", section.summary);
  write_keys(json, section.keys);
  json.end_object();
  json.raw("\n");
}

/// @throws InputError: there is no such name
void check_name(const std::string& subject, const std::string& what, const std::string& name,
                const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw InputError({"show " + subject, 1, 1}, fmt::format("unknown {} '{}'{}; there are {}", what, name,
                                                            suggestion(name, names), list_of(names)));
}

const StrategyEntry& strategy_named(const std::string& name) {
  check_name("strategies", "strategy", name, strategy_names());
  return strategy_entry(name);
}

const KeySection& section_named(const std::string& name) {
  check_name("keys", "section", name, key_section_names());
  return *std::find_if(key_sections().begin(), key_sections().end(),
                       [&](const KeySection& section) { return section.name == name; });
}

}  // namespace

std::vector<KeyText> by_path(const std::vector<KeyText>& keys, const std::string& path) {
  std::vector<KeyText> flat;
  for (const KeyText& key : keys) {
    flat.push_back(key);
    flat.back().name = path + key.name;
    for (KeyText& part : by_path(key.parts, path + key.name + (key.takes_list ? "[]." : ".")))
      flat.push_back(std::move(part));
  }
  return flat;
}

const KeySection* find_key_section(const std::string& name) {
  for (const std::vector<KeySection>* sections : {&key_sections(), &further_sections()})
    for (const KeySection& section : *sections)
      if (section.name == name) return &section;
  return nullptr;
}

const KeySection& key_section(const std::string& name) {
  if (const KeySection* section = find_key_section(name)) return *section;
  throw std::out_of_range(fmt::format("no section '{}'", name));
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const StrategyEntry& entry : strategy_registry()) names.emplace_back(entry.kind);
  return names;
}

std::string strategy_line(const std::string& name) { return std::string(strategy_named(name).summary); }

void show_strategy(std::ostream& out, const ShowArguments& arguments) {
  const StrategyEntry& entry = strategy_named(arguments.name);
  show_table(out, arguments.json, "kind", {std::string(entry.kind), std::string(entry.summary), entry.keys});
}

std::vector<std::string> key_section_names() {
  std::vector<std::string> names;
  for (const KeySection& section : key_sections()) names.push_back(section.name);
  return names;
}

std::string key_section_line(const std::string& name) { return section_named(name).summary; }

void show_key_section(std::ostream& out, const ShowArguments& arguments) {
  show_table(out, arguments.json, "section", section_named(arguments.name));
}

}  // namespace convoy::cli
