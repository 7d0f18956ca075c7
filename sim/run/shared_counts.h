// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace convoy::inline runs {

/// Progress of work that forked processes do: they add, and the process that created it reads. If the machine
/// has no memory to share, it stays at zero.
class SharedCounts {
 public:
  SharedCounts();
  ~SharedCounts();
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;

  void add(std::size_t done, std::size_t all);
  std::size_t done() const;
  std::size_t all() const;

 private:
  struct Counts;
  Counts* counts_ = nullptr;
};

}  // namespace convoy::runs
