// SPDX-License-Identifier: MIT
#pragma once

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
  std::vector<std::string> texts = {};  ///< of words
  std::vector<std::optional<double>> numbers = {};  ///< of numbers, and of words that are quantities
};

/// All columns; those that no run has anything for are left out.
std::vector<RunColumn> run_columns(const ReportContext& context);

std::string cell_text(const RunColumn& column, const RunResult& run, std::size_t index);

/// For each model, its fastest run that fits; empty if there is only one run.
std::vector<std::size_t> best_runs(const ReportContext& context);

/// The fastest of some runs that fits, or the fastest one if none does.
std::size_t best_of(const ReportContext& context, const std::vector<std::size_t>& runs);

/// The columns with all runs as JSON, for interactive.js; no character that ends a `<script>` or means something in XML.
std::string columns_json(const ReportContext& context, const std::vector<RunColumn>& columns);

}  // namespace convoy::results
