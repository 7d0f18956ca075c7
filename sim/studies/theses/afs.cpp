// SPDX-License-Identifier: MIT
#include "sim/studies/theses/afs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/base/data_path.h"
#include "sim/run/experiment.h"
#include "sim/studies/theses/job_study.h"

namespace convoy {
namespace {

struct Loads {
  JobStudy study;
  std::vector<ScheduleResult> results;

  double mean_s(double interval_s, const std::string& policy) const {
    for (const ScheduleResult& result : results)
      if (result.mean_interval_s == interval_s && result.policy == policy) return result.mean_completion_s;
    throw std::runtime_error("configs/papers/afs.yaml has no run of what is compared");
  }
  double ratio(double interval_s, const std::string& policy, const std::string& to) const {
    return mean_s(interval_s, policy) / mean_s(interval_s, to);
  }
  std::string setup(double interval_s) const {
    return fmt::format("{} jobs (seed {}), one every {:.0f} s", study.trace.jobs, study.trace.seed,
                       interval_s);
  }
};

Claim against(const Loads& loads, const std::string& policy, double published) {
  const std::vector<double>& intervals = loads.study.mean_intervals_s;
  const double interval_s = *std::max_element(intervals.begin(), intervals.end(), [&](double a, double b) {
    return loads.ratio(a, policy, "afs-l") < loads.ratio(b, policy, "afs-l");
  });
  return {Claim::Kind::published,
          fmt::format("average completion time: {} over afs-l, best load", policy),
          loads.setup(interval_s),
          "x",
          loads.ratio(interval_s, policy, "afs-l"),
          published,
          std::nextafter(1.0, 2.0),
          published,
          abstract};
}

}  // namespace

ThesisReproduction reproduce_afs(std::size_t jobs) {
  const Experiment experiment = Experiment::load(data_path("configs/papers") + "/afs.yaml", {});
  Loads loads{read_job_study(*experiment.jobs()), {}};
  loads.results = run_job_study(loads.study, job_kinds(run_paper("afs", jobs), experiment.jobs()->pos));
  ThesisReproduction result =
      make_thesis("afs", "AFS (NSDI 2021): elastic sharing of 64 GPUs",
                  "Published are the ratios \"up to\", as upper ends; trace, networks and loads "
                  "were not to be read. The loads are "
                  "those at which jobs wait; at lighter ones all ratios come to about 2.4, more "
                  "than is stated for Themis "
                  "(docs/strategies.md).",
                  "Hwang et al., NSDI 2021: ee.kaist.ac.kr/en/ai-in-computer/22852");
  for (const auto& [policy, published] : {std::pair{"themis-like", 2.2}, {"srtf", 2.7}, {"tiresias-l", 3.1}})
    result.claims.push_back(against(loads, policy, published));
  const double heaviest_s =
      *std::min_element(loads.study.mean_intervals_s.begin(), loads.study.mean_intervals_s.end());
  const auto order = [&](const char* better, const char* worse, const char* source) {
    return expected_at_most(fmt::format("average completion time: {} over {}", better, worse),
                            loads.setup(heaviest_s), "x", loads.ratio(heaviest_s, better, worse), 1, source);
  };
  result.claims.push_back(order("afs-l", "themis-like", abstract));
  result.claims.push_back(order("srtf", "tiresias-l", calculation));
  // Which of the two is ahead depends on the trace: not so with seed 2.
  const Claim close = order("themis-like", "srtf", calculation);
  result.claims.push_back(shown(close.what, close.setup, close.unit, close.ours));
  return result;
}

}  // namespace convoy
