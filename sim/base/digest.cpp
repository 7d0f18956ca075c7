// SPDX-License-Identifier: MIT
#include "sim/base/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace convoy::inline base {
namespace {

void expect_digest(int done) {
  if (done != 1) throw std::runtime_error("OpenSSL has no SHA-256");
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  expect_digest(context_ ? EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) : 0);
}

Sha256& Sha256::add(std::string_view bytes) {
  expect_digest(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
  return *this;
}

Sha256& Sha256::add_field(std::string_view text) {
  const fmt::format_int size(text.size());
  return add({size.data(), size.size()}).add(":").add(text);
}

std::string Sha256::bytes() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  expect_digest(EVP_DigestFinal_ex(context_.get(), digest.data(), &size));
  return {digest.begin(), digest.begin() + size};
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
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  expect_digest(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr));
  std::array<unsigned char, 2 * EVP_MAX_MD_SIZE> text{};
  const int length = EVP_EncodeBlock(text.data(), digest.data(), static_cast<int>(size));
  return {text.begin(), text.begin() + length};
}

}  // namespace convoy::base
