// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace convoy::inline base {

/// Text from a file or a command line as it may be printed: what controls a terminal (C0, DEL, C1), changes
/// the direction of writing or is invisible (bidirectional controls, zero-width characters, separators of
/// lines) becomes "\xNN" or "\u{NNNN}", and bytes that are not UTF-8 become "\xNN". Everything else stays, so
/// that clean(clean(text)) == clean(text).
std::string clean(std::string_view text);

/// The first `longest` characters of clean(text), with "..." where there are more: how messages quote what a
/// file has.
std::string excerpt(std::string_view text, std::size_t longest = 40);

/// Length of the valid UTF-8 sequence at the start of `text`, 0 where there is none (RFC 3629, section 4).
/// @pre not empty
std::size_t utf8_length(std::string_view text);

}  // namespace convoy::base
