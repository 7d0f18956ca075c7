// SPDX-License-Identifier: MIT
#include "sim/run/workers.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <new>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "sim/base/input_error.h"
#include "sim/base/quantity.h"

namespace convoy::inline runs {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = WorkerAnswer::Kind;

constexpr int tick_ms = 100;  ///< between questions whether to stop

/// Calls `body`, which returns the bytes to answer with, and turns what it throws into an answer.
template <class Body>
WorkerAnswer guarded(Body body) {
  try {
    return {Kind::done, body()};
  } catch (const InputError& error) {
    return {Kind::input_error, error.what()};
  } catch (const std::bad_alloc&) {
    return {Kind::out_of_memory, "out of memory"};  // short: needs no memory
  } catch (const std::exception& error) {
    return {Kind::failed, error.what()};
  }
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return fmt::format("the simulating process was ended by SIG{}{}", name ? name : "?",
                       WTERMSIG(status) == SIGKILL ? " (out of memory?)" : "");
  }
  return fmt::format("the simulating process ended with exit code {}", WEXITSTATUS(status));
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// To be called in a process just forked: it ends when `parent` does, leaves to that what whole groups of
/// processes get (Ctrl-C, and SIGTERM of batch systems), and holds none of its files but these two.
void settle_in(pid_t parent, int in, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);
  const auto [low, high] = std::minmax(in, out);
  const auto close_between = [](int first, int last) {
    if (first <= last) ::close_range(static_cast<unsigned>(first), static_cast<unsigned>(last), 0);
  };
  close_between(3, low - 1);
  close_between(low + 1, high - 1);
  ::close_range(static_cast<unsigned>(high + 1), ~0U, 0);
}

/// What a worker may have: the point's limit, or what the process has been given.
double allowed_memory_bytes(double bytes) {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      bytes = std::min(bytes, static_cast<double>(limit.rlim_cur));
  }
  return bytes;
}

void limit_memory([[maybe_unused]] double bytes) {
#ifndef __SANITIZE_ADDRESS__  // its shadow counts
  if (!std::isfinite(bytes)) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(bytes));
  ::setrlimit(RLIMIT_DATA, &limit);
#endif
}

/// Runs `half` in a process of its own; when it dies before it has answered, says how. Without a process,
/// here.
WorkerAnswer run_apart(const SecondHalf& half) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return guarded(half);
  const pid_t here = ::getpid(), child = ::fork();
  if (child == 0) {
    settle_in(here, pipe[1], pipe[1]);
    ::_exit(send_answer(pipe[1], guarded(half)) ? 0 : 1);
  }
  ::close(pipe[1]);
  if (child < 0) {
    ::close(pipe[0]);
    return guarded(half);
  }
  PipeEnd from(pipe[0]);
  std::optional<WorkerAnswer> answer = receive_answer(from);
  ::close(pipe[0]);
  const int status = wait_for(child);
  return answer ? std::move(*answer) : WorkerAnswer{Kind::failed, how_it_ended(status)};
}

WorkerAnswer answer_to(const WorkItem& item, const FirstHalf& work, bool apart) {
  SecondHalf half;
  WorkerAnswer first = guarded([&] {
    half = work(item);
    return std::string{};
  });
  if (first.kind != Kind::done || !half) return first;
  return apart ? run_apart(half) : guarded(half);
}

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

WorkerAnswer too_late(const WorkerOptions& options) {
  return {Kind::out_of_time, fmt::format("took longer than {:g} s", options.time_s)};
}

/// Serves items from one descriptor and answers on another until the first is closed.
void serve_items(int in, int out, const FirstHalf& work, const WorkerOptions& options) {
  PipeEnd items(in);
  while (const std::optional<WorkItem> item = receive_item(items)) {
    const Clock::time_point began = Clock::now();
    WorkerAnswer answer = answer_to(*item, work, options.apart);
    if (seconds_since(began) > options.time_s) answer = too_late(options);
    // What is kept may be large: a new process goes on.
    if (!send_answer(out, answer) || answer.kind == Kind::out_of_memory) return;
  }
}

}  // namespace

/// The processes and their pipes, and which items of the list each of them has.
class Workers::Pool {
 public:
  struct Given {
    std::size_t place;  ///< in the list
    WorkItem item;
  };

