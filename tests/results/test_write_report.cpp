// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/digest.h"
#include "sim/results/write_report.h"
#include "tests/page/xml.h"
#include "tests/results/results_fixture.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

std::string report(const Results& results) {
  std::ostringstream out;
  write_report(results, {}, {}, out);
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
  for (const char* foreign : {"src=", "@import", "<link", "<iframe", "fetch(", "eval("}) {
    CAPTURE(foreign);
    CHECK(page.find(foreign) == std::string::npos);
  }
  for (std::size_t at = page.find("url("); at != std::string::npos; at = page.find("url(", at + 1))
    CHECK(page[at + 4] == '#');
  const XmlElement parsed = parse_xml(page);
  CHECK(parsed.all("title").front()->text == "scale & more - convoy");
  CHECK(sections(parsed) == std::vector<std::string>{"Scaling", "Runs", "What a step is made of", "Memory",
                                                     "Links and devices", "Where this comes from"});
}

TEST_CASE("report: the page's policy allows its own script and no other") {
  const std::string page = report(scaling_results());
  const std::string begin = "<script>";
  const std::size_t at = page.find(begin) + begin.size();
  const std::string script = page.substr(at, page.find("</script>", at) - at);
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK(page.find(fmt::format("script-src 'sha256-{}'\"/>", sha256_base64(script))) != std::string::npos);
  // The digest of nothing is known from FIPS 180-4's examples.
  CHECK(sha256_base64("") == "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

TEST_CASE("report: what the script draws from has every run, and marks the same ones as the table") {
  Results results = scaling_results();
  results.runs[3].fits = false;
  const XmlElement page = parse_xml(report(results));
  const nlohmann::json data = nlohmann::json::parse(page.all("script").front()->text);
  CHECK(data["over"] == nlohmann::json::parse("[3]"));
  CHECK(data["best"] == nlohmann::json::parse("[2]"));
  for (const auto& column : data["columns"]) {
    CAPTURE(column["title"]);
    CHECK(column["values"].size() == results.runs.size());
    for (std::size_t run = 0; run < results.runs.size(); ++run) {
      if (column["title"] == "step") CHECK(column["values"][run] == approx(results.runs[run].step_time_s));
      if (column["title"] == "strategy")
        CHECK(column["texts"][column["values"][run].get<std::size_t>()] == results.runs[run].strategy);
    }
  }
}

TEST_CASE("report: ten thousand runs are a page that a browser opens at once") {
  Results results{"many", {}, {}};
  for (int i = 0; i < 10'000; ++i) {
    RunResult run = run_of(std::to_string(i + 1), 1 + i % 64, 10 + i * 0.37);
    run.point = coordinates({{"cluster.nodes", std::to_string(1 + i % 64)}, {"seed", std::to_string(i)}});
    run.epoch_time_s = 1e6 / run.throughput_images_per_s;
    run.cost_usd_per_epoch = 1 + i % 97;
    results.runs.push_back(run);
  }
  const std::string page = report(results);
  CHECK(page.size() < 10'000'000);
  CHECK(parse_xml(page).all("").size() < 10'000);
}

TEST_CASE("report: the curve over devices has each run's throughput and the ideal line") {
  const XmlElement page = parse_xml(report(scaling_results()));
  const XmlElement& chart = drawing(page, "toy: throughput over devices");
  std::vector<std::string> titles;
  for (const XmlElement* mark : chart.all("circle")) titles.push_back(mark->children.front().text);
  CHECK(titles ==
        std::vector<std::string>{"run 1: ring all-reduce, 1 device: 10.0 images/s, scaling 100 %",
                                 "run 2: ring all-reduce, 2 devices: 20.0 images/s, scaling 100 %",
                                 "run 3: ring all-reduce, 4 devices: 40.0 images/s, scaling 100 %"});
  // The ring scales ideally, so its points lie on the line.
  const XmlElement& ideal = *chart.all("line", "ideal").front();
  const auto marks = chart.all("circle");
  CHECK(marks.front()->number("cx") == approx(ideal.number("x1")));
  CHECK(marks.front()->number("cy") == approx(ideal.number("y1")));
  CHECK(marks.back()->number("cx") == approx(ideal.number("x2")));
  CHECK(marks.back()->number("cy") == approx(ideal.number("y2")));
}

TEST_CASE(
    "report: what a throughput may be is on its card, in its row and in its curve, and nowhere if nothing is "
    "open") {
  Results results = scaling_results();
  const auto cells = [](const XmlElement& page, const std::string& text) {
    std::size_t count = 0;
    for (const XmlElement* cell : page.all("td")) count += cell->text == text;
    return count;
  };
  const auto says = [](const XmlElement& page, const char* name, const std::string& style,
                       const std::string& text) {
    for (const XmlElement* element : page.all(name, style))
      if (element->text.find(text) != std::string::npos) return true;
    return false;
  };
  const XmlElement exact = parse_xml(report(results));
  CHECK(exact.all("line", "range").empty());
  CHECK(!says(exact, "p", "small", "80 % intervals"));
  RunResult& fastest = results.runs[2];
  REQUIRE(fastest.throughput_images_per_s == 40);
  fastest.interval.emplace();
  fastest.interval->throughput_images_per_s = {30, 60};
  const XmlElement page = parse_xml(report(results));
  CHECK(page.all("line", "range").size() == 1);
  CHECK(cells(page, "-25 +50 %") == 1);
  CHECK(says(page, "p", "small", "80 % intervals"));
  // So it is where a swept number is not the devices.
  Results swept = scaling_results();
  for (std::size_t r = 0; r < swept.runs.size(); ++r) {
    swept.runs[r].devices = 4;
    swept.runs[r].point = coordinates({{"strategy", r < 3 ? "{kind: a}" : "{kind: b}"},
                                       {"cluster.fabric.bandwidth", std::to_string(1 + r % 3) + "Gbps"}});
    swept.runs[r].interval.emplace();
    swept.runs[r].interval->throughput_images_per_s = {1, 100};
  }
  const XmlElement bandwidths = parse_xml(report(swept));
  CHECK(bandwidths.all("line", "range").size() == 6);
  CHECK(says(bandwidths, "p", "small", "80 % intervals"));
  CHECK(report(results).find("30.0 to 60.0 at 80 %; run 3") != std::string::npos);
  fastest.interval->throughput_images_per_s = {36, 45};
  CHECK(cells(parse_xml(report(results)), "± 11 %") == 1);
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
  const std::string text = report(results);
  const XmlElement page = parse_xml(text);
  const std::vector<const XmlElement*> scripts = page.all("script");  // the data and our own
  REQUIRE(scripts.size() == 2);
  CHECK(scripts[0]->attribute("type") == "application/json");
  CHECK(scripts[0]->text.find_first_of("<>&") == std::string::npos);
  const nlohmann::json data = nlohmann::json::parse(scripts[0]->text);
  CHECK(data["columns"][1]["texts"][0] == "<script>alert(1)</script> & \"'\x01\xEF\xBF\xBD");
  CHECK(text.find("<script>alert") == std::string::npos);
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

TEST_CASE("report: the Pareto front has the runs that no other one beats in time and in cost") {
  Results results = scaling_results();
  // (h, USD): 1 (4, 8), 2 (2, 9), 3 (1, 20), 4 (5, 9) and 5 (2, 10) are beaten, 6 (0.5, 1) does not fit.
  const double epochs[6][2] = {{4, 8}, {2, 9}, {1, 20}, {5, 9}, {2, 10}, {0.5, 1}};
  for (std::size_t i = 0; i < 6; ++i) {
    results.runs[i].epoch_time_s = 3600 * epochs[i][0];
    results.runs[i].cost_usd_per_epoch = epochs[i][1];
  }
  results.runs[5].fits = false;
  const XmlElement page = parse_xml(report(results));
  const XmlElement& chart = drawing(page, "toy: cost over time of an epoch");
  std::vector<std::string> front, others;
  for (const XmlElement* mark : chart.all("circle"))
    front.push_back(mark->children.front().text.substr(0, 6));
  for (const XmlElement* mark : chart.all("path", "mark"))
    others.push_back(mark->children.front().text.substr(0, 6));
  CHECK(front == std::vector<std::string>{"run 3:", "run 2:", "run 1:"});
  CHECK(others == std::vector<std::string>{"run 4:", "run 5:", "run 6:"});
  // 0.1 J a step of 1 s (run 1, 1 device at 10 images/s) are 0.1 W: 4 h of it 4e-4 kWh.
  const auto rows = page.all("tr");
  bool found = false;
  for (const XmlElement* row : rows)
    if (row->children.size() == 5 && row->children[0].text == "1" && row->children[2].text == "4.00 h") {
      CHECK(row->children[3].text == "8.00");
      CHECK(row->children[4].text == "0.0004");
      found = true;
    }
  CHECK(found);
}

TEST_CASE("report: the timeline draws spans where they are, and memory class on class") {
  Results results{"traced", {run_of("1", 1, 10)}, {}};
  const TraceProcess host{
      "n0",
      {{"gpu0 compute", {{"a.forward #0", 0, 0.2}, {"a.weight_gradient", 0.2, 0.5}, {"a.update", 0.9, 1}}}},
      {{"gpu0 memory", {{0, {1024, 0, 0, 1024, 0, 0}}, {0.5, {1024, 0, 0, 0, 0, 0}}}}}};
  std::ostringstream out;
  write_report(results, {{0, {host}}}, {}, out);
  const XmlElement page = parse_xml(out.str());
  const XmlElement& gantt = drawing(page, "What the streams did in a step");
  std::vector<const XmlElement*> bars;
  for (const XmlElement* rect : gantt.all("rect", "bar"))
    if (rect->number("height") == 13) bars.push_back(rect);
  REQUIRE(bars.size() == 3);
  const double from = bars[0]->number("x"), second = bars[2]->number("x") + bars[2]->number("width") - from;
  CHECK(bars[0]->attribute("class") == "bar c0 over-time");
  CHECK(bars[0]->number("width") == approx(0.2 * second).epsilon(1e-4));
  CHECK(bars[1]->attribute("class") == "bar c1 over-time");
  CHECK(bars[1]->number("x") - from == approx(0.2 * second).epsilon(1e-4));
  CHECK(bars[2]->attribute("class") == "bar c2 over-time");
  CHECK(bars[2]->number("x") - from == approx(0.9 * second).epsilon(1e-4));
  CHECK(bars[2]->children.front().text == "a.update: 100 ms from 900 ms");
  // The topmost areas reach 2 KiB and fall to 1 KiB after half of the time; the lowest, weights, stays at 1.
  const XmlElement& memory = drawing(page, "gpu0 memory over a step");
  const auto areas = memory.all("path", "area");
  REQUIRE(areas.size() == 6);
  double bottom = 0, x0 = 0, top = 0, x1 = 0, x2 = 0, one = 0, x3 = 0;
  const auto numbers = [&](const XmlElement* area) {
    double again = 0;
    REQUIRE(std::sscanf(area->attribute("d").c_str(), "M%lf %lfL%lf %lfH%lfL%lf %lfH%lf", &x0, &bottom,
                        &again, &top, &x1, &x2, &one, &x3) == 8);
  };
  numbers(areas.front());
  CHECK(x1 == x2);
  CHECK(x1 - x0 == approx((x3 - x0) / 2).epsilon(1e-4));
  CHECK(bottom - top == approx(2 * (bottom - one)).epsilon(1e-4));
  const double highest = top;
  numbers(areas.back());
  CHECK(top == one);
  CHECK(bottom - highest == approx(2 * (bottom - top)).epsilon(1e-4));
}

TEST_CASE("report: the bandwidth in use is drawn for the two hosts that exchange most") {
  Results results{"traced", {run_of("1", 1, 10)}, {}};
  const auto host = [](const char* name, double sent_Bps) {
    return TraceProcess{name,
                        {{"gpu0 compute", {{"a.forward", 0, 1}}}},
                        {},
                        {{0, sent_Bps, 0}, {0.5, 0, sent_Bps / 2}, {1, 0, 0}}};
  };
  std::ostringstream out;
  write_report(results, {{0, {host("n0", 1e8), host("ps0", 4e9 / 8), host("n1", 2e8)}}}, {}, out);
  CHECK(out.str().find("n0 network over a step") == std::string::npos);
  CHECK(out.str().find("n1 network over a step") != std::string::npos);
  const XmlElement page = parse_xml(out.str());
  const auto curves = drawing(page, "ps0 network over a step").all("path", "line");
  REQUIRE(curves.size() == 2);
  // Sent: 4 Gbit/s for half of the time, then none; received: none, then 2 Gbit/s. Upwards is less.
  double x0 = 0, high = 0, half = 0, low = 0, x1 = 0;
  REQUIRE(std::sscanf(curves[0]->attribute("d").c_str(), "M%lf %lfH%lfV%lfH%lf", &x0, &high, &half, &low,
                      &x1) == 5);
  CHECK(half - x0 == approx((x1 - x0) / 2).epsilon(2e-3));
  double none = 0, middle = 0;
  REQUIRE(std::sscanf(curves[1]->attribute("d").c_str(), "M%lf %lfH%lfV%lfH%lf", &x0, &none, &half, &middle,
                      &x1) == 5);
  CHECK(none == low);
  CHECK(none - middle == approx((low - high) / 2).epsilon(1e-3));
}

TEST_CASE("report: phases and pauses of an elastic run are a curve over time") {
  Results results{"elastic", {run_of("1", 2, 20)}, {}};
  // 10 s at 10 images/s, a pause of 5 s, then 20 images/s from 15 s on; drawn until 1.2 * 15 = 18 s.
  results.runs[0].phases = {{0, 1, 0, 1, 10, 10, 10, 7}, {10, 2, 15, 1, 20, 10, 10, 8}};
  results.runs[0].reconfigurations = {{9, 1, 2, 5, 10}};
  const XmlElement page = parse_xml(report(results));
  const XmlElement& chart = drawing(page, "Throughput over time");
  double x[6], y[6];
  REQUIRE(std::sscanf(chart.all("path", "line").front()->attribute("d").c_str(),
                      "M%lf %lfL%lf %lfL%lf %lfL%lf %lfL%lf %lfL%lf %lf", &x[0], &y[0], &x[1], &y[1], &x[2],
                      &y[2], &x[3], &y[3], &x[4], &y[4], &x[5], &y[5]) == 12);
  const double second = (x[5] - x[0]) / 18, image = (y[2] - y[0]) / 10;
  CHECK(x[1] - x[0] == approx(10 * second).epsilon(1e-3));
  CHECK(x[2] == x[1]);
  CHECK(x[3] - x[0] == approx(15 * second).epsilon(1e-3));
  CHECK(y[3] == y[2]);
  CHECK(y[2] - y[5] == approx(20 * image).epsilon(1e-3));
}

TEST_CASE("report: accuracy and loss of runs that learn are curves over time and over steps") {
  Results results{"learning", {run_of("1", 2, 20), run_of("2", 4, 40)}, {}};
  results.runs[0].learning = {{1, 900, 2.5, 0.125}, {2, 1800, 1.25, 0.5}};
  results.runs[1].learning = {{1, 10, 2.5, 0.25}, {2, 20, 1.5, 0.375}};
  const XmlElement page = parse_xml(report(results));
  for (const char* label :
       {"accuracy over time", "accuracy over steps", "loss over time", "loss over steps"}) {
    CAPTURE(label);
    const XmlElement& chart = drawing(page, label);
    CHECK(chart.all("path", "line").size() == 2);
    // The longest of the runs takes half an hour, and so does the axis.
    if (std::string(label).ends_with("time"))
      CHECK(std::ranges::any_of(chart.all("text"), [](const XmlElement* text) {
        return text->text.find("min") != std::string::npos;
      }));
  }
}

TEST_CASE("report: of large results a part is drawn, and the page says which") {
  Results results{"large", {}, {}};
  for (int batch = 0; batch < 100; ++batch)
    for (const std::int64_t devices : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}) {
      RunResult run = run_of(std::to_string(results.runs.size() + 1), devices,
                             static_cast<double>(devices) * (batch + 1));
      run.point = coordinates({{"cluster.nodes", std::to_string(devices)},
                               {"training.batch_per_device", std::to_string(batch + 1)}});
      results.runs.push_back(run);
    }
  RunResult& fastest = results.runs.back();
  fastest.per_device.clear();
  for (int d = 0; d < 65536; ++d)
    fastest.per_device.push_back({fmt::format("n{}", d), 0.5 + d, 1, 2, 3, 0.1, {}});
  fastest.per_link.assign(300'000, {"n0.nic.up", 4, 0.25});
  const std::string page = report(results);
  CHECK(page.size() < 1'500'000);
  const XmlElement parsed = parse_xml(page);
  const std::string text = parsed.all_text();
  for (const char* said :
       {"The 20 series with the highest throughput at their ends; 80 others are left out.",
        "The 40 with the highest throughput, taking turns among models; results.csv has the 960 others too.",
        "The first 32 of 65536; results.json has all.", "12 of 300000 links in use, 300000 in all."}) {
    CAPTURE(said);
    CHECK(text.find(said) != std::string::npos);
  }
  CHECK(drawing(parsed, "toy: throughput over devices").all("path", "line").size() == 20);
}

TEST_CASE("report: of many series the fastest are drawn, also where slower ones are equal and come first") {
  Results results{"ties", {}, {}};
  for (int series = 0; series < 30; ++series)
    for (const std::int64_t devices : {1, 2}) {
      const double per_device = series < 25 ? 10 : 20 + series;
      RunResult run =
          run_of(std::to_string(results.runs.size() + 1), devices, static_cast<double>(devices) * per_device);
      run.point = coordinates({{"seed", std::to_string(series)}, {"cluster.nodes", std::to_string(devices)}});
      results.runs.push_back(run);
    }
  const XmlElement page = parse_xml(report(results));
  const XmlElement& chart = drawing(page, "toy: scaling efficiency over devices");
  std::vector<std::string> labels;
  for (const XmlElement* label : chart.all("text", "label")) labels.push_back(label->text);
  CHECK(labels.size() == 20);
  for (int series = 25; series < 30; ++series)
    CHECK(std::count(labels.begin(), labels.end(), fmt::format("seed {}", series)) == 1);
}
