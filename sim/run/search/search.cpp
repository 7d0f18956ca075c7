// SPDX-License-Identifier: MIT
#include "sim/run/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "sim/base/ties.h"
#include "sim/run/evaluate.h"
#include "sim/run/search/prior_bound.h"
#include "sim/run/search/ranking.h"
#include "sim/run/wire.h"
#include "sim/run/workers.h"
#include "strategies/strategy.h"

namespace convoy::inline search {
namespace {

constexpr const char* no_price = "strategy.objective: cost needs the price of every server of the cluster";

/// A running search.
class BranchAndBound {
 public:
  BranchAndBound(Preparer& preparer, std::size_t index, const SearchSpec& spec, std::size_t jobs)
      : preparer_(preparer), index_(index), spec_(spec), jobs_(jobs), entries_(spec.candidates.size()) {}

  /// Computes the bounds of all candidates from the cost table, and finds mappings from which no strategy can
  /// be read.
  void bound_all() {
    const YamlNode alone = parse_yaml("{kind: single}", "auto");
    base_.emplace(preparer_.prepare(index_, &alone));
    CostTable table(*base_->graph, base_->machine, base_->cost);
    const BatchSpec batch = preparer_.experiment().point(index_).training.batch;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Candidate& entry = entries_[i];
      const Strategy* strategy = spec_.candidates[i].strategy.get();
      if (strategy == nullptr) {
        entry.state = CandidateState::cannot_run;
        entry.message = spec_.candidates[i].wrong;
        continue;
      }
      entry.assessment.label = strategy->label();
      entry.state = CandidateState::open;
      std::optional<Assessment> prior = prior_bound(*strategy, batch, *base_, table);
      entry.assessment.bound_text = "nothing is known of its step beforehand";
      if (!prior || (spec_.objective == Objective::cost && !prior->price_usd_per_h)) continue;
      entry.assessment = std::move(*prior);
      entry.bound = best_rank(spec_.objective, entry.assessment);
    }
  }

  /// Runs until none of the remaining candidates can be the best. A candidate is planned only when all
  /// planned candidates have a greater bound, and simulated only when all others have. So the same candidates
  /// are simulated, in the same order, as if all had been planned.
  void run(const Search::Progress& progress) {
    for (;;) {
      progress(decided(), entries_.size());
      if (spent()) break;
      if (const std::vector<std::size_t> group = next_to_plan(); !group.empty())
        plan(group);
      else if (const std::vector<std::size_t> batch = next_to_simulate(); !batch.empty())
        simulate_batch(batch);
      else if (best_ || !take_too_large())
        break;
    }
    for (Candidate& entry : entries_)
      if (waits(entry.state))
        entry.state = best_ && cannot_beat(entry.bound, entries_[*best_].rank) ? CandidateState::pruned
                                                                               : CandidateState::unknown;
    if (best_) settle_tie();
  }

  RunOutput outcome(bool with_trace) {
    if (!best_) throw std::runtime_error(no_outcome());
    RunOutput output =
        best_output_ && !with_trace ? std::move(*best_output_) : simulate_one(*best_, with_trace);
    const double of_device = output.result.global_batch / static_cast<double>(base_->machine.devices.size());
    output.result.search = summarise(spec_, entries_, *best_, simulated_, step_spreads(*base_, of_device));
    return output;
  }

