// SPDX-License-Identifier: MIT
#include "sim/schedule/job_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <stdexcept>

namespace convoy::inline schedule {
namespace {

/// Steele, Lea & Flood, OOPSLA 2014.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  /// In (0, 1).
  double uniform() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (static_cast<double>(z >> 12) + 0.5) * 0x1p-52;  // exact: with one bit more it could round up to 1
  }

 private:
  std::uint64_t state_;
};

std::size_t draw(const std::vector<double>& weights, double uniform) {
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    if (left < weights[i]) return i;
    left -= weights[i];
  }
  return weights.size() - 1;
}

/// Throughputs of a kind of job, shared by its jobs.
std::vector<std::shared_ptr<const std::vector<Throughput>>> shared(const std::vector<JobKind>& kinds) {
  std::vector<std::shared_ptr<const std::vector<Throughput>>> result;
  for (const JobKind& kind : kinds)
    result.push_back(std::make_shared<const std::vector<Throughput>>(kind.kinds));
  return result;
}

/// The throughput to which lengths refer: that on the slowest kind of GPU on which the model runs, by the
/// images/s of as many GPUs as each of these kinds has.
const Throughput& reference(const std::vector<Throughput>& kinds) {
  std::uint32_t of_each = std::numeric_limits<std::uint32_t>::max();
  for (const Throughput& on : kinds)
    if (on.most() > 0) of_each = std::min(of_each, on.most());
  const auto rate = [&](const Throughput& on) {
    return on.most() > 0 ? on.packed[of_each] : std::numeric_limits<double>::infinity();
  };
  return *std::min_element(kinds.begin(), kinds.end(),
                           [&](const Throughput& a, const Throughput& b) { return rate(a) < rate(b); });
}

/// One of this many, drawn uniformly.
std::size_t draw_kind(SplitMix64& random, std::size_t kinds) {
  return static_cast<std::size_t>(random.uniform() * static_cast<double>(kinds));
}

}  // namespace

std::vector<Job> make_job_trace(const std::vector<JobKind>& kinds, const JobTraceOptions& options) {
  SplitMix64 random(options.seed);
  const auto throughputs = shared(kinds);
  std::vector<Job> jobs;
  double now_s = 0;
  for (std::size_t j = 0; j < options.jobs; ++j) {
    const std::size_t index = draw_kind(random, kinds.size());
    Job job{kinds[index].model, now_s, 0, 1, throughputs[index]};
    const Throughput& on = reference(*job.kinds);
    job.asked = std::min(options.asked[draw(options.asked_weights, random.uniform())], on.most());
    const double radius = std::sqrt(-2 * std::log(random.uniform()));  // Box and Muller, 1958
    const double normal = radius * std::cos(2 * std::numbers::pi * random.uniform());
    const double length_s = options.median_length_s * std::exp(options.spread * normal);
    job.images = length_s * on.packed[job.asked];
    jobs.push_back(std::move(job));
    now_s += -options.mean_interval_s * std::log(random.uniform());
  }
  return jobs;
}

std::vector<Job> make_job_trace(const std::vector<JobKind>& kinds, const std::vector<TracedJob>& traced,
                                std::uint64_t seed) {
  SplitMix64 random(seed);
  const auto throughputs = shared(kinds);
  std::vector<Job> jobs;
  for (const TracedJob& of : traced) {
    std::size_t index = draw_kind(random, kinds.size());
    if (!of.model.empty()) {
      index = 0;
      while (index < kinds.size() && kinds[index].model != of.model) ++index;
      if (index == kinds.size()) throw std::runtime_error("the sweep has no runs of " + of.model);
    }
    Job job{kinds[index].model, of.arrival_s, 0, 1, throughputs[index]};
    const Throughput& on = reference(*job.kinds);
    job.asked = std::min(of.asked, on.most());
    job.images = of.length_s * on.packed[job.asked];
    if (of.deadline_s) job.deadline_s = *of.deadline_s;
    jobs.push_back(std::move(job));
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Job& a, const Job& b) { return a.arrival_s < b.arrival_s; });
  return jobs;
}

double workload_window_s(const std::vector<WorkloadJob>& like) {
  double last_s = 0;
  for (const WorkloadJob& job : like) last_s = std::max(last_s, job.arrival_s);
  return (std::floor(last_s / hour_s) + 1) * hour_s;
}

std::vector<TracedJob> draw_workload(const std::vector<WorkloadJob>& like, std::size_t jobs,
                                     std::uint64_t seed) {
  constexpr std::uint64_t other_stream = 0x5851f42d4c957f2d;  // models are drawn from the seed itself
  SplitMix64 random(seed ^ other_stream);
  std::vector<TracedJob> drawn;
  for (std::size_t j = 0; j < jobs; ++j) {
    const double hour = std::floor(like[draw_kind(random, like.size())].arrival_s / hour_s);
    const double arrival_s = (hour + random.uniform()) * hour_s;
    const WorkloadJob& of = like[draw_kind(random, like.size())];
    const double gpu_s = of.least_gpu_s * std::pow(of.most_gpu_s / of.least_gpu_s, random.uniform());
    drawn.push_back({arrival_s, of.asked, gpu_s / of.asked});
  }
  return drawn;
}

void draw_deadlines(std::vector<Job>& jobs, const DeadlineOptions& options, std::uint64_t seed) {
  SplitMix64 random(~seed);
  for (Job& job : jobs) {
    const double factor = options.least + (options.most - options.least) * random.uniform();
    if (job.deadline_s < std::numeric_limits<double>::infinity()) continue;
    job.deadline_s = job.arrival_s + factor * job.images / reference(*job.kinds).packed[job.asked];
  }
}

}  // namespace convoy::schedule
