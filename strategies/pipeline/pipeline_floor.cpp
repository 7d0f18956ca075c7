// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_floor.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity.h"
#include "strategies/hybrid/hybrid_floor.h"

namespace convoy::inline strategies {
namespace {

/// What a device of a stage does with a micro-batch, were its stage the whole network (at least; nothing is
/// known of some hybrids); nothing where the pipeline cannot run.
struct Stretched {
  CostTable::Passes passes;
  std::int64_t slots;  ///< devices, or groups of them, that a pipeline has: as many as stages, or more
};

/// @param images of all devices in a step
std::optional<Stretched> on_stages(const PipelineOptions& options, std::int64_t images, std::int64_t stages,
                                   CostTable& table) {
  const std::int64_t devices = table.device_count(), parts = options.micro_batches;
  const std::int64_t pipelines = options.replicas.value_or(options.nested ? devices / stages : 1);
  if (pipelines < 1 || devices % pipelines != 0) return std::nullopt;
  const std::int64_t slots = devices / pipelines;
  if (stages > slots || (options.nested && stages != slots) || (stages < slots && stages * parts < devices))
    return std::nullopt;  // cannot run
  if (options.hybrid) {
    const std::optional<CostTable::Split> split = split_of(*options.hybrid, pipelines);
    if (images % parts != 0) return std::nullopt;                                      // cannot run
    const std::int64_t share = split ? images / parts / options.hybrid->replicas : 0;  // of a group, at least
    if (share == 0) return Stretched{{}, slots};
    return Stretched{table.quickest(static_cast<double>(share), *split), slots};
  }
  if (images % (pipelines * parts) != 0) return std::nullopt;
  return Stretched{table.quickest(static_cast<double>(images / (pipelines * parts))), slots};
}

/// Of a pipeline with so many stages.
std::optional<double> floor_of_stages(const PipelineOptions& options, std::int64_t images,
                                      std::int64_t stages, CostTable& table) {
  if (stages < 1) return std::nullopt;  // more pipelines than devices
  const std::optional<Stretched> on = on_stages(options, images, stages, table);
  if (!on) return std::nullopt;
  const CostTable::Passes& passes = on->passes;
  const double longer_s = std::max(passes.forward_s, passes.backward_s);
  const auto m = static_cast<double>(options.micro_batches), s = static_cast<double>(stages);
  double more_s = 0;  // than one micro-batch takes to go forward and back
  if (stages == on->slots)
    more_s = (m - 1) * longer_s / s;
  else if (on->slots - stages + 1 < options.micro_batches)
    more_s = longer_s / s;
  const double step_s =
      std::max(passes.both_s() + more_s, m * passes.both_s() / static_cast<double>(on->slots));
  return options.schedule == PipelineSchedule::naive ? std::max(step_s, m * passes.both_s()) : step_s;
}

}  // namespace

std::optional<StepFloor> floor_of_pipeline(const PipelineOptions& options, const BatchSpec& batch,
                                           CostTable& table) {
  if (options.weights != Weights::flush || !options.begins.empty() || !options.stage_replicas.empty())
    return std::nullopt;
  const std::int64_t images = batch.over(table.device_count());
  const std::int64_t slots = table.device_count() / options.replicas.value_or(1);
  std::optional<double> step_s;
  if (!options.auto_stages) {
    step_s = floor_of_stages(options, images, options.stages.value_or(slots), table);
  } else {
    for (std::int64_t stages = 1; stages <= slots; ++stages)
      if (slots % stages == 0)
        if (const std::optional<double> one = floor_of_stages(options, images, stages, table))
          step_s = std::min(step_s.value_or(*one), *one);
  }
  if (!step_s) return std::nullopt;
  return StepFloor{
      *step_s, images,
      fmt::format("at least {} a step to fill and drain the pipeline and compute", format_time(*step_s))};
}

}  // namespace convoy::strategies
