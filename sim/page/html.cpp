// SPDX-License-Identifier: MIT
#include "sim/page/html.h"

#include <fmt/format.h>

#include "sim/page/svg.h"

namespace convoy::inline page {
namespace {

std::string_view style_of(const std::vector<HtmlColumn>& columns, std::size_t i) {
  return columns[i].number ? " class=\"n\"" : "";
}

}  // namespace

std::string html_table(const std::vector<HtmlColumn>& columns, const std::vector<HtmlRow>& rows) {
  return fmt::format("<div class=\"scroll\" tabindex=\"0\">{}</div>\n", html_plain_table(columns, rows));
}

std::string html_plain_table(const std::vector<HtmlColumn>& columns, const std::vector<HtmlRow>& rows) {
  std::string out = "<table>\n<thead><tr>";
  for (std::size_t i = 0; i < columns.size(); ++i)
    out += fmt::format("<th{} scope=\"col\">{}</th>", style_of(columns, i), escaped(columns[i].title));
  out += "</tr></thead>\n<tbody>\n";
  for (const HtmlRow& row : rows) {
    out += row.style.empty() ? std::string("<tr>") : fmt::format("<tr class=\"{}\">", row.style);
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      out += fmt::format("<td{}>{}</td>", style_of(columns, i), escaped(row.cells[i]));
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string html_paragraph(std::string_view text, std::string_view style) {
  return style.empty() ? fmt::format("<p>{}</p>\n", escaped(text))
                       : fmt::format("<p class=\"{}\">{}</p>\n", style, escaped(text));
}

std::string html_figure(std::string_view svg, std::string_view caption) {
  return fmt::format(
      "<figure tabindex=\"0\">\n{}{}</figure>\n", svg,
      caption.empty() ? std::string{} : fmt::format("<figcaption>{}</figcaption>\n", escaped(caption)));
}

std::string html_card(std::string_view name, std::string_view big, std::string_view unit,
                      std::string_view below) {
  return fmt::format(
      "<div class=\"card\"><div class=\"name\">{}</div><div class=\"big\">{} <span>{}</span></div>"
      "<div class=\"small\">{}</div></div>\n",
      escaped(name), escaped(big), escaped(unit), escaped(below));
}

std::string some_of(const std::vector<std::string>& words, std::size_t most) {
  std::string text;
  const std::size_t said = words.size() > most + 1 ? most : words.size();
  for (std::size_t i = 0; i < said; ++i) text += (i ? ", " : "") + words[i];
  return said < words.size() ? fmt::format("{} and {} more", text, words.size() - said) : text;
}

}  // namespace convoy::page
