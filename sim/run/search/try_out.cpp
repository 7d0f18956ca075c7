// SPDX-License-Identifier: MIT
#include "sim/run/search/try_out.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "sim/base/memo.h"
#include "sim/replay/replay.h"
#include "sim/run/prepared_memo.h"
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

/// About how many bytes a run takes, as if it shared its programs with no other one.
std::size_t bytes_of(const std::shared_ptr<const PreparedRun>& run) {
  constexpr std::size_t of_weight = 20, of_names_and_lists = 100;
  std::size_t bytes = of_weight * PreparedKey{run}.weight();
  std::set<const void*> counted;  // roles share programs, and tasks operations
  for (const Role& role : run->plan.roles) {
    if (!counted.insert(&role.program.get()).second) continue;
    for (const Task& task : role.program) {
      bytes += sizeof(Task) + of_names_and_lists;
      if (!task.ops.is_shared() || counted.insert(&task.ops.get()).second)
        bytes += task.ops.size() * (sizeof(PlanOp) + of_names_and_lists);
    }
  }
  return bytes;
}

/// What a process has found out about candidates and may be asked for again: their runs, once they are planned, and
/// their replays, once their steps are simulated. If there is too much of it, it begins anew.
class KnownCandidates {
 public:
  std::shared_ptr<const PreparedRun> prepared(const WorkItem& item, const PrepareItem& prepare,
                                              Detail detail) {
    const std::size_t candidate = item.number / askable;
    const auto known = runs_.find({candidate, item.factor});
    if (detail == Detail::step && known != runs_.end()) return known->second;
    auto run = std::make_shared<const PreparedRun>(prepare(candidate, detail, item.factor));
    if (detail == Detail::step && !WithoutMemos::any()) {
      make_room(bytes_of(run), bytes_of_runs_, runs_);
      runs_.insert_or_assign({candidate, item.factor}, run);
    }
    return run;
  }

  /// Nothing: it is not known.
  std::shared_ptr<const ReplayResult> replayed(const WorkItem& item) const {
    const auto known = replays_.find({item.number / askable, item.factor});
    return known == replays_.end() ? nullptr : known->second;
  }

  void keep(const WorkItem& item, const PreparedRun& run, std::shared_ptr<ReplayResult> replayed) {
    if (run.phased || WithoutMemos::any()) return;
    replayed->timelines = {};  // which results do not need
    constexpr std::size_t of_entry = 20;
    make_room(of_entry * (replayed->endpoints.size() + replayed->links.size()), bytes_of_replays_, replays_);
    replays_.insert_or_assign({item.number / askable, item.factor}, std::move(replayed));
  }

 private:
  using Asked = std::pair<std::size_t, double>;  ///< candidate and factor
  static constexpr std::size_t most_bytes = 64 << 20;

  template <class Kept>
  static void make_room(std::size_t bytes, std::size_t& of_all, Kept& kept) {
    if (of_all + bytes > most_bytes) kept.clear(), of_all = 0;
    of_all += bytes;
  }

  std::map<Asked, std::shared_ptr<const PreparedRun>> runs_;
  std::map<Asked, std::shared_ptr<const ReplayResult>> replays_;
  std::size_t bytes_of_runs_ = 0, bytes_of_replays_ = 0;
};

/// A run's step alone, or with its interval, for which the step does not have to be simulated again where it is known.
std::string simulated(const WorkItem& item, const PreparedRun& run, KnownCandidates& known) {
  const auto asked = static_cast<Asked>(item.number % askable);
  if (asked == Asked::trace) return encode(simulate(run, true));
  if (const auto replayed = known.replayed(item)) return encode(output_of(run, *replayed, false));
  auto replayed = std::make_shared<ReplayResult>(replay_of(run));
  std::string output = encode(output_of(run, *replayed, false));
  if (asked == Asked::step) known.keep(item, run, std::move(replayed));
  return output;
}

FirstHalf work_of(PrepareItem prepare) {
  auto known = std::make_shared<KnownCandidates>();
  return [prepare = std::move(prepare), known](const WorkItem& item) -> SecondHalf {
    const auto asked = static_cast<Asked>(item.number % askable);
    const bool all = asked == Asked::all || asked == Asked::trace;
    auto run = known->prepared(item, prepare, all ? Detail::all : Detail::step);
    if (asked == Asked::plan) return [bytes = encode(assess(*run))] { return bytes; };
    return [item, run = std::move(run), known] { return simulated(item, *run, *known); };
  };
}

}  // namespace

TryOut::TryOut(std::size_t jobs, PrepareItem prepare, bool apart)
    : workers_(jobs, work_of(std::move(prepare)),
               {.apart = apart, .about = [](const WorkItem& item) { return item.number / askable; }}) {}

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
