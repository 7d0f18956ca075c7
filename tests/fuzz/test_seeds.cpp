// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <regex>
#include <vector>

#include "tests/cli/program.h"
#include "tests/fuzz/readers.h"
#include "tests/support/recorded_texts.h"

namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Reads a seed as scripts/fuzz has it read: under the reader's name of the file, in a folder of its own.
void check_accepted(const fuzz::Reader& reader, const std::string& text) {
  const Workplace place;
  place.file(reader.file, text);
  const fs::path before = fs::current_path();
  fs::current_path(place.path());
  CHECK_NOTHROW(reader.read(text, reader.file));
  fs::current_path(before);
}

/// What a reader says of a file, whichever folder it and the project are in.
std::string said_of(const fuzz::Reader& reader, const std::string& text) {
  const Workplace place;
  place.file(reader.file, text);
  const fs::path before = fs::current_path();
  fs::current_path(place.path());
  std::string said = "accepted";
  try {
    reader.read(text, reader.file);
  } catch (const convoy::InputError& error) {
    said = error.what();
  }
  fs::current_path(before);
  for (std::size_t at; (at = said.find(CONVOY_SOURCE)) != std::string::npos;)
    said.replace(at, std::string(CONVOY_SOURCE).size(), "SOURCE");
  return said;
}

struct Mistake {
  std::string what, text;
};

/// A text with one mistake, as somebody makes it who writes such a file: a number that is another or none, a
/// word that stands elsewhere, a letter or a line too many or too few.
Mistake with_mistake(const std::string& text, std::mt19937& random) {
  static const std::regex token(R"([-+]?[0-9][0-9.]*|[A-Za-z_][A-Za-z_0-9-]*)");
  std::vector<std::smatch> tokens;
  for (std::sregex_iterator it(text.begin(), text.end(), token), end; it != end; ++it) tokens.push_back(*it);
  REQUIRE_FALSE(tokens.empty());
  const std::smatch& chosen = tokens[random() % tokens.size()];
  const std::string old = chosen.str();
  const auto at = static_cast<std::size_t>(chosen.position());
  if (random() % 8 == 0) {
    const std::size_t begin = text.rfind('\n', at) + 1,
                      end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    std::string changed = text;
    if (random() % 2 == 0)
      return {fmt::format("without '{}'", line.substr(0, 30)), changed.erase(begin, line.size())};
    return {fmt::format("twice '{}'", line.substr(0, 30)), changed.insert(begin, line)};
  }
  const bool is_number = old.find_first_of("0123456789") <= 1;  // or a name such as c1
  const std::string other = tokens[random() % tokens.size()].str();
  const std::vector<std::string> instead =
      is_number ? std::vector<std::string>{"0", "-1", "-" + old, old + "5", "0." + old, "1e300", "x", other}
                : std::vector<std::string>{"", old + "x", old.substr(1), other, "7", "[1, 2]", "{}"};
  const std::string& fresh = instead[random() % instead.size()];
  return {fmt::format("'{}' for '{}' at {}", fresh, old, at),
          std::string(text).replace(at, old.size(), fresh)};
}

}  // namespace

TEST_CASE("seeds: every one that fuzzing begins with is accepted by its reader") {
  const fs::path seeds = fs::path(CONVOY_SOURCE) / "tests/fuzz/seeds";
  std::size_t folders = 0;
  for (const fuzz::Reader& reader : fuzz::readers) {
    if (!fs::is_directory(seeds / reader.name)) continue;
    ++folders;
    for (const fs::directory_entry& seed : fs::directory_iterator(seeds / reader.name)) {
      CAPTURE(seed.path());
      check_accepted(reader, text_of(seed.path()));
    }
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(seeds)) folders -= entry.is_directory();
  CHECK(folders == 0);  // none without its reader
}

TEST_CASE("seeds: the small experiment with every strategy of the list is accepted") {
  const fs::path seeds = fs::path(CONVOY_SOURCE) / "tests/fuzz/seeds";
  const std::string experiment = text_of(seeds / "experiment.yaml");
  std::ifstream strategies(seeds / "strategies.txt");
  std::size_t count = 0;
  for (std::string strategy; std::getline(strategies, strategy); ++count) {
    CAPTURE(strategy);
    for (const fuzz::Reader& reader : fuzz::readers)
      if (reader.name == "experiment") check_accepted(reader, experiment + "strategy: " + strategy + "\n");
  }
  CHECK(count > 10);
}

TEST_CASE("seeds: of files with a mistake it is said what was recorded") {
  const fs::path seeds = fs::path(CONVOY_SOURCE) / "tests/fuzz/seeds";
  convoy::RecordedTexts said(CONVOY_SOURCE, "files-with-a-mistake");
  std::mt19937 random(1);
  const auto try_mistakes = [&](const fuzz::Reader& reader, const std::string& name, const std::string& text,
                                int count) {
    for (int i = 0; i < count; ++i) {
      const Mistake mistake = with_mistake(text, random);
      std::string line = fmt::format("{}: {}", mistake.what, said_of(reader, mistake.text));
      std::replace(line.begin(), line.end(), '\n', ' ');
      said.add(name, line);
    }
  };
  const auto sorted = [](const fs::path& folder) {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  };
  for (const fuzz::Reader& reader : fuzz::readers) {
    if (!fs::is_directory(seeds / reader.name)) continue;
    for (const fs::path& seed : sorted(seeds / reader.name))
      if (seed.extension() != ".gz")
        try_mistakes(reader, fmt::format("{}/{}", reader.name, seed.filename().string()), text_of(seed), 60);
  }
  const fuzz::Reader& experiments = *std::ranges::find(fuzz::readers, "experiment", &fuzz::Reader::name);
  std::ifstream strategies(seeds / "strategies.txt");
  for (std::string strategy; std::getline(strategies, strategy);)
    try_mistakes(experiments, strategy.substr(0, 40),
                 text_of(seeds / "experiment.yaml") + "strategy: " + strategy + "\n", 15);
  for (const fs::path& drawn : sorted(fs::path(CONVOY_SOURCE) / "tests/golden/drawn"))
    try_mistakes(experiments, drawn.stem().string(), text_of(drawn), 5);
  said.check();
}
