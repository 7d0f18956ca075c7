// SPDX-License-Identifier: MIT
#include "sim/replay/side_by_side_run.h"

#include <algorithm>
#include <utility>

#include "sim/replay/colours.h"

namespace convoy::inline replays {
namespace {

/// A step's operations take a random multiple of their time, between 1 minus this and 1 plus this, so that
/// jobs drift past each other: what is measured is then the mean over their phases, not what one choice of
/// phases leads to (as with Service::compute_spread). After 48 steps the deviation of a job's phase is that of
/// a whole step.
constexpr double side_by_side_spread = 0.25;

double side_by_side_stretch(std::uint64_t sequence, std::uint64_t step) {
  const double draw = static_cast<double>(mix(mix(sequence), step) >> 11) * 0x1p-53;
  return 1 + side_by_side_spread * (2 * draw - 1);
}

}  // namespace

SideBySideRun::SideBySideRun(const FoldedPlan& folded, const Surroundings& surroundings,
                             std::vector<JobInPlan> jobs, std::uint64_t least_steps)
    : ProgramRunner(folded, surroundings),
      messages_(folded.plan, folded.table, folded.one_by_one, folded.folding, engine_, transfers_, *this,
                nullptr, {}, {}),
      jobs_(std::move(jobs)),
      least_steps_(least_steps),
      classes_(jobs_.size()),
      classes_left_(jobs_.size(), 0),
      ends_s_(jobs_.size()),
      jobs_left_(jobs_.size()) {
  for (std::uint32_t c = 0; c < class_count(); ++c) {
    const auto job = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const JobInPlan& each) { return role_of(c) < each.past_last_role; });
    job_of_.push_back(static_cast<std::size_t>(job - jobs_.begin()));
    progress_[c].recorded = false;
    if (!progress_[c].missing.empty()) classes_[job_of_[c]].push_back(c);
  }
}

std::vector<std::vector<double>> SideBySideRun::run() {
  for (std::size_t job = 0; job < jobs_.size(); ++job)
    engine_.after(jobs_[job].start_s) = [this, job] {
      begin_step(job);
      drain();
    };
  engine_.run();
  require_finished();
  return std::move(ends_s_);
}

void SideBySideRun::begin_step(std::size_t job) {
  double ready_s = engine_.now_s();
  for (InputQueue& queue : jobs_[job].input) ready_s = std::max(ready_s, queue.take(engine_.now_s()));
  if (ready_s <= engine_.now_s()) {
    begin_programs(job);
    return;
  }
  engine_.after(ready_s - engine_.now_s()) = [this, job] {
    begin_programs(job);
    drain();
  };
}

void SideBySideRun::begin_programs(std::size_t job) {
  const double stretch = side_by_side_stretch(jobs_[job].sequence, ends_s_[job].size());
  classes_left_[job] = static_cast<std::uint32_t>(classes_[job].size());
  messages_.begin_again(jobs_[job].first_comm, jobs_[job].past_last_comm);
  for (const std::uint32_t c : classes_[job]) {
    rewind(c);
    progress_[c].step_began_s = engine_.now_s();
    progress_[c].stretch = stretch;
  }
  for (const std::uint32_t c : classes_[job]) begin(c);
}

bool SideBySideRun::goes_on(std::size_t job) const {
  const std::uint64_t most = jobs_[job].most_steps;
  return most > 0 ? ends_s_[job].size() < most : jobs_left_ > 0;
}

void SideBySideRun::task_ended(std::uint32_t c, TaskId) {
  if (progress_[c].done_count < progress_[c].missing.size()) return;
  const std::size_t job = job_of_[c];
  if (--classes_left_[job] > 0) return;
  if (!goes_on(job)) return;  // for a part of this step it had no neighbours any more
  ends_s_[job].push_back(engine_.now_s());
  if (ends_s_[job].size() == least_steps_) --jobs_left_;
  if (goes_on(job)) begin_step(job);
}

}  // namespace convoy::replays
