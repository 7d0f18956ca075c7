// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>

#include "sim/base/clean_text.h"
#include "sim/base/quantity.h"
#include "sim/cli/commands.h"
#include "sim/results/json_writer.h"
#include "sim/results/text.h"
#include "sim/run/output_folder.h"
#include "sim/studies/validation.h"

namespace convoy::inline cli {
namespace {

using Style = JsonWriter::Style;

void write_json(const Validation& validation, std::ostream& out) {
  JsonWriter json(out);
  json.begin_object();
  json.field("schema", "convoy.validate/1");
  json.key("rows");
  json.begin_array();
  for (const ValidatedRow& row : validation.rows) {
    json.begin_object(Style::compact);
    for (const auto& [column, text] : row.cells) {
      json.key(column);
      if (const std::optional<double> number = parse_number(text))
        json.value(*number);
      else
        json.value(std::string_view(text));
    }
    json.field("predicted", row.predicted);
    json.key("interval");
    if (row.interval) {
      json.begin_array(Style::compact);
      for (const double end : *row.interval) json.value(end);
      json.end_array();
    } else {
      json.null();
    }
    json.field("error", row.error());
    json.end_object();
  }
  json.end_array();
  json.key("summary");
  json.begin_object(Style::compact);
  json.field("rows", static_cast<std::int64_t>(validation.summary.rows));
  json.field("median", validation.summary.median);
  json.field("mean", validation.summary.mean);
  json.field("bias", validation.summary.bias);
  json.key("coverage");
  validation.coverage ? json.value(*validation.coverage) : json.null();
  json.end_object();
  json.key("terms");
  json.begin_array();
  for (const ValidatedTerm& term : validation.terms) {
    json.begin_object(Style::compact);
    json.field("term", term.term);
    json.field("factor", term.factor);
    json.field("before", term.before);
    json.field("after", term.after);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.raw("\n");
}

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
                ? fmt::format("{}: no factor between 0.5 and 2 makes the mean error much smaller\n", term.term)
                : fmt::format("{}: {:.2f} times as fast would make the mean error {:.1f} %\n", term.term,
                              term.factor, 100 * term.after));
}

}  // namespace

Exit validate_command(const ValidateArguments& arguments) {
  std::optional<Progress> progress(std::in_place, arguments.progress, "predicting");
  const Validation validation =
      validate_rows(arguments.file, arguments.jobs, [&](std::size_t done, std::size_t all) {
        (*progress)(done, all, [] { return std::string(); });
      });
  progress.reset();
  write_stdout([&](std::ostream& out) {
    arguments.json ? write_json(validation, out) : write_table(validation, out);
  });
  return Exit::done;
}

}  // namespace convoy::cli
