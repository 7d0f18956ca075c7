// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/base/input_error.h"
#include "sim/run/sweep_points.h"

using namespace convoy;

namespace {

SweepPoints::Axis axis(const std::string& path, const std::string& values) {
  return {path, parse_yaml(values, "values").items};
}

SweepPoints small_product() {
  return SweepPoints::product_of({axis("cluster.nodes", "[1, 2, 4]"),
                                  axis("strategy", "[{kind: single, l: [1, 'x: \"y\\n']}, '7']"),
                                  axis("cluster.fabric.latency", "[10us, '~']")});
}

std::string text_at(const SweepPoints& points, std::size_t position) {
  return to_yaml(mapping_of(points.at(position)));
}

void check_read_back(const SweepPoints& points) {
  const SweepPoints read = SweepPoints::from_text(points.text());
  CHECK(read.fingerprint() == points.fingerprint());
  CHECK(read.has_axes() == points.has_axes());
  REQUIRE(read.size() == points.size());
  for (std::size_t i = 0; i < points.size(); ++i) CHECK(text_at(read, i) == text_at(points, i));
}

}  // namespace

TEST_CASE("points of a sweep: all combinations, the last axis changing fastest") {
  const SweepPoints points = small_product();
  CHECK(points.size() == 12);
  CHECK(to_flow(mapping_of(points.at(0))) ==
        "{cluster.nodes: 1, strategy: {kind: single, l: [1, x: \"y\\n]}, cluster.fabric.latency: 10us}");
  CHECK(points.at(1)[0].second.scalar == "1");
  CHECK(points.at(1)[2].second.scalar == "~");
  CHECK(points.at(2)[1].second.scalar == "7");
  CHECK(points.at(11)[0].second.scalar == "4");
  CHECK(points.place_of("strategy", 3) == 1);
  CHECK(points.place_of("cluster", 3) == 1);   // 0 of nodes, 1 of latency
  CHECK(points.place_of("cluster", 11) == 5);  // 2 of nodes, 1 of latency
}

TEST_CASE("points of a sweep: a text of them gives the same points [law]") {
  check_read_back(SweepPoints());
  check_read_back(small_product());
  std::vector<SweepPoints::Coordinates> points;
  for (std::size_t i = 0; i < 5; ++i) points.push_back(small_product().at(2 * i));
  points.emplace_back();
  check_read_back(SweepPoints::listed(points));
  check_read_back(SweepPoints::listed({{}}));
}

TEST_CASE("points of a sweep: more of them than a document of YAML may have values") {
  std::vector<SweepPoints::Coordinates> points(600'000);
  for (std::size_t i = 0; i < points.size(); i += 1000)
    points[i] = {{"cluster.nodes", parse_yaml(std::to_string(i), "value")}};
  const SweepPoints read = SweepPoints::from_text(SweepPoints::listed(std::move(points)).text());
  CHECK(read.size() == 600'000);
  CHECK(read.at(599'000).front().second.scalar == "599000");
}

TEST_CASE("points of a sweep: a text of something else is refused") {
  for (const char* text : {"", "other", "product\n{}", "product\n{a: []}", "product\n{a: 1}", "product\n[1]",
                           "product\n{a: [1], b: [2]}", "list\n{a"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(SweepPoints::from_text(text), InputError);
  }
}
