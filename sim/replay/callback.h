// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

namespace convoy::inline replays {

/// Asks for an object that will be needed soon: after a long time the processor's caches have lost it.
template <class T>
void fetch_soon(const T& object) {
  const auto* first = reinterpret_cast<const char*>(&object);
  for (std::size_t byte = 0; byte < sizeof(T); byte += 64) __builtin_prefetch(first + byte);
}

/// A function to call when something has happened: a small closure that is stored in place, so that an event
/// needs no allocation. It captures at most 32 bytes of plain values and pointers. If it has a function `fetch()`, this asks for
/// what the call will need.
class Callback {
 public:
  Callback() = default;
  template <class Closure>
  requires(!std::is_same_v<Closure, Callback>) Callback(const Closure& closure) { *this = closure; }
  /// Makes the closure where it stays. Copied from elsewhere, it would have to have been written there: a processor that reads in one
  /// go what it has just written in parts waits until all it has written before is in its caches.
  template <class Closure>
  requires(!std::is_same_v<Closure, Callback>) Callback& operator=(const Closure& closure) {
    static_assert(std::is_trivially_copyable_v<Closure> && sizeof(Closure) <= sizeof(closure_) &&
                  alignof(Closure) <= alignof(void*));
    functions_ = &functions_of<Closure>;
    new (closure_) Closure(closure);
    return *this;
  }
  void operator()() { functions_->call(closure_); }
  void fetch() const { functions_->fetch(closure_); }

 private:
  struct Functions {
    void (*call)(void*);
    void (*fetch)(const void*);
  };
  template <class Closure>
  static constexpr Functions functions_of{
      [](void* self) { (*static_cast<Closure*>(self))(); },
      [](const void* self) {
        if constexpr (requires(const Closure& closure) { closure.fetch(); })
          static_cast<const Closure*>(self)->fetch();
      }};

  alignas(void*) std::byte closure_[32];
  const Functions* functions_ = nullptr;
};

}  // namespace convoy::replays
