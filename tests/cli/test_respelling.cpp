// SPDX-License-Identifier: MIT
// Experiments and plans that are written otherwise and mean the same: the program says the same of them, byte for
// byte but for the order of names in JSON. CONVOY_RESPELLED=all: every file of configs/, and the example that takes
// longest.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/cli/program.h"
#include "tests/laws/random_experiment.h"
#include "tests/support/respelled.h"

namespace fs = std::filesystem;

namespace {

bool wants_all() {
  const char* wanted = std::getenv("CONVOY_RESPELLED");
  return wanted != nullptr && std::string(wanted) == "all";
}

/// What is printed of a file, without its own places and digests.
nlohmann::json printed(const Workplace& place, const std::string& command, const std::string& file) {
  const Finished done = place.convoy({command, file, "--json"});
  CAPTURE(done.err);
  REQUIRE(done.exit_code == 0);
  nlohmann::json answer =
      nlohmann::json::parse(std::regex_replace(done.out, std::regex("[^ \"]*\\.yaml:[0-9]+:[0-9]+: "), ""));
  answer.erase("manifest");
  if (answer.contains("runs"))
    for (auto& run : answer["runs"])
      if (run.contains("partition")) run["partition"].erase("partition_s");
  return answer;
}

void hold(const Workplace& place, const std::string& command, const std::string& file, unsigned seed) {
  convoy::lab::Dice dice(seed);
  convoy::respelled::Speller speller([&](int low, int high) { return dice.between(low, high); },
                                     &convoy::respelled::has_no_order);
  const std::string other = fs::path(file).replace_extension(".respelled.yaml").string();
  place.file(other, speller.document(convoy::parse_yaml(place.read(file), file)));
  CAPTURE(file);
  CAPTURE(place.read(other));
  CHECK(printed(place, command, file) == printed(place, command, other));
}

}  // namespace

TEST_CASE(
    "respelling: every example says the same with its numbers, keys, quotes and style written otherwise") {
  const Workplace place;
  const fs::path configs = fs::path(CONVOY_SOURCE) / "configs";
  fs::copy(configs, place.path() / "configs", fs::copy_options::recursive);
  unsigned count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(configs)) {
    const std::string name = entry.path().lexically_relative(configs).string();
    if (entry.path().extension() != ".yaml" || name.starts_with("networks/") ||
        name.starts_with("collectives/") || name.starts_with("plan-") || name == "examples/study.yaml" ||
        name.ends_with("-where.yaml"))  // asks, and is not run
      continue;
    const bool quick = (name.starts_with("examples/") || name.find('/') == std::string::npos) &&
                       name != "examples/auto-many.yaml";
    if (!quick && !wants_all()) continue;
    const std::string file = "configs/" + name;
    // What a network learns in a few steps tells spellings apart as well as what it learns in hundreds.
    place.file(file, std::regex_replace(place.read(file), std::regex("(numerics: .*steps: )[0-9]+"), "$018"));
    hold(place, "run", file, ++count);
  }
  CHECK(count >= 12);
}

TEST_CASE("respelling: a plan says the same with its numbers, keys, quotes and style written otherwise") {
  const Workplace place;
  place.file(
      "plan.yaml",
      "experiment: p\nmodel: alexnet\ntraining: {dataset: {samples: 1281167}}\ngoal: {epochs: 10}\nplan: "
      "{constraints: {deadline: 48h}, servers: [aws-p3.2xlarge, aws-p3.16xlarge], nodes: [1, 2], "
      "batch_per_device: [64, 128]}\n");
  for (unsigned seed = 1; seed <= (wants_all() ? 20 : 3); ++seed) hold(place, "plan", "plan.yaml", seed);
}
