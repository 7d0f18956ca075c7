// SPDX-License-Identifier: MIT
#include "sim/run/search/search.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "sim/run/evaluate.h"
#include "sim/run/search/prior_bound.h"
#include "sim/run/search/ranking.h"
#include "sim/run/search/try_out.h"
#include "sim/run/sweep_hint.h"
#include "sim/search/best_first.h"
#include "sim/search/standing.h"
#include "strategies/strategy.h"

namespace convoy::inline search {
namespace {

constexpr const char* no_price = "strategy.objective: cost needs the price of every server of the cluster";

InputError none_can_run(const SearchSpec& spec, const std::string& first) {
  return InputError(spec.pos, fmt::format("strategy.candidates: none of {} can run; the first: {}",
                                          spec.candidates.size(), first));
}

/// Strategies as a space to be searched.
class StrategySpace : public SearchSpace {
 public:
  StrategySpace(Preparer& preparer, std::size_t index, const SearchSpec& spec, std::size_t jobs)
      : preparer_(preparer),
        index_(index),
        spec_(spec),
        jobs_(jobs),
        entries_(spec.candidates.size()),
        try_out_(
            jobs,
            [this](std::size_t i, Detail detail, double) {
              return preparer_.prepare(index_, &spec_.candidates[i].mapping, detail);
            },
            preparer.replays_apart()) {
    bound_all();
  }

  std::vector<Hope> hopes() const override {
    std::vector<Hope> hopes;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (waits(entries_[i].state) && !hopeless(i)) hopes.push_back({entries_[i].bound, i});
    return hopes;
  }

  bool is_planned(std::size_t i) const override { return entries_[i].state == TrialState::planned; }

  void plan(const std::vector<std::size_t>& group) override {
    try_out_.plan(group, [&](std::size_t place, Tried<Assessment> tried) {
      CandidateRecord& entry = entries_[group[place]];
      entry.planned = true;
      if (tried.failed(entry.state, entry.message)) return;
      entry.assessment = std::move(*tried.value);
      take_in(entry);
    });
  }

  std::vector<Record> simulate(const std::vector<std::size_t>& batch) override {
    auto outputs = std::make_shared<std::vector<Tried<RunOutput>>>(try_out_.simulate(batch, Detail::all));
    std::vector<Record> records;
    for (std::size_t item = 0; item < batch.size(); ++item)
      records.push_back([this, outputs, item, i = batch[item]] { record(i, std::move((*outputs)[item])); });
    return records;
  }

  /// Searches until none of the remaining candidates can be the best. Those that do not fit are excluded,
  /// unless none fits.
  void run(const Search::Progress& progress) {
    const auto search = [&] {
      const std::optional<std::int64_t> left =
          spec_.budget ? std::optional(*spec_.budget - simulated_) : std::nullopt;
      simulated_ += best_first(*this, {jobs_, left, [&] { progress(decided(), entries_.size()); }});
    };
    search();
    if (!best_ && take_too_large()) search();
    for (std::size_t i = 0; i < entries_.size(); ++i)
      entries_[i].ruled_out = waits(entries_[i].state) && hopeless(i);
    if (best_) settle_tie();
  }

  RunOutput outcome(bool with_trace) {
    if (!best_) fail();
    RunOutput output =
        best_output_ && !with_trace ? std::move(*best_output_) : simulate_one(*best_, with_trace);
    const double of_device = output.result.global_batch / static_cast<double>(base_->machine.devices.size());
    output.result.search = summarise(spec_, entries_, *best_, simulated_, step_spreads(*base_, of_device));
    return output;
  }

 private:
  /// Computes the bounds of all candidates from the cost table, and finds mappings from which no strategy can
  /// be read.
  void bound_all() {
    const YamlNode alone = parse_yaml("{kind: single}", "auto");
    base_.emplace(preparer_.prepare(index_, &alone));
    CostTable table(*base_->graph, base_->machine, base_->cost);
    const BatchSpec batch = preparer_.experiment().point(index_).training.batch;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      CandidateRecord& entry = entries_[i];
      const Strategy* strategy = spec_.candidates[i].strategy.get();
      if (strategy == nullptr) {
        entry.state = TrialState::cannot_run;
        entry.message = spec_.candidates[i].wrong;
        continue;
      }
      entry.assessment.label = strategy->label();
      entry.state = TrialState::open;
      std::optional<Assessment> prior = prior_bound(*strategy, batch, *base_, table);
      entry.assessment.bound_text = "nothing is known of its step beforehand";
      if (!prior || (spec_.objective == Objective::cost && !prior->price_usd_per_h)) continue;
      entry.assessment = std::move(*prior);
      entry.bound = best_rank(spec_.objective, entry.assessment);
    }
  }

