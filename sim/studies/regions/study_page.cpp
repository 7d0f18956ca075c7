// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "sim/page/html.h"
#include "sim/page/page.h"
#include "sim/page/svg.h"
#include "sim/page/text.h"
#include "sim/studies/regions/border.h"
#include "sim/studies/regions/write_study.h"

namespace convoy::inline studies {
namespace {

constexpr double cell_size = 26, left_margin = 112, top_margin = 22, bottom_margin = 44;
constexpr std::size_t most_cells = 8;

std::size_t cells_of(const StudyInput& input) {
  const std::size_t levels = input.levels();
  return levels > 0 ? std::min(levels, most_cells) : most_cells;
}

std::size_t cell_of(const StudyInput& input, double position) {
  const std::size_t cells = cells_of(input);
  return std::min(cells - 1, static_cast<std::size_t>(position * static_cast<double>(cells)));
}

/// The value, or the range of values, of a cell.
std::string cell_text(const StudyInput& input, std::size_t cell) {
  const auto cells = static_cast<double>(cells_of(input)), at = static_cast<double>(cell);
  constexpr double inside = 1e-6;
  const std::string from = input.text_at((at + inside) / cells),
                    to = input.text_at((at + 1 - inside) / cells);
  return from == to ? from : fmt::format("{} to {}", from, to);
}

struct RegionCell {
  std::size_t holds = 0, of = 0;
};

std::string pair_picture(const StudyResult& study, std::size_t claim, std::size_t x, std::size_t y) {
  const StudyInput &across = study.spec.inputs[x], &up = study.spec.inputs[y];
  const std::size_t columns = cells_of(across), rows = cells_of(up);
  std::vector<RegionCell> cells(columns * rows);
  for (std::size_t i = 0; i < study.outcomes.size(); ++i) {
    if (!study.outcomes[i].possible) continue;
    const StudyPoint& point = study.sample.points[i];
    RegionCell& cell = cells[cell_of(up, point[y]) * columns + cell_of(across, point[x])];
    ++cell.of;
    cell.holds += study.outcomes[i].holds(study.spec, claim) ? 1 : 0;
  }
  const double width = left_margin + cell_size * static_cast<double>(columns) + 30;
  const std::string first = shortened(across.is_range() ? across.text_at(0) : cell_text(across, 0), 14);
  const std::string last =
      shortened(across.is_range() ? across.text_at(1) : cell_text(across, columns - 1), 14);
  // Where both do not fit below the cells, the last is a line lower.
  constexpr double character_width = 7, line_height = 13;
  const double below = static_cast<double>(first.size() + last.size() + 1) * character_width >
                               cell_size * static_cast<double>(columns)
                           ? line_height
                           : 0;
  const double height = top_margin + cell_size * static_cast<double>(rows) + bottom_margin + below;
  const double bottom = top_margin + cell_size * static_cast<double>(rows);
  Svg svg(
      width, height,
      fmt::format("where '{}' holds, over {} and {}", study.spec.claims[claim].claim, across.name, up.name));
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      const RegionCell& cell = cells[r * columns + c];
      const double left = left_margin + cell_size * static_cast<double>(c);
      const double top = bottom - cell_size * static_cast<double>(r + 1);
      const std::string title =
          cell.of ? fmt::format("{} {}, {} {}: holds at {} of {} points", across.name, cell_text(across, c),
                                up.name, cell_text(up, r), cell.holds, cell.of)
                  : fmt::format("{} {}, {} {}: no possible point", across.name, cell_text(across, c), up.name,
                                cell_text(up, r));
      svg.rect(left, top, cell_size - 1, cell_size - 1, "bar idle faint", title);
      if (cell.of == 0) {
        svg.line(left + 4, bottom - cell_size * static_cast<double>(r) - 6, left + cell_size - 6, top + 4,
                 "axis");
        continue;
      }
      const double share = static_cast<double>(cell.holds) / static_cast<double>(cell.of);
      const double filled = (cell_size - 1) * share;
      if (cell.holds) svg.rect(left, top + cell_size - 1 - filled, cell_size - 1, filled, "bar c2", title);
    }
  for (const std::size_t r : {std::size_t{0}, rows - 1}) {
    const double middle = bottom - cell_size * (static_cast<double>(r) + 0.4);
    svg.text(left_margin - 6, middle, shortened(up.is_range() ? up.text_at(r ? 1 : 0) : cell_text(up, r), 16),
             "tick", page::Anchor::end);
    if (rows == 1) break;
  }
  svg.text(left_margin, bottom + 14, first, "tick");
  if (columns > 1)
    svg.text(left_margin + cell_size * static_cast<double>(columns), bottom + 14 + below, last, "tick",
             page::Anchor::end);
  svg.text(left_margin + cell_size * static_cast<double>(columns) / 2, bottom + 34 + below, across.name,
           "title", page::Anchor::middle);
  svg.text(left_margin - 6, top_margin - 8, up.name, "title", page::Anchor::end);
  return std::move(svg).finish();
}

std::string inputs_section(const StudyResult& study) {
  std::vector<HtmlRow> rows;
  for (const StudyInput& input : study.spec.inputs) {
    std::string values = fmt::format("{} to {}{}", input.text_at(0), input.text_at(1),
                                     input.log ? ", evenly in the logarithm" : "");
    if (!input.is_range()) {
      std::vector<std::string> texts;
      for (const YamlNode& value : input.values) texts.push_back(to_flow(value));
      values = fmt::format("{}", fmt::join(texts, ", "));
    }
    rows.push_back({{input.name, fmt::format("{}", fmt::join(input.sets, ", ")), values, input.because}});
  }
  return "<h2>What is not known</h2>\n" + html_table({{"input"}, {"sets"}, {"values"}, {"because"}}, rows);
}

std::string claim_section(const StudyResult& study, std::size_t c) {
  const StudyClaim& claim = study.spec.claims[c];
  const ClaimRegion& region = study.regions[c];
  std::string out = fmt::format("<h2>{}</h2>\n", escaped(claim.claim));
  out += html_paragraph(fmt::format("It {}.", sentence_of(study, c)));
  out += html_paragraph(
      fmt::format("The value of {} is {} to {}, {} in the median; accepted is {}{}.", claim.value.text,
                  number_text(region.least), number_text(region.greatest), number_text(region.median),
                  accepted_text(claim),
                  claim.published ? fmt::format(", stated is {}", number_text(*claim.published)) : ""),
      "sub");
  if (const std::string decides = deciding_text(study, c); !decides.empty())
    out += html_paragraph(
        fmt::format("Of the variance of whether it holds, these inputs explain each alone: {}.", decides));
  for (const StudyBorder& border : region.borders)
    out += html_paragraph(fmt::format("Border: {}.", text_of(study.spec, border)), "small");
  out += "<div class=\"charts\">\n";
  constexpr std::size_t most_pictures = 6;
  for (const std::string& picture : region_pictures(study, c, most_pictures)) out += html_figure(picture, "");
  return out + "</div>\n";
}

}  // namespace

