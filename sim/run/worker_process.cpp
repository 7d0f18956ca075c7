// SPDX-License-Identifier: MIT
#include "sim/run/worker_process.h"

#include <fmt/format.h>
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
#include <exception>
#include <new>

#include "sim/base/input_error.h"

namespace convoy::inline runs {
namespace {

using Kind = WorkerAnswer::Kind;

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
/// processes get (Ctrl-C, and SIGTERM of batch systems), and holds none of its files but its end of the channel.
void settle_in(pid_t parent, const ChannelEnd& end) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);
  const auto kept = static_cast<unsigned>(end.descriptor());
  if (kept > 3) ::close_range(3, kept - 1, 0);
  ::close_range(kept + 1, ~0U, 0);
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
  const std::optional<std::array<int, 2>> ends = open_channel();
  if (!ends) return guarded(half);
  ChannelEnd here((*ends)[0]), there((*ends)[1]);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    settle_in(parent, there);
    ::_exit(send_answer(there, guarded(half)) ? 0 : 1);
  }
  ::close(there.descriptor());
  std::optional<WorkerAnswer> answer = child < 0 ? guarded(half) : receive_answer(here);
  ::close(here.descriptor());
  if (child < 0) return std::move(*answer);
  const int status = wait_for(child);
  return answer ? std::move(*answer) : WorkerAnswer{Kind::failed, how_it_ended(status)};
}

/// Answers the items that come until the other end is closed.
void serve_items(ChannelEnd& end, const FirstHalf& work, const WorkerOptions& options) {
  while (const std::optional<WorkItem> item = receive_item(end)) {
    const auto began = std::chrono::steady_clock::now();
    WorkerAnswer answer = answer_to(*item, work, options.apart);
    const std::chrono::duration<double> took_s = std::chrono::steady_clock::now() - began;
    if (took_s.count() > options.time_s) answer = too_late(options);
    // What is kept may be large: a new process goes on.
    if (!send_answer(end, answer) || answer.kind == Kind::out_of_memory) return;
  }
}

}  // namespace

WorkerAnswer answer_to(const WorkItem& item, const FirstHalf& work, bool apart) {
  SecondHalf half;
  WorkerAnswer first = guarded([&] {
    half = work(item);
    return std::string{};
  });
  if (first.kind != Kind::done || !half) return first;
  return apart ? run_apart(half) : guarded(half);
}

double allowed_memory_bytes(double bytes) {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      bytes = std::min(bytes, static_cast<double>(limit.rlim_cur));
  }
  return bytes;
}

WorkerAnswer too_late(const WorkerOptions& options) {
  return {Kind::out_of_time, fmt::format("took longer than {:g} s", options.time_s)};
}

std::optional<WorkerProcess> WorkerProcess::start(const FirstHalf& work, const WorkerOptions& options) {
  const std::optional<std::array<int, 2>> ends = open_channel();
  if (!ends) return std::nullopt;
  const auto [here, there] = *ends;
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    ChannelEnd end(there);
    settle_in(parent, end);
    limit_memory(options.memory_bytes);
    serve_items(end, work, options);
    ::_exit(0);
  }
  ::close(there);
  if (child < 0) {
    ::close(here);
    return std::nullopt;
  }
  return WorkerProcess(child, here);
}

/// Never "all processes", which a number that is not above 0 would be.
void WorkerProcess::kill() const {
  if (process_ > 0) ::kill(process_, SIGKILL);
}

WorkerProcess::End WorkerProcess::stop() {
  ::close(end_.descriptor());
  const int status = wait_for(process_);
  process_ = -1;
  return {how_it_ended(status), WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL};
}

}  // namespace convoy::runs
