// SPDX-License-Identifier: MIT
// What is drawn stands where the axis says.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "sim/page/bar_chart.h"
#include "sim/page/svg.h"
#include "sim/page/xy_chart.h"
#include "tests/page/xml.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

double value_of(const std::string& text) {
  std::size_t end = 0;
  const double number = std::stod(text, &end);
  const std::string suffix = text.substr(end);
  return suffix == "k" ? 1e3 * number : suffix == "M" ? 1e6 * number : number;
}

/// Reads an axis back from its tick texts: pixel -> value.
class ReadAxis {
 public:
  ReadAxis(const XmlElement& svg, bool vertical, bool log) : log_(log) {
    for (const XmlElement* tick : svg.all("text", "tick"))
      if ((tick->attribute("text-anchor") == "end") == vertical)
        ticks_.emplace_back(vertical ? tick->number("y") - 4 : tick->number("x"), value_of(tick->text));
    REQUIRE(ticks_.size() >= 2);
  }
  double value(double pixel) const {
    const auto [from, low] = ticks_.front();
    const auto [to, high] = ticks_.back();
    const double share = (pixel - from) / (to - from);
    return log_ ? low * std::pow(high / low, share) : low + share * (high - low);
  }
  /// The ticks between lie where the first and the last say.
  void check_ticks() const {
    for (const auto& [pixel, tick] : ticks_) CHECK(value(pixel) == approx(tick).epsilon(1e-3));
  }
  std::size_t size() const { return ticks_.size(); }

 private:
  bool log_;
  std::vector<std::pair<double, double>> ticks_;
};

XyChart chart_of(std::vector<XyPoint> points) {
  XyChart chart;
  chart.x = {"x"};
  chart.y = {"y"};
  chart.series = {{"one", std::move(points)}};
  return chart;
}

}  // namespace

TEST_CASE("charts: points lie where the axes say, on linear and on logarithmic axes") {
  const std::vector<XyPoint> points{{1, 48.8}, {2, 95.2}, {4, 187}, {8, 371}, {16, 735}};
  for (const bool log : {false, true}) {
    XyChart chart = chart_of(points);
    chart.x.log = chart.y.log = log;
    const XmlElement svg = parse_xml(draw(chart));
    const ReadAxis x(svg, false, log), y(svg, true, log);
    x.check_ticks();
    y.check_ticks();
    const auto marks = svg.all("circle");
    REQUIRE(marks.size() == points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      CHECK(x.value(marks[i]->number("cx")) == approx(points[i].x).epsilon(2e-3));
      CHECK(y.value(marks[i]->number("cy")) == approx(points[i].y).epsilon(2e-3));
    }
  }
}

TEST_CASE("charts: the range of a point lies where the axes say, within the plot") {
  const std::vector<XyPoint> points{{1, 48.8, "", {{30, 90}}}, {2, 95.2}, {4, 187, "", {{170, 400}}}};
  for (const bool log : {false, true}) {
    XyChart chart = chart_of(points);
    chart.x.log = chart.y.log = log;
    const XmlElement svg = parse_xml(draw(chart));
    const ReadAxis x(svg, false, log), y(svg, true, log);
    const auto ranges = svg.all("line", "range");
    REQUIRE(ranges.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      const XyPoint& point = points[2 * i];
      CHECK(x.value(ranges[i]->number("x1")) == approx(point.x).epsilon(2e-3));
      CHECK(ranges[i]->number("x1") == ranges[i]->number("x2"));
      CHECK(y.value(ranges[i]->number("y1")) == approx((*point.range)[0]).epsilon(2e-3));
      CHECK(y.value(ranges[i]->number("y2")) == approx((*point.range)[1]).epsilon(2e-3));
      CHECK(ranges[i]->number("y2") >= 0);
    }
    chart.named = false;
    CHECK(parse_xml(draw(chart)).all("line", "range").empty());
  }
}

TEST_CASE("charts: ticks are where the values are when they are given") {
  XyChart chart = chart_of({{1, 5}, {2, 6}, {4, 7}, {8, 8}});
  chart.x.log = true;
  for (const double n : {1, 2, 4, 8}) chart.x.ticks.push_back({n, fmt::format("{}", n)});
  const XmlElement svg = parse_xml(draw(chart));
  const auto marks = svg.all("circle");
  std::vector<double> ticks;
  for (const XmlElement* tick : svg.all("text", "tick"))
    if (tick->attribute("text-anchor") == "middle") ticks.push_back(tick->number("x"));
  REQUIRE(ticks.size() == marks.size());
  for (std::size_t i = 0; i < marks.size(); ++i) CHECK(marks[i]->number("cx") == approx(ticks[i]));
}

