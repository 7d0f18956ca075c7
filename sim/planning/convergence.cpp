// SPDX-License-Identifier: MIT
#include "sim/planning/convergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/base/names.h"
#include "sim/base/quantity.h"
#include "topologies/table_grade.h"

namespace convoy::inline planning {
namespace {

const std::vector<std::string> own_columns{"batch", "epochs",    "least",  "most",
                                           "runs",  "optimizer", "source", "grade"};

const CsvTable& shipped_table() {
  static const CsvTable table(data_path("results/published") + "/convergence.csv",
                              {"goal", "model", "network", "dataset", "target", "samples", "batch", "epochs",
                               "least", "most", "runs", "optimizer", "source", "grade"},
                              {"goal", "batch", "epochs"});
  return table;
}

double number_or(const CsvTable& table, const CsvRow& row, std::string_view column, double fallback) {
  return table.find(row, column) ? table.number(row, column, true) : fallback;
}

ConvergencePoint read_row(const CsvTable& table, const CsvRow& row) {
  ConvergencePoint point;
  point.batch = table.number(row, "batch", true);
  point.needed.epochs = table.number(row, "epochs", true);
  point.needed.least = number_or(table, row, "least", point.needed.epochs);
  point.needed.most = number_or(table, row, "most", point.needed.epochs);
  point.runs = number_or(table, row, "runs", 1);
  point.source = table.text(row, "source");
  point.grade = read_grade(table, row);
  if (point.needed.least > point.needed.epochs || point.needed.most < point.needed.epochs)
    throw InputError(row.front().pos, "epochs: must lie between least and most");
  return point;
}

/// Sorted, the rows of one batch as their mean.
std::vector<ConvergencePoint> merged(std::vector<ConvergencePoint> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.batch < b.batch; });
  std::vector<ConvergencePoint> points;
  for (const ConvergencePoint& row : rows) {
    if (points.empty() || points.back().batch != row.batch) {
      points.push_back(row);
      continue;
    }
    ConvergencePoint& same = points.back();
    same.needed.epochs =
        (same.needed.epochs * same.runs + row.needed.epochs * row.runs) / (same.runs + row.runs);
    same.needed.least = std::min(same.needed.least, row.needed.least);
    same.needed.most = std::max(same.needed.most, row.needed.most);
    same.runs += row.runs;
    if (same.source != row.source) same.source += "; " + row.source;
  }
  return points;
}

std::string optimizer_of(const CsvTable& csv, const CsvRow& row) {
  return csv.find(row, "optimizer") ? csv.text(row, "optimizer") : "";
}

/// The one of a table's optimizers that is nearest to what training has (OptimizerAsked::trained).
/// @param optimizers not empty
std::string nearest_optimizer(const std::vector<std::string>& optimizers, Optimizer trained) {
  static const std::map<Optimizer, std::vector<std::string>> nearest{
      {Optimizer::sgd, {"sgd", "momentum", "nesterov", "lars"}},
      {Optimizer::momentum, {"momentum", "sgd", "nesterov", "lars"}},
      {Optimizer::adam, {"adam", "adamw", "lamb"}}};
  for (const std::string& name : nearest.at(trained))
    if (std::find(optimizers.begin(), optimizers.end(), name) != optimizers.end()) return name;
  return optimizers.front();
}

/// The rows of one optimizer become the table's points.
/// @param rows of the table's goal, not empty
void take_rows(ConvergenceTable& table, const CsvTable& csv, const std::vector<const CsvRow*>& rows,
               const OptimizerAsked& asked) {
  for (const CsvRow* row : rows)
    if (std::string name = optimizer_of(csv, *row);
        std::find(table.optimizers.begin(), table.optimizers.end(), name) == table.optimizers.end())
      table.optimizers.push_back(std::move(name));
  table.optimizer = !asked.name.empty() ? asked.name
                    : asked.trained     ? nearest_optimizer(table.optimizers, *asked.trained)
                                        : table.optimizers.front();
  std::vector<ConvergencePoint> points;
  for (const CsvRow* row : rows)
    if (optimizer_of(csv, *row) == table.optimizer) points.push_back(read_row(csv, *row));
  if (points.empty()) {
    std::vector<std::string> known = table.optimizers;
    std::erase(known, "");
    throw InputError(asked.pos,
                     known.empty()
                         ? fmt::format("goal.optimizer: the rows of {} do not say theirs", table.name)
                         : fmt::format("goal.optimizer: no rows with '{}'{}; {} has those of {}", asked.name,
                                       suggestion(asked.name, known), table.name, list_of(known)));
  }
  table.points = merged(std::move(points));
}

