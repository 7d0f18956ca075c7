// SPDX-License-Identifier: MIT
#include "sim/replay/equal_steps.h"

#include <algorithm>

namespace convoy::inline replays {
namespace {

/// A hundredth of the precision to which a mean step has to be known otherwise (steady_state.cpp).
constexpr double one_length = 1e-4;

}  // namespace

void EqualSteps::step_ends(std::size_t client, double now_s) {
  const double step_s = now_s - last_end_s_[client];
  last_end_s_[client] = now_s;
  const std::uint64_t number = steps_done_[client]++ - first_round_;
  if (number == rounds_.size()) rounds_.emplace_back();
  Round& round = rounds_[number];
  round.shortest_s = round.clients == 0 ? step_s : std::min(round.shortest_s, step_s);
  round.longest_s = std::max(round.longest_s, step_s);
  if (++round.clients < last_end_s_.size()) return;
  const double shortest_s = std::min(before_.shortest_s, round.shortest_s);
  const double longest_s = std::max(before_.longest_s, round.longest_s);
  equal_ = before_.clients > 0 && longest_s - shortest_s <= one_length * longest_s;
  before_ = round;
  rounds_.pop_front();
  ++first_round_;
}

}  // namespace convoy::replays