TEST_CASE("charts: axes have a handful of round ticks for any range") {
  for (double size = 1e-30; size < 1e60; size *= 37.7)
    for (const bool log : {false, true}) {
      CAPTURE(size);
      CAPTURE(log);
      const Axis axis({"x", plain, log, true}, size / 7, size, 0, 400);
      CHECK(axis.ticks().size() >= 3);
      CHECK(axis.ticks().size() <= 9);
      CHECK(axis.at(size) <= 400.001);
      CHECK(axis.at(size / 7) >= -0.001);
    }
  // From zero, or from about where the values begin.
  CHECK(Axis({"x", plain, false, true}, 970, 1000, 0, 400).at(0) == approx(0));
  CHECK(Axis({"x", plain, false, false}, 970, 1000, 0, 400).at(900) < 0);
  for (const double value : {0.0, 1.0, 1e100}) {
    const Axis axis({"x"}, value, value, 0, 400);
    CHECK(std::isfinite(axis.at(value)));
    CHECK(axis.ticks().size() >= 2);
  }
  CHECK(Axis({"t", time_unit(0.7)}, 0, 0.7, 0, 1).title() == "t (ms)");
  CHECK(Axis({"m", byte_unit(3e9)}, 0, 3e9, 0, 1).title() == "m (GiB)");
  CHECK(tick_text(0.25) == "0.25");
  CHECK(tick_text(25'000) == "25k");
  CHECK(tick_text(1.5e6) == "1.5M");
}

TEST_CASE("charts: the labels of 20 series do not overlap and lie within the drawing") {
  XyChart chart;
  chart.x = {"x"};
  chart.y = {"y"};
  for (std::size_t s = 0; s < 20; ++s)  // all end within a few pixels of each other
    chart.series.push_back(
        {fmt::format("series {}", s), {{1, 1}, {2, 100 + 0.1 * static_cast<double>(s)}}, s});
  const XmlElement root = parse_xml(draw(chart));
  const XmlElement& svg = root.children.front();
  std::vector<double> ys;
  double right = 0;
  for (const XmlElement* label : svg.all("text", "label")) {
    ys.push_back(label->number("y"));
    right = std::max(right, label->number("x") + text_width(label->text));
  }
  REQUIRE(ys.size() == 20);
  for (std::size_t i = 1; i < ys.size(); ++i) CHECK(ys[i] - ys[i - 1] >= 14.9);
  CHECK(ys.front() >= 10);
  CHECK(ys.back() <= svg.number("height"));
  CHECK(right <= svg.number("width"));
  std::set<std::string> looks;
  for (const XmlElement* line : svg.all("path", "line")) looks.insert(line->attribute("class"));
  CHECK(looks.size() == 20);
}

TEST_CASE("charts: stacked bars follow one another and are as long as the axis says") {
  BarChart chart;
  chart.x = {"t", time_unit(0.3)};
  chart.parts = {{"a", "c0"}, {"b", "c1"}, {"c", "idle"}};
  chart.rows = {{"first", {0.1, 0.05, 0.15}, "", 0.25}, {"second", {0.2, 0, 0.04}}};
  const XmlElement svg = parse_xml(draw(chart));
  std::vector<const XmlElement*> bars;
  for (const XmlElement* rect : svg.all("rect", "bar"))
    if (rect->number("height") == 14) bars.push_back(rect);  // the legend's are smaller
  REQUIRE(bars.size() == 5);
  const ReadAxis axis(svg, false, false);
  axis.check_ticks();
  const auto from = [&](std::size_t i) { return axis.value(bars[i]->number("x")); };
  const auto to = [&](std::size_t i) { return axis.value(bars[i]->number("x") + bars[i]->number("width")); };
  const double ends[5][2] = {{0, 100}, {100, 150}, {150, 300}, {0, 200}, {200, 240}};  // ms
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(from(i) == approx(ends[i][0]).epsilon(1e-3));
    CHECK(to(i) == approx(ends[i][1]).epsilon(1e-3));
  }
  double limit = 0;
  for (const XmlElement* line : svg.all("line", "limit")) limit = axis.value(line->number("x1"));
  CHECK(limit == approx(250).epsilon(1e-3));
}

TEST_CASE("charts: text is what was meant, whatever it holds") {
  const std::string hostile = "</text><script>alert('1')</script>&amp;\"\x01\xFF\xC3\xB6";
  Svg svg(10, 10, hostile);
  svg.text(1, 1, hostile, "label");
  svg.rect(1, 1, 1, 1, "bar", hostile);
  const XmlElement drawn = parse_xml(std::move(svg).finish());
  const std::string expected = "</text><script>alert('1')</script>&amp;\"\xEF\xBF\xBD\xEF\xBF\xBD\xC3\xB6";
  CHECK(drawn.all("text").front()->text == expected);
  CHECK(drawn.all("title").front()->text == expected);
  CHECK(drawn.all("title").back()->text == expected);
  CHECK(drawn.all("script").empty());
}
