// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>

namespace convoy::inline base {

/// A value that never changes and that copies share, or none. Two are equal if their values are, wherever these lie.
template <class Value>
class SharedValue : public std::shared_ptr<const Value> {
 public:
  using std::shared_ptr<const Value>::shared_ptr;
  SharedValue(std::shared_ptr<const Value> value)  // NOLINT: it is one
      : std::shared_ptr<const Value>(std::move(value)) {}

  bool operator==(const SharedValue& other) const {
    return this->get() == other.get() || (*this && other && **this == *other);
  }
};

}  // namespace convoy::base
