// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace convoy::inline replays {

/// Watches clients whose steps depend on nothing but each other, without chance, until two steps of each of them take one
/// time, the same for all, to within a hundredth of a percent. They then keep the phases at which they meet, so that every
/// further step takes that time, too. A server for which all of them wait makes their steps equal within about ten.
class EqualSteps {
 public:
  explicit EqualSteps(std::size_t clients) : last_end_s_(clients, 0), steps_done_(clients, 0) {}

  /// A client has ended a step. The first counts from 0 on, whenever it began.
  void step_ends(std::size_t client, double now_s);
  /// Whether the last two steps that all clients have done were equal.
  bool are_equal() const { return equal_; }

 private:
  /// The steps of one number, of all clients that have done it.
  struct Round {
    std::size_t clients = 0;
    double shortest_s = 0, longest_s = 0;
  };

  std::vector<double> last_end_s_;         ///< by client
  std::vector<std::uint64_t> steps_done_;  ///< by client
  std::deque<Round> rounds_{Round{}};      ///< from the first that somebody has not done
  std::uint64_t first_round_ = 0;
  Round before_;  ///< the last that all have done
  bool equal_ = false;
};

}  // namespace convoy::replays
