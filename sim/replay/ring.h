// SPDX-License-Identifier: MIT
#pragma once

#include <boost/circular_buffer.hpp>

namespace convoy::inline replays {

/// A queue whose elements lie side by side. std::deque takes an allocation for every few of them, and one more access to
/// memory for the first.
template <class T>
class Ring : public boost::circular_buffer<T> {
 public:
  Ring() = default;
  void push_back(const T& element) {
    if (this->full()) this->set_capacity(2 * this->capacity() + 4);
    boost::circular_buffer<T>::push_back(element);
  }
};

}  // namespace convoy::replays
