// SPDX-License-Identifier: MIT
#include "sim/run/workers.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sim/base/input_error.h"

namespace convoy {
namespace {

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

/// False at the end of the pipe.
bool read_all(int fd, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::read(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

struct Header {
  std::uint64_t kind, size;
};

bool send(int fd, WorkerAnswer::Kind kind, const std::string& bytes) {
  const Header header{static_cast<std::uint64_t>(kind), bytes.size()};
  return write_all(fd, reinterpret_cast<const char*>(&header), sizeof header) &&
         write_all(fd, bytes.data(), bytes.size());
}

std::optional<WorkerAnswer> receive(int fd) {
  Header header{};
  if (!read_all(fd, reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  WorkerAnswer answer{static_cast<WorkerAnswer::Kind>(header.kind), std::string(header.size, '\0')};
  if (!read_all(fd, answer.bytes.data(), answer.bytes.size())) return std::nullopt;
  return answer;
}

/// Calls `body`, which returns the bytes to answer with, and turns what it throws into an answer.
template <class Body>
WorkerAnswer guarded(Body body) {
  try {
    return {WorkerAnswer::Kind::done, body()};
  } catch (const InputError& error) {
    return {WorkerAnswer::Kind::input_error, error.what()};
  } catch (const std::exception& error) {
    return {WorkerAnswer::Kind::failed, error.what()};
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

/// Runs `half` in a process of its own, which answers by itself; when it dies before that, this one answers
/// for it.
void run_apart(const SecondHalf& half, int out) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return (void)send(out, WorkerAnswer::Kind::failed, std::strerror(errno));
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    const WorkerAnswer answer = guarded(half);
    ::_exit(send(pipe[1], answer.kind, answer.bytes) ? 0 : 1);
  }
  ::close(pipe[1]);
  if (child < 0) {
    ::close(pipe[0]);
    return (void)send(out, WorkerAnswer::Kind::failed, std::strerror(errno));
  }
  const std::optional<WorkerAnswer> answer = receive(pipe[0]);
  ::close(pipe[0]);
  const int status = wait_for(child);
  if (answer)
    send(out, answer->kind, answer->bytes);
  else
    send(out, WorkerAnswer::Kind::failed, how_it_ended(status));
}

[[noreturn]] void serve(int in, int out, const FirstHalf& work) {
  std::uint64_t item = 0;
  while (read_all(in, reinterpret_cast<char*>(&item), sizeof item)) {
    SecondHalf half;
    const WorkerAnswer first = guarded([&] {
      half = work(item);
      return std::string{};
    });
    if (first.kind == WorkerAnswer::Kind::done && half)
      run_apart(half, out);
    else
      send(out, first.kind, first.bytes);
  }
  ::_exit(0);
}

/// The processes and their pipes, and which item each of them has.
class WorkerPool {
 public:
  WorkerPool(std::size_t workers, const FirstHalf& work) : work_(work), workers_(workers) {
    for (std::size_t w = 0; w < workers; ++w) start(w);
  }
  ~WorkerPool() {
    for (Worker& worker : workers_) stop(worker);
  }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void give(std::size_t w, std::size_t item) {
    workers_[w].item = item;
    const std::uint64_t number = item;
    write_all(workers_[w].to, reinterpret_cast<const char*>(&number), sizeof number);
  }

  /// Waits for a worker that has something to say.
  std::size_t wait() {
    std::vector<pollfd> polled;
    for (const Worker& worker : workers_) polled.push_back({worker.item ? worker.from : -1, POLLIN, 0});
    while (::poll(polled.data(), polled.size(), -1) < 0)
      if (errno != EINTR) throw std::runtime_error(fmt::format("poll: {}", std::strerror(errno)));
    const auto ready =
        std::find_if(polled.begin(), polled.end(), [](const pollfd& p) { return p.revents != 0; });
    return static_cast<std::size_t>(ready - polled.begin());
  }

  std::pair<std::size_t, WorkerAnswer> take(std::size_t w) {
    const std::size_t item = *workers_[w].item;
    workers_[w].item.reset();
    if (std::optional<WorkerAnswer> answer = receive(workers_[w].from)) return {item, std::move(*answer)};
    const int status = stop(workers_[w]);
    start(w);
    return {item, {WorkerAnswer::Kind::failed, how_it_ended(status)}};
  }

 private:
  struct Worker {
    pid_t process = -1;
    int to = -1, from = -1;
    std::optional<std::size_t> item;
  };

  void start(std::size_t w) {
    std::array<int, 2> there{}, back{};
    if (::pipe(there.data()) != 0 || ::pipe(back.data()) != 0)
      throw std::runtime_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error(fmt::format("cannot start a process: {}", std::strerror(errno)));
    if (child == 0) {
      for (const Worker& other : workers_)
        if (other.process > 0) ::close(other.to), ::close(other.from);
      ::close(there[1]);
      ::close(back[0]);
      serve(there[0], back[1], work_);
    }
    ::close(there[0]);
    ::close(back[1]);
    workers_[w] = {child, there[1], back[0], std::nullopt};
  }

  static int stop(Worker& worker) {
    if (worker.process < 0) return 0;
    ::close(worker.to);
    ::close(worker.from);
    const int status = wait_for(worker.process);
    worker.process = -1;
    return status;
  }

  const FirstHalf& work_;
  std::vector<Worker> workers_;
};

}  // namespace

void run_in_workers(std::size_t count, std::size_t jobs, const FirstHalf& work,
                    const std::function<void(std::size_t, WorkerAnswer)>& answered) {
  const std::size_t workers = std::min(jobs, count);
  WorkerPool pool(workers, work);
  std::size_t given = 0;
  for (std::size_t w = 0; w < workers; ++w) pool.give(w, given++);
  for (std::size_t got = 0; got < count; ++got) {
    const std::size_t w = pool.wait();
    auto [item, answer] = pool.take(w);
    if (given < count) pool.give(w, given++);
    answered(item, std::move(answer));
  }
}

std::string run_here(std::size_t item, const FirstHalf& work) {
  const SecondHalf half = work(item);
  return half ? half() : std::string{};
}

std::size_t all_cores() { return std::max(1u, std::thread::hardware_concurrency()); }

}  // namespace convoy
