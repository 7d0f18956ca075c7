// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace convoy::lab {

/// What a script in plain Python found.
struct OutsideVerdict {
  int exit_code = -1;
  std::vector<std::string> lines;  ///< what it printed, one a file
};

/// Runs a script of the project on files in the working folder. @param script "scripts/replay_tasks.py"
inline OutsideVerdict judged_outside(const std::string& script, const std::vector<std::string>& files) {
  const std::string command =
      fmt::format("python3 '{}/{}' {} 2>&1", CONVOY_SOURCE, script, fmt::join(files, " "));
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  OutsideVerdict verdict;
  std::string text;
  std::array<char, 4096> piece{};
  while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), pipe))
    text.append(piece.data(), size);
  const int status = ::pclose(pipe);
  verdict.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::istringstream in(text);
  while (std::getline(in, text)) verdict.lines.push_back(text);
  return verdict;
}

}  // namespace convoy::lab
