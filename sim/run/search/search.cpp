// SPDX-License-Identifier: MIT
#include "sim/run/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "sim/run/evaluate.h"
#include "sim/run/search/ranking.h"
#include "sim/run/wire.h"
#include "sim/run/workers.h"

namespace convoy {
namespace {

constexpr const char* no_price = "strategy.objective: cost needs the price of every server of the cluster";

/// One search under way.
class Hunt {
 public:
  Hunt(Preparer& preparer, std::size_t index, const SearchSpec& spec, std::size_t jobs)
      : preparer_(preparer), index_(index), spec_(spec), jobs_(jobs), entries_(spec.candidates.size()) {}

  void plan_all() {
    const FirstHalf work = [&](std::size_t i) -> SecondHalf {
      const std::string bytes = encode(assess(preparer_.prepare(index_, &spec_.candidates[i])));
      return [bytes] { return bytes; };
    };
    run_in_workers(entries_.size(), jobs_, work, [&](std::size_t i, WorkerAnswer answer) {
      Candidate& entry = entries_[i];
      if (answer.kind != WorkerAnswer::Kind::done) {
        entry.state =
            answer.kind == WorkerAnswer::Kind::failed ? CandidateState::failed : CandidateState::cannot_run;
        entry.message = std::move(answer.bytes);
        return;
      }
      entry.state = CandidateState::planned;
      entry.assessment = decode_assessment(answer.bytes);
    });
    for (Candidate& entry : entries_) take_in(entry);
  }

  /// What does not fit is out, unless nothing fits.
  void drop_too_large() {
    const auto fits = [](const Candidate& e) {
      return e.state == CandidateState::planned && e.assessment.fits;
    };
    if (std::none_of(entries_.begin(), entries_.end(), fits)) return;
    for (Candidate& entry : entries_)
      if (entry.state == CandidateState::planned && !entry.assessment.fits)
        entry.state = CandidateState::too_large;
  }

  void simulate_promising() {
    std::vector<std::size_t> order(entries_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t i) { return entries_[i].state != CandidateState::planned; });
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return entries_[a].bound < entries_[b].bound; });
    for (std::size_t next = 0; next < order.size();) {
      std::vector<std::size_t> batch;
      for (; next < order.size() && batch.size() < jobs_; ++next) {
        Candidate& entry = entries_[order[next]];
        if (best_ && cannot_beat(entry.bound, entries_[*best_].rank))
          entry.state = CandidateState::pruned;
        else if (!spec_.budget || simulated_ + static_cast<std::int64_t>(batch.size()) < *spec_.budget)
          batch.push_back(order[next]);
        else if (batch.empty())
          entry.state = CandidateState::unknown;
        else
          break;  // some of the batch may turn out not to count
      }
      simulate_batch(batch);
    }
  }

  RunOutput outcome(bool with_trace) {
    if (!best_) throw std::runtime_error(no_outcome());
    RunOutput output = std::move(*best_output_);
    if (with_trace) output = simulate_one(*best_, true);
    output.result.search = summarise(spec_, entries_, *best_, simulated_);
    return output;
  }

 private:
  /// Knows a planned candidate's bound, or why it is out.
  void take_in(Candidate& entry) {
    if (entry.state != CandidateState::planned) return;
    const Assessment& assessment = entry.assessment;
    if (spec_.objective == Objective::cost && !assessment.price_usd_per_h) {
      entry.state = CandidateState::cannot_run;
      entry.message = no_price;
      return;
    }
    entry.bound = best_rank(spec_.objective, assessment);
  }

  FirstHalf simulation(const std::vector<std::size_t>& batch, bool with_trace) {
    return [this, &batch, with_trace](std::size_t item) -> SecondHalf {
      auto run =
          std::make_shared<const PreparedRun>(preparer_.prepare(index_, &spec_.candidates[batch[item]]));
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

  /// The batch counts in its order: what the one before it rules out is as if it had not been simulated.
  void simulate_batch(const std::vector<std::size_t>& batch) {
    if (batch.empty()) return;
    std::vector<WorkerAnswer> answers(batch.size());
    run_in_workers(batch.size(), jobs_, simulation(batch, false),
                   [&](std::size_t item, WorkerAnswer answer) { answers[item] = std::move(answer); });
    for (std::size_t item = 0; item < batch.size(); ++item) {
      Candidate& entry = entries_[batch[item]];
      if (best_ && cannot_beat(entry.bound, entries_[*best_].rank)) {
        entry.state = CandidateState::pruned;
        continue;
      }
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
  std::int64_t simulated_ = 0;
  std::optional<std::size_t> best_;
  std::optional<RunOutput> best_output_;
};

/// Throws what is wrong where no candidate can run.
void require_one(Preparer& preparer, std::size_t index, const SearchSpec& spec, const Training& training) {
  if (spec.objective == Objective::cost && !training.samples)
    throw InputError(spec.objective_pos,
                     "strategy.objective: cost is that of an epoch: give training.dataset");
  std::string first;
  for (const YamlNode& candidate : spec.candidates) {
    std::optional<PreparedRun> run;
    try {
      run = preparer.prepare(index, &candidate);
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

RunOutput Search::run(std::size_t jobs, bool with_trace) const {
  Hunt hunt(preparer_, index_, spec_, jobs);
  hunt.plan_all();
  hunt.drop_too_large();
  hunt.simulate_promising();
  return hunt.outcome(with_trace);
}

}  // namespace convoy
