// SPDX-License-Identifier: MIT
#include "sim/studies/job_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "sim/base/names.h"
#include "sim/base/yaml_map.h"
#include "sim/schedule/policies.h"
#include "sim/schedule/schedule.h"

namespace convoy {
namespace {

constexpr std::int64_t most_gpus = 100'000;

void read_asked(YamlMap map, std::uint32_t gpus, JobTraceOptions& trace) {
  for (const std::string& key : map.keys()) {
    const std::optional<double> asked = parse_number(key);
    if (!asked || *asked != static_cast<double>(static_cast<std::int64_t>(*asked)) || *asked < 1 ||
        *asked > gpus)
      map.fail(key, fmt::format("expected a number of GPUs from 1 to {} as key", gpus));
    trace.asked.push_back(static_cast<std::uint32_t>(*asked));
    trace.asked_weights.push_back(map.number(key, 1e-9, 1e9));
  }
  if (trace.asked.empty())
    map.fail("expected numbers of GPUs and how often they are asked for, such as {1: 3, 4: 1}");
}

}  // namespace

JobStudy read_job_study(const YamlNode& node) {
  YamlMap map(node, "jobs");
  JobStudy study;
  study.gpus = static_cast<std::uint32_t>(map.integer("gpus", 1, most_gpus));
  study.pause_s = map.quantity_or("pause", Dimension::time, 0);
  study.trace.seed = static_cast<std::uint64_t>(map.integer_or("seed", 1, 0));
  study.trace.jobs = static_cast<std::size_t>(map.integer("count", 1, 100'000));
  study.trace.median_length_s = map.quantity("median_length", Dimension::time, true);
  study.trace.spread = map.number("spread", 0, 5);
  read_asked(map.map("asked"), study.gpus, study.trace);
  const YamlNode& intervals = map.node("mean_intervals");
  if (intervals.kind != YamlNode::Kind::sequence || intervals.items.empty())
    map.fail("mean_intervals", "expected a list of times between two arrivals, such as [2min, 5min]");
  for (const YamlNode& interval : intervals.items)
    study.mean_intervals_s.push_back(read_quantity(interval, "jobs.mean_intervals", Dimension::time, true));
  const YamlNode& policies = map.node("policies");
  if (policies.kind != YamlNode::Kind::sequence || policies.items.empty())
    map.fail("policies", fmt::format("expected a list of policies, such as [{}]", policy_names().front()));
  for (const YamlNode& policy : policies.items) {
    study.policies.push_back(read_text(policy, "jobs.policies"));
    if (!make_policy(study.policies.back()))
      throw InputError(
          policy.pos,
          fmt::format("jobs.policies: '{}' is not a policy{}; there are {}", study.policies.back(),
                      suggestion(study.policies.back(), policy_names()), list_of(policy_names())));
  }
  map.finish();
  return study;
}

std::vector<JobKind> job_kinds(const std::vector<RunResult>& runs, const SourcePos& pos) {
  std::vector<std::string> models;
  std::map<std::string, std::map<std::int64_t, double>> measured;
  for (const RunResult& run : runs) {
    if (!measured.contains(run.model)) models.push_back(run.model);
    if (!run.fits)
      throw InputError(pos, fmt::format("jobs: {} on {} devices does not fit in memory; leave that number out of the "
                                        "sweep, or give it smaller batches",
                                        run.model, run.devices));
    if (!measured[run.model].emplace(run.devices, run.throughput_images_per_s).second)
      throw InputError(pos, fmt::format("jobs: the sweep has two runs of {} on {} devices; a queue takes one "
                                        "throughput for each model and number of devices",
                                        run.model, run.devices));
  }
  std::vector<JobKind> kinds;
  for (const std::string& model : models) {
    const std::map<std::int64_t, double>& points = measured[model];
    if (points.begin()->first != 1 || points.begin()->second <= 0)
      throw InputError(
          pos, fmt::format("jobs: the sweep has no run of {} on one device, which takes time", model));
    JobKind kind{model, {0}};
    for (auto low = points.begin(), high = std::next(low); high != points.end(); low = high++)
      for (std::int64_t devices = low->first; devices < high->first; ++devices) {
        const double part =
            static_cast<double>(devices - low->first) / static_cast<double>(high->first - low->first);
        kind.throughput.push_back(low->second + part * (high->second - low->second));
      }
    kind.throughput.push_back(points.rbegin()->second);
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

std::vector<ScheduleResult> run_job_study(const JobStudy& study, const std::vector<JobKind>& kinds) {
  std::vector<ScheduleResult> results;
  for (const double mean_interval_s : study.mean_intervals_s) {
    JobTraceOptions options = study.trace;
    options.mean_interval_s = mean_interval_s;
    const std::vector<Job> jobs = make_job_trace(kinds, options);
    for (const std::string& policy : study.policies) {
      const ScheduleOutcome outcome = run_schedule(jobs, *make_policy(policy), {study.gpus, study.pause_s});
      results.push_back({policy, options.seed, static_cast<std::int64_t>(jobs.size()), mean_interval_s,
                         outcome.mean_completion_s(), outcome.makespan_s, outcome.busy_share,
                         outcome.changes});
    }
  }
  return results;
}

}  // namespace convoy
