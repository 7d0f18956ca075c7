// SPDX-License-Identifier: MIT
#include "sim/page/svg.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "sim/base/clean_text.h"
#include "sim/page/text.h"

namespace convoy::inline page {
namespace {

/// Whether XML 1.0 (section 2.2) allows the UTF-8 character.
bool in_xml(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r';
  return character != "\xEF\xBF\xBE" && character != "\xEF\xBF\xBF";
}

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

std::string_view name_of(Anchor anchor) {
  return anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
}

/// The outline of a marker, as path data from its middle on.
std::string_view outline(std::size_t shape) {
  constexpr std::array<std::string_view, 4> outlines{"m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z",
                                                     "m-3.3 -3.3h6.6v6.6h-6.6z", "m0 -4.4l4.2 7.4h-8.4z",
                                                     "m0 -4.8l4.4 4.8l-4.4 4.8l-4.4 -4.8z"};
  return outlines[shape % outlines.size()];
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length > 0 ? length : 1);
    if (length == 0 || !in_xml(character))
      result += "\xEF\xBF\xBD";
    else if (const std::string_view name = entity(character.front()); !name.empty())
      result += name;
    else
      result += character.size() > 1 ? clean(character) : std::string(character);
    text.remove_prefix(character.size());
  }
  return result;
}

std::string px(double length) {
  std::string text = fmt::format("{:.2f}", length);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

double text_width(std::string_view text, double size) {
  return 0.56 * size * static_cast<double>(width_of(text));
}

Svg::Svg(double width, double height, std::string_view label) { open(width, height, label, {}); }

Svg::Svg(double width, double height, std::string_view label, const TimeSpan& time) {
  open(width, height, label,
       fmt::format(R"( data-left="{}" data-right="{}" data-end="{}" data-unit="{}")", px(time.left),
                   px(time.right), time.end_s, time.unit_s));
}

void Svg::open(double width, double height, std::string_view label, std::string_view attributes) {
  out_ = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{0}" height="{1}" viewBox="0 0 {0} {1}"{2}>)",
      px(width), px(height), attributes);
  out_ += fmt::format("<title>{}</title>\n", escaped(label));
}

void Svg::close(std::string_view element, std::string_view title) {
  out_ +=
      title.empty() ? std::string("/>\n") : fmt::format("><title>{}</title></{}>\n", escaped(title), element);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
  out_ += fmt::format(R"(<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>)", style, px(x1), px(y1), px(x2),
                      px(y2));
  out_ += '\n';
}

void Svg::rect(double x, double y, double width, double height, std::string_view style,
               std::string_view title) {
  out_ += fmt::format(R"(<rect class="{}" x="{}" y="{}" width="{}" height="{}")", style, px(x), px(y),
                      px(width), px(height));
  close("rect", title);
}

void Svg::text(double x, double y, std::string_view content, std::string_view style, Anchor anchor) {
  out_ += fmt::format(R"(<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>)", style, px(x), px(y),
                      name_of(anchor), escaped(content));
  out_ += '\n';
}

void Svg::vertical_text(double x, double y, std::string_view content, std::string_view style) {
  out_ += fmt::format(
      R"svg(<text class="{0}" x="{1}" y="{2}" text-anchor="middle" transform="rotate(-90 {1} {2})">{3}</text>)svg",
      style, px(x), px(y), escaped(content));
  out_ += '\n';
}

void Svg::path(std::string_view d, std::string_view style) {
  out_ += fmt::format(R"(<path class="{}" d="{}"/>)", style, d);
  out_ += '\n';
}

void Svg::marker(std::size_t shape, double x, double y, std::string_view style, std::string_view title) {
  if (shape % 4 == 0) {
    out_ += fmt::format(R"(<circle class="{}" cx="{}" cy="{}" r="3.6")", style, px(x), px(y));
    return close("circle", title);
  }
  out_ += fmt::format(R"(<path class="{}" d="M{} {}{}")", style, px(x), px(y), outline(shape));
  close("path", title);
}

void Svg::markers(std::size_t shape, const std::vector<std::pair<double, double>>& places,
                  std::string_view style) {
  std::string d;
  for (const auto& [x, y] : places) d += fmt::format("M{} {}{}", px(x), px(y), outline(shape));
  path(d, style);
}

std::string Svg::finish() && {
  out_ += "</svg>\n";
  return std::move(out_);
}

}  // namespace convoy::page
