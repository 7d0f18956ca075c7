// SPDX-License-Identifier: MIT
#include "sim/planning/whole_runs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/base/input_error.h"
#include "sim/base/median.h"

namespace convoy::inline planning {

const std::vector<WholeRun>& whole_runs() {
  static const std::vector<WholeRun> runs = [] {
    const std::vector<std::string> columns{"study", "team", "run", "measured", "predicted", "low", "high"};
    const CsvTable table(data_path("results/published") + "/whole_runs.csv", columns, columns);
    std::vector<WholeRun> rows;
    for (const CsvRow& row : table.rows())
      rows.push_back({table.text(row, "study"), table.text(row, "team"), table.text(row, "run"),
                      table.number(row, "measured", true), table.number(row, "predicted", true),
                      table.number(row, "low", true), table.number(row, "high", true)});
    return rows;
  }();
  return runs;
}

WholeRunSpread whole_run_spread(const std::vector<WholeRun>& runs, const std::string& without) {
  std::map<std::string, std::vector<double>> teams;
  std::vector<double> step_reaches;
  for (const WholeRun& run : runs) {
    if (run.team == without) continue;
    teams[run.team].push_back(std::log(run.measured / run.predicted));
    step_reaches.push_back(std::log(run.high / run.low) / 2);
  }
  const auto count = static_cast<double>(teams.size());
  if (teams.size() < 3) throw InputError({}, "whole_runs.csv: runs of at least three teams are needed");
  WholeRunSpread spread;
  spread.teams = teams.size();
  spread.runs = step_reaches.size();
  spread.step_reach = median(step_reaches);
  std::vector<double> means;
  for (const auto& [team, logs] : teams) {
    double sum = 0;
    for (const double each : logs) sum += each;
    means.push_back(sum / static_cast<double>(logs.size()));
    spread.bias += means.back() / count;
  }
  double squares = 0;
  for (const double mean : means) squares += (mean - spread.bias) * (mean - spread.bias);
  // Another team differs from the mean of all by what teams differ, and by what the mean of so few is off.
  constexpr double four_of_five = 1.28155;
  spread.reach = four_of_five * std::sqrt(squares / (count - 1) * (1 + 1 / count));
  return spread;
}

std::pair<double, double> WholeRunSpread::around(const std::pair<double, double>& own) const {
  const auto with_own = [&](double log_factor) {
    return std::sqrt(reach * reach + std::max(0.0, log_factor * log_factor - step_reach * step_reach));
  };
  const double least = 1e-9;  // a step that may take no time at all
  return {std::exp(bias - with_own(std::log(std::max(own.first, least)))),
          std::exp(bias + with_own(std::log(own.second)))};
}

std::string team_of(const std::string& run) {
  if (run.starts_with("DellEMC ")) return "Dell";
  const std::size_t comma = run.find(',');
  return run.substr(0, comma == std::string::npos ? run.find(' ') : comma);
}

}  // namespace convoy::planning
