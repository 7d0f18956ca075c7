// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/run/store/store.h"
#include "tests/cli/program.h"
#include "tests/support/approx.h"

using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE("store: the same command again computes nothing, and writes the same") {
  const Workplace place;
  place.file("e.yaml", sweep_over_batches("[8, 16]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  const std::string csv = place.read("o/results.csv");
  mark_runs(place, "o");
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  CHECK(json::parse(place.read("o/results.json"))["manifest"]["network_model"] == "marked");
  CHECK(place.read("o/results.csv") == csv);
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o", "--fresh"}).exit_code == 0);
  CHECK(json::parse(place.read("o/results.json"))["manifest"]["network_model"] != "marked");
}

TEST_CASE("store: files that are there as they were written are not written again") {
  const Workplace place;
  place.file("e.yaml", sweep_over_batches("[8, 16]"));
  const auto run = [&](std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"run", "e.yaml", "--out", "o"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished done = place.convoy(arguments);
    REQUIRE(done.exit_code == 0);
    return done.out;
  };
  const auto written = [&] {
    std::vector<fs::file_time_type> times;
    for (const char* name : written_files) times.push_back(fs::last_write_time(place.path() / "o" / name));
    return times;
  };
  const std::string told = run();
  const auto first = written();
  const std::string csv = place.read("o/results.csv"), report = place.read("o/report.html");
  CHECK(run() == told);
  CHECK(written() == first);
  place.file("o/results.csv", csv + "x\n");  // somebody's spreadsheet
  run();
  CHECK(place.read("o/results.csv") == csv);
  fs::remove(place.path() / "o/report.html");
  run();
  CHECK(place.read("o/report.html") == report);
  run({"--trace"});
  CHECK(fs::exists(place.path() / "o/trace.json"));
  run();
  CHECK_FALSE(fs::exists(place.path() / "o/trace.json"));
  CHECK(place.read("o/report.html") == report);
  CHECK(count_in_store(place, "o", "SELECT count(*) FROM runs") == 8);
  const auto before = written();
  place.file("e.yaml", sweep_over_batches("[8, 16, 32]"));
  run();
  CHECK(written() != before);
  CHECK(count_in_store(place, "o", "SELECT count(*) FROM runs") == 12);
}

TEST_CASE("store: a changed experiment computes what is new only, another one is refused") {
  const Workplace place;
  place.file("e.yaml", sweep_over_batches("[8, 16]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  mark_runs(place, "o");
  place.file("e.yaml", sweep_over_batches("[4, 8, 16]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  CHECK(count_in_store(
            place, "o",
            "SELECT count(*) FROM points JOIN results ON results.digest = points.result WHERE network_model "
            "= 'marked'") == 8);
  CHECK(count_in_store(place, "o", "SELECT count(*) FROM points") == 12);
  CHECK(json::parse(place.read("o/results.json"))["runs"].size() == 12);

  place.file("e.yaml", sweep_over_batches("[5]"));
  const std::string before = place.read("o/results.json");
  const Finished other = place.convoy({"run", "e.yaml", "--out", "o"});
  CHECK(other.exit_code == 2);
  CHECK(other.err ==
        "convoy: o: holds results of other settings, none of which this experiment has; add --fresh to "
        "replace them, "
        "or choose another folder with --out\n");
  CHECK(place.read("o/results.json") == before);
  CHECK(place.convoy({"run", "e.yaml", "--out", "o", "--fresh"}).exit_code == 0);
  CHECK(json::parse(place.read("o/results.json"))["runs"].size() == 4);
}

TEST_CASE("store: what a point's files hold is part of it") {
  const Workplace place;
  const std::string model =
      "name: toy\ninput: [3, 8, 8]\nlayers:\n  - {name: flat, kind: flatten}\n  - {name: fc, kind: linear, "
      "out_features: ";
  std::string text = small_experiment();
  const std::size_t begin = text.find("model:"), end = text.find("training:");
  text.replace(begin, end - begin, "model: {file: m.yaml}\n");
  place.file("e.yaml", text);
  place.file("m.yaml", model + "10}\n");
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  const json first = json::parse(place.read("o/results.json"))["runs"][0];
  place.file("m.yaml", model + "1000}\n");
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  CHECK(json::parse(place.read("o/results.json"))["runs"][0]["comm_bytes"] > first["comm_bytes"]);
}

TEST_CASE("store: variants by --set have folders of their own") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  const auto out = [&](const std::string& setting) {
    const Finished run = place.convoy({"run", "e.yaml", "--set", setting});
    CHECK(run.exit_code == 0);
    return run.out;
  };
  CHECK(out("cluster.nodes.0.count=2").find("results in runs/small/cluster.nodes.0.count=2: ") !=
        std::string::npos);
  CHECK(out("strategy={kind: single}").find("results in runs/small/strategy=_kind__single_-") !=
        std::string::npos);
  CHECK(place.convoy({"run", "e.yaml"}).exit_code == 0);
  CHECK(fs::exists(place.path() / "runs/small/results.json"));
  CHECK(fs::exists(place.path() / "runs/small/cluster.nodes.0.count=2/results.json"));
}

TEST_CASE("store: runs of another version of the program are told, and made again by run") {
  const Workplace place;
  place.file("e.yaml", sweep_over_batches("[8, 16]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  {
    convoy::Store store((place.path() / "o/results.sqlite").string(), convoy::Database::Mode::write);
    convoy::StoreSubject subject = store.subject();
    for (auto& [position, key] : subject.points) {
      convoy::StoredRun run = store.run(key, false).value();
      run.result = replaced(run.result, "\"framework\"", "\"frame\"");
      key = convoy::PointKey::of("old" + std::string(key.bytes()));  // which the version is a part of
      store.put(key, run);
    }
    store.set_subject(subject);
  }
  const Finished run = place.convoy({"report", "o"});
  CHECK(run.exit_code == 2);
  CHECK(run.err ==
        "o/results.sqlite: a stored run cannot be read: 'framework' is missing; another version of convoy "
        "wrote "
        "it: `convoy run` makes its runs again\n");
  CHECK(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  CHECK(place.convoy({"report", "o"}).exit_code == 0);
}

TEST_CASE("store: a trace of another version of the program is told, and made again by run") {
  const Workplace place;
  place.file("e.yaml", sweep_over_batches("[8]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o", "--trace"}).exit_code == 0);
  {
    convoy::Store store((place.path() / "o/results.sqlite").string(), convoy::Database::Mode::write);
    convoy::StoreSubject subject = store.subject();
    convoy::PointKey& key = subject.points.front().key;
    convoy::StoredRun run = store.run(key, true).value();
    run.trace = replaced(run.trace, "\"left_out\"", "\"kept\"");
    key = convoy::PointKey::of("old" + std::string(key.bytes()));  // which the version is a part of
    store.put(key, run);
    store.set_subject(subject);
  }
  const Finished report = place.convoy({"report", "o"});
  CHECK(report.exit_code == 2);
  CHECK(report.err.find(
            "o/results.sqlite: a stored run cannot be read: 'left_out' is missing; another version of "
            "convoy wrote it: `convoy run` makes its runs again\n") == 0);
  CHECK(place.convoy({"run", "e.yaml", "--out", "o", "--trace"}).exit_code == 0);
  CHECK(place.convoy({"report", "o"}).exit_code == 0);
}

TEST_CASE("store: table runs has the columns of results.csv, and its values") {
  const Workplace place;
  place.file("e.yaml", sweep_over_batches("[8, 16]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  std::istringstream csv(place.read("o/results.csv"));
  std::string header, name;
  std::getline(csv, header);
  convoy::Database database((place.path() / "o/results.sqlite").string(), convoy::Database::Mode::read);
  convoy::Statement columns(database, "SELECT name FROM pragma_table_info('runs')");
  std::istringstream names(header);
  while (std::getline(names, name, ',')) {
    REQUIRE(columns.step());
    CHECK(columns.text(0) == name);
  }
  CHECK_FALSE(columns.step());
  const json runs = json::parse(place.read("o/results.json"))["runs"];
  convoy::Statement rows(database, "SELECT id, step_time_s, \"cluster.nodes.0.count\", fits FROM runs");
  for (const json& run : runs) {
    REQUIRE(rows.step());
    CHECK(rows.text(0) == run["id"].get<std::string>());
    CHECK(std::stod(std::string(rows.text(1))) ==
          convoy::approx(run["step_time_s"].get<double>()).epsilon(1e-14));
    CHECK(rows.integer(2) == run["point"]["cluster.nodes.0.count"]);
    CHECK(rows.text(3) == "true");
  }
}

TEST_CASE("store: one of the version before is refused, and --fresh begins anew") {
  const Workplace place;
  place.file("e.yaml", sweep_over_batches("[8]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  convoy::Database((place.path() / "o/results.sqlite").string(), convoy::Database::Mode::write)
      .run("PRAGMA user_version=3");
  const Finished old = place.convoy({"run", "e.yaml", "--out", "o"});
  CHECK(old.exit_code == 2);
  CHECK(old.err ==
        "convoy: o/results.sqlite: was written by another version of convoy; `convoy run --fresh` begins "
        "anew\n");
  CHECK(place.convoy({"run", "e.yaml", "--out", "o", "--fresh"}).exit_code == 0);
}
