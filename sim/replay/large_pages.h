// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace convoy::inline replays {

/// An allocator that asks for pages of 2 MB for arrays of which many events need a few bytes each, in no order: the processor knows
/// where some thousand pages are, and has to look up the others (transparent huge pages; without them, or on other systems than Linux,
/// pages have their usual size).
template <class T>
class LargePages {
 public:
  using value_type = T;

  LargePages() = default;
  template <class Other>
  LargePages(const LargePages<Other>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (!is_large(bytes)) return static_cast<T*>(::operator new(bytes, std::align_val_t(alignof(T))));
    const std::size_t whole_pages = (bytes + page_bytes - 1) / page_bytes * page_bytes;
    void* memory = ::operator new(whole_pages, std::align_val_t(page_bytes));
#ifdef __linux__
    ::madvise(memory, whole_pages, MADV_HUGEPAGE);  // where it is refused, pages have their usual size
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    ::operator delete(memory, std::align_val_t(is_large(count * sizeof(T)) ? page_bytes : alignof(T)));
  }
  bool operator==(const LargePages&) const = default;

 private:
  static constexpr std::size_t page_bytes = 2 << 20;
  static bool is_large(std::size_t bytes) { return bytes >= page_bytes / 2; }
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace convoy::replays
