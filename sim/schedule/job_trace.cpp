// SPDX-License-Identifier: MIT
#include "sim/schedule/job_trace.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace convoy {
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

}  // namespace

std::vector<Job> make_job_trace(const std::vector<JobKind>& kinds, const JobTraceOptions& options) {
  SplitMix64 random(options.seed);
  std::vector<Job> jobs;
  double now_s = 0;
  for (std::size_t j = 0; j < options.jobs; ++j) {
    const auto index = static_cast<std::size_t>(random.uniform() * static_cast<double>(kinds.size()));
    const JobKind& kind = kinds[index];
    Job job{kind.model, now_s, 0, 1, kind.throughput};
    job.asked = std::min(options.asked[draw(options.asked_weights, random.uniform())], job.most());
    const double radius = std::sqrt(-2 * std::log(random.uniform()));  // Box and Muller, 1958
    const double normal = radius * std::cos(2 * std::numbers::pi * random.uniform());
    const double length_s = options.median_length_s * std::exp(options.spread * normal);
    job.images = length_s * job.throughput[job.asked];
    jobs.push_back(std::move(job));
    now_s += -options.mean_interval_s * std::log(random.uniform());
  }
  return jobs;
}

}  // namespace convoy