std::vector<std::string> region_pictures(const StudyResult& study, std::size_t claim, std::size_t most) {
  const std::vector<double>& indices = study.regions[claim].first_order;
  const auto weight = [&](std::size_t d) { return indices.empty() ? 0.0 : indices[d]; };
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t x = 0; x < study.spec.inputs.size(); ++x)
    for (std::size_t y = x + 1; y < study.spec.inputs.size(); ++y) pairs.emplace_back(x, y);
  if (pairs.empty()) pairs.emplace_back(0, 0);
  std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
    return weight(a.first) + weight(a.second) > weight(b.first) + weight(b.second);
  });
  std::vector<std::string> pictures;
  for (std::size_t i = 0; i < std::min(most, pairs.size()); ++i)
    pictures.push_back(pair_picture(study, claim, pairs[i].first, pairs[i].second));
  return pictures;
}

void write_report(const StudyResult& study, std::ostream& out) {
  std::string body = fmt::format("<h1>{}</h1>\n", escaped(study.experiment));
  body += html_paragraph(
      fmt::format(
          "For which inputs the claims hold: {} points, {} of them possible; {} experiments were simulated.",
          study.outcomes.size(), study.together.share.of, study.simulated),
      "sub");
  if (study.regions.size() > 1) {
    std::string sentence = together_sentence(study);
    sentence.front() = 'A';
    body += html_paragraph(sentence + '.');
  }
  body += html_paragraph(
      "In the pictures each cell is filled by the share of its points at which the claim holds, whatever the "
      "other inputs are; a stroke stands where no point is possible.",
      "small");
  for (std::size_t c = 0; c < study.regions.size(); ++c) body += claim_section(study, c);
  body += inputs_section(study);
  if (!study.impossible.empty()) {
    std::vector<HtmlRow> rows;
    for (const auto& [reason, count] : study.impossible) rows.push_back({{reason, std::to_string(count)}});
    body += "<h2>Points that are not possible</h2>\n" + html_table({{"why"}, {"points", true}}, rows);
  }
  out << html_page(study.experiment, body);
}

}  // namespace convoy::studies
