// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/executor.h"
#include "sim/replay/fold.h"
#include "sim/replay/step_watch.h"

namespace convoy::inline replays {

/// Finds out what the periods take that a plan's programs leave out (RepeatedTasks), from those that they list.
///
/// Where everything that happens between two moments happened before them in the same way, so much earlier, it
/// happens again for as long as programs go on in the same way: the replay's state is the same at both moments,
/// and a replay is determined by its state. So as many more periods make every clock go on by as many times
/// what it did between the two. Whether it is so is seen in the second half of the listed periods: the smallest
/// number of them is sought by which all tasks of all endpoints begin and end again after the same time, to
/// 1e-12 of it, for at least that time before the later moment; where there is none, to 1e-11. Hosts, which
/// issue operations ahead of their devices and wait for nothing, must neither fall back (their next operations
/// would be late some day) nor gain on devices that still wait for them.
///
/// 1e-11 is for rounding that grows where flows share links: one that has a link to itself for d longer, and ends
/// while it shares it with several others, ends by a multiple of d earlier. The last bits of the clock are so
/// doubled from message to message, until somebody waits for somebody else. A cycle then repeats itself to about
/// 1e-12 of the time since the beginning only, and so does a replay of every period. Where nothing ends the
/// doubling, there is no cycle at all.
class RepeatedPeriods {
 public:
  RepeatedPeriods(const Plan& plan, const Folding& folding);

  /// Whether a task's end ends one of the periods after which clocks are to be read.
  bool ends_period(std::uint32_t endpoint_class, TaskId task) const;
  void keep(Readings readings) { kept_.push_back(std::move(readings)); }

  /// Adds what is left out to what the listed tasks did: tasks after the listed periods are later. Where that is
  /// not known, says how many more periods have to be listed (Execution::periods_missing) and adds nothing.
  /// @param now all clocks at the end  @param issued_s when a class's host has issued a task, from its beginning
  void add_left_out(const Readings& now, const std::function<double(std::uint32_t, TaskId)>& issued_s,
                    Execution& execution) const;

 private:
  /// Two readings, a number of periods apart, at which the state of the replay was the same.
  struct Cycle {
    std::uint32_t periods;
    double same;  ///< the share of its length to which it repeats itself
    const Readings *open, *close;
    double length_s() const { return close->now_s - open->now_s; }
  };
  const RepeatedTasks& repeats(const Timeline& timeline) const { return *plan_.roles[timeline.role].repeats; }
  bool does_something(const Timeline& timeline) const { return !timeline.tasks.empty(); }
  std::optional<Cycle> cycle(const std::vector<Timeline>& timelines, std::uint32_t periods,
                             double same) const;
  std::optional<Cycle> shortest_cycle(const std::vector<Timeline>& timelines) const;
  bool is_like_before(const Cycle& cycle, std::size_t open) const;
  bool hosts_keep_up(const Cycle& cycle, const Readings& now,
                     const std::function<double(std::uint32_t, TaskId)>& issued_s,
                     const std::vector<Timeline>& timelines) const;

  const Plan& plan_;
  std::uint32_t counted_;        ///< the class whose periods are counted
  const RepeatedTasks& counts_;  ///< of its role; the numbers of periods are those of all roles
  std::uint32_t half_;           ///< periods before those after which clocks are read
  std::vector<Readings> kept_;   ///< after periods half_ + 1, half_ + 2, ...
};

}  // namespace convoy::replays
