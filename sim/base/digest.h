// SPDX-License-Identifier: MIT
#pragma once

#include <nettle/sha2.h>

#include <string>
#include <string_view>

namespace convoy::inline base {

/// SHA-256 of everything that is added, piece by piece.
class Sha256 {
 public:
  Sha256();
  Sha256& add(std::string_view bytes);
  /// Adds a text such that no other sequence of texts gives the same digest: its length is added before it.
  Sha256& add_field(std::string_view text);
  /// In lower-case hexadecimal. May be called once, at the end, and bytes() not beside it.
  std::string text();
  /// All 32. May be called once, at the end, and text() not beside it.
  std::string bytes();

 private:
  sha256_ctx context_;
};

/// SHA-256 in lower-case hexadecimal.
std::string sha256(std::string_view bytes);
/// SHA-256 in base64, as a content security policy names a script (W3C CSP 3, section 2.3.1).
std::string sha256_base64(std::string_view bytes);

}  // namespace convoy::base
