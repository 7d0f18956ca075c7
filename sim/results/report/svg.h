// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace convoy::inline results {

/// Text as it stands in XML, between tags and in attributes: what has a meaning there is written as an
/// entity; what XML does not allow, or is not UTF-8, becomes U+FFFD.
std::string escaped(std::string_view text);

/// A length on the page, in pixels, to a hundredth: "12.5".
std::string px(double length);

/// About how wide `text` is drawn at `size` pixels. Fonts differ, so rather too wide than too narrow.
double text_width(std::string_view text, double size = 12);

/// Where text is fixed to its place.
enum class Anchor { start, middle, end };

/// A drawing, element by element, to stand within HTML. Colours and fonts come from the page's style sheet by
/// class (sim/results/report/style.cpp). Texts are escaped here.
class Svg {
 public:
  /// @param label what it shows, for those who do not see it
  Svg(double width, double height, std::string_view label);

  void line(double x1, double y1, double x2, double y2, std::string_view style);
  /// @param title shown under the pointer; empty: none
  void rect(double x, double y, double width, double height, std::string_view style,
            std::string_view title = {});
  void text(double x, double y, std::string_view content, std::string_view style,
            Anchor anchor = Anchor::start);
  /// Upwards, centred on its place.
  void vertical_text(double x, double y, std::string_view content, std::string_view style);
  /// @param d path data
  void path(std::string_view d, std::string_view style);
  /// A circle, square, triangle or diamond, by `shape` modulo 4.
  void marker(std::size_t shape, double x, double y, std::string_view style, std::string_view title = {});
  std::string finish() &&;

 private:
  void close(std::string_view element, std::string_view title);
  std::string out_;
};

}  // namespace convoy::results
