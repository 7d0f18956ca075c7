// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>

namespace convoy::inline base {

/// The place of a piece of input. Lines and columns count from 1; 0 means "no particular place".
struct SourcePos {
  std::string file;  ///< as the user named it, or "--set PATH"; "": no file
  int line = 0;      ///< from 1
  int column = 0;    ///< from 1
  bool operator==(const SourcePos&) const = default;
};

/// The user's input is wrong. what() is the one line shown: `file:line:column: message`.
/// The program ends with exit code 2 and writes nothing.
class InputError : public std::runtime_error {
 public:
  /// @param message what is wrong, and what is allowed
  InputError(const SourcePos& pos, const std::string& message);
};

}  // namespace convoy::base