 private:
  static bool waits(CandidateState state) {
    return state == CandidateState::open || state == CandidateState::planned;
  }
  std::size_t decided() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) count += !waits(entries_[i].state) || hopeless(i);
    return count;
  }
  bool spent() const { return spec_.budget && simulated_ >= *spec_.budget; }
  bool hopeless(std::size_t i) const {
    return best_ && cannot_beat(entries_[i].bound, entries_[*best_].rank);
  }

  /// Candidates in a state that may still be the best, by bound; those with equal bounds in the given order.
  std::vector<std::size_t> hopeful(CandidateState state) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].state == state && !hopeless(i)) found.push_back(i);
    std::stable_sort(found.begin(), found.end(),
                     [&](std::size_t a, std::size_t b) { return entries_[a].bound < entries_[b].bound; });
    return found;
  }

  /// A group that grows, so that a space of 10,000 candidates takes few rounds, and one whose best candidate
  /// comes early takes few plans.
  std::vector<std::size_t> next_to_plan() {
    const std::vector<std::size_t> planned = hopeful(CandidateState::planned);
    std::vector<std::size_t> group = hopeful(CandidateState::open);
    if (!planned.empty())
      std::erase_if(group,
                    [&](std::size_t i) { return entries_[planned.front()].bound < entries_[i].bound; });
    if (group.size() > group_size_) group.resize(group_size_);
    if (!group.empty()) group_size_ = std::min(2 * group_size_, largest_group);
    return group;
  }

  void plan(const std::vector<std::size_t>& group) {
    const FirstHalf work = [&](std::size_t item) -> SecondHalf {
      const std::string bytes =
          encode(assess(preparer_.prepare(index_, &spec_.candidates[group[item]].mapping)));
      return [bytes] { return bytes; };
    };
    run_in_workers(group.size(), jobs_, work, [&](std::size_t item, WorkerAnswer answer) {
      Candidate& entry = entries_[group[item]];
      entry.planned = true;
      if (answer.kind != WorkerAnswer::Kind::done) {
        entry.state = answer.kind == WorkerAnswer::Kind::input_error ? CandidateState::cannot_run
                                                                     : CandidateState::failed;
        entry.message = std::move(answer.bytes);
        return;
      }
      entry.assessment = decode_assessment(answer.bytes);
      take_in(entry);
    });
  }

  /// Records the bound of a planned candidate, or why it is excluded. A candidate that does not fit is
  /// excluded, unless none fits.
  void take_in(Candidate& entry) {
    const Assessment& assessment = entry.assessment;
    if (spec_.objective == Objective::cost && !assessment.price_usd_per_h) {
      entry.state = CandidateState::cannot_run;
      entry.message = no_price;
      return;
    }
    entry.bound = best_rank(spec_.objective, assessment);
    entry.state = assessment.fits ? CandidateState::planned : CandidateState::too_large;
  }

  /// Of those that tie with the best one (sim/base/ties.h) the best is one that takes least time, of these the
  /// first given: the last digit decides nothing. None of them was passed over: cannot_beat() allows for more.
  void settle_tie() {
    std::vector<std::size_t> tied;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].state == CandidateState::simulated) tied.push_back(i);
    keep_least(tied, [&](std::size_t i) { return entries_[i].rank.value; });
    keep_least(tied, [&](std::size_t i) { return entries_[i].rank.time_s; });
    if (tied.front() == *best_) return;
    best_ = tied.front();
    best_output_.reset();
  }

  bool take_too_large() {
    bool any = false;
    for (Candidate& entry : entries_) {
      if (entry.state != CandidateState::too_large) continue;
      entry.state = CandidateState::planned;
      any = true;
    }
    return any;
  }

  /// As many as there are processes; candidates that the first of them rules out will not count.
  std::vector<std::size_t> next_to_simulate() const {
    std::vector<std::size_t> batch = hopeful(CandidateState::planned);
    const std::vector<std::size_t> open = hopeful(CandidateState::open);
    if (!open.empty())
      std::erase_if(batch, [&](std::size_t i) { return entries_[open.front()].bound <= entries_[i].bound; });
    std::size_t most = jobs_;
    if (spec_.budget) most = std::min(most, static_cast<std::size_t>(*spec_.budget - simulated_));
    if (batch.size() > most) batch.resize(most);
    return batch;
  }

  FirstHalf simulation(const std::vector<std::size_t>& batch, bool with_trace) {
    return [this, &batch, with_trace](std::size_t item) -> SecondHalf {
      auto run = std::make_shared<const PreparedRun>(
          preparer_.prepare(index_, &spec_.candidates[batch[item]].mapping));
      return [run, with_trace] { return encode(simulate(*run, with_trace)); };
    };
  }

  RunOutput simulate_one(std::size_t i, bool with_trace) {
    const std::vector<std::size_t> one{i};
    WorkerAnswer got;
    run_in_workers(1, 1, simulation(one, with_trace),
                   [&](std::size_t, WorkerAnswer answer) { got = std::move(answer); });
    if (got.kind != WorkerAnswer::Kind::done) throw std::runtime_error(got.bytes);
    return decode_output(got.bytes);
  }

  /// The batch counts in its order: a candidate that an earlier one rules out is treated as not simulated.
  void simulate_batch(const std::vector<std::size_t>& batch) {
    if (batch.empty()) return;
    std::vector<WorkerAnswer> answers(batch.size());
    run_in_workers(batch.size(), jobs_, simulation(batch, false),
                   [&](std::size_t item, WorkerAnswer answer) { answers[item] = std::move(answer); },
                   {.apart = preparer_.replays_apart()});
    for (std::size_t item = 0; item < batch.size(); ++item) {
      Candidate& entry = entries_[batch[item]];
      if (hopeless(batch[item])) continue;
      ++simulated_;
      if (answers[item].kind != WorkerAnswer::Kind::done) {
        entry.state = CandidateState::failed;
        entry.message = std::move(answers[item].bytes);
        continue;
      }
      RunOutput output = decode_output(answers[item].bytes);
      entry.state = CandidateState::simulated;
      entry.rank = rank_of(spec_.objective, output.result);
      const bool better = !best_ || entry.rank < entries_[*best_].rank ||
                          (entry.rank == entries_[*best_].rank && batch[item] < *best_);
      entry.result = output.result;
      entry.result.per_device.clear();
      entry.result.per_link.clear();
      if (!better) continue;
      best_ = batch[item];
      best_output_ = std::move(output);
    }
  }

  std::string no_outcome() const {
    for (const Candidate& entry : entries_)
      if (entry.state == CandidateState::failed)
        return fmt::format("no candidate could be simulated: {}", entry.message);
    return "no candidate could be simulated";
  }

  Preparer& preparer_;
  std::size_t index_;
  const SearchSpec& spec_;
  std::size_t jobs_;
  std::vector<Candidate> entries_;
  static constexpr std::size_t first_group = 16, largest_group = 1024;
  std::size_t group_size_ = first_group;
  std::int64_t simulated_ = 0;
  std::optional<std::size_t> best_;
  std::optional<RunOutput> best_output_;
  std::optional<PreparedRun> base_;  ///< one device of the cluster, with what all candidates have in common
};

