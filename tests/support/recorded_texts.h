// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace convoy {

/// What the program says to people in many cases, held against what it said when it was recorded
/// (tests/golden/texts): errors that no other test reads word for word. They say what was found then, not
/// what is right: read what changes. CONVOY_RECORD=1 in a test's environment records anew.
class RecordedTexts {
 public:
  /// @param source the project's folder @param name of the file
  RecordedTexts(const std::string& source, const std::string& name)
      : file_(fmt::format("{}/tests/golden/texts/{}.txt", source, name)) {}

  /// @param of the case, as no other one is called @param text of one line
  void add(const std::string& of, const std::string& text) {
    lines_.push_back(fmt::format("{}: {}", of, text));
  }

  /// Fails where a line is not as recorded, or writes the file.
  void check() const {
    if (std::getenv("CONVOY_RECORD")) {
      std::ofstream out(file_);
      for (const std::string& line : lines_) out << line << '\n';
      REQUIRE(out.good());
      return;
    }
    std::ifstream in(file_);
    REQUIRE_MESSAGE(in.good(), file_);
    std::size_t count = 0;
    for (std::string recorded; std::getline(in, recorded); ++count) {
      REQUIRE(count < lines_.size());
      CHECK(lines_[count] == recorded);
    }
    CHECK(count == lines_.size());
  }

 private:
  std::string file_;
  std::vector<std::string> lines_;
};

}  // namespace convoy
