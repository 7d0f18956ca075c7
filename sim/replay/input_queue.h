// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"

namespace convoy::inline replays {

/// A producer that prepares batches one after the other, each in `interval_s`, for a queue with room for
/// `depth` batches. It begins a batch when the one before is ready and the one `depth` before has been taken;
/// with depth 0, when the batch is requested.
class InputQueue {
 public:
  InputQueue(double interval_s, std::uint32_t depth) : interval_s_(interval_s), taken_s_(depth, 0.0) {}

  /// When the next batch is taken if it is requested at `now_s`. The times of successive calls do not
  /// decrease.
  double take(double now_s) {
    const std::size_t depth = taken_s_.size();
    const double room_s = depth == 0 ? now_s : taken_s_[next_ % depth];
    ready_s_ = std::max(ready_s_, room_s) + interval_s_;
    const double at_s = std::max(now_s, ready_s_);
    if (depth > 0) taken_s_[next_++ % depth] = at_s;
    return at_s;
  }

 private:
  double interval_s_;
  std::vector<double> taken_s_;  ///< of the last `depth` batches
  std::size_t next_ = 0;
  double ready_s_ = 0;  ///< when the last batch that was begun is ready
};

/// In the long run, the time of a step for which everybody waits, of which each begins when every host has its
/// images ready: the longer of its own time and the time that the slowest host needs for them, or both where
/// nothing is made ready ahead.
/// @param steps that the programs are of, for which a host prepares images as for one
/// @param own_s of the programs, without waiting for images
inline double step_with_input_s(const InputFeed& feed, double steps, double own_s) {
  double longest_s = 0;
  for (const double interval_s : feed.interval_s) longest_s = std::max(longest_s, steps * interval_s);
  return feed.prefetch == 0 ? own_s + longest_s : std::max(own_s, longest_s);
}

}  // namespace convoy::replays
