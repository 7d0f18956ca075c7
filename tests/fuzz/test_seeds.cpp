// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/cli/program.h"
#include "tests/fuzz/readers.h"

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
