// SPDX-License-Identifier: MIT
#include "sim/results/write_explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity.h"
#include "sim/page/text.h"

namespace convoy::inline results {
namespace {

constexpr std::size_t runs_in_full = 20;
constexpr double nothing = 5e-5;  ///< shares of a step below this are not shown in a table
constexpr double no_gain = 5e-4;  ///< a smaller share of the step would be told as 0.0 %
constexpr double no_money_usd = 1e-9;

std::string signed_text(double gain, const std::string& amount) {
  return fmt::format("{} {}", amount, gain > 0 ? "less" : "more");
}

bool gains_no_time(const Counterfactual& counterfactual, const RunResult& run) {
  return std::abs(counterfactual.gain_s) < no_gain * run.step_time_s;
}

std::string rows_of(const RunResult& run) {
  std::size_t change_width = 0, gain_width = 0, usd_width = 0;
  for (const Counterfactual& row : run.counterfactuals) {
    change_width = std::max(change_width, width_of(row.change));
    gain_width = std::max(gain_width, width_of(gain_text(row, run)));
    usd_width = std::max(usd_width, width_of(gain_usd_text(row, run)));
  }
  std::string text;
  for (const Counterfactual& row : run.counterfactuals) {
    std::string line =
        fmt::format("  {:<{}}  {:<{}}  {:<{}}  {}", row.change, change_width, gain_text(row, run), gain_width,
                    gain_usd_text(row, run), usd_width, gain_memory_text(row, run));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  if (!run.refused_changes.empty())
    text += fmt::format("  {} {} cannot be tried; --json says why\n", run.refused_changes.size(),
                        run.refused_changes.size() == 1 ? "other change" : "other changes");
  return text;
}

}  // namespace

std::string gain_text(const Counterfactual& counterfactual, const RunResult& run) {
  const double share = counterfactual.gain_s / run.step_time_s;
  if (gains_no_time(counterfactual, run)) return "no gain";
  return signed_text(share, fmt::format("{} ({})", format_time(std::abs(counterfactual.gain_s)),
                                        percent_text(std::abs(share)))) +
         (counterfactual.global_batch != run.global_batch ? " for as many images" : "");
}

std::string gain_memory_text(const Counterfactual& counterfactual, const RunResult& run) {
  const double more = counterfactual.peak_memory_bytes - run.peak_memory_bytes;
  std::string text;
  if (std::abs(more) >= nothing * run.peak_memory_bytes)
    text = fmt::format("{} of memory", signed_text(-more, format_bytes(std::abs(more))));
  if (!counterfactual.fits) text += text.empty() ? "does not fit" : ", does not fit";
  return text;
}

std::string gain_usd_text(const Counterfactual& counterfactual, const RunResult& run) {
  if (!counterfactual.gain_usd_per_epoch) return {};
  const double usd = *counterfactual.gain_usd_per_epoch;
  // The money of a time that is told as no gain is none either. An epoch at the same price changes by the same
  // share as the step; the double of it lets rounding pass.
  const double least_usd =
      gains_no_time(counterfactual, run) ? 2 * no_gain * run.cost_usd_per_epoch.value_or(0) : 0;
  if (std::abs(usd) < std::max(no_money_usd, least_usd)) return "as many USD an epoch";
  return signed_text(usd, fmt::format("{:.3g} USD an epoch", std::abs(usd)));
}

std::string variability_text(const RunResult& run) {
  const VariabilityResult& varying = *run.variability;
  const auto range = [&](const IntervalResult::Range& bounds) {
    return fmt::format("{} to {} at {}", format_time(bounds[0]), format_time(bounds[1]),
                       percent_text(varying.level));
  };
  const double more = varying.step_time_s / run.step_time_s - 1;
  std::string text = fmt::format(
      "a step takes {} on average ({}), {}", format_time(varying.step_time_s),
      range(varying.step_time_interval_s),
      std::abs(more) < nothing
          ? "as long as undisturbed"
          : fmt::format("{} {} than undisturbed", percent_text(std::abs(more)), more > 0 ? "more" : "less"));
  if (!varying.epoch_time_s) return text;
  text += fmt::format("; an epoch {} ({})", format_time(*varying.epoch_time_s),
                      range(*varying.epoch_time_interval_s));
  if (varying.failures > 0 || varying.expected_epoch_time_s != varying.epoch_time_s)
    text += fmt::format(" with {:.3g} failures; expected in closed form: {}", varying.failures,
                        format_time(*varying.expected_epoch_time_s));
  if (varying.cost_usd_per_epoch) text += fmt::format("; {:.3g} USD an epoch", *varying.cost_usd_per_epoch);
  return text;
}

std::string what_varies(const SweepResults& results) {
  std::string text;
  std::size_t shown = 0;
  for (std::size_t r = 0; r < results.runs.size(); ++r) {
    if (!results.runs[r].has_variability || ++shown > runs_in_full) continue;
    const std::shared_ptr<const RunResult> run = results.whole(r);
    text += fmt::format("run {}, {} repetition{}: {}\n", run->id, run->variability->runs,
                        run->variability->runs == 1 ? "" : "s", variability_text(*run));
  }
  if (shown > runs_in_full) text += fmt::format("and {} more in results.json\n", shown - runs_in_full);
  return text.empty() ? text : "\n" + text;
}

std::string explanation(const SweepResults& results) {
  std::string text;
  std::size_t shown = 0;
  for (std::size_t r = 0; r < results.runs.size(); ++r) {
    const RunFigures& run = results.runs[r];
    if (!run.has_counterfactuals || ++shown > runs_in_full) continue;
    text += fmt::format("\nrun {}: a step takes {}; {}\n", run.id, format_time(run.step_time_s),
                        run.bottleneck_sentence);
    text += rows_of(*results.whole(r));
  }
  if (shown > runs_in_full) text += fmt::format("and {} more in results.json\n", shown - runs_in_full);
  return text;
}

}  // namespace convoy::results
