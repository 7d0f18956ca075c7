// SPDX-License-Identifier: MIT
#include "sim/run/learning.h"

#include <fmt/format.h>

#include <cmath>

#include "models/summary.h"
#include "sim/base/quantity.h"
#include "sim/numerics/kernels.h"
#include "sim/numerics/learn.h"

namespace convoy::inline runs {

void check_numerics(const NumericsSpec& spec, const PreparedRun& run) {
  const auto refuse = [&](const std::string& reason) {
    if (!reason.empty()) throw InputError(spec.pos, fmt::format("numerics: {}", reason));
  };
  refuse(refuses_numerics(run.graph->model));
  if (run.phased) refuse("its plan changes during the run, which is not followed yet");
  refuse(refuses_plan(run.plan, *run.graph));
  refuse(refuses_steps(spec, run.plan));
}

double learning_time_s(const NumericsSpec& spec, const PreparedRun& run) {
  // On one core of an AMD EPYC of the Zen 3 generation: 4.7e9 (configs/examples/numerics.yaml) to 7.6e9
  // (ResNet-18 with 32 x 32 pixels).
  constexpr double flops_per_s = 5e9;
  constexpr double digits = 359, files = 10'000;  // images that are held out
  double held_out = static_cast<double>(spec.data.held_out);
  if (spec.data.kind == DataSpec::Kind::digits) held_out = digits;
  if (spec.data.kind == DataSpec::Kind::idx || spec.data.kind == DataSpec::Kind::cifar) held_out = files;
  const auto steps = static_cast<double>(spec.steps);
  const double measurements = std::ceil(steps / static_cast<double>(spec.measured_every()));
  const double forward_passes = 3 * steps * run.plan.images + measurements * held_out;
  return forward_passes * summarize(run.graph->model).forward_flops / flops_per_s;
}

std::string slow_learning(const NumericsSpec& spec, const PreparedRun& run) {
  constexpr double patience_s = 60;
  const double seconds = learning_time_s(spec, run);
  if (seconds < patience_s) return {};
  return fmt::format(
      "numerics: {} steps of {} with {:.0f} images compute real values for about {} on one core", spec.steps,
      run.graph->model.name, run.plan.images, format_time(seconds));
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
