// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/channel.h"

namespace convoy::inline runs {

/// The work of one item in two halves: the first runs in a worker that goes on to further items (so it may
/// keep what they share), the second there too or in a process of its own.
using SecondHalf = std::function<std::string()>;
using FirstHalf = std::function<SecondHalf(WorkItem item)>;

struct WorkerOptions {
  double memory_bytes = std::numeric_limits<double>::infinity();  ///< of data, that a process may have
  double time_s = std::numeric_limits<double>::infinity();        ///< that an item may take
  /// The second half in a process of its own; else in the worker, like the first. Replays by SimGrid's own
  /// network model need it: their clock goes on from one to the next (sim/replay/engine.h).
  bool apart = false;
  /// Called here several times a second while items are under way; true ends all of them.
  std::function<bool()> stop = [] { return false; };
  /// What an item is about, if items of several lists may be about one thing: it goes to the process that had the last
  /// one, which may have kept something of it, unless that has others to do while nothing else is left for this one.
  std::function<std::size_t(const WorkItem& item)> about = {};
};

/// A forked process that does the items that are sent to it, one after the other, and answers each of them. It ends when
/// this process does.
class WorkerProcess {
 public:
  /// How a process ended.
  struct End {
    std::string how;      ///< "the simulating process was ended by SIGKILL (out of memory?)"
    bool killed = false;  ///< by SIGKILL
  };

  /// @returns nothing: the machine refuses another process
  static std::optional<WorkerProcess> start(const FirstHalf& work, const WorkerOptions& options);

  /// Items that it does without waiting for anything in between.
  void send(const std::vector<WorkItem>& items) { send_items(end_, items); }
  ChannelEnd& answers() { return end_; }
  const ChannelEnd& answers() const { return end_; }
  void kill() const;
  /// Waits for its end, which comes when it has no items left, or was killed. It cannot be used after that.
  End stop();

 private:
  WorkerProcess(pid_t process, int descriptor) : process_(process), end_(descriptor) {}

  pid_t process_;
  ChannelEnd end_;
};

/// Does an item in this process. @param apart its second half in a process of its own
WorkerAnswer answer_to(const WorkItem& item, const FirstHalf& work, bool apart);

/// What a process may have of memory: so much, or less if this process has been given less.
double allowed_memory_bytes(double bytes);

/// The answer to an item that took longer than it may.
WorkerAnswer too_late(const WorkerOptions& options);

}  // namespace convoy::runs
