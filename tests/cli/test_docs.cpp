// SPDX-License-Identifier: MIT
// What the pages promise is what the program does.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"

namespace {

std::string page(const std::string& name) {
  std::ifstream in(std::string(CONVOY_SOURCE) + "/" + name);
  REQUIRE_MESSAGE(in.good(), name);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The content of the fenced blocks that begin with ```LANGUAGE.
std::vector<std::string> blocks(const std::string& text, const std::string& language) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with("```") || line.substr(3) != language) continue;
    std::string block;
    while (std::getline(lines, line) && line != "```") block += line + "\n";
    found.push_back(block);
  }
  return found;
}

}  // namespace

TEST_CASE("docs: every experiment in configs/ passes check, and every one written in the pages") {
  const Workplace place;
  int count = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(CONVOY_SOURCE) + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    const Finished run = place.convoy({"check", entry.path().string()});
    CAPTURE(run.err);
    CHECK(run.exit_code == 0);
    ++count;
  }
  CHECK(count >= 10);
  int written = 0;
  for (const char* name : {"README.md", "docs/experiment.md", "docs/planning.md"})
    for (const std::string& block : blocks(page(name), "yaml")) {
      if (!block.starts_with("experiment:")) continue;
      place.file("block.yaml", block);
      const Finished run = place.convoy({"check", "block.yaml"});
      CAPTURE(block);
      CAPTURE(run.err);
      CHECK(run.exit_code == 0);
      ++written;
    }
  CHECK(written >= 2);
}

TEST_CASE("docs: the README shows what the quickstart prints") {
  const Workplace place;
  const Finished run = place.convoy({"run", std::string(CONVOY_SOURCE) + "/configs/quickstart.yaml"});
  REQUIRE(run.exit_code == 0);
  const std::vector<std::string> shown = blocks(page("README.md"), "text");
  REQUIRE_FALSE(shown.empty());
  CHECK(shown[0] == run.out);
}

TEST_CASE("docs: the page of keys is what the program tells of every kind of strategy") {
  const Workplace place;
  std::istringstream kinds(place.convoy({"show", "strategies"}).out);
  const std::vector<std::string> shown = blocks(page("docs/keys.md"), "text");
  std::string line;
  std::size_t count = 0;
  while (std::getline(kinds, line)) {
    REQUIRE(count < shown.size());
    CHECK(shown[count] == place.convoy({"show", "strategies", line.substr(0, line.find(' '))}).out);
    ++count;
  }
  CHECK(count == shown.size());
}

TEST_CASE("docs: every key of an experiment is described") {
  const std::string text = page("docs/experiment.md");
  for (const char* key :
       {"experiment", "model", "training", "batch_per_device", "global_batch", "precision", "optimizer",
        "dataset", "samples", "anchor", "images_per_s", "batch", "device", "cluster", "strategy", "sweep"}) {
    CAPTURE(key);
    CHECK(text.find(fmt::format("`{}`", key)) != std::string::npos);
  }
}

TEST_CASE("docs: every name of results.json and every column of results.csv is described") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  const std::string text = page("docs/results.md");
  const auto described = [&](const std::string& name) {
    CAPTURE(name);
    CHECK(text.find(fmt::format("`{}`", name)) != std::string::npos);
  };
  const nlohmann::json results = nlohmann::json::parse(place.read("o/results.json"));
  for (const auto& [name, value] : results.items()) described(name);
  for (const auto& [name, value] : results["manifest"].items()) described(name);
  const nlohmann::json& run = results["runs"][0];
  for (const auto& [name, value] : run.items()) described(name);
  for (const char* part : {"per_device", "per_link"})
    for (const auto& [name, value] : run[part][0].items()) described(name);
  for (const auto& [name, value] : run["per_device"][0]["memory"].items()) described(name);
  for (const auto& [name, value] : run["bottleneck"].items()) described(name);
  std::istringstream header(place.read("o/results.csv"));
  std::string line, column;
  std::getline(header, line);
  std::istringstream columns(line);
  while (std::getline(columns, column, ',')) described(column);
}
