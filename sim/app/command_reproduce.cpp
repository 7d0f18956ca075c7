// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <set>
#include <thread>

#include "sim/app/commands.h"
#include "sim/app/output_folder.h"
#include "sim/app/reproduce.h"
#include "sim/results/json_writer.h"

namespace convoy {
namespace {

struct Entry {
  const char* name;
  Reproduction (*run)();
};

constexpr std::array entries{
    Entry{"single-device", &reproduce_single_device},
    Entry{"scaling", [] { return reproduce_scaling(std::max(1u, std::thread::hardware_concurrency())); }}};

void write_json(const std::vector<Reproduction>& reproductions, std::ostream& out) {
  JsonWriter json(out);
  json.begin_object();
  json.field("schema", "convoy.reproduction/1");
  json.key("reproductions");
  json.begin_array();
  for (const Reproduction& reproduction : reproductions) {
    json.begin_object();
    json.field("name", reproduction.name);
    json.field("title", reproduction.title);
    json.field("mean_error", reproduction.mean_error());
    json.field("worst_error", reproduction.worst_error());
    json.field("mean_tolerance", reproduction.mean_tolerance);
    json.field("worst_tolerance", reproduction.worst_tolerance);
    json.field("passed", reproduction.passed());
    json.key("rows");
    json.begin_array();
    for (const ReproducedRow& row : reproduction.rows) {
      json.begin_object(JsonWriter::Style::compact);
      json.field("table", row.table);
      json.field("model", row.model);
      json.field("setup", row.setup);
      json.field("published_images_per_s", row.published);
      json.field("predicted_images_per_s", row.predicted);
      json.field("error", row.error);
      json.field("anchor", row.anchor);
      json.field("disputed", row.disputed);
      json.field("source", row.source);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.raw("\n");
}

void write_table(const Reproduction& reproduction, std::ostream& out) {
  std::size_t table_width = 5, model_width = 5, setup_width = 5;
  for (const ReproducedRow& row : reproduction.rows) {
    table_width = std::max(table_width, row.table.size());
    model_width = std::max(model_width, row.model.size());
    setup_width = std::max(setup_width, row.setup.size());
  }
  out << fmt::format("{} ({})\n", reproduction.title, reproduction.name);
  out << fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>9}  {:>9}  {:>8}\n", "table", table_width, "model",
                     model_width, "setup", setup_width, "published", "predicted", "error");
  for (const ReproducedRow& row : reproduction.rows)
    out << fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>9.1f}  {:>9.1f}  {:>8}\n", row.table, table_width,
                       row.model, model_width, row.setup, setup_width, row.published, row.predicted,
                       row.anchor
                           ? "anchor"
                           : fmt::format("{:+.1f} %{}", 100 * row.error, row.disputed.empty() ? "" : " *"));
  std::set<std::string> reasons;
  for (const ReproducedRow& row : reproduction.rows)
    if (!row.disputed.empty()) reasons.insert(row.disputed);
  if (!reasons.empty())
    out << "* other measurements contradict it; counts in the mean, not in the worst error:\n";
  for (const std::string& reason : reasons) out << "  " << reason << '\n';
  out << fmt::format("{}: mean error {:.1f} % (at most {:.0f} %), worst {:.1f} % (at most {:.0f} %): {}\n\n",
                     reproduction.name, 100 * reproduction.mean_error(), 100 * reproduction.mean_tolerance,
                     100 * reproduction.worst_error(), 100 * reproduction.worst_tolerance,
                     reproduction.passed() ? "passed" : "FAILED");
}

}  // namespace

std::vector<std::string> reproduction_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  return names;
}

Exit reproduce_command(const ReproduceArguments& arguments) {
  std::vector<Reproduction> reproductions;
  for (const Entry& entry : entries)
    if (arguments.names.empty() ||
        std::find(arguments.names.begin(), arguments.names.end(), entry.name) != arguments.names.end())
      reproductions.push_back(entry.run());
  write_stdout([&](std::ostream& out) {
    if (arguments.json) return write_json(reproductions, out);
    for (const Reproduction& reproduction : reproductions) write_table(reproduction, out);
  });
  const bool passed = std::all_of(reproductions.begin(), reproductions.end(),
                                  [](const Reproduction& r) { return r.passed(); });
  return passed ? Exit::done : Exit::check_failed;
}

}  // namespace convoy
