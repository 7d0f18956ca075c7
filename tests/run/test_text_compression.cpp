// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>

#include "sim/run/store/text_compression.h"

using convoy::TextCompression;

namespace {

std::string drawn_text(std::mt19937& draw, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += fmt::format("{{\"figure\": {}}}\n", draw() % 1000);
  return text;
}

}  // namespace

TEST_CASE("compression: every text is read back, with a dictionary and without [law]") {
  std::mt19937 draw(1);
  const std::string like = drawn_text(draw, 2000);
  for (const std::string& dictionary : {std::string(), std::string("1"), like}) {
    TextCompression compression(dictionary);
    for (const std::size_t bytes : {0, 1, 100, 2000, 3'000'000}) {
      CAPTURE(bytes);
      const std::string text = drawn_text(draw, bytes);
      const std::string frame = compression.compressed(text);
      CHECK(compression.text(frame) == text);
      CHECK(frame.size() <= text.size() + 32);
    }
  }
}

TEST_CASE("compression: of a text that its dictionary resembles, what differs is kept") {
  std::mt19937 draw(1);
  const std::string text = drawn_text(draw, 2000);
  CHECK(TextCompression(text).compressed(text + "x").size() < 40);
  CHECK(TextCompression("").compressed(text + "x").size() > 200);
}

TEST_CASE("compression: whatever is no frame of a text is nothing") {
  std::mt19937 draw(1);
  const std::string dictionary = drawn_text(draw, 2000), text = drawn_text(draw, 5000);
  TextCompression compression(dictionary);
  const std::string frame = compression.compressed(text);
  CHECK_FALSE(compression.text(""));
  CHECK_FALSE(compression.text("no frame"));
  CHECK_FALSE(compression.text(frame + frame));
  for (std::size_t size = 0; size < frame.size(); ++size)
    CHECK_FALSE(compression.text(frame.substr(0, size)));
  CHECK(TextCompression("").text(frame) != text);
  // A flipped bit may be in what is copied as it is: then the text is another one.
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    std::string damaged = frame;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const std::optional<std::string> read = compression.text(damaged);
    CHECK((!read || read->size() <= TextCompression::most_bytes));
  }
}

TEST_CASE("compression: a small frame of more than is allowed is nothing") {
  // RFC 8878, 3.1.1: one segment, whose size has 8 bytes, of blocks that repeat a byte.
  constexpr std::size_t size = TextCompression::most_bytes + 1, block_bytes = 1 << 17;
  std::string frame("\x28\xb5\x2f\xfd\xe0", 5);
  const auto add_number = [&](std::size_t number, int bytes) {
    for (int byte = 0; byte < bytes; ++byte) frame += static_cast<char>(number >> 8 * byte);
  };
  add_number(size, 8);
  for (std::size_t at = 0; at < size; at += block_bytes) {
    const std::size_t block = std::min(block_bytes, size - at), last = at + block == size;
    add_number(block << 3 | 1 << 1 | last, 3);
    frame += 'x';
  }
  CHECK(frame.size() < 40'000);
  CHECK_FALSE(TextCompression("").text(frame));
}

TEST_CASE("compression: a dictionary that zstd would take for one of its own is as good as any") {
  std::mt19937 draw(1);
  const std::string text = drawn_text(draw, 2000);
  TextCompression compression("\x37\xa4\x30\xec" + text);
  const std::string frame = compression.compressed(text + "x");
  CHECK(frame.size() < 40);
  CHECK(compression.text(frame) == text + "x");
}
