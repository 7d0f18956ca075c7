// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>

#include "sim/base/clean_text.h"

using namespace convoy;

TEST_CASE("clean text: what moves a cursor, hides or turns text is written out") {
  CHECK(clean("plain text, 25 %") == "plain text, 25 %");
  CHECK(clean("gr\xC3\xB6\xC3\x9F\x65r \xE2\x82\xAC \xF0\x9F\x9A\x9A") ==
        "gr\xC3\xB6\xC3\x9F\x65r \xE2\x82\xAC \xF0\x9F\x9A\x9A");
  CHECK(clean("a\x1b[2J\nb\x7f") == "a\\x1b[2J\\x0ab\\x7f");
  CHECK(clean("\xC2\x9B[2J") == "\\x9b[2J");  // C1: CSI
  CHECK(clean("\xE2\x80\xAE"
              "abc") == "\\u{202e}abc");                                         // right-to-left override
  CHECK(clean("\xE2\x81\xA6x\xE2\x80\x8B") == "\\u{2066}x\\u{200b}");            // isolate, zero width
  CHECK(clean("\xFF\xC0\xAF\xED\xA0\x80") == "\\xff\\xc0\\xaf\\xed\\xa0\\x80");  // not UTF-8
  CHECK(clean(std::string_view("\0x", 2)) == "\\x00x");
}

TEST_CASE("clean text: of any bytes it leaves printable UTF-8, and nothing to clean") {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 20, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    CAPTURE(bytes);
    const std::string once = clean(bytes);
    CHECK(clean(once) == once);
    for (std::string_view rest = once; !rest.empty();) {
      const std::size_t length = utf8_length(rest);
      REQUIRE(length > 0);
      CHECK(static_cast<unsigned char>(rest[0]) >= 0x20);
      rest.remove_prefix(length);
    }
  }
}

TEST_CASE("clean text: excerpts end after 40 characters, never within one") {
  CHECK(excerpt("short") == "short");
  CHECK(excerpt(std::string(40, 'x')) == std::string(40, 'x'));
  CHECK(excerpt(std::string(41, 'x')) == std::string(40, 'x') + "...");
  std::string wide;
  for (int i = 0; i < 50; ++i) wide += "\xE2\x82\xAC";
  CHECK(excerpt(wide) == wide.substr(0, 120) + "...");
  CHECK(excerpt(std::string(10'000, '\n')).size() <= 43);
}
