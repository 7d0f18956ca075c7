// SPDX-License-Identifier: MIT
#include "sim/run/learning.h"

#include <fmt/format.h>

#include <cmath>
#include <deque>

#include "models/summary.h"
#include "sim/base/quantity.h"
#include "sim/numerics/kernels.h"
#include "sim/numerics/learn.h"
#include "sim/run/timeline.h"
#include "topologies/first_devices.h"

namespace convoy::inline runs {

void check_numerics(const NumericsSpec& spec, const PreparedRun& run) {
  const auto refuse = [&](const std::string& reason) {
    if (!reason.empty()) throw InputError(spec.pos, fmt::format("numerics: {}", reason));
  };
  refuse(refuses_numerics(run.graph->model));
  refuse(refuses_plan(run.plan, *run.graph));
  if (run.phased)
    for (const RunPhase& phase : run.phased->phases) {
      refuse(refuses_plan(phase.plan, *run.graph));
      refuse(refuses_phase(phase.plan));
    }
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

namespace {

std::vector<LearntPoint> learnt(const NumericsSpec& spec, const LearningData& data, const PreparedRun& run) {
  if (!run.phased) return learn(spec, data, run.plan, *run.graph, run.machine, run.cost);
  const std::vector<PhaseStart> starts = starts_of_phases(run);
  const std::vector<RunPhase>& all = run.phased->phases;
  std::deque<Machine> machines;
  std::vector<LearningPhase> phases;
  for (std::size_t i = 0; i < all.size(); ++i)
    phases.push_back({all[i].plan, machines.emplace_back(first_devices(run.phased->machine, all[i].devices)),
                      starts[i].step, starts[i].start_s, i > 0 ? &all[i].change : nullptr});
  return learn_in_phases(spec, data, phases, *run.graph, run.cost);
}

}  // namespace

std::vector<LearningPoint> learning_of(const NumericsSpec& spec, const PreparedRun& run) {
  const LearningData data = load_data(spec.data, run.graph->model.input, classes_of(*run.graph), spec.seed);
  std::vector<LearningPoint> points;
  for (const LearntPoint& point : learnt(spec, data, run)) {
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
