// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/run/store/store.h"
#include "tests/cli/program.h"
#include "tests/support/approx.h"

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char* files[] = {"results.json", "results.csv", "report.html"};

std::string sweep_of(const std::string& batches) {
  return small_experiment() + "sweep:\n  training.batch_per_device: " + batches +
         "\n  cluster.nodes.0.count: [1, 2, 3, 4]\n";
}

void check_same_files(const Workplace& place, const std::string& a, const std::string& b) {
  for (const char* name : files) {
    CAPTURE(name);
    CHECK(place.read(a + '/' + name) == place.read(b + '/' + name));
  }
}

std::int64_t count(const Workplace& place, const std::string& folder, const std::string& query) {
  convoy::Database database((place.path() / folder / "results.sqlite").string(),
                            convoy::Database::Mode::write);
  convoy::Statement statement(database, query);
  REQUIRE(statement.step());
  return statement.integer(0);
}

}  // namespace

TEST_CASE("store: the same command again computes nothing, and writes the same") {
  const Workplace place;
  place.file("e.yaml", sweep_of("[8, 16]"));
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
  place.file("e.yaml", sweep_of("[8, 16]"));
  const auto run = [&](std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"run", "e.yaml", "--out", "o"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished done = place.convoy(arguments);
    REQUIRE(done.exit_code == 0);
    return done.out;
  };
  const auto written = [&] {
    std::vector<fs::file_time_type> times;
    for (const char* name : files) times.push_back(fs::last_write_time(place.path() / "o" / name));
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
  CHECK(count(place, "o", "SELECT count(*) FROM runs") == 8);
  const auto before = written();
  place.file("e.yaml", sweep_of("[8, 16, 32]"));
  run();
  CHECK(written() != before);
  CHECK(count(place, "o", "SELECT count(*) FROM runs") == 12);
}

TEST_CASE("store: a changed experiment computes what is new only, another one is refused") {
  const Workplace place;
  place.file("e.yaml", sweep_of("[8, 16]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  mark_runs(place, "o");
  place.file("e.yaml", sweep_of("[4, 8, 16]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  CHECK(
      count(place, "o",
            "SELECT count(*) FROM points JOIN results ON results.digest = points.result WHERE network_model "
            "= 'marked'") == 8);
  CHECK(count(place, "o", "SELECT count(*) FROM points") == 12);
  CHECK(json::parse(place.read("o/results.json"))["runs"].size() == 12);

  place.file("e.yaml", sweep_of("[5]"));
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
  place.file("e.yaml", sweep_of("[8, 16]"));
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
  place.file("e.yaml", sweep_of("[8]"));
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
  place.file("e.yaml", sweep_of("[8, 16]"));
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
  place.file("e.yaml", sweep_of("[8]"));
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

TEST_CASE("shards: joined they are one run, byte for byte, whatever their number") {
  const Workplace place;
  place.file("e.yaml", sweep_of("[8, 16, 32]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "whole"}).exit_code == 0);
  for (const int shards : {1, 2, 5, 20}) {
    CAPTURE(shards);
    const std::string name = "s" + std::to_string(shards);
    std::vector<std::string> merge{"merge", "--out", name};
    for (int i = 1; i <= shards; ++i) {
      const std::string folder = name + "-" + std::to_string(i);
      const Finished run = place.convoy(
          {"run", "e.yaml", "--out", folder, "--shard", std::to_string(i) + "/" + std::to_string(shards)});
      REQUIRE(run.exit_code == 0);
      merge.push_back(folder);
    }
    const Finished merged = place.convoy(merge);
    CHECK(merged.exit_code == 0);
    CHECK(merged.err.empty());
    check_same_files(place, name, "whole");
  }
}

TEST_CASE(
    "shards: each lists its own points, those of one folder together, and joining goes on where it was "
    "ended") {
  const Workplace place;
  place.file("e.yaml", sweep_of("[8, 16, 32]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "whole"}).exit_code == 0);
  const auto listed = [&](const std::string& folder) {
    const convoy::Store store((place.path() / folder / "results.sqlite").string(),
                              convoy::Database::Mode::read);
    CHECK(store.subject().sweep->size() == 12);
    std::vector<std::size_t> positions;
    for (const convoy::SweepPoint& point : store.subject().points) positions.push_back(point.position);
    return positions;
  };
  for (const char* shard : {"1/3", "2/3", "3/3"})
    REQUIRE(
        place.convoy({"run", "e.yaml", "--out", std::string("s") + shard[0], "--shard", shard}).exit_code ==
        0);
  CHECK(listed("s1") == std::vector<std::size_t>{0, 3, 6, 9});
  CHECK(listed("s3") == std::vector<std::size_t>{2, 5, 8, 11});
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "s1", "--shard", "3/3"}).exit_code == 0);
  CHECK(listed("s1") == std::vector<std::size_t>{0, 2, 3, 5, 6, 8, 9, 11});
  const Finished two = place.convoy({"run", "e.yaml", "--out", "s1", "--shard", "3/3"});
  CHECK(two.out.find("small: 8 of 12 points in s1/results.sqlite") != std::string::npos);
  // Ended between the first folder and the second, and begun again.
  CHECK(place.convoy({"merge", "s1", "--out", "o"}).exit_code == 1);
  CHECK(json::parse(place.read("o/results.json"))["done"] == 8);
  CHECK(count(place, "o", "SELECT count(*) FROM runs") == 8);
  CHECK(place.convoy({"merge", "s1", "s2", "s3", "--out", "o"}).exit_code == 0);
  check_same_files(place, "o", "whole");
  // A shard of the same sweep with other settings is none of it.
  REQUIRE(
      place.convoy({"run", "e.yaml", "--set", "training.precision=fp16", "--out", "other", "--shard", "2/3"})
          .exit_code == 0);
  CHECK(place.convoy({"merge", "s1", "other", "--out", "p"}).err ==
        "other: its points are not those of s1: settings, files, or the program differed\n");
}

TEST_CASE("shards: what is missing or foreign is said") {
  const Workplace place;
  place.file("e.yaml", sweep_of("[8, 16]"));
  place.file("f.yaml", sweep_of("[8, 24]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "a", "--shard", "1/2"}).exit_code == 0);
  REQUIRE(place.convoy({"run", "f.yaml", "--out", "b", "--shard", "2/2"}).exit_code == 0);
  const Finished foreign = place.convoy({"merge", "a", "b", "--out", "o"});
  CHECK(foreign.exit_code == 2);
  CHECK(foreign.err == "b: holds another experiment or another sweep than a\n");
  CHECK(place.convoy({"merge", "nowhere", "--out", "o"}).err ==
        "nowhere: has no results.sqlite; `convoy merge` takes folders of `convoy run --shard`\n");
  const Finished half = place.convoy({"merge", "a", "--out", "o"});
  CHECK(half.exit_code == 1);
  CHECK(half.err == "convoy: 4 of 8 points are in none of the shards; `convoy run FILE --out o` does them\n");
  CHECK(json::parse(place.read("o/results.json"))["points"] == 8);
  CHECK(json::parse(place.read("o/results.json"))["done"] == 4);
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "whole"}).exit_code == 0);
  check_same_files(place, "o", "whole");
  std::string batches = "1", latencies = "1us";
  for (int i = 2; i <= 1001; ++i) batches += fmt::format(", {}", i), latencies += fmt::format(", {}us", i);
  place.file("many.yaml", sweep_of("[" + batches + "]") + "  cluster.fabric.latency: [" + latencies + "]\n");
  CHECK(place.convoy({"run", "many.yaml", "--out", "m"})
            .err.find("the sweep has 4008004 points; at most 1000000 are run in one piece; `--shard I/N` "
                      "runs every N-th of "
                      "them\n") != std::string::npos);
  CHECK(place.convoy({"run", "many.yaml", "--out", "m", "--shard", "7/4"}).exit_code == 2);
  CHECK(place.convoy({"run", "many.yaml", "--out", "m", "--shard", "7/4000000"}).out ==
        "small: 2 of 4008004 points in m/results.sqlite; `convoy merge DIR... --out DIR` joins the shards\n");
  for (const char* wrong : {"0/2", "3/2", "1", "1/2x", "-1/2", "a/b"}) {
    CAPTURE(wrong);
    CHECK(place.convoy({"run", "e.yaml", "--out", "w", std::string("--shard=") + wrong}).exit_code == 2);
  }
}

TEST_CASE("failures: a point that cannot be planned is a row, and the others have results") {
  const Workplace place;
  place.file("e.yaml", replaced(small_experiment(),
                                "strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring}",
                                "strategy: {kind: pipeline, stages: 2, micro_batches: 2}") +
                           "sweep: {cluster.nodes.0.count: [1, 2, 3]}\n");
  const Finished run = place.convoy({"run", "e.yaml", "--out", "o"});
  CHECK(run.exit_code == 2);
  CHECK(run.err.starts_with("convoy: point 1 (cluster.nodes.0.count: 1): e.yaml:"));
  const json results = json::parse(place.read("o/results.json"));
  CHECK(results["points"] == 3);
  CHECK(results["done"] == results["runs"].size());
  CHECK(results["done"].get<int>() + static_cast<int>(results["failed"].size()) == 3);
  CHECK(results["failed"][0]["id"] == "1");
  CHECK(results["failed"][0]["point"]["cluster.nodes.0.count"] == 1);
  CHECK(results["failed"][0]["kind"] == "input");
  CHECK(results["failed"][0]["reason"].get<std::string>().starts_with("e.yaml:"));
  CHECK(place.read("o/report.html").find("Points without results") != std::string::npos);
}

TEST_CASE("failures: the time of a point is limited, and it is tried again without the limit") {
  const Workplace place;
  place.file("e.yaml", sweep_of("[8]"));
  const Finished late = place.convoy({"run", "e.yaml", "--out", "t", "--point-time", "1ns"});
  CHECK(late.exit_code == 4);
  CHECK(late.err.starts_with(
      "convoy: point 1 (training.batch_per_device: 8, cluster.nodes.0.count: 1): took longer "
      "than 1e-09 s\n"));
  CHECK(json::parse(place.read("t/results.json"))["failed"].size() == 4);
  CHECK(place.convoy({"run", "e.yaml", "--out", "t"}).exit_code == 0);  // tried again
  CHECK(json::parse(place.read("t/results.json"))["failed"].empty());
}

TEST_CASE("failures: the memory of a point is limited, and its row says by how much") {
  const Workplace place;
  std::string text = sweep_of("[8]");
  text.resize(text.find("sweep:"));
  const auto put = [&](const std::string& old, const std::string& now) {
    REQUIRE(text.find(old) != std::string::npos);
    text.replace(text.find(old), old.size(), now);
  };
  put("count: 4", "count: 1000");
  put("sync: all_reduce, algorithm: ring",
      "sync: parameter_server, servers: 1000, placement: colocated, sharding: even, mode: async");
  place.file("e.yaml", text);
  const Finished large = place.convoy({"run", "e.yaml", "--out", "o", "--point-memory", "64MiB"});
  CHECK(large.exit_code == 4);
  CHECK(large.err.starts_with("convoy: point 1: needs more than 64.0 MiB of memory\n"));
  CHECK(json::parse(place.read("o/results.json"))["failed"][0]["kind"] == "memory");
}

TEST_CASE("interrupted: what there is is written, and the same command goes on") {
  const Workplace place;
  std::string batches = "[1";
  for (int i = 2; i <= 150; ++i) batches += ", " + std::to_string(i);
  place.file("e.yaml", sweep_of(batches + "]"));
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "whole"}).exit_code == 0);
  for (const char* signal : {"TERM", "INT", "KILL"}) {
    CAPTURE(signal);
    const std::string folder = std::string("o") + signal;
    // exec: the signal goes to the program itself; setsid: not to this test
    const Finished run =
        place.shell("exec 2>err; setsid $CONVOY run e.yaml --out " + folder + " & pid=$!; while [[ ! -s " +
                    folder + "/results.sqlite-wal ]]; do sleep 0.01; done; " + "sleep 0.05; kill -" + signal +
                    " $pid; wait $pid; echo $?");
    const std::string code = run.out.substr(run.out.find_last_of('\n', run.out.size() - 2) + 1);
    if (std::string(signal) == "KILL") {
      CHECK((code == "137\n" || code == "0\n"));
    } else {
      CHECK((code == (std::string(signal) == "TERM" ? "143\n" : "130\n") || code == "0\n"));
      if (code != "0\n")
        CHECK(place.read("err").find(" of 600 points are done and written to " + folder +
                                     "; the same command goes on with the others") != std::string::npos);
    }
    REQUIRE(place.convoy({"run", "e.yaml", "--out", folder}).exit_code == 0);
    check_same_files(place, folder, "whole");
  }
}

TEST_CASE("folder: one writer at a time, leftovers of a crash are seen to") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  fs::create_directories(place.path() / "o");
  const Finished locked = place.shell("exec 9>o/.convoy-lock; flock 9; $CONVOY run e.yaml --out o");
  CHECK(locked.exit_code == 2);
  CHECK(locked.err ==
        "convoy: o: another convoy is writing it; wait for that one, or choose another folder with --out\n");
  // a set that was written as a whole, but not put in place, and one that was not finished
  place.file("o/.convoy-finished/names", "all\nresults.json\n");
  place.file("o/.convoy-finished/results.json", "{\"schema\": \"convoy.results/1\"}");
  place.file("o/.convoy-unfinished/results.csv", "half");
  place.file("o/trace.json", "old");
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o", "--fresh"}).exit_code == 0);
  std::vector<std::string> left;
  for (const std::string& name : place.files())
    if (name.starts_with("o/")) left.push_back(name);
  CHECK(left ==
        std::vector<std::string>{"o/report.html", "o/results.csv", "o/results.json", "o/results.sqlite"});
}

TEST_CASE("folder: nothing is left of a run that was refused") {
  const Workplace place;
  place.file("e.yaml", replaced(small_experiment(), "kind: data_parallel", "kind: nonsense"));
  CHECK(place.convoy({"run", "e.yaml"}).exit_code == 2);
  CHECK(place.files() == std::vector<std::string>{"e.yaml"});
  // Nor in a folder that was there: a plan's, say.
  place.file("kept/plan.json", "{}\n");
  const std::vector<std::string> before = place.files();
  for (const char* const fresh : {"", " --fresh"}) {
    CAPTURE(fresh);
    CHECK(place.shell("\"$CONVOY\" run e.yaml --out kept" + std::string(fresh)).exit_code == 2);
    CHECK(place.files() == before);
  }
}
