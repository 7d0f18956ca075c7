// SPDX-License-Identifier: MIT
#include "sim/results/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/page/text.h"

namespace convoy::inline results {
namespace {

/// The different values among those of all runs, the first one first: "nccl-tcp or zmq-tcp"; runs without a
/// value are ignored.
std::string values_of(const std::vector<RunFigures>& runs, std::string SoftwareResult::*field) {
  std::vector<std::string> values;
  for (const RunFigures& run : runs)
    if (!(run.words.software.*field).empty() &&
        std::find(values.begin(), values.end(), run.words.software.*field) == values.end())
      values.push_back(run.words.software.*field);
  return fmt::format("{}", fmt::join(values, " or "));
}

}  // namespace

std::vector<std::string> assumptions(const SweepResults& results) {
  const std::vector<RunFigures>& runs = results.runs;
  if (runs.empty()) return {};
  using S = SoftwareResult;
  const std::string launches = values_of(runs, &S::launches);
  std::vector<std::string> lines{
      fmt::format("software: {}, {}, {}, {}, {} updates; transport {}{}; input {}",
                  values_of(runs, &S::framework), values_of(runs, &S::execution), values_of(runs, &S::layout),
                  values_of(runs, &S::precision), values_of(runs, &S::update), values_of(runs, &S::transport),
                  launches.empty() ? "" : ", launched " + launches, values_of(runs, &S::input))};
  for (const RunFigures& run : runs)
    for (const std::string& warning : run.words.warnings)
      if (const std::string line = "note: " + warning;
          std::find(lines.begin(), lines.end(), line) == lines.end())
        lines.push_back(line);
  return lines;
}

std::string doubt_text(const RunFigures& run) {
  if (!run.has_interval || run.throughput_images_per_s <= 0) return {};
  const IntervalResult::Range& range = run.throughput_interval_images_per_s;
  const double less = 100 * (1 - range[0] / run.throughput_images_per_s);
  const double more = 100 * (range[1] / run.throughput_images_per_s - 1);
  constexpr double alike = 5;  // percent
  return std::abs(more - less) < alike ? fmt::format("± {:.0f} %", (less + more) / 2)
                                       : fmt::format("-{:.0f} +{:.0f} %", less, more);
}

std::string bottleneck_text(const std::string& kind, const std::string& name, double utilization) {
  const bool by_kind = kind == "compute" || kind == "issue" || kind == "latency" || kind == "input";
  return fmt::format("{} {}", by_kind ? kind : name, percent_text(utilization));
}

std::string bottleneck_text(const RunFigures& run) {
  return bottleneck_text(run.words.bottleneck_kind, run.words.bottleneck_name, run.bottleneck_utilization);
}

}  // namespace convoy::results
