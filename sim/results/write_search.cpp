// SPDX-License-Identifier: MIT
#include "sim/results/write_search.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity.h"

namespace convoy::inline results {
namespace {

constexpr std::size_t listed_candidates = 10, searches_in_full = 4;

std::string value_text(const std::string& objective, double value) {
  if (objective == "step_time") return format_time(value);
  if (objective == "memory") return format_bytes(value);
  const char* const unit = objective == "throughput" ? "images/s" : objective == "cost" ? "USD" : "J";
  return value >= 99.95 ? fmt::format("{:.0f} {}", value, unit) : fmt::format("{:.3g} {}", value, unit);
}

std::string ranking_text(const SearchSummary& search) {
  const std::size_t count = std::min(search.ranking.size(), listed_candidates);
  std::size_t found_width = 0, name_width = 0;
  for (std::size_t i = 0; i < count; ++i) {
    found_width = std::max(found_width, found_text(search.objective, search.ranking[i]).size());
    name_width = std::max(name_width, search.ranking[i].strategy.size());
  }
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const CandidateResult& row = search.ranking[i];
    text += fmt::format("  {:>{}}  {:<{}}  {}\n", found_text(search.objective, row), found_width,
                        row.strategy, name_width, row.reason);
  }
  if (count < search.ranking.size())
    text += fmt::format("  and {} more in results.json\n", search.ranking.size() - count);
  return text;
}

}  // namespace

std::string found_text(const std::string& objective, const CandidateResult& candidate) {
  if (candidate.value) return value_text(objective, *candidate.value);
  if (!candidate.bound) return "-";
  return fmt::format("{} {}",
                     objective == "throughput" ? "<=" : ">=", value_text(objective, *candidate.bound));
}

std::string search_headline(const RunResult& run) {
  const SearchSummary& search = *run.search;
  std::string text = fmt::format("run {}: auto, {}: {} candidates, {} planned, {} simulated", run.id,
                                 search.objective, search.ranking.size(), search.planned, search.simulated);
  const auto add = [&](const char* outcome, const char* means) {
    const auto count = std::count_if(search.ranking.begin(), search.ranking.end(),
                                     [&](const CandidateResult& row) { return row.outcome == outcome; });
    if (count > 0) text += fmt::format(", {} {}", count, means);
  };
  if (search.pruned_by_cost_table > 0)
    text += fmt::format(", {} ruled out by the cost table", search.pruned_by_cost_table);
  const auto pruned = std::count_if(search.ranking.begin(), search.ranking.end(),
                                    [](const CandidateResult& row) { return row.outcome == "pruned"; });
  if (pruned > search.pruned_by_cost_table)
    text += fmt::format(", {} by bounds of their plans", pruned - search.pruned_by_cost_table);
  add("does_not_fit", "too large");
  add("cannot_run", "that cannot run");
  add("failed", "failed");
  add("unknown", "left unknown by the budget");
  const auto ties = std::count_if(search.ranking.begin(), search.ranking.end(),
                                  [](const CandidateResult& row) { return row.tie; });
  if (ties > 0) text += fmt::format("; {} tie{} with the best", ties, ties == 1 ? "s" : "");
  return text + '\n';
}

std::string search_tables(const SweepResults& results) {
  const auto searches =
      std::ranges::count_if(results.runs, [](const RunFigures& run) { return run.has_search; });
  std::string text;
  for (std::size_t r = 0; r < results.runs.size(); ++r) {
    if (!results.runs[r].has_search) continue;
    const std::shared_ptr<const RunResult> run = results.whole(r);
    const bool in_full = static_cast<std::size_t>(searches) <= searches_in_full;
    text += fmt::format("{}{}", text.empty() || in_full ? "\n" : "", search_headline(*run));
    if (in_full) text += ranking_text(*run->search);
  }
  return text;
}

}  // namespace convoy::results
