// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/report/sections.h"

namespace convoy::inline results {

/// How the numbers of a column are written; interactive.js knows the same forms by the same names.
enum class CellForm { text, count, number, time, duration, bytes, share };

/// A column of the page's table of runs, with a value a run: words, or numbers in SI units.
struct RunColumn {
  std::string title;
  CellForm form = CellForm::text;
  bool shown = true;                    ///< in the table as it stands on the page; scripts can add the others
  bool swept = false;                   ///< a coordinate of the sweep
  bool dash = false;                    ///< zero is written "-"
  bool limit = false;                   ///< a run that does not fit is marked here
  std::function<std::string(std::size_t run)> text = {};  ///< of words
  /// Of numbers, and of words that are quantities.
  std::function<std::optional<double>(std::size_t run)> number = {};
};

/// All columns, of the context, which has to outlive them; those that no run has anything for are left out.
std::vector<RunColumn> run_columns(const ReportContext& context);

std::string cell_text(const RunColumn& column, const RunFigures& run, std::size_t index);

/// For each model, its fastest run that fits; empty if there is only one run.
std::vector<std::size_t> best_runs(const ReportContext& context);

/// The fastest of some runs that fits, or the fastest one if none does.
std::size_t best_of(const ReportContext& context, const std::vector<std::size_t>& runs);

/// Writes the columns with all runs as JSON, for interactive.js, which may stand in a `<script>`.
void write_columns(const ReportContext& context, const std::vector<RunColumn>& columns, std::ostream& out);

}  // namespace convoy::results
