// SPDX-License-Identifier: MIT
#include "sim/studies/theses/kaist2019.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace convoy {
namespace {

/// Runs by model, then by the value of an axis of the sweep.
using ByModel = std::map<std::string, std::map<std::string, RunResult>>;

ByModel by_model(const std::vector<RunResult>& runs, const std::string& axis) {
  ByModel result;
  for (const RunResult& run : runs)
    for (const auto& [path, value] : run.point)
      if (path == axis) result[run.model].emplace(value.scalar, run);
  return result;
}

/// The model with the greatest figure, and that.
std::pair<std::string, double> greatest(const std::map<std::string, double>& figures) {
  return *std::max_element(figures.begin(), figures.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
}

void add_pauses(ThesisReproduction& result, std::size_t jobs) {
  std::map<std::string, double> gain, loss, steps, share;
  std::string devices;
  for (const auto& [model, runs] : by_model(run_paper("kaist2019", jobs), "strategy.reconfigure")) {
    const RunResult& joined = runs.at("overlapped");
    const ReconfigurationResult& grow = joined.reconfigurations[0];
    const ReconfigurationResult& shrink = joined.reconfigurations[1];
    gain[model] = runs.at("restart").reconfigurations[0].pause_s / grow.pause_s;
    loss[model] = 1 / gain[model];
    steps[model] = shrink.pause_s / joined.phases[1].step_time_s;
    share[model] = shrink.pause_s / grow.pause_s;
    devices = fmt::format("{} to {} devices", grow.from, grow.to);
  }
  const auto add = [&](const char* what, const std::map<std::string, double>& figures, double high,
                       const char* source) {
    const auto [model, figure] = greatest(figures);
    result.claims.push_back(expected_at_most(what, model, "x", figure, high, source));
  };
  const auto [model, figure] = greatest(gain);
  result.claims.push_back(published_within("expansion: pause of a restart over that of joining, best model",
                                           fmt::format("{}, {}", devices, model), "x", 6, figure, 0.25,
                                           true));
  add("expansion: pause of joining over that of a restart, worst model", loss, 1, abstract);
  add("shrinking: pause over a step, worst model", steps, 1, abstract);
  add("shrinking: pause over that of expansion, worst model", share, 0.1, calculation);
}

void add_scalability(ThesisReproduction& result, std::size_t jobs) {
  std::map<std::string, double> gain, loss;
  std::string devices;
  const auto speedup = [](const RunResult& run) {
    return run.phases.back().throughput_images_per_s / run.phases.front().throughput_images_per_s;
  };
  for (const auto& [model, runs] : by_model(run_paper("kaist2019-balance", jobs), "strategy.balance")) {
    const RunResult& uniform = runs.at("uniform");
    gain[model] = speedup(uniform) / speedup(runs.at("coarse"));
    loss[model] = 1 / gain[model];
    devices = fmt::format("{} to {} devices", uniform.phases.front().devices, uniform.phases.back().devices);
  }
  const auto [best, gained] = greatest(gain);
  result.claims.push_back(
      published_within("scalability: speedup with even shares over coarse ones, best model",
                       fmt::format("{}, {}", devices, best), "x", 2.97, gained, 0.2, true));
  const auto [worst, lost] = greatest(loss);
  result.claims.push_back(
      expected_at_most("scalability: speedup with coarse shares over even ones, worst model",
                       fmt::format("{}, {}", devices, worst), "x", lost, 1, abstract));
}

}  // namespace

ThesisReproduction reproduce_kaist2019(std::size_t jobs) {
  ThesisReproduction result =
      make_thesis("kaist2019", "KAIST 2019: elastic data-parallel training",
                  "Published are \"up to 6x\", \"almost instantly\" and \"up to 2.97x\"; devices, "
                  "networks, batches and times of a "
                  "restart's parts were not to be read. Times are those others measured on other "
                  "systems (docs/strategies.md); "
                  "the micro-batch of 48 is ours and sets the last gain: 3.0 by compute alone.",
                  "thesis, KAIST 2019: koasas.kaist.ac.kr/handle/10203/266784");
  add_pauses(result, jobs);
  add_scalability(result, jobs);
  return result;
}

}  // namespace convoy
