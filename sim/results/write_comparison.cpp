// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "sim/base/clean_text.h"
#include "sim/base/quantity.h"
#include "sim/page/html.h"
#include "sim/page/page.h"
#include "sim/page/svg.h"
#include "sim/page/text.h"
#include "sim/results/comparison.h"
#include "sim/results/field_schema.h"
#include "sim/results/field_writer.h"

namespace convoy::inline results {
namespace {

using Style = JsonWriter::Style;
using Coordinates = std::vector<std::pair<std::string, YamlNode>>;

constexpr std::size_t most_listed = 20, page_rows = 2000;

constexpr auto changed_fields = [](auto& archive, auto& point) {
  archive.point("point", point.point);
  archive.texts("ids", {point.ids.begin(), point.ids.end()});
  archive.range("step_time_s", point.step_time_s);
  archive.pairs("terms", point.terms);
  archive.texts("because", point.because);
};

constexpr auto comparison_fields = [](auto& archive, auto& comparison) {
  archive.constant("schema", "convoy.compare/1");
  archive.field("a", comparison.names[0]);
  archive.field("b", comparison.names[1]);
  archive.field("same", comparison.same);
  archive.points("only_a", comparison.only[0]);
  archive.points("only_b", comparison.only[1]);
  archive.blocks("changed", comparison.changed, changed_fields);
};

std::string point_text(const Coordinates& point) {
  std::string text;
  for (const auto& [path, value] : point)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", path, shortened(to_flow(value), 60));
  return text.empty() ? "the experiment's one point" : text;
}

/// How many times as fast the second run trains as the first.
double speed_ratio(const ChangedPoint& point) {
  return point.same_batch() ? point.step_time_s[0] / point.step_time_s[1]
                            : point.images_per_s[1] / point.images_per_s[0];
}

/// Of speeds, whichever way they changed: "3.2 % slower", "82 % faster", "2.50 times as fast", "as fast";
/// "per image" where steps have other global batches.
std::string change_text(const ChangedPoint& point) {
  const double ratio = speed_ratio(point);
  const char* const unit = point.same_batch() ? "" : " per image";
  if (ratio == 1 || !(ratio > 0) || !std::isfinite(ratio)) return fmt::format("as fast{}", unit);
  if (ratio < 0.5 || ratio >= 2) return fmt::format("{} times as fast{}", number_text(ratio), unit);
  const double share = std::abs(ratio - 1);
  return fmt::format("{} {}{}", share < 0.0005 ? "less than 0.1 %" : percent_text(share),
                     ratio < 1 ? "slower" : "faster", unit);
}

/// What people call a term, and how its values are shown.
struct TermWords {
  const char *name, *words;
  std::string (*text)(double);
};
std::string energy_text(double joules) { return number_text(joules) + " J"; }
std::string money_text(double usd) { return number_text(usd) + " USD"; }
std::string images_text(double images) { return fmt::format("{}", images); }
constexpr std::array<TermWords, 11> term_words{{{"global_batch", "global batch", &images_text},
                                                {"compute_s", "compute", &format_time},
                                                {"exposed_comm_s", "exposed communication", &format_time},
                                                {"idle_s", "waiting", &format_time},
                                                {"throughput_images_per_s", "images/s", &number_text},
                                                {"comm_bytes", "sent", &format_bytes},
                                                {"peak_memory_bytes", "peak memory", &format_bytes},
                                                {"process_memory_bytes", "process memory", &format_bytes},
                                                {"energy_j", "energy", &energy_text},
                                                {"epoch_time_s", "epoch", &format_time},
                                                {"cost_usd_per_epoch", "cost of an epoch", &money_text}}};

/// "compute 2.1 ms -> 5.4 ms"; "" where a term is the same in the digits that are shown.
std::string term_text(const ComparedTerm& term) {
  const auto row = std::find_if(term_words.begin(), term_words.end(),
                                [&](const TermWords& words) { return term.name == words.name; });
  const auto shown = [&](const std::optional<double>& value) { return value ? row->text(*value) : "none"; };
  const std::string a = shown(term.values[0]), b = shown(term.values[1]);
  return a == b ? std::string{} : fmt::format("{} {} -> {}", row->words, a, b);
}

std::vector<std::string> changed_terms(const ChangedPoint& point) {
  std::vector<std::string> texts;
  for (const ComparedTerm& term : point.terms)
    if (std::string text = term_text(term); !text.empty()) texts.push_back(std::move(text));
  if (texts.empty()) texts.push_back("no term that three digits show (--json has all of them)");
  return texts;
}

std::string points_text(std::size_t count) {
  return fmt::format("{} {}", count, count == 1 ? "point" : "points");
}

std::string comparison_summary(const Comparison& comparison) {
  std::string text =
      fmt::format("{} the same, {} changed", points_text(static_cast<std::size_t>(comparison.same)),
                  comparison.changed.size());
  for (std::size_t side = 0; side < 2; ++side)
    if (!comparison.only[side].empty())
      text += fmt::format(", {} only in {}", comparison.only[side].size(), comparison.names[side]);
  return text;
}

std::string steps_text(const ChangedPoint& point) {
  const std::string steps =
      fmt::format("{} -> {} a step", format_time(point.step_time_s[0]), format_time(point.step_time_s[1]));
  if (point.same_batch()) return fmt::format("{}: {}", steps, change_text(point));
  return fmt::format("{} -> {} images/s: {} ({} of {} -> {} images)", number_text(point.images_per_s[0]),
                     number_text(point.images_per_s[1]), change_text(point), steps,
                     images_text(point.global_batch[0]), images_text(point.global_batch[1]));
}

bool has(const std::vector<std::string>& reasons, const std::string& reason) {
  return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
}

/// Reasons that every changed point has, where there are several: told once for all of them.
std::vector<std::string> common_reasons(const Comparison& comparison) {
  if (comparison.changed.size() < 2) return {};
  std::vector<std::string> common = comparison.changed.front().because;
  for (const ChangedPoint& point : comparison.changed)
    std::erase_if(common, [&](const std::string& reason) { return !has(point.because, reason); });
  return common;
}

std::vector<std::string> own_reasons(const ChangedPoint& point, const std::vector<std::string>& common) {
  std::vector<std::string> own = point.because;
  std::erase_if(own, [&](const std::string& reason) { return has(common, reason); });
  return own;
}

}  // namespace

void write_json(const Comparison& comparison, std::ostream& out) {
  JsonWriter json(out);
  FieldWriter archive(json);
  json.begin_object();
  comparison_fields(archive, comparison);
  json.end_object();
  json.raw("\n");
}

std::string comparison_schema_text() { return schema_text<Comparison>(comparison_fields); }

std::string comparison_text(const Comparison& comparison) {
  std::string text = comparison_summary(comparison) + "\n";
  const std::vector<std::string> common = common_reasons(comparison);
  for (std::size_t i = 0; i < std::min(most_listed, comparison.changed.size()); ++i) {
    const ChangedPoint& point = comparison.changed[i];
    text += fmt::format("\n{}\n  {}\n", point_text(point.point), steps_text(point));
    for (const std::string& term : changed_terms(point)) text += fmt::format("    {}\n", term);
    for (const std::string& reason : own_reasons(point, common))
      text += fmt::format("  because {}\n", reason);
  }
  if (comparison.changed.size() > most_listed)
    text += fmt::format("\nand {} more, which --json and --html list\n",
                        points_text(comparison.changed.size() - most_listed));
  if (!common.empty()) text += "\nat all changed points\n";
  for (const std::string& reason : common) text += fmt::format("  because {}\n", reason);
  for (std::size_t side = 0; side < 2; ++side) {
    const std::vector<Coordinates>& only = comparison.only[side];
    if (!only.empty()) text += fmt::format("\nonly in {}\n", comparison.names[side]);
    for (std::size_t i = 0; i < std::min(most_listed, only.size()); ++i)
      text += fmt::format("  {}\n", point_text(only[i]));
    if (only.size() > most_listed) text += fmt::format("  and {} more\n", only.size() - most_listed);
  }
  std::string cleaned;  // names of files and values of users; line breaks are this text's own
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    cleaned += clean(text.substr(begin, end - begin)) + '\n';
    begin = end + 1;
  }
  return cleaned;
}

