// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace convoy::inline page {

/// Text for XML, between tags and in attributes: characters with a special meaning become entities; those
/// that XML does not allow, or that are not UTF-8, become U+FFFD.
std::string escaped(std::string_view text);

/// A length on the page, in pixels, to a hundredth: "12.5".
std::string px(double length);

/// The approximate width of `text` at `size` pixels. Fonts differ, so it is rather too wide than too narrow.
double text_width(std::string_view text, double size = 12);

/// Which point of a text is at its position.
enum class Anchor { start, middle, end };

/// Where a drawing shows time, so that the page's script can zoom into it: elements of class "over-time" lie between two
/// pixels, "time-tick" are the lines and words of its axis.
struct TimeSpan {
  double left, right;  ///< pixels
  double end_s;        ///< the time at `right`; `left` is 0
  double unit_s;       ///< of the words of the axis
};

/// A drawing, element by element, to be placed within HTML. Colours and fonts come from the page's style
/// sheet by class (sim/page/style.cpp). Texts are escaped here.
class Svg {
 public:
  /// @param label what it shows, for people who cannot see it
  Svg(double width, double height, std::string_view label);
  Svg(double width, double height, std::string_view label, const TimeSpan& time);

  void line(double x1, double y1, double x2, double y2, std::string_view style);
  /// @param title shown under the pointer; empty: none
  void rect(double x, double y, double width, double height, std::string_view style,
            std::string_view title = {});
  void text(double x, double y, std::string_view content, std::string_view style,
            Anchor anchor = Anchor::start);
  /// Upwards, centred on its position.
  void vertical_text(double x, double y, std::string_view content, std::string_view style);
  /// @param d path data
  void path(std::string_view d, std::string_view style);
  /// A circle, square, triangle or diamond, by `shape` modulo 4.
  void marker(std::size_t shape, double x, double y, std::string_view style, std::string_view title = {});
  /// Markers at many places as one element, without titles.
  /// @param places x and y of each
  void markers(std::size_t shape, const std::vector<std::pair<double, double>>& places,
               std::string_view style);
  std::string finish() &&;

 private:
  void open(double width, double height, std::string_view label, std::string_view attributes);
  void close(std::string_view element, std::string_view title);
  std::string out_;
};

}  // namespace convoy::page
