// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace convoy::inline cli {

/// Writes to standard error. Nobody is told where that fails: a reader that has seen enough, a full disk or a
/// closed descriptor is no reason to end otherwise.
void tell(std::string_view text) noexcept;

template <class... Arguments>
void tell(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  tell(std::string_view(fmt::format(format, std::forward<Arguments>(arguments)...)));
}

/// Opens what is missing of standard input, output and error, so that no file of the program gets their
/// numbers. What is written to them fails then, as before.
void open_standard_streams() noexcept;

}  // namespace convoy::cli
