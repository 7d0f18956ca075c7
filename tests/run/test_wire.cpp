// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>

#include "sim/results/field_reader.h"
#include "sim/results/result_fields.h"
#include "sim/results/write_json.h"
#include "sim/run/wire.h"
#include "tests/results/filler.h"
#include "tests/results/results_fixture.h"

using namespace convoy;

namespace {

std::string as_json(const RunResult& run) {
  std::ostringstream out;
  write_json(demo({run}), out);
  return out.str();
}

}  // namespace

TEST_CASE("wire: every field of a run survives, and every member of a run is a field") {
  RunResult run;
  FieldFiller filler;
  run_fields(filler, run);
  run.network_model = "max-min";  // in results.json part of the manifest
  REQUIRE(is_set(run));
  RunResult back = decode_output(encode(RunOutput{run, {}})).result;
  CHECK(back.id.empty());  // stays behind, like the point
  back.id = run.id, back.point = run.point;
  CHECK(is_set(back));
  CHECK(as_json(back) == as_json(run));
  CHECK(back.network_model == "max-min");
}

TEST_CASE("wire: a run comes out as it went in") {
  RunResult run = run_of("7", 3, 0.1);
  run.epoch_time_s = 1.0 / 3;
  run.network_model = "max-min";
  run.exposed_comm_s = 5e-324;
  run.fits = false;
  run.per_device.push_back({});
  run.bubble_fraction = 0.25;
  run.stages = {{"n0", {"n0", "n1"}, {"conv", "fc"}, 0.5, 7}, {"n2", {"n2"}, {"head"}, 1.0 / 3, 8}};
  run.search = SearchSummary{"cost",
                             3,
                             2,
                             1,
                             false,
                             {{"a", parse_yaml("{kind: single, l: [1, 'x'], m: {n: null}}", "t"), "best", 0.1,
                               1.0 / 3, true, "good"},
                              {"b", {}, "failed", std::nullopt, std::nullopt, false, "bad"}}};
  RunOutput back = decode_output(encode(RunOutput{
      run,
      {{"n0", {{"gpu0", {{"op", 0.5, 1.0 / 3}}}}, {{"gpu0 memory", {{0.25, {1, 2, 3, 4, 5, 1.0 / 3}}}}}}}}));
  back.result.id = run.id;
  CHECK(as_json(back.result) == as_json(run));
  CHECK(back.result.stages == run.stages);
  CHECK(back.result.network_model == "max-min");
  CHECK(back.result.servers == run.servers);
  CHECK(back.result.device_type == run.device_type);
  REQUIRE(back.trace.size() == 1);
  CHECK(back.trace[0].threads[0].spans[0].name == "op");
  CHECK(back.trace[0].threads[0].spans[0].end_s == 1.0 / 3);
  REQUIRE(back.trace[0].memory.size() == 1);
  CHECK(back.trace[0].memory[0].name == "gpu0 memory");
  CHECK(back.trace[0].memory[0].points[0].time_s == 0.25);
  CHECK(back.trace[0].memory[0].points[0].bytes[5] == 1.0 / 3);
}

TEST_CASE("wire: an assessment comes out as it went in") {
  Assessment in;
  in.label = "ring";
  in.images = 64;
  in.step_bound_s = 1.0 / 3;
  in.running_s = 0.1;
  in.energy_bound_j = 5e-324;
  in.bound_text = "at least";
  in.samples = 7;
  in.peak_bytes = 1e10;
  in.process_bytes = 1.5e10;
  in.fits = false;
  in.fullest = "n0";
  in.fullest_size_bytes = 9e9;
  const Assessment out = decode_assessment(encode(in));
  CHECK(out.label == in.label);
  CHECK(out.images == in.images);
  CHECK(out.step_bound_s == in.step_bound_s);
  CHECK(out.running_s == in.running_s);
  CHECK(out.energy_bound_j == in.energy_bound_j);
  CHECK(out.bound_text == in.bound_text);
  CHECK_FALSE(out.price_usd_per_h.has_value());
  CHECK(out.samples == in.samples);
  CHECK(out.peak_bytes == in.peak_bytes);
  CHECK(out.process_bytes == in.process_bytes);
  CHECK(out.fits == in.fits);
  CHECK(out.fullest == in.fullest);
  CHECK(out.fullest_size_bytes == in.fullest_size_bytes);
}

