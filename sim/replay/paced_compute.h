// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/compute_times.h"
#include "sim/replay/disturbed.h"
#include "sim/replay/engine.h"

namespace convoy::inline replays {

/// Compute tasks of endpoint classes, and what they and collectives cost each other. While collectives are
/// under way on an endpoint they hold a share of its processors, and the operations of its tasks go on at the
/// rest of their rate; the host issues them no slower. A collective goes on at as much of its own rate while
/// the endpoint computes: for every second of computing beside its messages it owes that share of a second,
/// which it works off after its last message, at the same two rates. Its messages cross the links as if
/// nobody computed, so that bytes on links and who shares them stay what they are; a collective of d seconds
/// beside endless computing takes d / (1 - share).
class PacedCompute {
 public:
  /// @param taken by endpoint class: share of its processors that collectives hold, and of their rate that
  ///        computing takes, below 1
  /// @param stops of endpoint classes, in which no task goes on
  /// @param collectives_owe false: collectives are as fast beside computing as alone
  PacedCompute(Engine& engine, std::vector<double> taken, const Stops& stops, bool collectives_owe = true);

  /// @param step_began_s when the host began to issue the step's operations
  /// @return for how long the task waits for its host beside no collective; nothing where it takes no time:
  ///         it is not started then, and `done` is not called
  std::optional<double> start(std::uint32_t endpoint_class, const TaskWork& work, double step_began_s,
                              Callback done);
  /// By how much longer tasks that have ended waited for their host than start() told, less what was asked
  /// for before.
  double take_more_wait_s(std::uint32_t endpoint_class);
  void collective_begins(std::uint32_t endpoint_class, TaskId task);
  /// Called when the last message of a collective has arrived.
  /// @param done called when it has worked off what it owes
  /// @return false: it owes nothing, and `done` is not called
  bool works_off(std::uint32_t endpoint_class, TaskId task, Callback done);
  void collective_ends(std::uint32_t endpoint_class);
  bool computes(std::uint32_t endpoint_class) const { return !places_[endpoint_class].tasks.empty(); }

 private:
  struct Running {
    TaskWork work;
    double step_began_s, began_s;  ///< in the endpoint's own time, without stops
    double expected_wait_s;
    std::uint64_t ticket;
    Callback done;
    double done_s = 0, ran_s = 0;  ///< at Place::since_s: of its work, and for how long it has not waited
    bool slowed = false;           ///< beside a collective, for a time

    /// Slower operations wait less for the host.
    bool may_wait_less() const { return slowed && expected_wait_s > 0; }
  };
  struct Debt {
    double left_s;  ///< at full rate, at Place::since_s
    std::uint64_t ticket;
    Callback done;
  };
  struct Begun {
    TaskId task;
    double computed_s;  ///< Place::computed_s at its beginning
  };
  struct Place {
    double taken;
    std::uint32_t collectives = 0;
    double since_s = 0, computed_s = 0;
    double more_wait_s = 0;
    std::vector<Running> tasks;
    std::vector<Debt> owed;    ///< by collectives
    std::vector<Begun> begun;  ///< collectives whose messages are under way
    double task_rate() const { return collectives > 0 ? 1 - taken : 1; }
    double owed_rate() const { return tasks.empty() ? 1 : 1 - taken; }
  };

  /// The time for which an endpoint has not been stopped.
  double own_time_s(std::uint32_t endpoint_class, double now_s) const {
    return now_s - stops_.before_s(endpoint_class, now_s);
  }
  void settle(std::uint32_t endpoint_class);
  std::uint64_t set_timer(std::uint32_t endpoint_class, double duration_s);
  void schedule(std::uint32_t endpoint_class, Running& task);
  void schedule_tasks(std::uint32_t endpoint_class);
  void schedule_owed(std::uint32_t endpoint_class);
  void end(std::uint32_t endpoint_class, std::uint64_t ticket);
  /// The end of a task or debt.
  struct End {
    PacedCompute* compute;
    std::uint32_t endpoint_class;
    std::uint64_t ticket;
    void operator()() { compute->end(endpoint_class, ticket); }
    void fetch() const { fetch_soon(compute->places_[endpoint_class]); }
  };

  Engine& engine_;
  const Stops& stops_;
  bool collectives_owe_;
  std::vector<Place> places_;
  std::uint64_t tickets_ = 0;
};

}  // namespace convoy::replays
