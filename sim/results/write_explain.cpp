// SPDX-License-Identifier: MIT
#include "sim/results/write_explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity.h"
#include "sim/results/text.h"

namespace convoy {
namespace {

constexpr std::size_t runs_in_full = 20;
constexpr double nothing = 5e-5;  ///< shares of a step that a table does not show
constexpr double no_money_usd = 1e-9;

std::string signed_text(double gain, const std::string& amount) {
  return fmt::format("{} {}", amount, gain > 0 ? "less" : "more");
}

std::string rows_of(const RunResult& run) {
  std::size_t change_width = 0, gain_width = 0;
  for (const Counterfactual& row : run.counterfactuals) {
    change_width = std::max(change_width, width_of(row.change));
    gain_width = std::max(gain_width, width_of(gain_text(row, run)));
  }
  std::string text;
  for (const Counterfactual& row : run.counterfactuals) {
    std::string line = fmt::format("  {:<{}}  {:<{}}  {}", row.change, change_width, gain_text(row, run),
                                   gain_width, gain_usd_text(row));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace

std::string gain_text(const Counterfactual& counterfactual, const RunResult& run) {
  const double share = counterfactual.gain_s / run.step_time_s;
  if (std::abs(share) < nothing) return "no gain";
  return signed_text(share, fmt::format("{} ({})", format_time(std::abs(counterfactual.gain_s)),
                                        percent_text(std::abs(share))));
}

std::string gain_usd_text(const Counterfactual& counterfactual) {
  if (!counterfactual.gain_usd_per_epoch) return {};
  const double usd = *counterfactual.gain_usd_per_epoch;
  if (std::abs(usd) < no_money_usd) return "as many USD an epoch";
  return signed_text(usd, fmt::format("{:.3g} USD an epoch", std::abs(usd)));
}

std::string explanation(const Results& results) {
  std::string text;
  std::size_t shown = 0;
  for (const RunResult& run : results.runs) {
    if (run.counterfactuals.empty() || ++shown > runs_in_full) continue;
    text += fmt::format("\nrun {}: a step takes {}; {}\n", run.id, format_time(run.step_time_s),
                        run.bottleneck.text);
    text += rows_of(run);
  }
  if (shown > runs_in_full) text += fmt::format("and {} more in results.json\n", shown - runs_in_full);
  return text;
}

}  // namespace convoy
