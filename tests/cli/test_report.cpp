// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "tests/cli/program.h"

namespace {

constexpr const char* sweep = "sweep: {cluster.nodes.0.count: [1, 2, 4]}\n";

}  // namespace

TEST_CASE("report: the page of a run, made again from its files, has the same bytes") {
  const Workplace place;
  place.file("e.yaml", small_experiment() + sweep);
  place.file("one.yaml", small_experiment());
  const std::vector<std::vector<std::string>> runs{{"run", "e.yaml", "--out", "o"},
                                                   {"run", "e.yaml", "--out", "o", "--trace"},
                                                   {"run", "one.yaml", "--out", "o", "--trace"}};
  for (const bool from_store : {true, false})
    for (const std::vector<std::string>& arguments : runs) {
      REQUIRE(place.convoy(arguments).exit_code == 0);
      const std::string page = place.read("o/report.html");
      CHECK(page.starts_with("<!DOCTYPE html>"));
      CHECK((page.find("<h2>Timeline</h2>") != std::string::npos) == (arguments.back() == "--trace"));
      place.file("o/report.html", "");
      const std::string store = place.read("o/results.sqlite");
      if (!from_store) std::filesystem::remove(place.path() / "o/results.sqlite");
      const Finished again = place.convoy({"report", "o"});
      CHECK(again.exit_code == 0);
      CHECK(again.err.empty());
      CHECK(again.out == "report of small: o/report.html\n");
      CHECK(place.read("o/report.html") == page);
      place.file("o/results.sqlite", store);
    }
}

TEST_CASE("report: a folder without results, and results that are broken, are wrong input") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  const auto complaint = [&](const std::string& folder) {
    const Finished run = place.convoy({"report", folder});
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    return run.err;
  };
  const std::string page = place.read("o/report.html");
  std::filesystem::remove(place.path() / "o/results.sqlite");  // reports are made from it where it is there
  CHECK(complaint("nowhere") ==
        "nowhere/results.json: cannot be opened; `convoy report` takes the folder of a finished run\n");
  CHECK(complaint("e.yaml") ==
        "e.yaml/results.json: cannot be opened; `convoy report` takes the folder of a finished run\n");
  const std::string results = place.read("o/results.json");
  place.file("o/results.json", results.substr(0, results.find("\"idle_s\"") + 3));  // inside a name
  CHECK(complaint("o").starts_with("o/results.json: not JSON: line "));
  place.file("o/results.json", results.substr(0, results.find("\"idle_s\"")));  // behind a comma
  CHECK(complaint("o") == "o/results.json: ends too early: it is no whole JSON document\n");
  place.file("o/results.json", replaced(results, "\"idle_s\"", "\"idle\""));
  CHECK(complaint("o") == "o/results.json: runs[0]: 'idle_s' is missing\n");
  place.file("o/results.json", "{\"nodes\": []}");
  CHECK(complaint("o") ==
        "o/results.json: no results of convoy: does not begin with \"schema\": \"convoy.results/1\"\n");
  place.file("o/results.json", results);
  place.file("o/trace.json",
             R"({"displayTimeUnit": "ms", "traceEvents": [{"ph": "B", "pid": 1, "tid": 1, "name": "x"}]})");
  CHECK(complaint("o") == "o/trace.json: traceEvents[0]: an event of kind 'B' is not convoy's\n");
  CHECK(place.read("o/report.html") == page);
}
