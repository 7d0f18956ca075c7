// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

namespace convoy::inline replays {

/// A function to call when something has happened: a small closure that is stored in place, so that an event
/// needs no allocation. It captures at most 32 bytes of plain values and pointers.
class Callback {
 public:
  Callback() = default;
  template <class Closure>
  requires(!std::is_same_v<std::remove_cvref_t<Closure>, Callback>) Callback(Closure closure)
      : call_([](void* self) { (*static_cast<Closure*>(self))(); }) {
    static_assert(std::is_trivially_copyable_v<Closure> && sizeof(Closure) <= sizeof(closure_) &&
                  alignof(Closure) <= alignof(void*));
    new (closure_) Closure(closure);
  }
  void operator()() { call_(closure_); }

 private:
  alignas(void*) std::byte closure_[32];
  void (*call_)(void*) = nullptr;
};

}  // namespace convoy::replays
