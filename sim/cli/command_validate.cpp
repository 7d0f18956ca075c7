// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>

#include "sim/base/clean_text.h"
#include "sim/cli/commands.h"
#include "sim/results/text.h"
#include "sim/run/output_folder.h"
#include "sim/studies/validation.h"

namespace convoy::inline cli {
namespace {

/// "a100-pcie-40gb resnet50 fp16 256": what the row is of.
std::string name_of(const ValidatedRow& row) {
  std::string name;
  for (const auto& [column, text] : row.cells)
    if (column != "images_per_s" && column != "source" && column != "note")
      name += (name.empty() ? "" : " ") + clean(text);
  return name;
}

void write_table(const Validation& validation, std::ostream& out) {
  std::size_t width = 3;
  for (const ValidatedRow& row : validation.rows) width = std::max(width, width_of(name_of(row)));
  out << fmt::format("{:<{}}  {:>9}  {:>9}  {:>9}  {}\n", "row", width, "measured", "predicted", "error",
                     "at 80 %");
  for (const ValidatedRow& row : validation.rows) {
    const std::string name = name_of(row);
    out << name << std::string(width - width_of(name), ' ')
        << fmt::format("  {:>9}  {:>9}  {:>+7.1f} %  {}\n", number_text(row.measured),
                       number_text(row.predicted), 100 * row.error(),
                       row.interval ? fmt::format("{} to {}{}", number_text((*row.interval)[0]),
                                                  number_text((*row.interval)[1]),
                                                  row.measured < (*row.interval)[0] ||
                                                          row.measured > (*row.interval)[1]
                                                      ? ", measured outside"
                                                      : "")
                                    : "exact");
  }
  const ErrorSummary& all = validation.summary;
  out << fmt::format("\n{} {}: median error {:.1f} %, mean {:.1f} %, bias {:+.1f} %{}\n", all.rows,
                     all.rows == 1 ? "row" : "rows", 100 * all.median, 100 * all.mean, 100 * all.bias,
                     validation.coverage ? fmt::format("; {} are inside their 80 % interval",
                                                       percent_text(*validation.coverage))
                                         : "");
  for (const ValidatedTerm& term : validation.terms)
    out << (term.after > 0.95 * term.before
                ? fmt::format("{}: no factor between 0.5 and 2 makes the mean error much smaller\n",
                              term.term)
                : fmt::format("{}: {:.2f} times as fast would make the mean error {:.1f} %\n", term.term,
                              term.factor, 100 * term.after));
}

}  // namespace

Exit validate_command(const ValidateArguments& arguments) {
  std::optional<Progress> progress(std::in_place, arguments.progress, "predicting");
  const Validation validation = validate_rows(
      arguments.file, arguments.jobs,
      [&](std::size_t done, std::size_t all) { (*progress)(done, all, [] { return std::string(); }); });
  progress.reset();
  write_stdout([&](std::ostream& out) {
    arguments.json ? write_validation(validation, out) : write_table(validation, out);
  });
  return Exit::done;
}

}  // namespace convoy::cli
