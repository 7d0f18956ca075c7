// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

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

TEST_CASE("compression: a frame that says to hold more than is allowed is not believed") {
  // RFC 8878, 3.1.1.1: one segment, whose size has 8 bytes; then a last block of no bytes.
  std::string frame("\x28\xb5\x2f\xfd\xe0", 5);
  const std::size_t size = TextCompression::most_bytes + 1;
  for (int byte = 0; byte < 8; ++byte) frame += static_cast<char>(size >> 8 * byte);
  frame += std::string("\x01\x00\x00", 3);
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
