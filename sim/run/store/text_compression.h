// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct ZSTD_CCtx_s;  // of zstd
struct ZSTD_DCtx_s;

namespace convoy::inline runs {

/// Texts as zstd's frames (RFC 8878), which refer to a dictionary: a text that resembles them takes few bytes.
class TextCompression {
 public:
  /// Of a text, and of a frame that stands in a row of SQLite.
  static constexpr std::size_t most_bytes = 1'000'000'000;

  /// @param dictionary any bytes; "" for texts that have nothing in common
  explicit TextCompression(std::string_view dictionary);

  /// @throws OutputError: the text has more than most_bytes
  std::string compressed(std::string_view text);
  /// The inverse. Nothing: these are no frame of a text, or one of more than most_bytes.
  std::optional<std::string> text(std::string_view frame);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> writer_;
  std::unique_ptr<ZSTD_DCtx_s, Free> reader_;
};

}  // namespace convoy::runs
