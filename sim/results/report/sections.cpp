// SPDX-License-Identifier: MIT
#include "sim/results/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace convoy::inline results {

ReportContext::ReportContext(const SweepResults& all)
    : results(all), labels(all.runs), scaling(scaling_efficiency(all)) {}

std::vector<std::size_t> all_runs(const ReportContext& context) {
  std::vector<std::size_t> runs(context.results.runs.size());
  std::iota(runs.begin(), runs.end(), std::size_t{0});
  return runs;
}

std::vector<std::size_t> fastest(const ReportContext& context, const std::vector<std::size_t>& runs,
                                 std::size_t most) {
  if (runs.size() <= most) return runs;
  // First the best of each model, then the second of each, ...
  struct Ranked {
    std::size_t rank, run;
  };
  std::vector<Ranked> ranked;
  for (const std::string& model : context.labels.models()) {
    std::vector<std::size_t> of_model;
    for (const std::size_t r : runs)
      if (context.run(r).words.model == model) of_model.push_back(r);
    std::stable_sort(of_model.begin(), of_model.end(), [&](std::size_t a, std::size_t b) {
      return context.run(a).throughput_images_per_s > context.run(b).throughput_images_per_s;
    });
    for (std::size_t i = 0; i < of_model.size(); ++i) ranked.push_back({i, of_model[i]});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.rank < b.rank; });
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < most; ++i) chosen.push_back(ranked[i].run);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::string run_ids(const ReportContext& context, const std::vector<std::size_t>& runs) {
  std::string text = runs.size() == 1 ? "run " : "runs ";
  for (std::size_t i = 0; i < runs.size();) {
    std::size_t end = i + 1;
    while (end < runs.size() && runs[end] == runs[end - 1] + 1) ++end;
    text += (i ? ", " : "") + context.run(runs[i]).id;
    if (end - i > 1) text += (end - i > 2 ? "-" : ", ") + context.run(runs[end - 1]).id;
    i = end;
  }
  return text;
}

std::string left_out(std::size_t shown, std::size_t all) {
  if (shown == all) return {};
  return fmt::format(
      "The {} with the highest throughput, taking turns among models; results.csv has the {} others too.",
      shown, all - shown);
}

}  // namespace convoy::results
