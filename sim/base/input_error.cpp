// SPDX-License-Identifier: MIT
#include "sim/base/input_error.h"

#include <fmt/format.h>

namespace convoy {
namespace {

std::string one_line(const SourcePos& pos, const std::string& message) {
  std::string text = pos.file.empty() ? message
                     : pos.line == 0  ? fmt::format("{}: {}", pos.file, message)
                                      : fmt::format("{}:{}:{}: {}", pos.file, pos.line, pos.column, message);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';  // hostile input must not move the cursor
  return text;
}

}  // namespace

InputError::InputError(const SourcePos& pos, const std::string& message)
    : std::runtime_error(one_line(pos, message)) {}

}  // namespace convoy
