// SPDX-License-Identifier: MIT
#include "sim/run/search/try_out.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "sim/run/wire.h"

namespace convoy::inline search {
namespace {

template <class T, class Decode>
Tried<T> tried(WorkerAnswer answer, Decode decode) {
  if (answer.kind == WorkerAnswer::Kind::done) return {decode(std::move(answer.bytes)), false, {}};
  return {std::nullopt, answer.kind == WorkerAnswer::Kind::input_error, std::move(answer.bytes)};
}

/// What is done with a candidate: the processes are told of both by one number.
enum class Asked : std::uint8_t { plan, step, all, trace };
constexpr std::size_t askable = 4;

std::vector<WorkItem> items_of(const std::vector<std::size_t>& candidates, Asked asked, double factor) {
  std::vector<WorkItem> items;
  for (const std::size_t candidate : candidates)
    items.emplace_back(askable * candidate + static_cast<std::size_t>(asked), factor);
  return items;
}

FirstHalf work_of(PrepareItem prepare) {
  return [prepare = std::move(prepare)](WorkItem item) -> SecondHalf {
    const auto asked = static_cast<Asked>(item.number % askable);
    const std::size_t candidate = item.number / askable;
    if (asked == Asked::plan)
      return [bytes = encode(assess(prepare(candidate, Detail::step, item.factor)))] { return bytes; };
    const Detail detail = asked == Asked::step ? Detail::step : Detail::all;
    return [run = std::make_shared<const PreparedRun>(prepare(candidate, detail, item.factor)),
            with_trace = asked == Asked::trace] { return encode(simulate(*run, with_trace)); };
  };
}

}  // namespace

TryOut::TryOut(std::size_t jobs, PrepareItem prepare, bool apart)
    : workers_(jobs, work_of(std::move(prepare)), {.apart = apart}) {}

void TryOut::plan(const std::vector<std::size_t>& candidates,
                  const std::function<void(std::size_t place, Tried<Assessment> tried)>& planned,
                  double factor) {
  workers_.run(items_of(candidates, Asked::plan, factor), [&](std::size_t place, WorkerAnswer answer) {
    planned(place, tried<Assessment>(std::move(answer), &decode_assessment));
  });
}

std::vector<Tried<RunOutput>> TryOut::simulate(const std::vector<std::size_t>& candidates, Detail detail,
                                               bool with_trace, double factor) {
  const Asked asked = with_trace ? Asked::trace : detail == Detail::step ? Asked::step : Asked::all;
  std::vector<Tried<RunOutput>> outputs(candidates.size());
  workers_.run(items_of(candidates, asked, factor), [&](std::size_t place, WorkerAnswer answer) {
    outputs[place] = tried<RunOutput>(std::move(answer), &decode_output);
  });
  return outputs;
}

}  // namespace convoy::search