  static bool waits(TrialState state) { return state == TrialState::open || state == TrialState::planned; }
  std::size_t decided() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) count += !waits(entries_[i].state) || hopeless(i);
    return count;
  }
  bool hopeless(std::size_t i) const {
    return best_ && cannot_beat(entries_[i].bound, entries_[*best_].rank);
  }

  /// Records the bound of a planned candidate, or why it is excluded.
  void take_in(CandidateRecord& entry) {
    const Assessment& assessment = entry.assessment;
    if (spec_.objective == Objective::cost && !assessment.price_usd_per_h) {
      entry.state = TrialState::cannot_run;
      entry.message = no_price;
      return;
    }
    entry.bound = best_rank(spec_.objective, assessment);
    entry.state = assessment.fits ? TrialState::planned : TrialState::too_large;
  }

  void record(std::size_t i, Tried<RunOutput> tried) {
    CandidateRecord& entry = entries_[i];
    if (tried.failed(entry.state, entry.message)) return;
    entry.state = TrialState::simulated;
    entry.rank = rank_of(spec_.objective, tried.value->result);
    const bool better =
        !best_ || entry.rank < entries_[*best_].rank || (entry.rank == entries_[*best_].rank && i < *best_);
    entry.result = tried.value->result;
    entry.result.per_device.clear();
    entry.result.per_link.clear();
    if (!better) return;
    best_ = i;
    best_output_ = std::move(*tried.value);
  }

  /// Of those that tie with the best one (sim/base/ties.h) the best is one that takes least time, of these the
  /// first given: the last digit decides nothing. None of them was passed over: cannot_beat() allows for more.
  void settle_tie() {
    std::vector<Standing> simulated;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].state == TrialState::simulated)
        simulated.push_back(
            {.value = entries_[i].rank.value, .time_s = entries_[i].rank.time_s, .candidate = i});
    const std::size_t first = *best_of(std::move(simulated));
    if (first == *best_) return;
    best_ = first;
    best_output_.reset();
  }

  bool take_too_large() {
    bool any = false;
    for (CandidateRecord& entry : entries_) {
      if (entry.state != TrialState::too_large) continue;
      entry.state = TrialState::planned;
      any = true;
    }
    return any;
  }

  RunOutput simulate_one(std::size_t i, bool with_trace) {
    Tried<RunOutput> tried = std::move(try_out_.simulate({i}, Detail::all, with_trace).front());
    if (!tried.value) throw std::runtime_error(tried.message);
    return std::move(*tried.value);
  }

  [[noreturn]] void fail() const {
    for (const CandidateRecord& entry : entries_)
      if (entry.state == TrialState::failed)
        throw std::runtime_error(fmt::format("no candidate could be simulated: {}", entry.message));
    for (const CandidateRecord& entry : entries_)
      if (entry.state == TrialState::cannot_run) throw none_can_run(spec_, entry.message);
    throw std::runtime_error("no candidate could be simulated");
  }

  Preparer& preparer_;
  std::size_t index_;
  const SearchSpec& spec_;
  std::size_t jobs_;
  std::vector<CandidateRecord> entries_;
  TryOut try_out_;
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
  throw none_can_run(spec, first);
}

}  // namespace

Search::Search(Preparer& preparer, std::size_t index) : preparer_(preparer), index_(index) {
  const Point point = preparer.experiment().point(index);
  spec_ = hinting_at_sweep(preparer.experiment(), index,
                           [&] { return read_search(point.strategy, preparer.cluster(point.cluster)); });
  require_one(preparer, index, spec_, point.training);
}

RunOutput Search::run(std::size_t jobs, bool with_trace, const Progress& progress) const {
  StrategySpace space(preparer_, index_, spec_, jobs);
  space.run(progress);
  return space.outcome(with_trace);
}

}  // namespace convoy::search
