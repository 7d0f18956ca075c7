// SPDX-License-Identifier: MIT
#include "sim/run/store/text_compression.h"

#include <zstd.h>

#include <new>

#include "sim/run/output_folder.h"

namespace convoy::inline runs {

void TextCompression::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
void TextCompression::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

TextCompression::TextCompression(std::string_view dictionary)
    : writer_(ZSTD_createCCtx()), reader_(ZSTD_createDCtx()) {
  if (!writer_ || !reader_) throw std::bad_alloc();
  if (dictionary.empty()) return;
  // A dictionary that begins with a certain number would be taken for one that zstd has trained.
  const std::string content = '\0' + std::string(dictionary);
  if (ZSTD_isError(ZSTD_CCtx_loadDictionary(writer_.get(), content.data(), content.size())) ||
      ZSTD_isError(ZSTD_DCtx_loadDictionary(reader_.get(), content.data(), content.size())))
    throw std::bad_alloc();
}

std::string TextCompression::compressed(std::string_view text) {
  if (text.size() > most_bytes) throw OutputError("a run or a trace of more than 1 GB cannot be stored");
  // Not initialized: of a large text's, only what its frame fills takes memory.
  const std::size_t room = ZSTD_compressBound(text.size());
  const auto frame = std::make_unique_for_overwrite<char[]>(room);
  const std::size_t size = ZSTD_compress2(writer_.get(), frame.get(), room, text.data(), text.size());
  if (ZSTD_isError(size)) throw std::bad_alloc();
  return {frame.get(), size};
}

std::optional<std::string> TextCompression::text(std::string_view frame) {
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size > most_bytes) return std::nullopt;  // or not known, or no frame: these are large numbers
  std::string text(size, '\0');
  if (ZSTD_decompressDCtx(reader_.get(), text.data(), text.size(), frame.data(), frame.size()) != size)
    return std::nullopt;
  return text;
}

}  // namespace convoy::runs
