// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <set>
#include <thread>

#include "sim/app/claims.h"
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

struct ClaimsEntry {
  const char* name;
  Claims (*run)(std::size_t jobs);
};

constexpr std::array claims_entries{ClaimsEntry{"kaist2019", &reproduce_kaist2019},
                                    ClaimsEntry{"afs", &reproduce_afs}};

void limit_field(JsonWriter& json, std::string_view name, double limit) {
  json.key(name);
  std::isfinite(limit) ? json.value(limit) : json.null();
}

void write_claims_json(JsonWriter& json, const std::vector<Claims>& all) {
  json.key("claims");
  json.begin_array();
  for (const Claims& claims : all) {
    json.begin_object();
    json.field("name", claims.name);
    json.field("title", claims.title);
    json.field("passed", claims.passed());
    json.key("rows");
    json.begin_array();
    for (const Claim& row : claims.rows) {
      json.begin_object(JsonWriter::Style::compact);
      json.field("what", row.what);
      json.field("setup", row.setup);
      json.field("target", row.published ? "published" : "calculated");
      json.field("stated", row.stated);
      json.field("ours", row.ours);
      json.field("unit", row.unit);
      json.field("error", row.error());
      limit_field(json, "least", row.least);
      limit_field(json, "most", row.most);
      json.field("passed", row.passed());
      json.field("source", row.source);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

void write_json(const std::vector<Reproduction>& reproductions, const std::vector<Claims>& claims,
                std::ostream& out) {
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
  write_claims_json(json, claims);
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

/// "4.5 to 7.5", "at most 0.52"
std::string limits(const Claim& row) {
  if (std::isinf(row.least)) return fmt::format("at most {:.4g}", row.most);
  if (std::isinf(row.most)) return fmt::format("at least {:.4g}", row.least);
  return fmt::format("{:.4g} to {:.4g}", row.least, row.most);
}

void write_claims_table(const Claims& claims, std::ostream& out) {
  std::size_t what_width = 5, setup_width = 5;
  for (const Claim& row : claims.rows) {
    what_width = std::max(what_width, row.what.size());
    setup_width = std::max(setup_width, row.setup.size());
  }
  out << fmt::format("{} ({})\n", claims.title, claims.name);
  out << fmt::format("{:<{}}  {:<{}}  {:<10}  {:>10}  {:>10}  {:>8}  {}\n", "claim", what_width, "setup",
                     setup_width, "target is", "target", "ours", "error", "accepted");
  for (const Claim& row : claims.rows) {
    const auto value = [&](double number) { return fmt::format("{:.3g} {}", number, row.unit); };
    out << fmt::format("{:<{}}  {:<{}}  {:<10}  {:>10}  {:>10}  {:>8}  {}{}\n", row.what, what_width,
                       row.setup, setup_width, row.published ? "published" : "calculated", value(row.stated),
                       value(row.ours), fmt::format("{:+.1f} %", 100 * row.error()), limits(row),
                       row.passed() ? "" : "  OUT");
  }
  out << fmt::format("{}: {}\n\n", claims.name, claims.passed() ? "passed" : "FAILED");
}

}  // namespace

std::vector<std::string> reproduction_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  for (const ClaimsEntry& entry : claims_entries) names.emplace_back(entry.name);
  return names;
}

Exit reproduce_command(const ReproduceArguments& arguments) {
  const auto wanted = [&](const char* name) {
    return arguments.names.empty() ||
           std::find(arguments.names.begin(), arguments.names.end(), name) != arguments.names.end();
  };
  std::vector<Reproduction> reproductions;
  for (const Entry& entry : entries)
    if (wanted(entry.name)) reproductions.push_back(entry.run());
  std::vector<Claims> claims;
  for (const ClaimsEntry& entry : claims_entries)
    if (wanted(entry.name)) claims.push_back(entry.run(std::max(1u, std::thread::hardware_concurrency())));
  write_stdout([&](std::ostream& out) {
    if (arguments.json) return write_json(reproductions, claims, out);
    for (const Reproduction& reproduction : reproductions) write_table(reproduction, out);
    for (const Claims& of_paper : claims) write_claims_table(of_paper, out);
  });
  const auto passed = [](const auto& all) {
    return std::all_of(all.begin(), all.end(), [](const auto& one) { return one.passed(); });
  };
  return passed(reproductions) && passed(claims) ? Exit::done : Exit::check_failed;
}

}  // namespace convoy
