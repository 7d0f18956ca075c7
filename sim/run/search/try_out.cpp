// SPDX-License-Identifier: MIT
#include "sim/run/search/try_out.h"

#include <memory>
#include <utility>

#include "sim/run/wire.h"
#include "sim/run/workers.h"

namespace convoy::inline search {
namespace {

template <class T>
Tried<T> tried(WorkerAnswer answer, T (*decode)(const std::string&)) {
  if (answer.kind == WorkerAnswer::Kind::done) return {decode(answer.bytes), false, {}};
  return {std::nullopt, answer.kind == WorkerAnswer::Kind::input_error, std::move(answer.bytes)};
}

}  // namespace

void plan_in_workers(std::size_t count, std::size_t jobs, const PrepareItem& prepare,
                     const std::function<void(std::size_t item, Tried<Assessment> tried)>& planned) {
  const FirstHalf work = [&](std::size_t item) -> SecondHalf {
    const std::string bytes = encode(assess(prepare(item)));
    return [bytes] { return bytes; };
  };
  run_in_workers(count, jobs, work, [&](std::size_t item, WorkerAnswer answer) {
    planned(item, tried<Assessment>(std::move(answer), &decode_assessment));
  });
}

std::vector<Tried<RunOutput>> simulate_in_workers(std::size_t count, std::size_t jobs,
                                                  const PrepareItem& prepare,
                                                  const SimulateOptions& options) {
  const FirstHalf work = [&](std::size_t item) -> SecondHalf {
    auto run = std::make_shared<const PreparedRun>(prepare(item));
    return [run, &options] { return encode(simulate(*run, options.with_trace)); };
  };
  std::vector<Tried<RunOutput>> outputs(count);
  run_in_workers(count, jobs, work,
                 [&](std::size_t item, WorkerAnswer answer) {
                   outputs[item] = tried<RunOutput>(std::move(answer), &decode_output);
                 },
                 {.apart = options.apart});
  return outputs;
}

}  // namespace convoy::search
