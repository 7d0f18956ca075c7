// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>

#include "sim/base/input_error.h"
#include "sim/base/unpacked_input.h"
#include "tests/support/gzipped.h"
#include "tests/support/working_file.h"

using namespace convoy;

namespace {

/// What is read of a file of these bytes, or the error without the file's name.
struct Unpacked {
  std::optional<std::string> text;
  std::string error;
};

Unpacked unpack(const std::string& bytes) {
  const WorkingFile file("unpacked_input", bytes);
  try {
    UnpackedInput input(file.name);
    std::string text, block(std::size_t{1} << 15, '\0');
    for (std::streamsize size;
         (size = input.sgetn(block.data(), static_cast<std::streamsize>(block.size()))) > 0;)
      text.append(block, 0, static_cast<std::size_t>(size));
    CHECK(input.consumed() == text.size());
    return {std::move(text), ""};
  } catch (const InputError& e) {
    const std::string message = e.what(), name = std::string(file.name) + ": ";
    CHECK(message.starts_with(name));
    CHECK(message.find('\n') == std::string::npos);
    return {std::nullopt, message.substr(std::min(message.size(), name.size()))};
  }
}

/// As text of a trace is: few words in turn, with numbers between.
std::string random_text(std::mt19937& random, std::size_t size) {
  std::string text;
  while (text.size() < size) {
    text += random() % 3 == 0 ? "\"Input Dims\": " : "{\"ph\": \"X\", ";
    text += std::to_string(random() % 100'000);
  }
  return text;
}

}  // namespace

TEST_CASE("unpacked input: text is read as it is, packed in any members and levels, or not at all") {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    std::string text, packed;
    for (std::size_t member = random() % 3 + 1; member > 0; --member) {
      const std::string part = random_text(random, random() % 200'000);
      text += part;
      packed += gzipped(part, static_cast<int>(random() % 10));
    }
    CHECK(unpack(packed).text == text);
    CHECK(unpack(text).text == text);
  }
  CHECK(unpack("").text == "");
  CHECK(unpack(gzipped("")).text == "");
}

TEST_CASE("unpacked input: a packed file that is cut anywhere is told, but between two members") {
  std::mt19937 random(11);
  const std::string first = random_text(random, 700), second = random_text(random, 300);
  const std::string a = gzipped(first), whole = a + gzipped(second);
  for (std::size_t size = 2; size < whole.size(); ++size) {
    CAPTURE(size);
    const Unpacked cut = unpack(whole.substr(0, size));
    if (size == a.size())
      CHECK(cut.text == first);
    else
      CHECK(cut.error == "is cut: its gzip data end too early");
  }
}

TEST_CASE("unpacked input: a bit that is turned in a packed file is told, or changes nothing") {
  std::mt19937 random(13);
  const std::string text = random_text(random, 3000), whole = gzipped(text);
  int told = 0;
  for (std::size_t bit = 16; bit < 8 * whole.size(); ++bit) {  // the first two bytes say that it is packed
    CAPTURE(bit);
    std::string turned = whole;
    turned[bit / 8] = static_cast<char>(turned[bit / 8] ^ (1 << bit % 8));
    const Unpacked result = unpack(turned);
    if (result.text) CHECK(*result.text == text);  // time stamp, system and level of the header
    told += !result.text;
  }
  CHECK(told > static_cast<int>(8 * (whole.size() - 10)));  // all but the header's
}

TEST_CASE("unpacked input: other bytes after the packed ones are told") {
  const std::string packed = gzipped("[]");
  for (const std::string& rest : {std::string("x"), std::string(1, '\0'), std::string(100'000, ' ')})
    CHECK(unpack(packed + rest).error == "has other bytes after its gzip data");
  CHECK(unpack(packed + "\x1fgarbage").error.starts_with("holds damaged gzip data (incorrect header check)"));
  CHECK(unpack(packed + packed.substr(0, 5)).error == "is cut: its gzip data end too early");
}

TEST_CASE("unpacked input: a file made to fill the memory is refused before it does, with the bound") {
  const std::string zeros(std::size_t{80} << 20, '0');
  const std::string error =
      "unpacks to more than 200 times its size (allowed beyond 64 MiB): no text of measurements does";
  CHECK(unpack(gzipped(zeros)).error == error);
  CHECK(unpack(zeros).text->size() == zeros.size());
  const std::string small(std::size_t{60} << 20, '0');
  CHECK(unpack(gzipped(small)).text->size() == small.size());  // however well it is packed
  // A file as large as what it holds grows by nothing, however long it is.
  constexpr int stored = 0;
  const std::string as_large(std::size_t{66} << 20, '0');
  CHECK(unpack(gzipped(as_large, stored)).text->size() == as_large.size());
}
