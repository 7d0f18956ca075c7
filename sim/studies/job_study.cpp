// SPDX-License-Identifier: MIT
#include "sim/studies/job_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>

#include "sim/base/key_parts.h"
#include "sim/base/names.h"
#include "sim/schedule/policies.h"
#include "sim/schedule/schedule.h"
#include "sim/schedule/trace_file.h"

namespace convoy::inline studies {
namespace {

constexpr std::int64_t most_gpus = most_gpus_of_all;

/// `gpus: 64`, or `gpus: {k80: 32, v100-sxm2-16gb: 32}`; `gpus_per_host` likewise.
void read_pools(YamlMap& map, JobStudy& study) {
  const YamlNode& gpus = map.node("gpus");
  const YamlNode* hosts = map.find("gpus_per_host");
  if (gpus.kind != YamlNode::Kind::mapping) {
    study.kinds = {""};
    study.pools = {{static_cast<std::uint32_t>(map.integer("gpus", 1, most_gpus)), 0}};
    if (hosts)
      study.pools[0].gpus_per_host = static_cast<std::uint32_t>(map.integer("gpus_per_host", 1, most_gpus));
  } else {
    YamlMap kinds = map.map("gpus");
    std::optional<YamlMap> sizes;
    if (hosts && hosts->kind == YamlNode::Kind::mapping) sizes = map.map("gpus_per_host");
    std::vector<std::string> names = kinds.keys();
    std::sort(names.begin(), names.end());  // the order of keys decides nothing
    for (const std::string& kind : names) {
      study.kinds.push_back(kind);
      GpuPool& pool =
          study.pools.emplace_back(GpuPool{static_cast<std::uint32_t>(kinds.integer(kind, 1, most_gpus)), 0});
      if (sizes)
        pool.gpus_per_host = static_cast<std::uint32_t>(sizes->integer(kind, 1, most_gpus));
      else if (hosts)
        pool.gpus_per_host = static_cast<std::uint32_t>(map.integer("gpus_per_host", 1, most_gpus));
    }
    if (sizes) sizes->finish();
    if (study.pools.empty())
      map.fail("gpus", "expected a number of GPUs, or kinds of them such as {k80: 32}");
  }
  for (const GpuPool& pool : study.pools)
    if (pool.gpus_per_host > 0 && pool.gpus % pool.gpus_per_host != 0)
      map.fail("gpus_per_host",
               fmt::format("{} GPUs are not whole hosts of {}", pool.gpus, pool.gpus_per_host));
}

/// `cluster:`, which is read where it is needed.
void read_shared_cluster(YamlMap& map, JobStudy& study) {
  const YamlNode* cluster = map.find("cluster");
  if (!cluster) return;
  if (study.pools.size() > 1 || study.pools.front().gpus_per_host == 0)
    map.fail("cluster", "jobs share links where GPUs are of one kind, and gpus_per_host says where they are");
  study.cluster = *cluster;
}

/// Fewest GPUs first, so that the order and the spelling of the keys do not change the drawn jobs.
void read_asked(YamlMap map, std::uint32_t gpus, JobTraceOptions& trace) {
  std::map<std::uint32_t, double> weights;
  for (const std::string& key : map.keys()) {
    const std::optional<double> asked = parse_number(key);
    if (!asked || !(*asked >= 1 && *asked <= gpus) || *asked != std::floor(*asked))
      map.fail(key, fmt::format("expected a number of GPUs from 1 to {} as key", gpus));
    if (!weights.emplace(static_cast<std::uint32_t>(*asked), map.number(key, 1e-9, 1e9)).second)
      map.fail(key, fmt::format("{} GPUs are given twice", *asked));
  }
  if (weights.empty())
    map.fail("expected numbers of GPUs and how often they are asked for, such as {1: 3, 4: 1}");
  for (const auto& [asked, weight] : weights) {
    trace.asked.push_back(asked);
    trace.asked_weights.push_back(weight);
  }
}

/// GPUs of the smallest pool: the most that every job may ask for, wherever it runs.
std::uint32_t smallest_pool(const JobStudy& study) {
  const auto less = [](const GpuPool& a, const GpuPool& b) { return a.gpus < b.gpus; };
  return std::min_element(study.pools.begin(), study.pools.end(), less)->gpus;
}

void read_drawn_jobs(YamlMap& map, JobStudy& study) {
  study.trace.jobs = static_cast<std::size_t>(map.integer("count", 1, 100'000));
  study.trace.median_length_s = map.quantity("median_length", Dimension::time, true);
  study.trace.spread = map.number("spread", 0, 5);
  read_asked(map.map("asked"), smallest_pool(study), study.trace);
  const YamlNode& intervals = map.node("mean_intervals");
  if (intervals.kind != YamlNode::Kind::sequence || intervals.items.empty())
    map.fail("mean_intervals", "expected a list of times between two arrivals, such as [2min, 5min]");
  for (const YamlNode& interval : intervals.items)
    study.mean_intervals_s.push_back(read_quantity(interval, "jobs.mean_intervals", Dimension::time, true));
}

/// What a list of jobs states must not be stated a second time beside it.
void refuse_drawn_keys(YamlMap& map, std::string_view list) {
  for (const char* key : {"count", "median_length", "spread", "asked", "mean_intervals"})
    if (map.has(key)) map.fail(key, fmt::format("the {} says which jobs come, and when", list));
}

void read_trace(YamlMap& map, JobStudy& study) {
  refuse_drawn_keys(map, "trace");
  study.traced = read_traced_jobs(map.node("trace"), smallest_pool(study));
  const double last_s = study.traced.back().arrival_s - study.traced.front().arrival_s;
  study.mean_intervals_s = {study.traced.size() > 1 ? last_s / static_cast<double>(study.traced.size() - 1)
                                                    : 0};
}

/// `loads: [0.5, 1, 2]`: this many times the recorded jobs in the same hours.
void read_workload(YamlMap& map, JobStudy& study) {
  constexpr double most_jobs = 100'000;
  refuse_drawn_keys(map, "workload");
  if (map.has("trace")) map.fail("trace", "the workload says which jobs come, and when");
  study.workload = read_workload_jobs(map.node("workload"), smallest_pool(study));
  const auto recorded = static_cast<double>(study.workload.size());
  std::vector<double> loads{1};
  if (const YamlNode* given = map.find("loads")) {
    loads.clear();
    for (const YamlNode& load : given->items)
      loads.push_back(read_number(load, "jobs.loads", 1 / recorded, most_jobs / recorded));
    if (loads.empty())
      map.fail("loads", "expected a list of multiples of the workload's jobs, such as [0.5, 1, 2]");
  }
  for (const double load : loads)
    study.mean_intervals_s.push_back(workload_window_s(study.workload) / (load * recorded));
}

void read_seeds(YamlMap& map, JobStudy& study) {
  const auto first = static_cast<std::uint64_t>(map.integer_or("seed", 1, 0));
  const std::int64_t seeds = map.integer_or("seeds", 1, 1, 1000);
  for (std::int64_t i = 0; i < seeds; ++i) study.seeds.push_back(first + static_cast<std::uint64_t>(i));
}

/// Which jobs arrive, and when: as recorded, like recorded ones, or drawn.
void read_which_jobs(YamlMap& map, JobStudy& study) {
  if (map.has("workload"))
    read_workload(map, study);
  else if (map.has("trace"))
    read_trace(map, study);
  else
    read_drawn_jobs(map, study);
}

/// The keys for one model of `convergence`, whose keys are the names of the models.
const Keys<Learning>& learning_keys() {
  using L = Learning;
  static const Keys<L> keys{
      optional_number_key<L>("batch", "", 1, std::numeric_limits<double>::max(),
                             "global batch under policies that do not choose it", &L::batch)
          .required(),
      custom_key<L>("target", "none", forms::text("a name"),
                    "a table of epochs by batch (`convoy plan`'s goals); or noise_scale",
                    [](YamlMap& map, L& learning) {
                      if (map.find("target"))
                        learning.table = load_goal(map.text("target"), map.pos("target"));
                    }),
      optional_number_key<L>("noise_scale", "none", 1, std::numeric_limits<double>::max(),
                             "images; or target", &L::noise_scale_images)};
  return keys;
}

void read_learning(YamlMap& map, JobStudy& study) {
  if (!map.has("convergence")) return;
  YamlMap models = map.map("convergence");
  for (const std::string& model : models.keys()) {
    const YamlMap one = models.map(model);
    Learning learning;
    read_part(learning_keys(), one, learning);
    if (learning.table.has_value() == learning.noise_scale_images.has_value())
      one.fail("expected 'target', a table of epochs, or 'noise_scale', images");
    study.learning[model] = std::move(learning);
  }
}

void read_policies(YamlMap& map, JobStudy& study) {
  const YamlNode& policies = map.node("policies");
  if (policies.kind != YamlNode::Kind::sequence || policies.items.empty())
    map.fail("policies", fmt::format("expected a list of policies, such as [{}]", policy_names().front()));
  for (const YamlNode& policy : policies.items) {
    study.policies.push_back(read_text(policy, "jobs.policies"));
    const std::string& name = study.policies.back();
    const std::unique_ptr<Policy> made = make_policy(name);
    if (!made)
      throw InputError(policy.pos, fmt::format("jobs.policies: '{}' is not a policy{}; there are {}", name,
                                               suggestion(name, policy_names()), list_of(policy_names())));
    if (study.pools.size() > 1 && !made->several_kinds())
      throw InputError(policy.pos,
                       fmt::format("jobs.policies: '{}' shares GPUs of one kind; of several do tiresias-l, "
                                   "srtf, themis-like, edf, sia-like",
                                   name));
  }
}

Keys<DeadlineOptions> deadline_keys() {
  return {custom_key<DeadlineOptions>(
              "least", "", forms::number(0), "from arrival, in lengths on the GPUs asked for",
              [](YamlMap& map, DeadlineOptions& options) { options.least = map.number("least", 0); })
              .told_required(),
          custom_key<DeadlineOptions>("most", "", forms::number(0).said("a number from least"),
                                      "the same; deadlines are drawn between the two",
                                      [](YamlMap& map, DeadlineOptions& options) {
                                        options.most = map.number("most", options.least);
                                      })
              .told_required()};
}

/// A list of jobs, or the file that contains it.
Key<JobStudy> listed_jobs_key(std::string name, std::string meaning, void (*read)(YamlMap&, JobStudy&),
                              std::vector<KeyText> columns) {
  return list_key<JobStudy>(std::move(name), "none",
                            forms::either({forms::text("a CSV file"),
                                           forms::list(forms::parts("a job"), "a list of jobs", 1)}),
                            std::move(meaning), read)
      .with_parts(std::move(columns));
}

/// A key that the reader of another key reads.
Key<JobStudy> taken_elsewhere(std::string name, std::string otherwise, ValueForm form, std::string meaning) {
  return custom_key<JobStudy>(std::move(name), std::move(otherwise), std::move(form), std::move(meaning),
                              [](YamlMap&, JobStudy&) {});
}

/// A number of GPUs, or one for each kind of device.
ValueForm pools_form() {
  const ValueForm count = forms::whole(1, 100'000);
  return forms::either({count, forms::entries(count, "{KIND: number}")});
}

/// An entry of `convergence`.
KeyText model_learning_text() {
  std::vector<KeyText> parts = texts_of(learning_keys());
  KeyText text =
      key_text("MODEL", "", forms::parts(keys_detail::mapping_text(parts)), "of a model by its name");
  text.parts = std::move(parts);
  return text;
}

Keys<JobStudy> make_job_keys() {
  using S = JobStudy;
  return {
      custom_key<S>("gpus", "", pools_form(), "of the cluster, or of each kind of device", &read_pools)
          .told_required(),
      taken_elsewhere("gpus_per_host", "as one host", pools_form(), "where jobs may be scattered"),
      custom_key<S>("cluster", "no links are shared",
                    forms::either({forms::section("cluster", "{...}"), forms::text("a cluster", "clusters")}),
                    "whose links jobs share: what those that meet lose by it is simulated",
                    &read_shared_cluster),
      optional_quantity_key<S>("pause", "0s", Dimension::time, false, "when a job's GPUs change",
                               &S::pause_s),
      custom_key<S>("seed", "1", forms::whole(0, YamlMap::max_integer), "of the first trace", &read_seeds),
      taken_elsewhere("seeds", "1", forms::whole(1, 1000), "so many traces, seed + i of the i-th"),
      listed_jobs_key("trace", "the jobs themselves, as recorded", &read_which_jobs, traced_job_columns()),
      listed_jobs_key(
          "workload", "jobs like these are drawn, as often as they are recorded", [](YamlMap&, S&) {},
          workload_job_columns()),
      taken_elsewhere("loads", "as recorded", forms::list(forms::number(0), "a list of numbers"),
                      "with workload, so many times its jobs"),
      taken_elsewhere("count", "", forms::whole(1, 100'000),
                      "jobs that are drawn, with neither trace nor workload"),
      taken_elsewhere("median_length", "", forms::quantity(Dimension::time),
                      "of drawn jobs, on the GPUs that they ask for"),
      taken_elsewhere("spread", "", forms::number(0, 5), "deviation of the logarithm of drawn jobs' lengths"),
      taken_elsewhere("asked", "", forms::entries(forms::number(0), "{GPUS: weight}"),
                      "GPUs that drawn jobs ask for, and how often"),
      taken_elsewhere("mean_intervals", "", forms::list(forms::quantity(Dimension::time), "a list of times"),
                      "between two drawn jobs' arrivals; a trace each"),
      mapping_key<S>("deadlines", "none", "that are drawn for every job", deadline_keys(),
                     [](S& study) -> DeadlineOptions& { return study.deadlines.emplace(); }),
      custom_key<S>("convergence", "none",
                    forms::entries(forms::parts("{batch, ...}"), "{MODEL: {batch, target | noise_scale}}"),
                    "how models learn by global batch, for policies that choose it", &read_learning)
          .with_parts({model_learning_text()}),
      custom_key<S>("policies", "", forms::list(forms::text("a name"), "a list of names", 1),
                    "in the order of the results", &read_policies)
          .told_required()};
}

const Keys<JobStudy>& all_job_keys() {
  static const Keys<JobStudy> keys = make_job_keys();
  return keys;
}

std::vector<Job> jobs_of(const JobStudy& study, const std::vector<JobKind>& kinds, double mean_interval_s,
                         std::uint64_t seed) {
  JobTraceOptions options = study.trace;
  options.mean_interval_s = mean_interval_s;
  options.seed = seed;
  std::vector<Job> jobs;
  if (!study.workload.empty()) {
    const auto count =
        static_cast<std::size_t>(std::llround(workload_window_s(study.workload) / mean_interval_s));
    jobs = make_job_trace(kinds, draw_workload(study.workload, count, seed), seed);
  } else {
    jobs = study.traced.empty() ? make_job_trace(kinds, options) : make_job_trace(kinds, study.traced, seed);
  }
  if (study.deadlines) draw_deadlines(jobs, *study.deadlines, seed);
  return jobs;
}

/// The same jobs, as seen by policies that choose the batch.
void let_choose_batch(std::vector<Job>& jobs, const std::vector<JobKind>& kinds) {
  std::map<std::string, std::shared_ptr<const std::vector<Throughput>>> shared;
  for (const JobKind& kind : kinds)
    shared[kind.model] = std::make_shared<const std::vector<Throughput>>(kind.kinds);
  for (Job& job : jobs) job.kinds = shared.at(job.model);
}

}  // namespace

std::optional<double> Learning::epochs(double at_batch) const {
  if (!table) return 1 + at_batch / *noise_scale_images;
  const std::optional<EpochsNeeded> needed = table->at(at_batch, false);
  return needed ? std::optional(needed->epochs) : std::nullopt;
}

JobStudy read_job_study(const YamlNode& node) {
  const YamlNode read = with_trace_read(node);
  JobStudy study;
  read_part(all_job_keys(), YamlMap(read, "jobs"), study);
  return study;
}

KeySection job_keys() {
  return {"jobs", "a queue of training jobs, whose throughput the sweep's runs are",
          texts_of(all_job_keys())};
}

std::vector<ScheduleResult> run_job_study(
    const JobStudy& study, const JobKinds& kinds, const SourcePos& pos,
    const std::function<std::vector<double>(const std::vector<PlacedJob>&)>& slowdowns) {
  std::vector<ScheduleResult> results;
  const bool placed = study.pools.front().gpus_per_host > 0;
  for (const double mean_interval_s : study.mean_intervals_s)
    for (const std::string& name : study.policies) {
      const std::unique_ptr<Policy> policy = make_policy(name);
      policy->pause_s = study.pause_s;
      for (const std::uint64_t seed : study.seeds) {
        std::vector<Job> jobs;
        try {
          jobs = jobs_of(study, kinds.as_asked, mean_interval_s, seed);
        } catch (const std::runtime_error& error) {
          throw InputError(pos, fmt::format("jobs.trace: {}", error.what()));
        }
        if (policy->adapts_batch()) let_choose_batch(jobs, kinds.best_batch);
        const ScheduleOutcome outcome = run_schedule(jobs, *policy, {study.pools, study.pause_s, slowdowns});
        ScheduleResult& result = results.emplace_back();
        result = {name,
                  seed,
                  static_cast<std::int64_t>(jobs.size()),
                  mean_interval_s,
                  outcome.mean_completion_s(),
                  outcome.makespan_s,
                  outcome.busy_share,
                  outcome.changes};
        result.deadlines_met = outcome.deadlines_met;
        if (placed) result.scattered_share = outcome.scattered_share;
        if (slowdowns) result.sharing_loss = outcome.sharing_loss;
      }
    }
  return results;
}

}  // namespace convoy::studies
