// SPDX-License-Identifier: MIT
#include "sim/base/digest.h"

#include <fmt/format.h>
#include <nettle/base64.h>

#include <cstdint>

namespace convoy::inline base {
namespace {

const std::uint8_t* octets(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

}  // namespace

Sha256::Sha256() { sha256_init(&context_); }

Sha256& Sha256::add(std::string_view bytes) {
  sha256_update(&context_, bytes.size(), octets(bytes));
  return *this;
}

Sha256& Sha256::add_field(std::string_view text) {
  const fmt::format_int size(text.size());
  return add({size.data(), size.size()}).add(":").add(text);
}

std::string Sha256::bytes() {
  std::string digest(SHA256_DIGEST_SIZE, '\0');
  sha256_digest(&context_, digest.size(), reinterpret_cast<std::uint8_t*>(digest.data()));
  return digest;
}

std::string Sha256::text() {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes()) {
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string sha256(std::string_view bytes) { return Sha256().add(bytes).text(); }

std::string sha256_base64(std::string_view bytes) {
  const std::string digest = Sha256().add(bytes).bytes();
  std::string text(BASE64_ENCODE_RAW_LENGTH(digest.size()), '\0');
  base64_encode_raw(text.data(), digest.size(), octets(digest));
  return text;
}

}  // namespace convoy::base
