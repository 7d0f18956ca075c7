// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace convoy::inline page {

// Words and numbers for people, which are the same on a terminal and on a page.

/// Number of columns on a terminal, not of bytes: UTF-8 continuation bytes take none.
std::size_t width_of(std::string_view text);

/// At most `longest` columns; a longer text ends in "...".
std::string shortened(std::string text, std::size_t longest = 40);

/// The last key of a dotted path, in which a key that itself contains dots is quoted: "fabric.bandwidth" of
/// cluster.server."fabric.bandwidth".
std::string last_key(const std::string& path);

/// Three significant digits, or the whole number if it has more, and two below 0.1, so that nothing but 0 is
/// shown as 0: "0.0015", "0.12", "48.8", "1299".
std::string number_text(double value);

/// So many digits, without an exponent however large the value is: "12.3", "4790".
std::string digits_text(double value, int digits);

/// A share as text: "97 %", "9.7 %".
std::string percent_text(double share);

/// A time of any length: "12.3 ms", "3.20 h", "12.0 d".
std::string duration_text(double seconds);

}  // namespace convoy::page
