// SPDX-License-Identifier: MIT
// A point's stored run is that of the files as they are: of every kind of file that an experiment may name,
// or that a file it names does.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/run/store/store.h"
#include "tests/cli/program.h"

namespace fs = std::filesystem;

namespace {

struct Reference {
  const char* what;
  std::string old_part, part;  ///< of small_experiment(), and in its place; NAME stands for the file
  std::string before, after;   ///< the file's content
  const char* through = "";    ///< a file between, which has NAME in it
};

std::string layers(const std::string& flops) {
  return "name: toy\ninput: [3, 32, 32]\nlayers:\n  - {name: b, kind: custom, forward_flops: " + flops +
         ", backward_flops: " + flops + ", parameters: 1000, output: [10], memory_bytes: 0}\n";
}

std::string inline_model() {
  const std::string text = small_experiment();
  const std::size_t begin = text.find("model:"), end = text.find("training:");
  return text.substr(begin, end - begin);
}

std::string times(const std::string& ms) {
  return "layer,batch,forward_ms,backward_ms\nconv,8," + ms + "," + ms + "\n";
}

std::string profile(const std::string& ms) {
  return "layer,batch,forward_ms,backward_ms,activation_bytes,parameter_bytes\ninput,8,,,800,\na,8," + ms +
         "," + ms + ",800,1000\n";
}

std::string blocks(const std::string& flops) {
  return "blocks:\n  b:\n    layers:\n      - {name: x, kind: custom, forward_flops: " + flops +
         ", backward_flops: 1e9, parameters: 1000, output: [10], memory_bytes: 0}\n";
}

std::string platform(const std::string& bandwidth) {
  return "<?xml version='1.0'?>\n<platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" "
         "radical=\"0-3\" speed=\"1Gf\" bw=\"" +
         bandwidth + "\" lat=\"50us\"/></platform>\n";
}

/// All send to the first rank, which sends back what it has summed, in messages of 1/chunks each.
std::string schedule(int chunks) {
  const std::string chunk = std::to_string(chunks);
  return "schedule: star\nchunks: " + chunk + "\nrounds:\n  - repeat: " + chunk +
         "\n    send: {for: {r: $(ranks - 1)}, from: $(r + 1), to: 0, chunk: $step, op: reduce}\n  - "
         "repeat: " +
         chunk + "\n    send: {for: {r: $(ranks - 1)}, from: 0, to: $(r + 1), chunk: $step, op: copy}\n";
}

std::vector<Reference> references() {
  const std::string fabric = "fabric: {kind: switch, bandwidth: 10Gbps, latency: 25us}";
  const std::string training = "optimizer: sgd}";
  return {
      {"model file", inline_model(), "model: {file: NAME}\n", layers("1e9"), layers("9e12")},
      {"blocks of a model file", inline_model(), "model: {file: between}\n", blocks("1e9"), blocks("9e12"),
       "name: toy\ninput: [3, 32, 32]\nblocks_from: NAME\nlayers:\n  - {block: b, name: l}\n"},
      {"model from a profile", inline_model(), "model: {profile: NAME}\n", profile("1"), profile("900")},
      {"profile", training, "optimizer: sgd, profile: NAME}", times("1"), times("900")},
      {"profile with its device", training, "optimizer: sgd, profile: {file: NAME, device: ideal}}",
       times("1"), times("900")},
      {"SimGrid platform", fabric, "fabric: {kind: simgrid, file: NAME}", platform("1GBps"),
       platform("1MBps")},
      {"schedule of an all-reduce", "algorithm: ring", "algorithm: {file: NAME}", schedule(1), schedule(8)},
      {"schedule among others", "algorithm: ring", "algorithm: {auto: [{file: NAME}]}", schedule(1),
       schedule(8)}};
}

std::string with_name(std::string text, const std::string& name) {
  for (std::size_t at; (at = text.find("NAME")) != std::string::npos;) text.replace(at, 4, name);
  return text;
}

bool is_marked(const Workplace& place, const std::string& folder) {
  return place.read(folder + "/results.json").find("\"marked\"") != std::string::npos;
}

}  // namespace

