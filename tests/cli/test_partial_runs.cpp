// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/run/store/store.h"
#include "tests/cli/program.h"

// Runs of which something is missing: parts of a sweep, points without results, and what was ended before its end.

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

void check_same_files(const Workplace& place, const std::string& a, const std::string& b) {
  for (const char* name : written_files) {
    CAPTURE(name);
    CHECK(place.read(a + '/' + name) == place.read(b + '/' + name));
  }
}

}  // namespace

TEST_CASE("shards: joined they are one run, byte for byte, whatever their number") {
  const Workplace place;
  place.file("e.yaml", sweep_over_batches("[8, 16, 32]"));
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
  place.file("e.yaml", sweep_over_batches("[8, 16, 32]"));
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
  CHECK(count_in_store(place, "o", "SELECT count(*) FROM runs") == 8);
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
  place.file("e.yaml", sweep_over_batches("[8, 16]"));
  place.file("f.yaml", sweep_over_batches("[8, 24]"));
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
  place.file("many.yaml",
             sweep_over_batches("[" + batches + "]") + "  cluster.fabric.latency: [" + latencies + "]\n");
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
  place.file("e.yaml", sweep_over_batches("[8]"));
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
  std::string text = sweep_over_batches("[8]");
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
  place.file("e.yaml", sweep_over_batches(batches + "]"));
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
