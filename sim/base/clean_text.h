// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace convoy::inline base {

/// Text from a file or a command line in a form that is safe to print. Characters that control a terminal
/// (C0, DEL, C1), change the direction of writing or are invisible (bidirectional controls, zero-width
/// characters, line separators) become "\xNN" or "\u{NNNN}", and bytes that are not UTF-8 become "\xNN".
/// Everything else stays, so that clean(clean(text)) == clean(text).
std::string clean(std::string_view text);

/// The first `longest` characters of clean(text), followed by "..." if there are more. Messages quote the
/// contents of files in this way.
std::string excerpt(std::string_view text, std::size_t longest = 40);

/// Length of the valid UTF-8 sequence at the start of `text`, or 0 if there is none (RFC 3629, section 4).
/// @pre not empty
std::size_t utf8_length(std::string_view text);

}  // namespace convoy::base
