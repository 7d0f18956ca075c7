// SPDX-License-Identifier: MIT
#include "sim/base/input_error.h"

#include <fmt/format.h>

#include "sim/base/clean_text.h"

namespace convoy::inline base {
namespace {

std::string one_line(const SourcePos& pos, const std::string& message) {
  std::string text = pos.file.empty() ? message
                     : pos.line == 0  ? fmt::format("{}: {}", pos.file, message)
                                      : fmt::format("{}:{}:{}: {}", pos.file, pos.line, pos.column, message);
  return clean(text);  // hostile input must not move the cursor
}

}  // namespace

InputError::InputError(const SourcePos& pos, const std::string& message)
    : std::runtime_error(one_line(pos, message)) {}

}  // namespace convoy::base
