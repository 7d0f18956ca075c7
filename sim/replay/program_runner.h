// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/replay/busy_clock.h"
#include "sim/replay/compute_times.h"
#include "sim/replay/disturbed.h"
#include "sim/replay/engine.h"
#include "sim/replay/executor.h"
#include "sim/replay/large_pages.h"
#include "sim/replay/paced_compute.h"
#include "sim/replay/step_watch.h"
#include "sim/replay/transfers.h"

namespace convoy::inline replays {

/// Runs the programs of endpoint classes on an engine, task by task. Derived classes decide what happens to
/// sends, receives and collectives, and what follows the end of a task.
class ProgramRunner : protected MessageListener {
 public:
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;

 protected:
  /// How far one class of endpoints has got in its program. The clock, which every message needs, has a cache line of its own.
  struct alignas(64) Progress {
    static constexpr std::uint32_t is_done = std::numeric_limits<std::uint32_t>::max();
    struct Stream {
      std::uint32_t next = 0;  ///< first task not started
      bool busy = false;
    };
    std::span<std::uint32_t> missing;  ///< predecessors not done, by task; is_done: it is done itself
    std::vector<Stream> streams;
    std::uint32_t done_count = 0;
    bool recorded = true;     ///< times of its tasks are recorded in the class's timeline
    double step_began_s = 0;  ///< its host issues operations since then
    DeviceClock clock;
    double stretch = 1;  ///< factor on its compute times
  };

  ProgramRunner(const FoldedPlan& folded, const Surroundings& surroundings);
  virtual ~ProgramRunner() = default;

  /// Called when it is the turn of a send, receive or collective.
  virtual void start_message(std::uint32_t endpoint_class, TaskId id, Task::Kind kind, CommId comm) = 0;
  /// Called when a task is done, and the tasks that it allows to begin have begun.
  virtual void task_ended(std::uint32_t endpoint_class, TaskId id) = 0;

  /// Starts the first tasks of a class's program.
  void begin(std::uint32_t endpoint_class);
  /// Resets a finished program so that it can begin again.
  void rewind(std::uint32_t endpoint_class);
  /// Processes what the ends of tasks allow to begin, task after task: a chain of tasks that take no time
  /// must not become a chain of calls.
  void drain();

  std::size_t class_count() const { return progress_.size(); }
  std::uint32_t role_of(std::uint32_t endpoint_class) const { return folding_.endpoint_role[endpoint_class]; }
  /// Without the part of the operations' time that is waiting for the last of many devices.
  DeviceTimes without_slowdown(std::uint32_t endpoint_class, DeviceTimes times) const {
    times.compute_s /= plan_.roles[role_of(endpoint_class)].slowdown;
    times.issue_wait_s /= plan_.roles[role_of(endpoint_class)].slowdown;
    return times;
  }
  /// When the host has issued a task's operations, from the beginning of the step.
  double issued_s(std::uint32_t endpoint_class, TaskId id) {
    const TaskWork work =
        compute_times_.work(folding_.endpoints[endpoint_class], role_of(endpoint_class), id, 1);
    return work.issued ? work.issued->issued_s() : 0;
  }
  /// All clocks, except those of servers.
  Readings readings();
  /// @throws std::runtime_error that names the tasks that are not done
  void require_finished() const;

  const Plan& plan_;
  const Machine& machine_;
  const Folding& folding_;
  Engine engine_;
  LinkClock link_clock_;
  Transfers transfers_;
  std::vector<Progress> progress_;      ///< by endpoint class
  LargeVector<std::uint32_t> missing_;  ///< Progress::missing of all
  std::vector<Timeline> timelines_;  ///< by endpoint class

 private:
  /// What is the same for every endpoint of a role: what waits for what, and the order on each stream.
  struct Program {
    /// What the beginning and the end of a task need of it: less than a Task, so that a program stays in the processor's caches.
    struct Node {
      CommId comm;
      int stream;
      Task::Kind kind;
      bool begins_step;
      std::uint32_t first_successor;  ///< in `successors`
    };
    std::vector<Node> tasks;         ///< and one behind the last, where the last one's successors end
    std::vector<TaskId> successors;  ///< of all tasks
    std::span<const TaskId> successors_of(TaskId t) const {
      return {successors.data() + tasks[t].first_successor, successors.data() + tasks[t + 1].first_successor};
    }
    std::vector<std::uint32_t> predecessor_count;
    std::vector<std::vector<TaskId>> streams;  ///< tasks of each stream in order
    std::vector<TaskId> streamless;
  };
  static Program analyse(const Role& role);
  const Program& program_of(std::uint32_t endpoint_class) const { return programs_[role_of(endpoint_class)]; }
  const Task& task(std::uint32_t endpoint_class, TaskId id) const {
    return plan_.roles[role_of(endpoint_class)].program[id];
  }

  void try_stream(std::uint32_t endpoint_class, std::size_t stream);
  void start(std::uint32_t endpoint_class, TaskId id);
  void finish(std::uint32_t endpoint_class, TaskId id);

  // MessageListener
  void messages_begin(std::uint32_t endpoint_class, TaskId id) override {
    timelines_[endpoint_class].tasks[id].start_s = engine_.now_s();
  }
  void message_begins(std::uint32_t endpoint_class) override {
    progress_[endpoint_class].clock.message_begins(engine_.now_s());
  }
  void message_ends(std::uint32_t endpoint_class) override {
    progress_[endpoint_class].clock.message_ends(engine_.now_s());
  }
  void message_foreseen(std::uint32_t endpoint_class, double begin_s, double end_s) override {
    progress_[endpoint_class].clock.message_foreseen(begin_s, end_s, engine_.now_s());
  }
  void take_foreseen(std::uint32_t endpoint_class, double now_s) override {
    progress_[endpoint_class].clock.take_foreseen(now_s);
  }
  void task_done(std::uint32_t endpoint_class, TaskId id) override;
  void fetch(std::uint32_t endpoint_class) const override;
  void after_event() override { drain(); }

  ComputeTimes compute_times_;
  Stops stops_;
  PacedCompute compute_;
  std::vector<Program> programs_;  ///< by role
  std::vector<std::pair<std::uint32_t, TaskId>> finished_;
  std::size_t next_finished_ = 0;  ///< those before it have been processed
};

}  // namespace convoy::replays