TEST_CASE("input files: a changed one gives new results, an unchanged one is not computed again") {
  for (const Reference& reference : references()) {
    for (const char* written : {"file.ext", "plain", "folder/plain", "link"}) {
      const std::string name = written;
      CAPTURE(reference.what);
      CAPTURE(name);
      const Workplace place;
      const auto write = [&](const std::string& content) {
        place.file(name == "link" ? "folder/target" : name, content);
      };
      if (name == "link") {
        fs::create_directory(place.path() / "folder");
        fs::create_symlink("folder/target", place.path() / "link");
      }
      if (*reference.through) place.file("between", with_name(reference.through, name));
      write(reference.before);
      place.file("e.yaml", with_name(replaced(small_experiment(), reference.old_part, reference.part), name));
      const Finished first = place.convoy({"run", "e.yaml", "--out", "o"});
      CAPTURE(first.err);
      REQUIRE(first.exit_code == 0);
      mark_runs(place, "o");
      write(reference.before);
      REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
      CHECK(is_marked(place, "o"));
      write(reference.after);
      REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
      REQUIRE(place.convoy({"run", "e.yaml", "--out", "fresh"}).exit_code == 0);
      CHECK_FALSE(is_marked(place, "o"));
      CHECK(place.read("o/results.csv") == place.read("fresh/results.csv"));
    }
  }
}

TEST_CASE("input files: what the user's own catalogue says is part of a point, bases of bases too") {
  const Workplace place;
  const auto device = [](const std::string& memory) {
    return "base: v100-sxm2-16gb\npeak.fp32: " + memory + "\n";
  };
  place.file("config/convoy/catalog/devices/mine.yaml", device("10TFLOPS"));
  place.file("config/convoy/catalog/devices/yours.yaml", "base: mine\n");
  place.file("e.yaml",
             replaced(small_experiment(), "{device: ideal, count: 1}", "{device: yours, count: 1}"));
  const auto run = [&](const std::string& out) {
    return place.shell("XDG_CONFIG_HOME=$PWD/config $CONVOY run e.yaml --out " + out).exit_code;
  };
  REQUIRE(run("o") == 0);
  mark_runs(place, "o");
  REQUIRE(run("o") == 0);
  CHECK(is_marked(place, "o"));
  place.file("config/convoy/catalog/devices/mine.yaml", device("1TFLOPS"));
  REQUIRE(run("o") == 0);
  REQUIRE(run("fresh") == 0);
  CHECK_FALSE(is_marked(place, "o"));
  CHECK(place.read("o/results.csv") == place.read("fresh/results.csv"));
  // An entry that comes to stand before the program's.
  place.file("e.yaml", replaced(small_experiment(), "{device: ideal, count: 1}", "{device: t4, count: 1}"));
  REQUIRE(run("p") == 0);
  place.file("config/convoy/catalog/devices/t4.yaml", "base: t4\npeak.fp32: 1TFLOPS\n");
  REQUIRE(run("p") == 0);
  REQUIRE(run("q") == 0);
  CHECK(place.read("p/results.csv") == place.read("q/results.csv"));
}

TEST_CASE("input files: all readers open them in one place, which keys of points depend on") {
  // Those who open other files: the opening function itself, results' folders, a copy of a store, ranks,
  // the null device.
  const std::vector<std::string> others{"sim/base/input_file.cpp",        "sim/base/input_file.h",
                                        "sim/run/folder_files.cpp",       "sim/run/output_folder.cpp",
                                        "sim/run/store/store_source.cpp", "sim/mpi/convoy_mpi.cpp",
                                        "sim/cli/tell.cpp"};
  for (const char* room : {"sim", "models", "topologies", "strategies"})
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(fs::path(CONVOY_SOURCE) / room)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      const std::string name = fs::relative(entry.path(), CONVOY_SOURCE).string();
      if (std::find(others.begin(), others.end(), name) != others.end()) continue;
      std::ifstream in(entry.path());
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      CAPTURE(name);
      for (const char* opening :
           {"ifstream(", "ifstream in(", "ifstream stream(", "fopen(", " ::open(", "(::open(", "LoadFile("})
        CHECK(text.find(opening) == std::string::npos);
    }
}
