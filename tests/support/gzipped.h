// SPDX-License-Identifier: MIT
#pragma once

#include <zlib.h>

#include <string>

/// `text` as one member of a gzip file (RFC 1952).
inline std::string gzipped(const std::string& text, int level = 6) {
  constexpr int gzip_alone = 16, default_memory = 8;  // zlib.h
  z_stream z{};
  deflateInit2(&z, level, Z_DEFLATED, MAX_WBITS + gzip_alone, default_memory, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&z, static_cast<uLong>(text.size())), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}
