// SPDX-License-Identifier: MIT
#include "sim/base/clean_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::inline base {
namespace {

/// The Unicode code point of one complete UTF-8 character.
char32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  char32_t code = first & (0xffU >> (character.size() + 1));
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  return code;
}

/// Characters that control terminals, the direction of writing or lines, and invisible ones.
bool is_hidden(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (length < 3) return length;
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool beyond = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

std::string clean(std::string_view text) {
  const auto plain = [](char c) { return c >= 0x20 && c < 0x7f; };
  if (std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::string result;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    const char32_t code = code_point(text.substr(0, length));
    if (!is_hidden(code))
      result += text.substr(0, length);
    else if (code < 0x100)
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(code));
    else
      result += fmt::format("\\u{{{:04x}}}", static_cast<unsigned>(code));
    text.remove_prefix(length);
  }
  return result;
}

std::string excerpt(std::string_view text, std::size_t longest) {
  const std::string whole = clean(text.substr(0, 4 * longest + 4));
  std::size_t at = 0, characters = 0;
  for (; at < whole.size() && characters < longest; ++characters)
    at += utf8_length(std::string_view(whole).substr(at));
  return at == whole.size() && text.size() <= 4 * longest + 4 ? whole : whole.substr(0, at) + "...";
}

}  // namespace convoy::base