/// Throws the error of a candidate if none can run.
void require_one(Preparer& preparer, std::size_t index, const SearchSpec& spec, const Training& training) {
  if (spec.objective == Objective::cost && !training.samples)
    throw InputError(spec.objective_pos,
                     "strategy.objective: cost is that of an epoch: give training.dataset");
  std::string first;
  for (const SearchCandidate& candidate : spec.candidates) {
    std::optional<PreparedRun> run;
    try {
      run = preparer.prepare(index, &candidate.mapping);
    } catch (const InputError& error) {
      if (first.empty()) first = error.what();
      continue;
    }
    if (spec.objective == Objective::cost && !price_usd_per_h(run->machine))
      throw InputError(spec.objective_pos, no_price);
    return;
  }
  throw InputError(spec.pos, fmt::format("strategy.candidates: none of {} can run; the first: {}",
                                         spec.candidates.size(), first));
}

}  // namespace

Search::Search(Preparer& preparer, std::size_t index) : preparer_(preparer), index_(index) {
  const Point point = preparer.experiment().point(index);
  spec_ = read_search(point.strategy, preparer.cluster(point.cluster));
  require_one(preparer, index, spec_, point.training);
}

RunOutput Search::run(std::size_t jobs, bool with_trace, const Progress& progress) const {
  BranchAndBound branch_and_bound(preparer_, index_, spec_, jobs);
  branch_and_bound.bound_all();
  branch_and_bound.run(progress);
  return branch_and_bound.outcome(with_trace);
}

}  // namespace convoy::search
