// SPDX-License-Identifier: MIT
#include "sim/run/search/ranking.h"

#include <algorithm>
#include <numeric>

#include "sim/run/search/reasons.h"
#include "sim/search/more_text.h"

namespace convoy::inline search {
namespace {

/// The group of a candidate: simulated, could have been simulated, too large, impossible.
int group_of(const CandidateRecord& candidate) {
  switch (candidate.state) {
    case TrialState::simulated:
      return 0;
    case TrialState::open:
    case TrialState::planned:
      return 1;
    case TrialState::too_large:
      return 2;
    case TrialState::cannot_run:
    case TrialState::failed:
      break;
  }
  return 3;
}

std::vector<std::size_t> order_of(const std::vector<CandidateRecord>& candidates, std::size_t best) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (a == best || b == best) return a == best && b != best;
    const int group = group_of(candidates[a]);
    if (group != group_of(candidates[b])) return group < group_of(candidates[b]);
    if (group == 0) return candidates[a].rank < candidates[b].rank;
    return group < 3 && candidates[a].bound < candidates[b].bound;
  });
  return order;
}

std::vector<std::string> names_of(const SearchSpec& spec, const std::vector<CandidateRecord>& candidates) {
  std::vector<std::string> labels;
  std::vector<const YamlNode*> mappings;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string& label = candidates[i].assessment.label;
    const bool runs = candidates[i].state != TrialState::cannot_run && !label.empty();
    labels.push_back(!runs ? to_flow(spec.candidates[i].mapping) : label);
    mappings.push_back(&spec.candidates[i].mapping);
  }
  return telling_names(labels, mappings);
}

void say_outcome(const SearchSpec& spec, const CandidateRecord& candidate, const CandidateRecord& best,
                 CandidateResult& row) {
  switch (candidate.state) {
    case TrialState::cannot_run:
      row.outcome = "cannot_run";
      row.reason = "cannot run: " + candidate.message;
      break;
    case TrialState::failed:
      row.outcome = "failed";
      row.reason = "failed: " + candidate.message;
      break;
    case TrialState::too_large:
      row.outcome = "does_not_fit";
      row.reason = why_too_large(candidate.assessment);
      break;
    case TrialState::open:
    case TrialState::planned:
      row.outcome = candidate.ruled_out ? "pruned" : "unknown";
      row.reason = candidate.ruled_out ? why_pruned(spec.objective, candidate.assessment, best.result)
                                       : "not simulated, the budget is spent: " +
                                             bound_text(candidate.assessment, best.result);
      break;
    case TrialState::simulated:
      row.outcome = &candidate == &best ? "best" : "beaten";
      row.reason = &candidate == &best ? best.result.bottleneck.text
                                       : why_beaten(spec.objective, candidate.result, best.result);
      break;
  }
}

/// States a tie if the difference to the best is smaller than predictions can tell.
void say_tie(Objective objective, const CandidateRecord& candidate, const RunResult& best,
             const StepSpreads& spreads, CandidateResult& row) {
  if (candidate.state == TrialState::simulated) {
    row.tie = is_tie(objective, candidate.result, best, spreads);
    if (row.tie) row.reason += tie_text;
  } else if (group_of(candidate) < 2 && may_be_tie(objective, candidate.bound, best, spreads)) {
    row.reason += "; perhaps a tie: its bound is within the 80 % interval of the difference";
  }
}

}  // namespace

SearchSummary summarise(const SearchSpec& spec, const std::vector<CandidateRecord>& candidates,
                        std::size_t best, std::int64_t simulated, const StepSpreads& spreads) {
  SearchSummary summary{objective_names[static_cast<std::size_t>(spec.objective)], 0, simulated, 0, true, {}};
  const std::vector<std::string> names = names_of(spec, candidates);
  const double images = candidates[best].result.global_batch;
  for (const std::size_t i : order_of(candidates, best)) {
    const CandidateRecord& candidate = candidates[i];
    CandidateResult row{names[i], spec.candidates[i].mapping, {}, std::nullopt, std::nullopt, false, {}};
    const bool bounded = candidate.planned || candidate.assessment.step_bound_s > 0;
    if (group_of(candidate) < 3 && bounded)
      row.bound = shown_value(spec.objective, candidate.bound.value, images);
    if (group_of(candidate) == 0) row.value = shown_value(spec.objective, candidate.rank.value, images);
    say_outcome(spec, candidate, candidates[best], row);
    if (i != best) say_tie(spec.objective, candidate, candidates[best].result, spreads, row);
    summary.planned += candidate.planned;
    summary.pruned_by_cost_table += candidate.ruled_out && !candidate.planned;
    if ((group_of(candidate) == 1 && !candidate.ruled_out) || candidate.state == TrialState::failed)
      summary.proven = false;
    summary.ranking.push_back(std::move(row));
  }
  return summary;
}

}  // namespace convoy::search