  Pool(FirstHalf work, WorkerOptions options) : work_(std::move(work)), options_(std::move(options)) {}
  ~Pool() {
    for (Worker& worker : workers_) {
      if (!worker.given.empty()) end(worker);
      stop(worker);
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::size_t size() const { return workers_.size(); }
  const FirstHalf& work() const { return work_; }
  const WorkerOptions& options() const { return options_; }

  /// Starts processes until there are so many, or the machine refuses one, and ends what an earlier list left
  /// unfinished.
  void make_ready(std::size_t workers) {
    for (std::size_t w = 0; w < workers_.size(); ++w)
      if (!workers_[w].given.empty()) {
        end(workers_[w]);
        workers_[w].given.clear();
        restart(w);
      }
    while (workers_.size() < workers) {
      std::optional<Worker> worker = start();
      if (!worker) break;
      workers_.push_back(std::move(*worker));
    }
  }

  bool is_idle(std::size_t w) const { return workers_[w].given.empty(); }

  /// Whether no worker but this one had the last item about the same thing.
  bool may_know(std::size_t w, const WorkItem& item) const {
    if (!options_.about) return true;
    const auto known = knows_.find(options_.about(item));
    return known == knows_.end() || known->second == w;
  }

  /// Items that the worker does one after the other, without waiting for anything in between. @pre it is idle
  void give(std::size_t w, std::deque<Given> items) {
    if (options_.about)
      for (const Given& given : items) knows_[options_.about(given.item)] = w;
    workers_[w].given = std::move(items);
    send(workers_[w]);
  }

  /// Waits a moment for a worker that has something to say, or that has been at its item for too long. They take
  /// turns.
  std::optional<std::size_t> wait() {
    for (std::size_t k = 0; k < workers_.size(); ++k) {
      const std::size_t w = (next_ + k) % workers_.size();
      if (workers_[w].from.has_more()) return turn_of(w);
    }
    std::vector<pollfd> polled;
    for (const Worker& worker : workers_)
      polled.push_back({worker.given.empty() ? -1 : worker.from.descriptor(), POLLIN, 0});
    const bool any = ::poll(polled.data(), polled.size(), tick_ms) > 0;
    for (std::size_t k = 0; k < workers_.size(); ++k) {
      const std::size_t w = (next_ + k) % workers_.size();
      if (any && polled[w].revents != 0) return turn_of(w);
      workers_[w].late = is_overdue(workers_[w]);
      if (workers_[w].late) return turn_of(w);
    }
    return std::nullopt;
  }

  struct Taken {
    std::size_t place;
    WorkerAnswer answer;
    bool killed = false;  ///< by somebody else
  };

  /// The answer to the first item that the worker has. A process that ended goes on, as a new one, with the next.
  Taken take(std::size_t w) {
    Worker& worker = workers_[w];
    const std::size_t place = worker.given.front().place;
    worker.given.pop_front();
    if (worker.late) {
      end(worker);
      restart(w);
      return {place, too_late(options_)};
    }
    if (std::optional<WorkerAnswer> answer = receive_answer(worker.from)) {
      if (answer->kind == Kind::out_of_memory) {
        restart(w);  // it has ended
        if (const double allowed = allowed_memory_bytes(options_.memory_bytes); std::isfinite(allowed))
          answer->bytes = fmt::format("needs more than {} of memory", format_bytes(allowed));
      }
      worker.since = Clock::now();
      return {place, std::move(*answer)};
    }
    const int status = restart(w);
    return {place, {Kind::failed, how_it_ended(status)}, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL};
  }

 private:
  struct Worker {
    pid_t process = -1;
    int to = -1;
    PipeEnd from;
    std::deque<Given> given{};  ///< the first is under way
    Clock::time_point since{};  ///< when it began, or a little later
    bool late = false;
  };

  std::size_t turn_of(std::size_t w) {
    next_ = w + 1;
    return w;
  }

  bool is_overdue(const Worker& worker) const {
    return !worker.given.empty() && seconds_since(worker.since) > options_.time_s;
  }

  static void send(Worker& worker) {
    worker.since = Clock::now();
    std::vector<WorkItem> items;
    for (const Given& given : worker.given) items.push_back(given.item);
    if (!items.empty()) send_items(worker.to, items);
  }

  std::optional<Worker> start() {
    std::array<int, 2> there{}, back{};
    if (::pipe(there.data()) != 0) return std::nullopt;
    if (::pipe(back.data()) != 0) {
      ::close(there[0]), ::close(there[1]);
      return std::nullopt;
    }
    const pid_t here = ::getpid(), child = ::fork();
    if (child == 0) {
      settle_in(here, there[0], back[1]);
      limit_memory(options_.memory_bytes);
      serve_items(there[0], back[1], work_, options_);
      ::_exit(0);
    }
    ::close(there[0]);
    ::close(back[1]);
    if (child < 0) {
      ::close(there[1]), ::close(back[0]);
      return std::nullopt;
    }
    return Worker{child, there[1], PipeEnd(back[0])};
  }

  static int stop(Worker& worker) {
    if (worker.process < 0) return 0;
    ::close(worker.to);
    ::close(worker.from.descriptor());
    const int status = wait_for(worker.process);
    worker.process = -1;
    return status;
  }

  int restart(std::size_t w) {
    const int status = stop(workers_[w]);
    std::optional<Worker> fresh = start();
    while (!fresh) {  // there was one before: the machine will have room again
      std::this_thread::sleep_for(std::chrono::milliseconds(tick_ms));
      fresh = start();
    }
    fresh->given = std::move(workers_[w].given);
    workers_[w] = std::move(*fresh);
    send(workers_[w]);
    return status;
  }

  /// Never of "all processes", which a number that is not above 0 would be.
  static void end(const Worker& worker) {
    if (worker.process > 0) ::kill(worker.process, SIGKILL);
  }

  FirstHalf work_;
  WorkerOptions options_;
  std::vector<Worker> workers_;
  std::size_t next_ = 0;  ///< whose turn it is to be asked first
  std::unordered_map<std::size_t, std::size_t>
      knows_;  ///< by what items are about: the worker that had the last
};

Workers::Workers(std::size_t jobs, FirstHalf work, WorkerOptions options)
    : jobs_(jobs), pool_(std::make_unique<Pool>(std::move(work), std::move(options))) {}
Workers::~Workers() = default;

bool Workers::run(std::size_t count, const std::function<WorkItem(std::size_t)>& item_at,
                  const std::function<void(std::size_t, WorkerAnswer)>& answered) {
  if (count == 0) return true;
  Pool& pool = *pool_;
  const auto stop = [&] { return pool.options().stop(); };
  pool.make_ready(std::min(jobs_, count));
  if (pool.size() == 0) {
    for (std::size_t place = 0; place < count && !stop(); ++place)
      answered(place, answer_to(item_at(place), pool.work(), false));
    return !stop();
  }
  std::deque<std::size_t> again;  // places of items whose process was killed
  std::set<std::size_t> tried;
  // Neighbours have most in common, which a process computes once: each gets a row of items. Rows become
  // shorter towards the end, so that nobody has several left while others have none.
  constexpr std::size_t longest_row = 32, rows_left = 4;
  std::size_t next = 0;                // place of the first item that is left for nobody else
  std::deque<std::size_t> for_others;  // places before it, of items that another worker may know
  std::size_t left = count;
  const auto give = [&](std::size_t w) {
    if (!again.empty()) {
      pool.give(w, {{again.front(), item_at(again.front())}});
      again.pop_front();
      return;
    }
    const std::size_t length =
        std::min(left, std::clamp<std::size_t>(left / (rows_left * pool.size()), 1, longest_row));
    std::deque<Pool::Given> row;
    const auto take = [&](std::size_t place, const WorkItem& item) {
      row.push_back({place, item});
      --left;
    };
    for (auto place = for_others.begin(); place != for_others.end() && row.size() < length;) {
      const WorkItem item = item_at(*place);
      const bool takes = pool.may_know(w, item);
      if (takes) take(*place, item);
      place = takes ? for_others.erase(place) : std::next(place);
    }
    for (; next < count && row.size() < length; ++next) {
      const WorkItem item = item_at(next);
      if (pool.may_know(w, item))
        take(next, item);
      else
        for_others.push_back(next);
    }
    if (row.empty() && !for_others.empty()) {
      take(for_others.back(), item_at(for_others.back()));
      for_others.pop_back();
    }
    pool.give(w, std::move(row));
  };
  for (std::size_t w = 0; w < pool.size(); ++w) give(w);
  for (std::size_t got = 0; got < count;) {
    if (stop()) return false;
    const std::optional<std::size_t> w = pool.wait();
    if (!w) continue;
    Pool::Taken taken = pool.take(*w);
    const bool retry = taken.killed && tried.insert(taken.place).second;
    if (retry) again.push_back(taken.place);
    if (pool.is_idle(*w)) give(*w);
    if (retry) continue;
    ++got;
    answered(taken.place, std::move(taken.answer));
  }
  return true;
}

bool Workers::run(const std::vector<WorkItem>& items,
                  const std::function<void(std::size_t, WorkerAnswer)>& answered) {
  return run(
      items.size(), [&](std::size_t place) { return items[place]; }, answered);
}

bool run_in_workers(std::size_t count, std::size_t jobs, const FirstHalf& work,
                    const std::function<void(std::size_t, WorkerAnswer)>& answered,
                    const WorkerOptions& options) {
  WorkerOptions of_list = options;
  of_list.apart = options.apart && count > 1;
  return Workers(jobs, work, std::move(of_list)).run(count, std::identity{}, answered);
}

std::size_t all_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return static_cast<std::size_t>(CPU_COUNT(&cores));
  return std::max(1u, std::thread::hardware_concurrency());
}

double machine_memory_bytes() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
}

}  // namespace convoy::runs
