// SPDX-License-Identifier: MIT
// What the pages promise is what the program does.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/cli/program.h"

namespace {

std::string source_text(const std::string& name) {
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

// Those in files of configs/ are run by tests/golden, and those of configs/examples proved by tests/prove.
TEST_CASE("docs: every experiment that is written in the pages passes check") {
  const Workplace place;
  int written = 0;
  for (const char* name : {"README.md", "docs/experiment.md", "docs/planning.md"})
    for (const std::string& block : blocks(source_text(name), "yaml")) {
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

namespace {

/// The lines of `text` that `selection` ("1-2 5") names, counted from 1; all where it is empty.
std::string lines_of(const std::string& text, const std::string& selection) {
  if (selection.empty()) return text;
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
  std::string kept;
  std::istringstream parts(selection);
  for (std::string part; parts >> part;) {
    const std::size_t dash = part.find('-');
    const std::size_t first = std::stoul(part),
                      last = dash == part.npos ? first : std::stoul(part.substr(dash + 1));
    REQUIRE(first >= 1);
    REQUIRE(last <= lines.size());
    for (std::size_t i = first; i <= last; ++i) kept += lines[i - 1];
  }
  return kept;
}

}  // namespace

TEST_CASE(
    "docs: every block of output in the README and in the page of strategies is what its command prints") {
  const Workplace place;
  std::filesystem::create_directory_symlink(std::string(CONVOY_SOURCE) + "/configs",
                                            place.path() / "configs");
  const std::regex block("<!-- \\$ build/convoy ([^|]+?)( \\| lines ([0-9 -]+))? -->\n```text\n");
  std::size_t count = 0;
  for (const char* name : {"README.md", "docs/strategies.md"}) {
    const std::string text = source_text(name);
    for (std::sregex_iterator it(text.begin(), text.end(), block), end; it != end; ++it, ++count) {
      const std::size_t begin = static_cast<std::size_t>(it->position() + it->length());
      const std::string command = (*it)[1];
      CAPTURE(command);
      const Finished run = place.shell("$CONVOY " + command);
      CAPTURE(run.err);
      REQUIRE(run.exit_code == 0);
      CHECK(text.substr(begin, text.find("```", begin) - begin) == lines_of(run.out, (*it)[3]));
    }
  }
  CHECK(count == 6);
}

TEST_CASE("docs: the page of keys is what the program tells of every strategy and section") {
  const Workplace place;
  const std::vector<std::string> shown = blocks(source_text("docs/keys.md"), "text");
  std::size_t count = 0;
  for (const std::string subject : {"strategies", "keys"}) {
    std::istringstream names(place.convoy({"show", subject}).out);
    for (std::string line; std::getline(names, line); ++count) {
      REQUIRE(count < shown.size());
      CHECK(shown[count] == place.convoy({"show", subject, line.substr(0, line.find(' '))}).out);
    }
  }
  CHECK(count == shown.size());
}

TEST_CASE("docs: examples of extending.md are the files that are compiled, and its places are there") {
  const std::string text = source_text("docs/extending.md");
  const std::regex example("<!-- (tests/[^ ]+) -->\n```(?:cpp|cmake)\n"),
      place("\n- `([^`]+)`, behind `([^`]+)`");
  std::size_t examples = 0, places = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), example), end; it != end; ++it, ++examples) {
    const std::size_t begin = static_cast<std::size_t>(it->position() + it->length());
    const std::string file = (*it)[1];
    CAPTURE(file);
    CHECK(text.substr(begin, text.find("```", begin) - begin) == source_text(file));
  }
  for (std::sregex_iterator it(text.begin(), text.end(), place), end; it != end; ++it, ++places) {
    const std::string file = (*it)[1], what = (*it)[2];
    CAPTURE(file);
    CAPTURE(what);
    CHECK(source_text(file).find(what) != std::string::npos);
  }
  CHECK(examples == 11);
  CHECK(places >= 15);
}

TEST_CASE("docs: a model, a device, a server and a transport of one's own, as extending.md writes them") {
  const Workplace place;
  const std::string text = source_text("docs/extending.md");
  const std::regex example("<!-- ([^ ]+) -->\n```yaml\n");
  std::filesystem::create_directories(place.path() / "convoy/catalog/devices");
  std::filesystem::create_directories(place.path() / "convoy/catalog/servers");
  std::filesystem::create_directories(place.path() / "topologies/catalog/transports");
  for (std::sregex_iterator it(text.begin(), text.end(), example), end; it != end; ++it) {
    const std::size_t begin = static_cast<std::size_t>(it->position() + it->length());
    const std::string file = (*it)[1];
    place.file(file.starts_with("catalog/") ? "convoy/" + file : file,
               text.substr(begin, text.find("```", begin) - begin));
  }
  // Transports are the program's own data: it is installed with them.
  const Finished installed =
      place.shell("mkdir -p bin share/convoy && cp \"$CONVOY\" bin/convoy && ln -s " CONVOY_SOURCE
                  "/models share/convoy && cp -r " CONVOY_SOURCE
                  "/topologies share/convoy && mv topologies/catalog/transports/* "
                  "share/convoy/topologies/catalog/transports");
  CAPTURE(installed.err);
  REQUIRE(installed.exit_code == 0);
  const auto step_s = [&](const std::string& transport) {
    const Finished run = place.shell(
        "XDG_CONFIG_HOME=$PWD bin/convoy run e.yaml --json --set strategy.transport=" + transport);
    CAPTURE(run.err);
    REQUIRE(run.exit_code == 0);
    return nlohmann::json::parse(run.out)["runs"][0]["step_time_s"].get<double>();
  };
  CHECK(step_s("ucc") != step_s("nccl"));
  CHECK(nlohmann::json::parse(place.shell("bin/convoy show transports --json").out).size() == 12);
  const Finished shown = place.convoy({"show", "models", "my-net.yaml", "--json"});
  CAPTURE(shown.err);
  REQUIRE(shown.exit_code == 0);
  CHECK(nlohmann::json::parse(shown.out)["parameters"] == 1226);
  const Finished run = place.shell("XDG_CONFIG_HOME=$PWD $CONVOY run e.yaml --json");
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  const nlohmann::json result = nlohmann::json::parse(run.out)["runs"][0];
  CHECK(result["devices"] == 8);
  CHECK(result["device_type"] == "my-gpu");
}

namespace {

/// Every key of a section, and of the mappings in it, stands in code on the page.
void check_described(const nlohmann::json& keys, const std::string& text) {
  for (const nlohmann::json& key : keys) {
    const std::string name = key["name"];
    CAPTURE(name);
    CHECK(std::regex_search(text, std::regex("[`{, ]" + name + "[`:}, ]")));
    if (key.contains("keys")) check_described(key["keys"], text);
  }
}

}  // namespace

TEST_CASE("docs: every key of an experiment and of a plan is described") {
  const Workplace place;
  for (const auto& [section, file] : {std::pair{"experiment", "experiment"},
                                      {"training", "experiment"},
                                      {"input", "experiment"},
                                      {"variability", "experiment"},
                                      {"numerics", "numerics"},
                                      {"plan-file", "planning"},
                                      {"plan", "planning"},
                                      {"goal", "planning"},
                                      {"study", "studies"}})
    check_described(nlohmann::json::parse(place.convoy({"show", "keys", section, "--json"}).out)["keys"],
                    source_text(fmt::format("docs/{}.md", file)));
}

TEST_CASE("docs: every name of results.json and every column of results.csv is described") {
  const Workplace place;
  place.file("e.yaml", small_experiment());
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "o"}).exit_code == 0);
  const std::string text = source_text("docs/results.md");
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
