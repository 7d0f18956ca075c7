// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>

#include "sim/results/write_report.h"
#include "tests/results/results_fixture.h"
#include "tests/results/xml.h"

using namespace convoy;

namespace {

std::string report(const Results& results) {
  std::ostringstream out;
  write_report(results, out);
  return out.str();
}

/// The headings of the second level, in order.
std::vector<std::string> sections(const XmlElement& page) {
  std::vector<std::string> names;
  for (const XmlElement* heading : page.all("h2")) names.push_back(heading->text);
  return names;
}

/// The first drawing whose label begins so.
const XmlElement& drawing(const XmlElement& page, const std::string& label) {
  for (const XmlElement* svg : page.all("svg"))
    if (!svg->children.empty() && svg->children.front().text.starts_with(label)) return *svg;
  FAIL("no drawing of " << label);
  return page;
}

/// Two strategies on 1, 2 and 4 devices.
Results scaling_results() {
  Results results{
      "scale & more", {}, {"0.1.0", "3.32.0", "max-min", "abc", {"a.b='x y'"}, {{"e.yaml", "def"}}}};
  int id = 0;
  for (const char* strategy : {"ring all-reduce", "1 dedicated parameter server"})
    for (const std::int64_t devices : {1, 2, 4}) {
      const bool ring = strategy[0] == 'r';
      const double per_device = ring ? 10 : 10 / static_cast<double>(devices);
      RunResult run = run_of(std::to_string(++id), devices, per_device * static_cast<double>(devices));
      run.strategy = strategy;
      run.point = coordinates(
          {{"strategy", ring ? "{kind: a}" : "{kind: b}"}, {"cluster.nodes", std::to_string(devices)}});
      results.runs.push_back(run);
    }
  return results;
}

}  // namespace

TEST_CASE("report: one page that stands for itself, the same bytes for the same results") {
  const std::string page = report(scaling_results());
  CHECK(page == report(scaling_results()));
  CHECK(page.starts_with("<!DOCTYPE html>\n"));
  for (const char* foreign : {"<script", "src=", "url(", "@import", "<link", "<iframe"}) {
    CAPTURE(foreign);
    CHECK(page.find(foreign) == std::string::npos);
  }
  const XmlElement parsed = parse_xml(page);
  CHECK(parsed.all("title").front()->text == "scale & more - convoy");
  CHECK(sections(parsed) == std::vector<std::string>{"Scaling", "Runs", "What a step is made of", "Memory",
                                                     "Links and devices", "Where this comes from"});
}

TEST_CASE("report: the curve over devices has each run's throughput and the ideal line") {
  const XmlElement page = parse_xml(report(scaling_results()));
  const XmlElement& chart = drawing(page, "toy: throughput over devices");
  std::vector<std::string> titles;
  for (const XmlElement* mark : chart.all("circle")) titles.push_back(mark->children.front().text);
  CHECK(titles ==
        std::vector<std::string>{"run 1: ring all-reduce, 1 devices: 10.0 images/s, scaling 100 %",
                                 "run 2: ring all-reduce, 2 devices: 20.0 images/s, scaling 100 %",
                                 "run 3: ring all-reduce, 4 devices: 40.0 images/s, scaling 100 %"});
  // The ring scales ideally, so its points lie on the line.
  const XmlElement& ideal = *chart.all("line", "ideal").front();
  const auto marks = chart.all("circle");
  CHECK(marks.front()->number("cx") == doctest::Approx(ideal.number("x1")));
  CHECK(marks.front()->number("cy") == doctest::Approx(ideal.number("y1")));
  CHECK(marks.back()->number("cx") == doctest::Approx(ideal.number("x2")));
  CHECK(marks.back()->number("cy") == doctest::Approx(ideal.number("y2")));
}

TEST_CASE("report: names that look like markup are text") {
  const std::string hostile = "<script>alert(1)</script> & \"'\x01\xFF";
  Results results = scaling_results();
  results.experiment = hostile;
  results.manifest = {hostile, hostile, hostile, hostile, {hostile}, {{hostile, hostile}}};
  for (RunResult& run : results.runs) {
    run.model = run.cluster = run.servers = run.device_type = run.strategy = hostile;
    run.bottleneck = {"link", hostile, 0.5, hostile};
    run.per_device = {{hostile, 1, 1, 1, run.peak_memory_bytes}, {hostile, 2, 1, 1, 5}};
    run.per_link = {{hostile, 1, 0.5}};
    run.stages = {{hostile, {hostile}, {hostile, hostile}, 1, 1}};
    run.partition = PartitionSummary{hostile, 1, 1, 1};
    run.phases = {{0, 1, 0, 1, 10, 1, 1, 1}, {5, 2, 7, 1, 20, 1, 1, 1}};
    run.reconfigurations = {{4, 1, 2, 1, 5}};
    run.point = coordinates({{"cluster.nodes", std::to_string(run.devices)}});
    run.point.emplace_back(hostile, YamlNode{});
    run.point.back().second.kind = YamlNode::Kind::scalar;
    run.point.back().second.scalar = hostile + run.id;
  }
  results.schedules = {{hostile, 1, 1, 1, 1, 1, 1, 1}};
  const XmlElement page = parse_xml(report(results));
  CHECK(page.all("script").empty());
  CHECK(page.all("h1").front()->text == "<script>alert(1)</script> & \"'\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("report: results without runs, and runs of nothing but zeros") {
  CHECK(sections(parse_xml(report({"none", {}, {}}))) == std::vector<std::string>{"Where this comes from"});
  RunResult zero;
  zero.devices = 1;
  zero.phases = {{}, {}};
  zero.stages = {{}, {}};
  zero.epoch_time_s = zero.cost_usd_per_epoch = 0;
  const std::string page = report({"zeros", {zero, zero}, {}});
  parse_xml(page);
  for (const char* word : {"nan", "inf\"", "inf "}) CHECK(page.find(word) == std::string::npos);
}