EpochsNeeded between(const ConvergencePoint& a, const ConvergencePoint& b, double batch) {
  const double share = (std::log(batch) - std::log(a.batch)) / (std::log(b.batch) - std::log(a.batch));
  const auto mix = [&](double x, double y) { return x + share * (y - x); };
  return {mix(a.needed.epochs, b.needed.epochs), mix(a.needed.least, b.needed.least),
          mix(a.needed.most, b.needed.most)};
}

}  // namespace

std::vector<ConvergencePoint> ConvergenceTable::envelope() const {
  std::vector<ConvergencePoint> least = points;
  for (std::size_t i = least.size() - 1; i-- > 0;)
    if (const ConvergencePoint& larger = least[i + 1]; larger.needed.epochs < least[i].needed.epochs) {
      const double batch = least[i].batch;
      least[i] = larger;
      least[i].batch = batch;
    }
  return least;
}

std::optional<EpochsNeeded> ConvergenceTable::at(double batch, bool extrapolate) const {
  if (batch > largest() || (batch < smallest() && !extrapolate)) return std::nullopt;
  const std::vector<ConvergencePoint> least = envelope();
  if (batch < smallest()) {
    const EpochsNeeded& end = least.front().needed;
    const std::optional<NoiseScale> curve = fit_noise_scale(least);
    const double factor = curve ? curve->at(batch) / curve->at(smallest()) : 1;
    return EpochsNeeded{end.epochs * factor, end.least * factor, end.most};
  }
  const auto above = std::lower_bound(least.begin(), least.end(), batch,
                                      [](const auto& p, double b) { return p.batch < b; });
  if (above->batch == batch) return above->needed;
  return between(*(above - 1), *above, batch);
}

std::vector<std::string> goal_names() {
  std::set<std::string> names;
  for (const CsvRow& row : shipped_table().rows()) names.insert(shipped_table().text(row, "goal"));
  return {names.begin(), names.end()};
}

ConvergenceTable load_goal(const std::string& name, const SourcePos& pos, const OptimizerAsked& optimizer) {
  const CsvTable& csv = shipped_table();
  ConvergenceTable table;
  table.name = name;
  std::vector<const CsvRow*> rows;
  for (const CsvRow& row : csv.rows()) {
    if (csv.text(row, "goal") != name) continue;
    rows.push_back(&row);
    table.network = csv.text(row, "network");
    if (csv.find(row, "samples")) table.samples = csv.number(row, "samples", true);
    table.text = fmt::format("{} on {} to {}", csv.text(row, "model"), csv.text(row, "dataset"),
                             csv.text(row, "target"));
  }
  if (rows.empty()) {
    const std::vector<std::string> names = goal_names();
    throw InputError(
        pos, fmt::format("unknown goal '{}'{}; there are {}", name, suggestion(name, names), list_of(names)));
  }
  take_rows(table, csv, rows, optimizer);
  return table;
}

ConvergenceTable read_convergence(const std::string& file, const OptimizerAsked& optimizer) {
  const CsvTable csv(file, own_columns, {"batch", "epochs"});
  if (csv.rows().empty())
    throw InputError(csv.header(), "no rows: at least one batch with its epochs is needed");
  ConvergenceTable table;
  table.name = table.text = file;
  std::vector<const CsvRow*> rows;
  for (const CsvRow& row : csv.rows()) rows.push_back(&row);
  take_rows(table, csv, rows, optimizer);
  return table;
}

std::optional<NoiseScale> fit_noise_scale(const std::vector<ConvergencePoint>& points) {
  // Normal equations of a / E + b B / E = 1.
  double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
  for (const ConvergencePoint& point : points) {
    const double x = 1 / point.needed.epochs, y = point.batch / point.needed.epochs;
    xx += x * x, xy += x * y, yy += y * y, x1 += x, y1 += y;
  }
  const double determinant = xx * yy - xy * xy;
  if (points.size() < 2 || determinant <= 0) return std::nullopt;
  const double a = (x1 * yy - y1 * xy) / determinant, b = (y1 * xx - x1 * xy) / determinant;
  if (a <= 0 || b <= 0) return std::nullopt;
  return NoiseScale{a, a / b};
}

}  // namespace convoy::planning
