// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>

#include "sim/base/memo.h"
#include "topologies/catalogue_files.h"

namespace convoy::inline topologies {

/// What `read` makes of the catalogue's entry of this name. The program's own entries do not change, so that each is
/// read once; a user's may, so that nothing is kept where there is a catalogue of the user's.
/// @param read without arguments; one function for each `Value`
template <class Value, class Read>
Value from_catalogue(const std::string& name, Read read) {
  if (std::error_code error; std::filesystem::exists(user_catalogue(), error)) return read();
  struct Key {
    std::string name;
    bool operator==(const Key&) const = default;
    std::size_t hash() const { return std::hash<std::string>{}(name); }
  };
  static thread_local Memo<Key, Value> memo(512);
  return memo.of({name}, [&](const Key&) { return read(); });
}

}  // namespace convoy::topologies
