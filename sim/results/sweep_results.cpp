// SPDX-License-Identifier: MIT
#include "sim/results/sweep_results.h"

#include <utility>

#include "sim/results/columns.h"

namespace convoy::inline results {

SweepResults::SweepResults(const Results& results)
    : experiment(results.experiment),
      manifest(results.manifest),
      schedules(results.schedules),
      failed(results.failed),
      points(results.points),
      elsewhere_(&results.runs) {
  runs.reserve(results.runs.size());
  for (const RunResult& run : results.runs) {
    runs.push_back(pool_->figures_of(run));
    note_columns(run, has_column);
  }
}

void SweepResults::reserve(std::size_t count) {
  runs.reserve(count);
  if (!read_) kept_.reserve(count);
}

void SweepResults::add(RunResult run) {
  runs.push_back(pool_->figures_of(run));
  note_columns(run, has_column);
  if (!read_) kept_.push_back(std::move(run));
}

std::shared_ptr<const RunResult> SweepResults::whole(std::size_t run) const {
  if (read_) return std::make_shared<const RunResult>(read_(runs[run]));
  const std::vector<RunResult>& all = elsewhere_ ? *elsewhere_ : kept_;
  return {std::shared_ptr<void>(), &all[run]};
}

Results SweepResults::take() && {
  return {std::move(experiment), std::move(kept_),  std::move(manifest),
          std::move(schedules),  std::move(failed), points};
}

}  // namespace convoy::results
