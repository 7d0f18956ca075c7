// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace convoy::inline cli {

// What the command line takes, as plain values: manual pages and shell completion are made of them. cli.cpp
// fills them from the definitions that it parses by, so that there is no second list.

/// What may stand for the value of an argument.
struct ArgumentValues {
  /// Candidates for what is being typed. @param before the arguments without options that stand before it
  using Names = std::function<std::vector<std::string>(const std::vector<std::string>& before,
                                                       const std::string& word)>;
  Names names = nullptr;
  bool files = false, folders = false;
};

struct ArgumentText {
  std::string name;   ///< "FILE", "--jobs"
  std::string value;  ///< what follows an option: "N"; "" for a flag
  std::string meaning;
  bool required = false;
  bool repeated = false;  ///< may be given several times
  ArgumentValues values = {};
};

struct ExampleText {
  std::string command;  ///< a line for the shell
  std::string meaning;
};

struct CommandText {
  std::string name, summary;
  std::vector<ArgumentText> arguments;  ///< in the order in which they stand
  std::vector<ArgumentText> options;
  std::vector<ExampleText> examples;
};

/// The program's exit codes: "0" and what it means.
inline const std::vector<std::pair<std::string, std::string>> exit_code_texts{
    {"0", "done"},
    {"1", "a check failed"},
    {"2", "wrong usage or input"},
    {"3", "does not fit in memory (--require-fit)"},
    {"4", "out of memory or time"},
    {"70", "a bug"},
    {"128 + signal", "interrupted"}};

/// The commands in the order of `convoy --help`; the first one, without a name, is the program itself.
std::vector<CommandText> command_texts();

}  // namespace convoy::cli
