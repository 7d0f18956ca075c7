// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "sim/replay/message_groups.h"

// Messages of collectives that have their links to themselves: how far their steps are found ahead of their time.
namespace convoy::inline replays {

/// The time of so many of its first messages.
double MessageGroups::time_to_look_ahead_s(const Run& run) const {
  constexpr double steps = 16;
  double longest_s = 0;
  for (const std::vector<std::uint32_t>& flows : run.group->flows)
    if (longest_s == 0)
      for (const std::uint32_t f : flows)
        longest_s = std::max(
            longest_s, transfers_.lone_s(folding_.route_class[f], comm_of(run).bytes * flow(f).fraction));
  return steps * longest_s;
}

void MessageGroups::reach_first_step(Run& run, std::uint32_t member) {
  if (!run.foresight) {
    begin_step(run, member);
    return;
  }
  const double now_s = engine_.now_s();
  run.ranks[member].ready_s = run.ranks[member].step_end_s = now_s;
  run.foresight->horizon_s = std::max(run.foresight->horizon_s, now_s);
  foresee(run, member);
  look_further_later(run);
}

/// Goes from step to step as far as is known, from the first step that a rank can now begin. The rank that could go on last goes on first,
/// since what belongs to its neighbours is still in the processor's caches.
void MessageGroups::foresee(Run& run, std::uint32_t first) {
  Foresight& foresight = *run.foresight;
  foresight.next.push_back(first);
  while (!foresight.next.empty()) {
    const std::uint32_t member = foresight.next.back();
    foresight.next.pop_back();
    if (run.ranks[member].ready_s <= foresight.horizon_s) {
      begin_step(run, member);
      continue;
    }
    foresight.waiting.push_back(member);
    foresight.first_s = std::min(foresight.first_s, run.ranks[member].ready_s);
  }
}

/// When the first of the steps that wait begins, at the latest.
void MessageGroups::look_further_later(Run& run) {
  Foresight& foresight = *run.foresight;
  if (foresight.first_s >= foresight.wake_s) return;
  foresight.wake_s = foresight.first_s;
  engine_.after(foresight.wake_s - engine_.now_s()) = [this, &run, number = ++foresight.wakes] {
    if (number != run.foresight->wakes) return;  // an earlier time has been chosen since then
    look_further(run);
    listener_.after_event();
  };
}

void MessageGroups::look_further(Run& run) {
  Foresight& foresight = *run.foresight;
  foresight.horizon_s = std::max(engine_.now_s(), foresight.wake_s) + foresight.ahead_s;
  foresight.first_s = foresight.wake_s = never;
  for (const std::uint32_t member : std::exchange(foresight.waiting, {})) foresee(run, member);
  look_further_later(run);
}

}  // namespace convoy::replays