TEST_CASE("wire: bytes that end too early are refused, wherever they end") {
  const std::string bytes = encode(RunOutput{run_of("1", 1, 10), {{"n0", {{"gpu0", {{"op", 0, 1}}}}}}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_WITH(decode_output(bytes.substr(0, size)), "a worker's answer is cut short");
}

TEST_CASE("wire: a stored run that was changed is refused") {
  StoredRun run = stored_form({run_of("1", 1, 10), {}}, false);
  run.result.replace(run.result.find("idle_s"), 4, "idel");
  CHECK_THROWS_WITH(run_of_stored(run), doctest::Contains("'idle_s' is missing"));
  run.result.resize(run.result.find("idel"));
  CHECK_THROWS_WITH(run_of_stored(run), doctest::Contains("a stored run cannot be read: "));
}

TEST_CASE("wire: a stored run that is cut short is refused, wherever it ends") {
  RunResult whole;
  FieldFiller filler;
  run_body_fields(filler, whole);
  StoredRun run = stored_form({whole, {}}, false);
  const std::string text = run.result;
  for (std::size_t size = 0; size < text.size(); ++size) {
    run.result = text.substr(0, size);
    CHECK_THROWS_AS(run_of_stored(run), std::runtime_error);
  }
  run.result = text + '}';
  CHECK_THROWS_AS(run_of_stored(run), std::runtime_error);
  run.result = text;
  run.result.replace(text.size() - 1, 1, ", \"more\": 1}");
  CHECK_THROWS_WITH(run_of_stored(run), "a stored run cannot be read: 'more' has no place here");
}

/// The rows of a table of which a store has the columns, as results.json lists them.
Json rows_of(const Json& columns) {
  Json rows = Json::array();
  for (const auto& [name, column] : columns.items()) {
    const bool of_memory = std::ranges::find(memory_class_names, name) != memory_class_names.end();
    std::size_t row = 0;
    for (const Json& item : column) {
      const Json& value = item.is_array() ? item.at(0) : item;
      const std::size_t end = row + (item.is_array() ? item.at(1).get<std::uint8_t>() : 1);
      for (; row < end; ++row) {
        if (row == rows.size()) rows.push_back(Json::object());
        (of_memory ? rows[row]["memory"][name] : rows[row][name]) = value;
      }
    }
  }
  return rows;
}

TEST_CASE("wire: stored text is read as results.json is, one letter changed or not") {
  RunResult whole;
  FieldFiller filler;
  run_body_fields(filler, whole);
  whole.cluster = "a\"b\\c\n\x01\x7f \xc3\xa9 \xff";
  const std::string text = stored_form({whole, {}}, false).result;
  const auto by_document = [](const std::string& json) -> std::optional<std::string> {
    try {
      std::istringstream in(json);
      Json document = parse_json(in, "", [](const std::string&, const Json&) {}, {});
      for (const char* table : {"per_device", "per_link"}) document[table] = rows_of(document.at(table));
      RunResult run;
      FieldReader::whole(document, JsonPlace{}, run, run_body_fields);
      return as_json(run);
    } catch (const std::runtime_error&) {
      return std::nullopt;
    } catch (const Json::exception&) {
      return std::nullopt;
    }
  };
  const auto in_order = [](const std::string& json) -> std::optional<std::string> {
    try {
      return as_json(run_of_stored({json, {}, {}}));
    } catch (const std::runtime_error&) {
      return std::nullopt;
    }
  };
  REQUIRE(in_order(text));
  CHECK(in_order(text) == by_document(text));
  int read = 0;
  for (std::size_t at = 0; at < text.size(); at += 3)
    for (const char letter : {'1', '"', '}', 'e'}) {
      std::string changed = text;
      changed[at] = letter;
      // Names in another order are refused here only.
      const std::optional<std::string> here = in_order(changed), there = by_document(changed);
      if (!here || !there) continue;
      ++read;
      CHECK(*here == *there);
    }
  CHECK(read > 100);
}

TEST_CASE(
    "wire: devices and links come out as they went in, however many of them follow an equal one [law]") {
  std::mt19937 random(20261128);
  const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
  for (int i = 0; i < 50; ++i) {
    CAPTURE(i);
    RunResult run = run_of("1", 3, 0.1);
    run.per_device.clear(), run.per_link.clear();
    const int values = 1 << below(6), devices = below(60), links = below(60);
    const auto figure = [&] { return below(values) / 3.0; };
    for (int d = 0; d < devices; ++d) {
      DeviceResult& device = run.per_device.emplace_back();
      device = {"n" + std::to_string(d), figure(), figure(), figure(), figure(), figure(), {},
                1 + below(values)};
      for (double& bytes : device.memory) bytes = below(2) * figure();
    }
    for (int l = 0; l < links; ++l)
      run.per_link.push_back({"n0.nic \"x\"", figure(), below(3) == 0 ? 0.5 : 0.0, 1 + below(values)});
    const RunResult back = decode_output(encode(RunOutput{run, {}})).result;
    CHECK(back.per_device == run.per_device);
    CHECK(back.per_link == run.per_link);
  }
}

TEST_CASE("wire: figures of equal links are stored once") {
  RunResult run = run_of("1", 3, 0.1);
  const auto bytes = [&](std::size_t links) {
    run.per_link.assign(links, {"n", 1e9 / 3, 1.0 / 3});
    return stored_form({run, {}}, false).result.size();
  };
  CHECK(bytes(1000) - bytes(100) ==
        900 * std::string_view("\"n\", ").size() + 3);  // three counts of one more digit
}

TEST_CASE("wire: columns that do not fit together are no run") {
  RunResult run = run_of("1", 3, 0.1);
  run.per_link = {{"a", 1, 0.5}, {"b", 1, 0.5}, {"c", 1, 0.25}};
  const StoredRun stored = stored_form({run, {}}, false);
  REQUIRE(run_of_stored(stored).per_link == run.per_link);
  const std::string fit = "\"utilization\": [[0.5, 2], 0.25]";
  const std::size_t at = stored.result.find(fit);
  REQUIRE(at != std::string::npos);
  for (const char* other : {"[[0.5, 2]]", "[[0.5, 2], 0.25, 1]", "[[0.5, 3], 0.25]", "[[0.5, 4000000000000]]",
                            "[[0.5, 0], 1, 1, 1]", "[[0.5, -1], 1]", "[[0.5], 1, 1]", "[[0.5, 2, 2], 0.25]",
                            "[[], 1, 1, 1]", "[]", "{}"}) {
    CAPTURE(other);
    StoredRun damaged = stored;
    damaged.result.replace(at, fit.size(), std::string("\"utilization\": ") + other);
    CHECK_THROWS_AS(run_of_stored(damaged), UnreadableRun);
  }
}
