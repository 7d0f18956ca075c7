// SPDX-License-Identifier: MIT
// Validations for people: text and page.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "sim/base/clean_text.h"
#include "sim/page/html.h"
#include "sim/page/page.h"
#include "sim/page/text.h"
#include "sim/studies/validation.h"

namespace convoy::inline studies {
namespace {

/// "a100-pcie-40gb resnet50 fp16 256": what the row is of.
std::string validated_name(const ValidatedRow& row) {
  std::string name;
  for (const auto& [column, text] : row.cells)
    if (column != "images_per_s" && column != "source" && column != "note")
      name += (name.empty() ? "" : " ") + clean(text);
  return name;
}

std::string interval_text(const ValidatedRow& row) {
  if (!row.interval) return "exact";
  const auto [low, high] = *row.interval;
  return fmt::format("{} to {}{}", number_text(low), number_text(high),
                     row.measured < low || row.measured > high ? ", measured outside" : "");
}

std::string error_text(const ValidatedRow& row) { return fmt::format("{:+.1f} %", 100 * row.error()); }

/// "12 rows: median error 4.1 %, mean 5.0 %, bias +1.2 %; 80 % are inside their 80 % interval"
std::string validation_summary(const Validation& validation) {
  const ErrorSummary& all = validation.summary;
  return fmt::format("{} {}: median error {:.1f} %, mean {:.1f} %, bias {:+.1f} %{}", all.rows,
                     all.rows == 1 ? "row" : "rows", 100 * all.median, 100 * all.mean, 100 * all.bias,
                     validation.coverage ? fmt::format("; {} are inside their 80 % interval",
                                                       percent_text(*validation.coverage))
                                         : "");
}

std::string term_text(const ValidatedTerm& term) {
  if (term.after > 0.95 * term.before)
    return fmt::format("{}: no factor between 0.5 and 2 makes the mean error much smaller", term.term);
  return fmt::format("{}: {:.2f} times as fast would make the mean error {:.1f} %", term.term, term.factor,
                     100 * term.after);
}

/// "refit of k80 to 9 rows of 3 networks: each network left out in turn, the mean error is 6.3 % instead of 12.1 %: k80-here"
std::string refit_text(const ValidatedRefit& refit) {
  return fmt::format(
      "refit of {} to {} rows of {} networks: each network left out in turn, the mean error is {:.1f} %, "
      "{:.1f} % as it is{}",
      refit.device, refit.rows, refit.networks, 100 * refit.after, 100 * refit.before,
      refit.helps() ? fmt::format("; --out writes it as device {}", refit.name)
                    : "; it helps no network that it has not seen, and is not written");
}

}  // namespace

std::string validation_text(const Validation& validation) {
  std::size_t width = 3;
  for (const ValidatedRow& row : validation.rows) width = std::max(width, width_of(validated_name(row)));
  std::string text = fmt::format("{:<{}}  {:>9}  {:>9}  {:>9}  {}\n", "row", width, "measured", "predicted",
                                 "error", "at 80 %");
  for (const ValidatedRow& row : validation.rows) {
    const std::string name = validated_name(row);
    text += name + std::string(width - width_of(name), ' ') +
            fmt::format("  {:>9}  {:>9}  {:>9}  {}\n", number_text(row.measured), number_text(row.predicted),
                        error_text(row), interval_text(row));
  }
  text += fmt::format("\n{}\n", validation_summary(validation));
  for (const ValidatedTerm& term : validation.terms) text += term_text(term) + '\n';
  for (const ValidatedRefit& refit : validation.refits) text += refit_text(refit) + '\n';
  return text;
}

void write_page(const Validation& validation, std::ostream& out) {
  std::vector<HtmlRow> rows;
  for (const ValidatedRow& row : validation.rows)
    rows.push_back({{validated_name(row), number_text(row.measured), number_text(row.predicted),
                     error_text(row), interval_text(row)}});
  std::string body = "<h1>Measured and predicted</h1>\n" + html_paragraph(validation_summary(validation));
  for (const ValidatedTerm& term : validation.terms) body += html_paragraph(term_text(term));
  for (const ValidatedRefit& refit : validation.refits) body += html_paragraph(refit_text(refit));
  body += "<h2>Rows, in images/s</h2>\n" +
          html_table({{"row"}, {"measured", true}, {"predicted", true}, {"error", true}, {"at 80 %"}}, rows);
  out << html_page("Measured and predicted", body);
}

}  // namespace convoy::studies
