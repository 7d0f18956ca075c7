// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "sim/app/claims.h"
#include "sim/app/experiment.h"
#include "sim/app/job_study.h"
#include "sim/app/sweep.h"
#include "sim/base/data_path.h"

namespace convoy {
namespace {

std::string paper_file(const char* name) {
  return fmt::format("{}/{}.yaml", data_path("configs/papers"), name);
}

std::vector<RunResult> run_all(const Experiment& experiment, std::size_t jobs) {
  SweepOutcome outcome = run_sweep(experiment, {jobs});
  if (!outcome.failures.empty()) throw std::runtime_error(outcome.failures.front());
  std::vector<RunResult> runs;
  for (RunOutput& output : outcome.runs) runs.push_back(std::move(output.result));
  return runs;
}

/// The value of a sweep's axis that a run was made with.
std::string coordinate(const RunResult& run, const std::string& path) {
  for (const auto& [name, value] : run.point)
    if (name == path) return value.scalar;
  return {};
}

struct Extreme {
  double value = 0;
  std::string model;
};

/// Of a figure by model.
Extreme extreme(const std::map<std::string, double>& by_model, bool greatest) {
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto it = greatest ? std::max_element(by_model.begin(), by_model.end(), less)
                           : std::min_element(by_model.begin(), by_model.end(), less);
  return {it->second, it->first};
}

using ByModel = std::map<std::string, std::map<std::string, RunResult>>;

/// Runs by model, then by the value of another axis.
ByModel by_model(const std::vector<RunResult>& runs, const std::string& axis) {
  ByModel result;
  for (const RunResult& run : runs) result[run.model].emplace(coordinate(run, axis), run);
  return result;
}

void add_pauses(Claims& claims, std::size_t jobs) {
  const ByModel runs =
      by_model(run_all(Experiment::load(paper_file("kaist2019"), {}), jobs), "strategy.reconfigure");
  std::map<std::string, double> expansion, shrink_steps, shrink_share;
  std::string devices;
  for (const auto& [model, of_model] : runs) {
    const RunResult& restart = of_model.at("restart");
    const RunResult& overlapped = of_model.at("overlapped");
    const ReconfigurationResult& grow = overlapped.reconfigurations[0];
    const ReconfigurationResult& shrink = overlapped.reconfigurations[1];
    expansion[model] = restart.reconfigurations[0].pause_s / grow.pause_s;
    shrink_steps[model] = shrink.pause_s / overlapped.phases[1].step_time_s;
    shrink_share[model] = shrink.pause_s / grow.pause_s;
    devices = fmt::format("{} to {} devices", grow.from, grow.to);
  }
  const Extreme fastest = extreme(expansion, true), slowest = extreme(expansion, false);
  const Extreme steps = extreme(shrink_steps, true), share = extreme(shrink_share, true);
  claims.rows.push_back({"expansion: pause of a restart / of joining, greatest of all models",
                         fmt::format("{}, {}", devices, fastest.model), true, 6, fastest.value, "x", 4.5, 7.5,
                         "KAIST 2019, abstract: up to 6x"});
  claims.rows.push_back({"expansion: the same, least of all models",
                         fmt::format("{}, {}", devices, slowest.model), false, 1, slowest.value, "x", 1,
                         std::numeric_limits<double>::infinity(),
                         "joining must never pause longer than a restart"});
  claims.rows.push_back({"shrinking: pause / step, greatest of all models", steps.model, false, 1,
                         steps.value, "x", 0, 1,
                         "KAIST 2019, abstract: almost instantly; here: less than a step"});
  claims.rows.push_back({"shrinking: pause / that of expansion, greatest of all models", share.model, false,
                         0.1, share.value, "x", 0, 0.1, "the same; here: less than a tenth"});
}

void add_scalability(Claims& claims, std::size_t jobs) {
  const Experiment experiment = Experiment::load(paper_file("kaist2019-balance"), {});
  const ByModel runs = by_model(run_all(experiment, jobs), "strategy.balance");
  std::map<std::string, double> gain;
  std::string devices;
  const auto scaling = [](const RunResult& run) {
    return run.phases.back().throughput_images_per_s / run.phases.front().throughput_images_per_s;
  };
  for (const auto& [model, of_model] : runs) {
    const RunResult& uniform = of_model.at("uniform");
    gain[model] = scaling(uniform) / scaling(of_model.at("coarse"));
    devices = fmt::format("{} to {} devices", uniform.phases.front().devices, uniform.phases.back().devices);
  }
  const Extreme most = extreme(gain, true), least = extreme(gain, false);
  claims.rows.push_back({"scalability: speedup with even shares / coarse ones, greatest of all models",
                         fmt::format("{}, {}", devices, most.model), true, 2.97, most.value, "x", 2.97 * 0.8,
                         2.97 * 1.2, "KAIST 2019, abstract: up to 2.97x; batch and micro-batch are ours"});
  claims.rows.push_back({"scalability: the same, least of all models",
                         fmt::format("{}, {}", devices, least.model), false, 1, least.value, "x", 1,
                         std::numeric_limits<double>::infinity(), "even shares must never be slower"});
}

}  // namespace

Claims reproduce_kaist2019(std::size_t jobs) {
  Claims claims{
      "kaist2019", "Elastic training: Automatic parallelization for efficient distributed deep learning", {}};
  add_pauses(claims, jobs);
  add_scalability(claims, jobs);
  return claims;
}

Claims reproduce_afs(std::size_t jobs) {
  const Experiment experiment = Experiment::load(paper_file("afs"), {});
  const JobStudy study = read_job_study(*experiment.jobs());
  const std::vector<ScheduleResult> results =
      run_job_study(study, job_kinds(run_all(experiment, jobs), experiment.jobs()->pos));
  Claims claims{
      "afs", "Elastic sharing of a cluster: AFS-L against policies that give jobs what they ask for", {}};
  const auto mean_s = [&](double interval_s, const std::string& policy) {
    return std::find_if(
               results.begin(), results.end(),
               [&](const ScheduleResult& r) { return r.mean_interval_s == interval_s && r.policy == policy; })
        ->mean_completion_s;
  };
  for (const auto& [policy, stated] : {std::pair{"themis-like", 2.2}, {"srtf", 2.7}, {"tiresias-l", 3.1}}) {
    double most = 0, of_interval_s = 0;
    for (const double interval_s : study.mean_intervals_s)
      if (const double ratio = mean_s(interval_s, policy) / mean_s(interval_s, "afs-l"); ratio > most)
        most = ratio, of_interval_s = interval_s;
    claims.rows.push_back(
        {fmt::format("average completion time: {} / afs-l, greatest of all loads", policy),
         fmt::format("{} jobs (seed {}), one every {:.0f} s, {} GPUs", study.trace.jobs, study.trace.seed,
                     of_interval_s, study.gpus),
         true, stated, most, "x", std::nextafter(1.0, 2.0), stated,
         fmt::format("Hwang et al., NSDI 2021, abstract: up to {}x; the trace is ours", stated)});
  }
  return claims;
}

}  // namespace convoy
