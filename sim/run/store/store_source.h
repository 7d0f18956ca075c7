// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/run/store/store.h"

namespace convoy::inline runs {

/// The store of a results folder, for reading only. If the folder cannot be written, which SQLite needs for
/// reading, it is a copy that is removed with this object.
class StoreSource {
 public:
  /// @throws OutputError: the folder has no store, or it cannot be copied
  explicit StoreSource(const std::string& folder);
  ~StoreSource();
  StoreSource(const StoreSource&) = delete;
  StoreSource& operator=(const StoreSource&) = delete;

  const std::string& file() const { return file_; }
  const std::string& name() const { return name_; }  ///< as the user knows it

 private:
  std::string file_, name_, copy_;
};

}  // namespace convoy::runs
