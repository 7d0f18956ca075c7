// SPDX-License-Identifier: MIT
#include "sim/run/shared_counts.h"

#include <sys/mman.h>

#include <atomic>
#include <new>

namespace convoy::inline runs {

struct SharedCounts::Counts {
  std::atomic<std::size_t> done = 0, all = 0;
};
static_assert(std::atomic<std::size_t>::is_always_lock_free, "a lock would be each process's own");

SharedCounts::SharedCounts() {
  constexpr int shared = MAP_SHARED | MAP_ANONYMOUS;
  void* const page = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, shared, -1, 0);
  if (page != MAP_FAILED) counts_ = new (page) Counts;
}

SharedCounts::~SharedCounts() {
  if (counts_) ::munmap(counts_, sizeof(Counts));
}

void SharedCounts::add(std::size_t done, std::size_t all) {
  if (!counts_) return;
  counts_->all += all;
  counts_->done += done;
}

std::size_t SharedCounts::done() const { return counts_ ? counts_->done.load() : 0; }
std::size_t SharedCounts::all() const { return counts_ ? counts_->all.load() : 0; }

}  // namespace convoy::runs
