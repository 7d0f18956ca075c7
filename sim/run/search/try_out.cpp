// SPDX-License-Identifier: MIT
#include "sim/run/search/try_out.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "sim/run/wire.h"

namespace convoy::inline search {
namespace {

template <class T>
Tried<T> tried(WorkerAnswer answer, T (*decode)(const std::string&)) {
  if (answer.kind == WorkerAnswer::Kind::done) return {decode(answer.bytes), false, {}};
  return {std::nullopt, answer.kind == WorkerAnswer::Kind::input_error, std::move(answer.bytes)};
}

/// What is done with a candidate: the processes are told of both by one number.
enum class Asked : std::uint8_t { plan, step, all, trace };
constexpr std::size_t askable = 4;

std::vector<std::size_t> items_of(const std::vector<std::size_t>& candidates, Asked asked) {
  std::vector<std::size_t> items;
  for (const std::size_t candidate : candidates)
    items.push_back(askable * candidate + static_cast<std::size_t>(asked));
  return items;
}

FirstHalf work_of(PrepareItem prepare) {
  return [prepare = std::move(prepare)](std::size_t item) -> SecondHalf {
    const auto asked = static_cast<Asked>(item % askable);
    const std::size_t candidate = item / askable;
    if (asked == Asked::plan)
      return [bytes = encode(assess(prepare(candidate, Detail::step)))] { return bytes; };
    const Detail detail = asked == Asked::step ? Detail::step : Detail::all;
    return [run = std::make_shared<const PreparedRun>(prepare(candidate, detail)),
            with_trace = asked == Asked::trace] { return encode(simulate(*run, with_trace)); };
  };
}

}  // namespace

TryOut::TryOut(std::size_t jobs, PrepareItem prepare, bool apart)
    : workers_(jobs, work_of(std::move(prepare)), {.apart = apart}) {}

void TryOut::plan(const std::vector<std::size_t>& candidates,
                  const std::function<void(std::size_t place, Tried<Assessment> tried)>& planned) {
  workers_.run(items_of(candidates, Asked::plan), [&](std::size_t place, WorkerAnswer answer) {
    planned(place, tried<Assessment>(std::move(answer), &decode_assessment));
  });
}

std::vector<Tried<RunOutput>> TryOut::simulate(const std::vector<std::size_t>& candidates, Detail detail,
                                               bool with_trace) {
  const Asked asked = with_trace ? Asked::trace : detail == Detail::step ? Asked::step : Asked::all;
  std::vector<Tried<RunOutput>> outputs(candidates.size());
  workers_.run(items_of(candidates, asked), [&](std::size_t place, WorkerAnswer answer) {
    outputs[place] = tried<RunOutput>(std::move(answer), &decode_output);
  });
  return outputs;
}

}  // namespace convoy::search
