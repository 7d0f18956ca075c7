// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <utility>

namespace convoy::inline base {

/// Puts the hash of one more part of a key into that of those before.
inline std::size_t hash_with(std::size_t hash, std::size_t part) {
  return hash ^ (part + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2));
}

/// While one of these is there, memos of this thread compute everything anew: results are then to be the same.
class WithoutMemos {
 public:
  WithoutMemos() { ++count_; }
  ~WithoutMemos() { --count_; }
  WithoutMemos(const WithoutMemos&) = delete;
  WithoutMemos& operator=(const WithoutMemos&) = delete;
  static bool any() { return count_ > 0; }

 private:
  inline static thread_local int count_ = 0;
};

/// What a function has returned, by all that it reads. A key says all of it, as values or as lists and
/// pointers that are shared and never change (SharedList, std::shared_ptr<const ...>, which the kept key holds
/// so that no other thing can take their address). `==` of the key is the compiler's own, so that a part
/// that somebody adds counts too; `hash()` may leave parts out.
///
/// Memos are of a thread (`static thread_local`) or of an object. What they keep is bounded: when they are full
/// they begin anew, since the points of a sweep that have something in common follow one another.
template <class Key, class Value>
class Memo {
 public:
  /// @param most values that are kept, or, where keys or what values point to have a `weight()`, the sum of it
  explicit Memo(std::size_t most) : most_(most) {}

  /// The value of `key`, made by `make(key)` if it is not kept. `make` may call this memo for other keys.
  template <class Make>
  Value of(Key key, Make make) {
    if (WithoutMemos::any()) return make(std::as_const(key));
    if (const auto kept = values_.find(key); kept != values_.end()) return kept->second;
    Value value = make(std::as_const(key));
    const std::size_t weight = weight_of(key, value);
    if (weight > most_) return value;
    if (kept_ + weight > most_) values_.clear(), kept_ = 0;
    if (values_.emplace(std::move(key), value).second) kept_ += weight;
    return value;
  }

  std::size_t size() const { return values_.size(); }

 private:
  static std::size_t weight_of(const Key& key, const Value& value) {
    if constexpr (requires { key.weight(); })
      return key.weight();
    else if constexpr (requires { value->weight(); })
      return value->weight();
    else
      return 1;
  }

  struct Hash {
    std::size_t operator()(const Key& key) const { return key.hash(); }
  };

  std::size_t most_, kept_ = 0;
  std::unordered_map<Key, Value, Hash> values_;
};

}  // namespace convoy::base
