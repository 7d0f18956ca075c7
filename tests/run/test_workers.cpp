// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <map>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/base/input_error.h"
#include "sim/run/channel.h"
#include "sim/run/shared_counts.h"
#include "sim/run/workers.h"

using namespace convoy;

namespace {

std::map<std::size_t, WorkerAnswer> answers(std::size_t count, std::size_t jobs, const FirstHalf& work,
                                            bool apart = true) {
  std::map<std::size_t, WorkerAnswer> result;
  run_in_workers(
      count, jobs, work,
      [&](std::size_t item, WorkerAnswer answer) { CHECK(result.emplace(item, std::move(answer)).second); },
      {.apart = apart});
  return result;
}

/// The item's number in the first half, with a second half that is run apart.
SecondHalf echo(std::size_t item) {
  return [item] { return std::to_string(item) + std::string(item * 10'000, '.'); };
}

}  // namespace

TEST_CASE("workers: every item is answered once, whatever the number of jobs") {
  for (const std::size_t jobs : {1, 2, 7, 64}) {
    const auto result = answers(20, jobs, echo);
    REQUIRE(result.size() == 20);
    for (const auto& [item, answer] : result) {
      CHECK(answer.kind == WorkerAnswer::Kind::done);
      CHECK(answer.bytes == echo(item)());
    }
  }
  CHECK(answers(0, 4, echo).empty());
}

TEST_CASE("workers: counts that they add to are read here") {
  SharedCounts counts;
  const FirstHalf work = [&](std::size_t item) -> SecondHalf {
    counts.add(0, 10);
    return [&counts, item] {  // in a process apart
      counts.add(item, 0);
      return std::string{};
    };
  };
  answers(20, 3, work);
  CHECK(counts.all() == 200);
  CHECK(counts.done() == 190);
  counts.add(1, 0);
  counts.add(std::size_t{0} - 1, 0);  // what was done may have to be done again
  CHECK(counts.done() == 190);
}

TEST_CASE("workers: a process that crashes costs its own item only") {
  const FirstHalf work = [](std::size_t item) -> SecondHalf {
    if (item == 2) ::raise(SIGKILL);  // in the worker
    if (item == 4) ::_exit(9);
    if (item == 6)
      return []() -> std::string {
        ::signal(SIGABRT, SIG_DFL);  // doctest has its own
        ::raise(SIGABRT);
        return {};
      };  // there too, or in the process apart
    return echo(item);
  };
  for (const auto& [jobs, apart] : {std::pair{1, false}, {1, true}, {3, false}, {3, true}}) {
    const auto result = answers(9, static_cast<std::size_t>(jobs), work, apart);
    REQUIRE(result.size() == 9);
    CHECK(result.at(2).bytes == "the simulating process was ended by SIGKILL (out of memory?)");
    CHECK(result.at(4).bytes == "the simulating process ended with exit code 9");
    CHECK(result.at(6).bytes == "the simulating process was ended by SIGABRT");
    for (const auto& [item, answer] : result)
      CHECK((answer.kind == WorkerAnswer::Kind::done) == (item != 2 && item != 4 && item != 6));
  }
}

TEST_CASE("workers: to say something to a process that is gone fails, and ends nobody") {
  ::signal(SIGPIPE, SIG_DFL);
  const std::optional<std::array<int, 2>> ends = open_channel();
  REQUIRE(ends);
  const ChannelEnd here((*ends)[0]);
  ::close((*ends)[1]);
  CHECK_FALSE(send_items(here, {1, 2}));
  CHECK_FALSE(send_answer(here, {WorkerAnswer::Kind::done, "an answer"}));
  ::close(here.descriptor());
}

TEST_CASE(
    "workers: in long lists, too, each item is answered once by its own process, whatever happens to "
    "others") {
  constexpr std::size_t count = 400;
  for (const unsigned seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::map<std::size_t, int> fate;  // of some items, often of neighbours
    for (int i = 0; i < 30; ++i) fate[random() % count] = static_cast<int>(random() % 4);
    fate[100] = 0, fate[101] = 0, fate[102] = 1, fate[103] = 2, fate[300] = 4;
    const auto work = [&](std::size_t item) -> SecondHalf {
      return [&fate, item] {
        const auto found = fate.find(item);
        const int kind = found == fate.end() ? -1 : found->second;
        if (kind == 0) ::_exit(9);
        if (kind == 1) throw std::bad_alloc();
        if (kind == 2) throw std::runtime_error("broken");
        if (kind == 4) ::sleep(600);
        return std::to_string(item) + std::string(kind == 3 ? 300'000 : item, '.');
      };
    };
    std::vector<WorkerAnswer> result(count);
    std::vector<int> times(count);
    const auto answered = [&](std::size_t item, WorkerAnswer answer) {
      result[item] = std::move(answer), ++times[item];
    };
    CHECK(run_in_workers(count, 3, work, answered, {.time_s = 1}));
    for (std::size_t item = 0; item < count; ++item) {
      CAPTURE(item);
      CHECK(times[item] == 1);
      const auto found = fate.find(item);
      switch (found == fate.end() ? -1 : found->second) {
        case 0:
          CHECK(result[item].bytes == "the simulating process ended with exit code 9");
          break;
        case 1:
          CHECK(result[item].kind == WorkerAnswer::Kind::out_of_memory);
          break;
        case 2:
          CHECK(result[item].bytes == "broken");
          break;
        case 4:
          CHECK(result[item].kind == WorkerAnswer::Kind::out_of_time);
          break;
        case 3:
          CHECK(result[item].bytes == std::to_string(item) + std::string(300'000, '.'));
          break;
        default:
          CHECK(result[item].bytes == std::to_string(item) + std::string(item, '.'));
      }
    }
  }
}

TEST_CASE("workers: errors of both halves arrive with their kind") {
  const auto result = answers(4, 2, [](std::size_t item) -> SecondHalf {
    if (item == 0) throw InputError({"f.yaml", 1, 2}, "wrong");
    if (item == 1) throw std::runtime_error("broken");
    if (item == 2) return []() -> std::string { throw std::runtime_error("stuck"); };
    return {};
  });
  CHECK(result.at(0).kind == WorkerAnswer::Kind::input_error);
  CHECK(result.at(0).bytes == "f.yaml:1:2: wrong");
  CHECK(result.at(1).kind == WorkerAnswer::Kind::failed);
  CHECK(result.at(1).bytes == "broken");
  CHECK(result.at(2).bytes == "stuck");
  CHECK(result.at(3).kind == WorkerAnswer::Kind::done);
  CHECK(result.at(3).bytes.empty());
}

TEST_CASE("workers: a worker keeps what it has worked out for its next items") {
  int calls = 0;  // each worker has its own copy
  const auto result = answers(5, 1, [&](std::size_t) -> SecondHalf {
    ++calls;
    return [n = calls] { return std::to_string(n); };
  });
  for (std::size_t item = 0; item < 5; ++item) CHECK(result.at(item).bytes == std::to_string(item + 1));
  CHECK(calls == 0);
}

TEST_CASE(
    "workers: what is asked about one thing is asked of one process, unless another has nothing to do") {
  Workers workers(
      3,
      [](std::size_t) -> SecondHalf { return [] { return ::usleep(10'000), std::to_string(::getpid()); }; },
      {.about = [](const WorkItem& item) { return item.number / 10; }});
  const auto run = [&](const std::vector<WorkItem>& items) {
    std::vector<std::string> processes(items.size());
    CHECK(
        workers.run(items, [&](std::size_t place, WorkerAnswer answer) { processes[place] = answer.bytes; }));
    return processes;
  };
  const std::vector<std::string> first = run({10, 20, 30});
  CHECK(std::set<std::string>(first.begin(), first.end()).size() == 3);
  CHECK(run({32, 13, 21}) == std::vector<std::string>{first[2], first[0], first[1]});
  CHECK(run({14, 25, 36, 40}).size() == 4);  // of which nobody knows the last
  const std::vector<std::string> stolen = run({11, 12, 13, 14, 15, 16});
  CHECK(std::set<std::string>(stolen.begin(), stolen.end()).size() == 3);
}

TEST_CASE("workers: the same processes do one list after another, and a list that was left is no hindrance") {
  int calls = 0;  // each worker has its own copy
  const FirstHalf work = [&](std::size_t item) -> SecondHalf {
    if (item == 99) ::_exit(3);
    ++calls;
    return [n = calls, item] { return fmt::format("{} {} {}", ::getpid(), n, item); };
  };
  Workers workers(1, work);
  const auto run = [&](const std::vector<WorkItem>& items) {
    std::vector<std::string> answers(items.size());
    CHECK(workers.run(items, [&](std::size_t place, WorkerAnswer answer) { answers[place] = answer.bytes; }));
    return answers;
  };
  const std::vector<std::string> first = run({7, 5}), second = run({3}), none = run({});
  const std::string process = first[0].substr(0, first[0].find(' '));
  CHECK(first == std::vector<std::string>{process + " 1 7", process + " 2 5"});
  CHECK(second == std::vector<std::string>{process + " 3 3"});
  CHECK(none.empty());
  // A process that ended is replaced.
  CHECK(run({99, 1})[0] == "the simulating process ended with exit code 3");
  const std::string next = run({4})[0];
  CHECK(next.substr(0, next.find(' ')) != process);
  CHECK(next.ends_with(" 2 4"));
  // So is one whose item nobody waited for.
  CHECK_THROWS(workers.run({1, 2}, [](std::size_t, WorkerAnswer) { throw std::runtime_error("enough"); }));
  CHECK(run({8})[0].ends_with(" 1 8"));
  CHECK(calls == 0);
  // More processes come with longer lists, up to the number of jobs.
  Workers several(3, [](std::size_t) -> SecondHalf {
    return [] { return ::usleep(50'000), std::to_string(::getpid()); };
  });
  std::set<std::string> processes;
  for (const std::size_t count : {1, 6})
    several.run(std::vector<WorkItem>(count, 0),
                [&](std::size_t, WorkerAnswer answer) { processes.insert(answer.bytes); });
  CHECK(processes.size() == 3);
}

TEST_CASE(
    "workers: a process is told the factor of an item to the last bit, of which it knew nothing before") {
  Workers workers(2, [](WorkItem item) -> SecondHalf {
    return [item] { return fmt::format("{} {:a}", item.number, item.factor); };
  });
  std::vector<std::string> answers(3);
  const double third = 1.0 / 3;
  CHECK(workers.run({{7, third}, 8, {7, -0.0}},
                    [&](std::size_t place, WorkerAnswer answer) { answers[place] = answer.bytes; }));
  CHECK(answers == std::vector<std::string>{fmt::format("7 {:a}", third), "8 0x1p+0", "7 -0x0p+0"});
}

TEST_CASE("workers: an item that takes too long is ended, and those after it are done") {
  std::map<std::size_t, WorkerAnswer> result;
  WorkerOptions options;
  options.time_s = 2;
  const bool whole = run_in_workers(
      6, 2,
      [](std::size_t item) -> SecondHalf {
        return [item] {
          if (item == 1 || item == 2) ::sleep(600);
          return std::to_string(item);
        };
      },
      [&](std::size_t item, WorkerAnswer answer) { CHECK(result.emplace(item, std::move(answer)).second); },
      options);
  CHECK(whole);
  REQUIRE(result.size() == 6);
  for (const auto& [item, answer] : result) {
    CAPTURE(item);
    if (item == 1 || item == 2) {
      CHECK(answer.kind == WorkerAnswer::Kind::out_of_time);
      CHECK(answer.bytes == "took longer than 2 s");
    } else {
      CHECK(answer.bytes == std::to_string(item));
    }
  }
}

TEST_CASE("workers: memory of an item is limited, and the ones after it have it again") {
#ifndef __SANITIZE_ADDRESS__
  std::map<std::size_t, WorkerAnswer> result;
  WorkerOptions options;
  options.memory_bytes = 1e9;
  run_in_workers(
      4, 1,
      [](std::size_t item) -> SecondHalf {
        return [item] {
          std::string large(item == 1 ? 2'000'000'000 : 1'000, 'x');
          return std::to_string(large.size());
        };
      },
      [&](std::size_t item, WorkerAnswer answer) { result[item] = std::move(answer); }, options);
  CHECK(result[1].kind == WorkerAnswer::Kind::out_of_memory);
  for (const std::size_t item : {0, 2, 3}) CHECK(result[item].bytes == "1000");
#endif
}

TEST_CASE("workers: stopped, they end at once") {
  WorkerOptions options;
  int asked = 0, answered = 0;
  options.stop = [&] { return ++asked > 3; };
  const bool whole = run_in_workers(
      4, 2, [](std::size_t) -> SecondHalf { return [] { return ::sleep(600), std::string{}; }; },
      [&](std::size_t, WorkerAnswer) { ++answered; }, options);
  CHECK_FALSE(whole);
  CHECK(answered == 0);
}
