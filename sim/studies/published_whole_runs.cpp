// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "sim/planning/whole_runs.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

/// Of the rows with the epochs that a run took.
void append_runs(const Reproduction& study, std::vector<WholeRun>& runs, std::vector<ReproducedRow>& rows) {
  for (const ReproducedRow& row : study.rows) {
    if (row.table == table_of_epochs || !row.interval) continue;
    runs.push_back({study.name, team_of(row.model), row.model, row.published, row.predicted,
                    (*row.interval)[0], (*row.interval)[1]});
    rows.push_back(row);
  }
}

}  // namespace

Reproduction reproduce_whole_runs(std::size_t jobs) {
  Reproduction result{"whole-runs",
                      "Whole runs of MLPerf and DAWNBench, times as long as their steps predict", "factor"};
  std::vector<WholeRun> runs;
  std::vector<ReproducedRow> rows;
  append_runs(reproduce_mlperf(jobs), runs, rows);
  append_runs(reproduce_dawnbench(jobs), runs, rows);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const WholeRun& run = runs[i];
    ReproducedRow row = rows[i];
    row.table = run.study;
    row.published = run.measured / run.predicted;
    row.predicted = 1;
    const auto [low, high] =
        whole_run_spread(runs, run.team).around({run.low / run.predicted, run.high / run.predicted});
    row.interval = {low, high};
    result.rows.push_back(std::move(row));
  }
  return result;
}

}  // namespace convoy::studies
