// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/engine.h"

namespace convoy::inline replays {

/// Compute tasks of endpoint classes, and how they and collectives slow each other down. While collectives
/// are under way on an endpoint, they hold a share of its processors, and its tasks proceed at the rest of
/// their rate. A collective is slowed down by the same share while the endpoint computes: for every second of
/// computing beside its messages, it owes that share of a second, which it works off after its last message,
/// at the same two rates. Its messages cross the links as if nobody computed, so that the bytes on links and
/// the sharing of links do not change; a collective of d seconds beside endless computing takes d / (1 -
/// share).
class PacedCompute {
 public:
  /// @param taken by endpoint class: the share of its processors that collectives hold, and of their rate
  /// that computing takes, below 1
  /// @param collectives_owe false: collectives are as fast beside computing as alone
  PacedCompute(Engine& engine, std::vector<double> taken, bool collectives_owe = true);

  /// @param alone_s how long the task takes with all processors
  void start(std::uint32_t endpoint_class, double alone_s, Callback done);
  void collective_begins(std::uint32_t endpoint_class, TaskId task);
  /// Called when the last message of a collective has arrived.
  /// @param done called when it has worked off what it owes
  /// @return false: it owes nothing, and `done` is not called
  bool works_off(std::uint32_t endpoint_class, TaskId task, Callback done);
  void collective_ends(std::uint32_t endpoint_class);
  bool computes(std::uint32_t endpoint_class) const { return !places_[endpoint_class].tasks.empty(); }

 private:
  struct Running {
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
    std::vector<Running> tasks;
    std::vector<Running> owed;  ///< by collectives
    std::vector<Begun> begun;   ///< collectives whose messages are under way
    double task_rate() const { return collectives > 0 ? 1 - taken : 1; }
    double owed_rate() const { return tasks.empty() ? 1 : 1 - taken; }
  };

  void settle(Place& place);
  void schedule(std::uint32_t endpoint_class, Running& task, double rate);
  void schedule_tasks(std::uint32_t endpoint_class);
  void schedule_owed(std::uint32_t endpoint_class);
  void end(std::uint32_t endpoint_class, std::uint64_t ticket);

  Engine& engine_;
  bool collectives_owe_;
  std::vector<Place> places_;
  std::uint64_t tickets_ = 0;
};

}  // namespace convoy::replays