void write_page(const Comparison& comparison, std::ostream& out) {
  const std::string title = fmt::format("{} and {}", comparison.names[0], comparison.names[1]);
  std::string body =
      fmt::format("<h1>{}</h1>\n{}", escaped(title), html_paragraph(comparison_summary(comparison)));
  std::vector<HtmlColumn> columns{
      {"point"}, {"step, first", true}, {"step, second", true}, {"the second is"}};
  for (const TermWords& term : term_words) columns.push_back({term.words, true});
  columns.push_back({"because"});
  std::vector<HtmlRow> rows;
  const std::vector<std::string> common = common_reasons(comparison);
  for (std::size_t i = 0; i < std::min(page_rows, comparison.changed.size()); ++i) {
    const ChangedPoint& point = comparison.changed[i];
    HtmlRow row{{point_text(point.point), format_time(point.step_time_s[0]),
                 format_time(point.step_time_s[1]), change_text(point)}};
    for (const ComparedTerm& term : point.terms) {
      const std::string text = term_text(term);
      const std::size_t words = std::string_view(term_words[row.cells.size() - 4].words).size();
      row.cells.push_back(text.empty() ? "same" : text.substr(words + 1));
    }
    std::string because;
    for (const std::string& reason : own_reasons(point, common))
      because += (because.empty() ? "" : "; ") + reason;
    row.cells.push_back(because);
    rows.push_back(std::move(row));
  }
  if (!rows.empty()) body += "<h2>What changed</h2>\n" + html_table(columns, rows);
  if (comparison.changed.size() > page_rows)
    body += html_paragraph(
        fmt::format("The {} largest changes; all are in `convoy compare --json`.", page_rows));
  for (const std::string& reason : common)
    body += html_paragraph(fmt::format("At all changed points because {}", reason));
  for (std::size_t side = 0; side < 2; ++side) {
    if (comparison.only[side].empty()) continue;
    std::vector<HtmlRow> points;
    for (std::size_t i = 0; i < std::min(page_rows, comparison.only[side].size()); ++i)
      points.push_back({{point_text(comparison.only[side][i])}});
    body += fmt::format("<h2>{}</h2>\n{}", escaped("Only in " + comparison.names[side]),
                        html_table({{"point"}}, points));
  }
  out << html_page(title, body);
}

}  // namespace convoy::results
