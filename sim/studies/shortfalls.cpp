// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <limits>
#include <map>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// What results/published/shortfalls.yaml says about one comparison.
struct Shortfalls {
  struct Row {
    std::string table, model, setup, reason;
  };
  std::vector<Row> rows;
  std::vector<Row> reasons;                  ///< with patterns (fnmatch) of rows that have one in common
  std::map<std::string, std::string> gates;  ///< name -> reason
};

Shortfalls read_shortfalls(const std::string& of) {
  const YamlNode file = load_yaml(data_path("results/published") + "/shortfalls.yaml");
  check_shortfalls(file, load_yaml(data_path("results/published") + "/gates.yaml"));
  YamlMap root(file, "");
  Shortfalls result;
  for (const std::string& name : root.keys()) {
    YamlMap map = root.map(name);
    Shortfalls read;
    if (map.has("rows"))
      for (YamlMap& row : map.maps("rows")) {
        read.rows.push_back({row.text("table"), row.text("model"), row.text("setup"), row.text("reason")});
        row.finish();
      }
    if (map.has("reasons"))
      for (YamlMap& row : map.maps("reasons")) {
        const auto pattern = [&row](const char* key) {
          return row.has(key) ? row.text(key) : std::string("*");
        };
        read.reasons.push_back({pattern("table"), pattern("model"), pattern("setup"), row.text("reason")});
        row.finish();
      }
    if (map.has("gates")) {
      YamlMap gates = map.map("gates");
      for (const std::string& gate : gates.keys()) read.gates[gate] = gates.text(gate);
    }
    map.finish();
    if (name == of) result = std::move(read);
  }
  return result;
}

/// Rows that are known to be off by more than the worst tolerance do not count in it.
void mark_rows(Reproduction& reproduction, const std::vector<Shortfalls::Row>& known) {
  for (const Shortfalls::Row& row : known) {
    const auto found =
        std::find_if(reproduction.rows.begin(), reproduction.rows.end(), [&](const ReproducedRow& made) {
          return made.table == row.table && made.model == row.model && made.setup == row.setup;
        });
    const bool falls_short = found != reproduction.rows.end() && found->tested() &&
                             std::abs(found->error) > reproduction.worst_tolerance.value_or(0);
    if (falls_short)
      found->shortfall = row.reason;
    else
      reproduction.outdated_shortfalls.push_back(fmt::format("{}, {}, {}", row.table, row.model, row.setup));
  }
}

/// Gives each row that is off by more than `beyond` its reason: that of its shortfall, else the first whose
/// patterns it matches.
void explain_rows(Reproduction& reproduction, const std::vector<Shortfalls::Row>& reasons, double beyond) {
  std::vector<bool> used(reasons.size());
  const auto matches = [](const std::string& pattern, const std::string& text) {
    return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
  };
  for (ReproducedRow& row : reproduction.rows) {
    if (!row.tested() || std::abs(row.error) <= beyond) continue;
    row.reason = row.shortfall;
    for (std::size_t i = 0; i < reasons.size() && row.reason.empty(); ++i)
      if (matches(reasons[i].table, row.table) && matches(reasons[i].model, row.model) &&
          matches(reasons[i].setup, row.setup)) {
        row.reason = reasons[i].reason;
        used[i] = true;
      }
  }
  for (std::size_t i = 0; i < reasons.size(); ++i)
    if (!used[i])
      reproduction.outdated_shortfalls.push_back(
          fmt::format("{}, {}, {}", reasons[i].table, reasons[i].model, reasons[i].setup));
}

double share_beyond(const std::vector<ReproducedRow>& rows, double error) {
  double tested = 0, beyond = 0;
  for (const ReproducedRow& row : rows)
    if (row.tested()) ++tested, beyond += std::abs(row.error) > error ? 1 : 0;
  return tested > 0 ? beyond / tested : 0;
}

}  // namespace

void check_shortfalls(const YamlNode& listed, const YamlNode& promised) {
  YamlMap root(listed, "");
  for (const std::string& name : root.keys()) {
    const YamlNode* promises = promised.find(name);
    if (!promises) root.fail(name, "gates.yaml has no comparison of this name");
    const YamlMap map = root.map(name);
    for (const auto& [key, gate] : {std::pair{"rows", "worst"}, std::pair{"reasons", "explained"}})
      if (map.has(key) && !promises->find(gate))
        map.fail(key, fmt::format("goes with '{}' of {} in gates.yaml; leave it out", gate, name));
  }
}

void judge(Reproduction& reproduction) {
  Shortfalls known = read_shortfalls(reproduction.name);
  mark_rows(reproduction, known.rows);
  const auto add = [&](std::string name, double value, double low, double high) {
    Gate& gate = reproduction.gates.emplace_back(Gate{std::move(name), value, low, high, {}});
    const auto reason = known.gates.find(gate.name);
    if (reason == known.gates.end()) return;
    gate.shortfall = reason->second;
    known.gates.erase(reason);
  };
  add("mean error", reproduction.mean_error(), 0, reproduction.mean_tolerance);
  if (reproduction.median_tolerance)
    add("median error", reproduction.median_error(), 0, *reproduction.median_tolerance);
  if (reproduction.worst_tolerance)
    add("worst error", reproduction.worst_error(), 0, *reproduction.worst_tolerance);
  if (reproduction.explained_tolerance) {
    explain_rows(reproduction, known.reasons, *reproduction.explained_tolerance);
    const double unexplained =
        std::count_if(reproduction.rows.begin(), reproduction.rows.end(), [&](const ReproducedRow& row) {
          return row.tested() && std::abs(row.error) > *reproduction.explained_tolerance &&
                 row.reason.empty();
        });
    add(fmt::format("share of rows beyond {:.0f} % without a reason",
                    100 * *reproduction.explained_tolerance),
        unexplained / static_cast<double>(std::max<std::size_t>(1, reproduction.rows.size())), 0, 0);
  }
  if (reproduction.rare_tolerance)
    add("share of rows beyond 20 %", share_beyond(reproduction.rows, 0.20), 0, *reproduction.rare_tolerance);
  if (reproduction.bias_tolerance)
    for (const ErrorSummary& summary : reproduction.summaries)
      if (summary.role == "test" &&
          std::find(reproduction.bias_groups.begin(), reproduction.bias_groups.end(), summary.group) !=
              reproduction.bias_groups.end())
        add(fmt::format("bias of {} {}", summary.group, summary.name), summary.bias,
            -*reproduction.bias_tolerance, *reproduction.bias_tolerance);
  // What is promised of intervals is not kept by having none.
  if (reproduction.coverage_range)
    add("share inside the 80 % interval", reproduction.coverage().value_or(0),
        (*reproduction.coverage_range)[0], (*reproduction.coverage_range)[1]);
  if (reproduction.order_tolerance) {
    const OrderCount count = right_order(reproduction.rows);
    add("alternatives in the right order",
        count.pairs > 0 ? static_cast<double>(count.right) / static_cast<double>(count.pairs) : 1,
        *reproduction.order_tolerance, infinite);
  }
  // Predicting that a batch fits although it does not can cost a user a night; if it may not fit, the run
  // says so.
  for (const std::string& software : batch_software(reproduction.batches))
    if (const BatchCount failed = count_batches(reproduction.batches, software, false); failed.rows > 0)
      add("false fits of " + software, static_cast<double>(failed.fit) / static_cast<double>(failed.rows), 0,
          0);
  for (const auto& [gate, reason] : known.gates) reproduction.outdated_shortfalls.push_back(gate);
}

}  // namespace convoy::studies
