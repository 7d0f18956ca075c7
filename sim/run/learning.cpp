// SPDX-License-Identifier: MIT
#include "sim/run/learning.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/numerics/kernels.h"
#include "sim/numerics/learn.h"

namespace convoy::inline runs {

void check_numerics(const NumericsSpec& spec, const PreparedRun& run) {
  const auto refuse = [&](const std::string& reason) {
    if (!reason.empty()) throw InputError(spec.pos, fmt::format("numerics: {}", reason));
  };
  refuse(refuses_numerics(run.graph->model));
  if (run.phased) refuse("devices come and go, which is not followed yet");
  refuse(refuses_plan(run.plan, *run.graph));
  refuse(refuses_steps(spec, run.plan));
}

std::vector<LearningPoint> learning_of(const NumericsSpec& spec, const PreparedRun& run) {
  const LearningData data = load_data(spec.data, run.graph->model.input, classes_of(*run.graph), spec.seed);
  std::vector<LearningPoint> points;
  for (const LearntPoint& point : learn(spec, data, run.plan, *run.graph, run.machine, run.cost)) {
    if (!std::isfinite(point.loss))
      throw InputError(spec.pos,
                       fmt::format("numerics: after {} steps the loss is no finite number any more; "
                                   "take a smaller learning_rate",
                                   point.step));
    points.push_back({point.step, point.time_s, point.loss, point.accuracy});
  }
  return points;
}

}  // namespace convoy::runs
