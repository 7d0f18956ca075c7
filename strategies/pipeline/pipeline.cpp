// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/base/names.h"
#include "strategies/annotator.h"
#include "strategies/pipeline/pipeline_floor.h"
#include "strategies/pipeline/pipeline_options.h"
#include "strategies/pipeline/pipeline_plan.h"
#include "strategies/pipeline/pipeline_schedule.h"

namespace convoy::inline strategies {
namespace {

/// A pipeline cut and placed.
struct Candidate {
  PipelineShape shape;
  std::vector<StageChoice> choices;
  StageCut begun_from;  ///< CutPipeline::begun_from
  double step_s;        ///< schedule_s
  bool fits;
};

class Pipeline : public Annotator {
 public:
  explicit Pipeline(PipelineOptions options) : options_(std::move(options)) {}

  std::string label() const override {
    const auto count = [](const char* format, const std::optional<std::int64_t>& n) {
      return n ? fmt::format(fmt::runtime(format), *n) : std::string{};
    };
    return fmt::format(
        "pipeline {}{}{}{}{}{}{}", schedule_names[static_cast<std::size_t>(options_.schedule)],
        options_.weights == Weights::flush ? std::string{}
                                           : " " + weights_names[static_cast<std::size_t>(options_.weights)],
        count(", {} stages", options_.stages), count(" x {}", options_.replicas),
        options_.stage_replicas.empty() ? "" : fmt::format(" {}", fmt::join(options_.stage_replicas, "-")),
        options_.micro_batches > 1 ? fmt::format(", {} micro-batches", options_.micro_batches) : "",
        options_.hybrid   ? ", inner " + label_of(*options_.hybrid)
        : options_.nested ? ", inner " + label_of(options_.sync)
                          : "");
  }

  std::string_view refuses_recomputation() const override {
    return "a pipeline's segments are its stages: write strategy.recompute";
  }

  const GradientSync* sums() const override {
    return options_.hybrid ? &options_.hybrid->sync : &options_.sync;
  }

  std::optional<StepFloor> floor(const BatchSpec& batch, CostTable& table) const override {
    return floor_of_pipeline(options_, batch, table);
  }

  Annotation annotate(const StrategyInput& input) const override {
    const Units units = find_units(input.graph);
    const Candidate best = options_.auto_stages ? choose_stages(input, units)
                                                : choose(input, units, count(input, units, options_.stages));
    Annotation annotation = options_.hybrid
                                ? annotate_hybrids(input, hybrid_stages(input, units, best))
                                : annotate_pipeline(input, best.shape, best.choices,
                                                    cut_into_stages(input.graph, units, first_units(best),
                                                                    options_.recompute != Recompute::never),
                                                    options_.sync);
    if (best.begun_from != options_.partition)
      annotation.report.notes.push_back(
          fmt::format("the stages are those of partition: {}, or moved from there: that cut's estimated step "
                      "was shorter than that of the least sum and interval (docs/pipelines.md)",
                      partition_method_names[static_cast<std::size_t>(best.begun_from)]));
    return annotation;
  }

 private:
  std::int64_t device_count(const StrategyInput& input) const {
    return static_cast<std::int64_t>(input.machine.devices.size());
  }

  /// Number of stages and of pipelines; `spread`: stages take what devices are left over.
  struct Counts {
    std::int64_t stages, replicas;
    bool spread;
  };

  /// Without `replicas` an inner strategy has all devices of a stage.
  Counts count(const StrategyInput& input, const Units& units, std::optional<std::int64_t> stages) const {
    const std::int64_t devices = device_count(input);
    Counts counts{0, options_.replicas.value_or(1), false};
    counts.stages = stages.value_or(devices / counts.replicas);
    if (options_.nested && !options_.replicas && counts.stages <= devices)
      counts.replicas = devices / counts.stages;
    if (!options_.stage_replicas.empty()) check_stage_replicas(devices);
    counts.spread = !options_.stage_replicas.empty() ||
                    (!options_.replicas && !options_.nested && options_.partition == StageCut::optimal &&
                     options_.begins.empty() && counts.stages < devices);
    if (!counts.spread && counts.stages * counts.replicas != devices)
      refuse_counts(counts, devices, static_cast<std::int64_t>(units.size()), stages.has_value());
    if (counts.stages > static_cast<std::int64_t>(units.size()))
      throw InputError(options_.stages_pos,
                       fmt::format("{}.stages: the model has {} layers that run a kernel, too few for "
                                   "{} stages",
                                   options_.path, units.size(), counts.stages));
    if (options_.weights == Weights::flush && counts.spread &&
        counts.stages * options_.micro_batches < devices)
      fail(
          options_.stages_pos, "stages",
          fmt::format("{} stages cannot use {} devices with {} micro-batch{}: a stage's replicas take them "
                      "in turn{}",
                      counts.stages, devices, options_.micro_batches, options_.micro_batches == 1 ? "" : "es",
                      enough_micro_batches(input.batch.over(devices), devices, counts.stages)));
    const std::int64_t slots = devices / counts.replicas;
    if (options_.weights == Weights::double_buffered && counts.stages > 1 && options_.micro_batches < slots)
      throw InputError(
          options_.weights_pos,
          fmt::format(
              "{}.weights: double_buffered needs as many micro_batches as a pipeline has devices, "
              "at least {}, and there {} {}: else more than two versions would be in use; stash keeps "
              "as many as needed",
              options_.path, slots, options_.micro_batches == 1 ? "is" : "are", options_.micro_batches));
    return counts;
  }

  [[noreturn]] void fail(const SourcePos& pos, const char* key, const std::string& what) const {
    throw InputError(pos, fmt::format("{}.{}: {}", options_.path, key, what));
  }

  /// "; use micro_batches: 4", the fewest that give every device one and divide the images; "" for none.
  static std::string enough_micro_batches(std::int64_t images, std::int64_t devices, std::int64_t stages) {
    constexpr std::int64_t most = 1'000'000;  // that the key takes
    for (std::int64_t count = (devices + stages - 1) / stages; count <= std::min(images, most); ++count)
      if (images % count == 0) return fmt::format("; use micro_batches: {}", count);
    return "";
  }

  /// Stages times replicas are not all devices: says which of what was written could be.
  /// @param layers that stages may be cut between
  [[noreturn]] void refuse_counts(const Counts& counts, std::int64_t devices, std::int64_t layers,
                                  bool stages_given) const {
    const auto divisors = [&](std::int64_t most) {
      std::vector<std::string> numbers;
      for (std::int64_t n = 1; n <= std::min(devices, most); ++n)
        if (devices % n == 0) numbers.push_back(std::to_string(n));
      return list_of(numbers);
    };
    if (!stages_given)
      fail(options_.replicas_pos, "replicas",
           fmt::format("{} pipelines cannot have equally many of {} devices; use one of {}", counts.replicas,
                       devices, divisors(devices)));
    if (counts.stages > devices)
      fail(options_.stages_pos, "stages",
           fmt::format("{} stages need a device each, and the cluster has {}; use at most {}", counts.stages,
                       devices, std::min(devices, layers)));
    if (options_.nested && !options_.replicas)
      fail(options_.stages_pos, "stages",
           fmt::format("{} stages cannot have equally many of {} devices; use one of {}, or auto",
                       counts.stages, devices, divisors(layers)));
    const std::string taken = fmt::format(
        "{} stage{} of {} replica{} take {} devices, and the cluster has {}, all of which must be used",
        counts.stages, counts.stages == 1 ? "" : "s", counts.replicas, counts.replicas == 1 ? "" : "s",
        counts.stages * counts.replicas, devices);
    std::int64_t stages = options_.replicas && devices % counts.replicas == 0 ? devices / counts.replicas : 0;
    if (stages == 0 || stages > layers)
      for (stages = std::min(counts.stages, layers); devices % stages != 0;) --stages;
    fail(options_.stages_pos, "stages",
         fmt::format("{}; use stages: {}, replicas: {}{}", taken, stages, devices / stages,
                     options_.replicas || options_.micro_batches * counts.stages < devices
                         ? ""
                         : ", or partition: optimal, which replicates stages"));
  }

  void check_stage_replicas(std::int64_t devices) const {
    const std::int64_t sum =
        std::accumulate(options_.stage_replicas.begin(), options_.stage_replicas.end(), std::int64_t{0});
    if (sum != devices)
      throw InputError(options_.replicas_pos,
                       fmt::format("{}.replicas: the stages have {} replicas together, and the cluster "
                                   "has {} devices",
                                   options_.path, sum, devices));
    PipelineShape shape;
    shape.micro_batches = options_.micro_batches;
    shape.weights = options_.weights;
    for (const std::uint32_t replicas : options_.stage_replicas)
      if (!slots_allowed(shape, replicas))
        throw InputError(
            options_.replicas_pos,
            fmt::format(
                "{}.replicas: {} replicas of a stage take {} micro-batch{} in turn: {}", options_.path,
                replicas, options_.micro_batches, options_.micro_batches == 1 ? "" : "es",
                options_.weights == Weights::flush
                    ? "there must be one for each of them"
                    : "without flush all need equally many (or micro_batches: 1, an update of one from "
                      "each)"));
  }

  static std::vector<std::uint32_t> first_units(const Candidate& candidate) {
    std::vector<std::uint32_t> first;
    for (const StageChoice& choice : candidate.choices) first.push_back(choice.first_unit);
    return first;
  }

  Annotation annotate_hybrids(const StrategyInput& input, const HybridPipeline& pipeline) const {
    Annotation annotation = annotate_hybrid(input, *options_.hybrid, pipeline);
    std::vector<PipelineStage>& stages = annotation.report.stages;
    for (const std::vector<EndpointId>& devices : pipeline.devices) stages.push_back({devices, {}});
    for (std::size_t i = 0; i < pipeline.stage_of_layer.size(); ++i)
      stages[pipeline.stage_of_layer[i]].layers.push_back(input.graph.model.layers[i].name);
    return annotation;
  }

  HybridPipeline hybrid_stages(const StrategyInput& input, const Units& units, const Candidate& best) const {
    HybridPipeline pipeline;
    pipeline.stage_of_layer = stages_of_layers(units, first_units(best));
    pipeline.micro_batches = options_.micro_batches;
    pipeline.images = input.batch.over(device_count(input)) / options_.micro_batches;
    pipeline.devices = best.shape.slots;
    pipeline.recomputes = options_.recompute == Recompute::always;
    for (std::uint32_t s = 0; s < best.choices.size(); ++s)
      pipeline.passes.push_back(
          passes_of_slot(best.shape, best.choices[s], s, 0, options_.micro_batches, false));
    return pipeline;
  }

  double micro_batch_images(const StrategyInput& input, std::int64_t pipelines) const {
    // An inner hybrid strategy shares a micro-batch out as its layouts say.
    const std::int64_t equal = options_.hybrid ? 1 : pipelines;
    const std::int64_t images = input.batch.divided(
        device_count(input), equal * options_.micro_batches,
        fmt::format("{}{} micro-batches", equal > 1 ? fmt::format("{} pipelines of ", equal) : "",
                    options_.micro_batches));
    return static_cast<double>(images * equal) / static_cast<double>(pipelines);
  }

  /// A plan has a task forward and one backward of each stage's each micro-batch, of some 3 KB with its
  /// operations, where it lists them all; what that takes is told before it is built.
  void check_size(std::int64_t stages) const {
    constexpr std::int64_t most_tasks = 500'000;
    const std::int64_t tasks = 2 * stages * options_.micro_batches;
    if (tasks > most_tasks)
      throw InputError(
          options_.stages_pos,
          fmt::format("strategy: {} stages with {} micro-batches make {} tasks of a step; at most {} are "
                      "planned: use at most {} micro_batches",
                      stages, options_.micro_batches, tasks, most_tasks, most_tasks / (2 * stages)));
  }

  /// slots[q][r]: with stages next to each other pipelines are blocks of devices, otherwise the replicas of a
  /// stage are.
  static std::vector<std::vector<EndpointId>> slots(std::int64_t count, std::int64_t replicas,
                                                    bool stages_together) {
    std::vector<std::vector<EndpointId>> result;
    for (std::int64_t q = 0; q < count; ++q) {
      std::vector<EndpointId>& slot = result.emplace_back();
      for (std::int64_t r = 0; r < replicas; ++r)
        slot.push_back(static_cast<EndpointId>(stages_together ? r * count + q : q * replicas + r));
    }
    return result;
  }

  /// Of all numbers of stages that divide the devices (or those of a pipeline, where `replicas` says how many
  /// pipelines there are) the one with the shortest estimate, of those that fit in memory where any does.
  Candidate choose_stages(const StrategyInput& input, const Units& units) const {
    const std::int64_t slots = device_count(input) / options_.replicas.value_or(1);
    std::optional<Candidate> best;
    std::optional<InputError> reason;
    for (std::int64_t stages = 1; stages <= std::min(slots, static_cast<std::int64_t>(units.size()));
         ++stages) {
      if (slots % stages != 0) continue;
      try {
        Candidate candidate = choose(input, units, count(input, units, stages));
        if (!best || std::pair{!candidate.fits, candidate.step_s} < std::pair{!best->fits, best->step_s})
          best = std::move(candidate);
      } catch (const InputError& error) {
        if (!reason) reason = error;
      }
    }
    if (!best && reason) throw InputError(*reason);
    if (!best) return choose(input, units, count(input, units, slots));
    return *best;
  }

  /// Layers that use the same parameters are in one stage.
  void check_shared(const Model& model, const Units& units, const Counts& counts) const {
    const auto most = std::count(units.begins.begin(), units.begins.end(), true);
    if (counts.stages <= most) return;
    const auto shares = std::find_if(model.layers.begin(), model.layers.end(),
                                     [](const Layer& layer) { return layer.shares(); });
    fail(
        options_.stages_pos, "stages",
        fmt::format(
            "{} stages would part layers that use the same parameters, such as '{}' and '{}'; use at most {}",
            counts.stages, model.layers[static_cast<std::size_t>(shares->weights_of)].name, shares->name,
            most));
  }

  void check_cut(const Model& model, const Units& units, const std::vector<StageChoice>& stages) const {
    for (const StageChoice& stage : stages)
      if (!units.begins[stage.first_unit])
        fail(options_.stages_pos, options_.begins.empty() ? "partition" : "begins",
             fmt::format(
                 "a stage would begin with '{}', between layers that use the same parameters, which have to "
                 "be in one stage{}",
                 model.layers[units.layers[stage.first_unit]].name,
                 options_.begins.empty() ? "; use partition: optimal" : ""));
  }

  Candidate choose(const StrategyInput& input, const Units& units, const Counts& counts) const {
    check_size(counts.stages);
    check_shared(input.graph.model, units, counts);
    PipelineShape shape{{},
                        static_cast<std::uint32_t>(counts.stages),
                        options_.micro_batches,
                        micro_batch_images(input, counts.replicas),
                        options_.schedule,
                        options_.recompute,
                        options_.weights,
                        options_.stage_replicas,
                        options_.sync};
    const std::int64_t slot_count = counts.spread ? device_count(input) : counts.stages;
    std::optional<Candidate> best;
    for (const bool stages_together : {true, false}) {
      if (options_.neighbours == (stages_together ? Neighbours::replicas : Neighbours::stages)) continue;
      if (!stages_together && best && counts.replicas == 1) continue;
      shape.slots = slots(slot_count, counts.replicas, stages_together);
      const PipelineCosts costs(input, units, shape);
      CutPipeline cut = options_.begins.empty()
                            ? partition_pipeline(options_.partition, costs)
                            : CutPipeline{given_cuts(input.graph, units), options_.partition};
      if (cut.stages.empty())
        throw InputError(options_.stages_pos,
                         fmt::format("{}.stages: {} devices cannot be shared out to {} stages so that each "
                                     "stage's replicas have equally many of {} micro-batches",
                                     options_.path, slot_count, counts.stages, options_.micro_batches));
      check_cut(input.graph.model, units, cut.stages);
      const double step_s = schedule_s(costs, cut.stages);
      if (!best || step_s < best->step_s) {
        const bool fits = costs.fits(cut.stages);
        best = Candidate{shape, std::move(cut.stages), cut.begun_from, step_s, fits};
      }
    }
    return *best;
  }

  std::vector<StageChoice> given_cuts(const TrainingGraph& graph, const Units& units) const {
    const auto slots = [&](std::size_t stage) {
      return options_.stage_replicas.empty() ? 1 : options_.stage_replicas[stage];
    };
    std::vector<StageChoice> choices{{0, slots(0)}};
    for (const auto& [name, pos] : options_.begins) {
      const auto unit = std::find_if(units.layers.begin(), units.layers.end(),
                                     [&](std::uint32_t l) { return graph.model.layers[l].name == name; });
      if (unit == units.layers.end())
        throw InputError(pos, fmt::format("{}.begins: the model has no layer '{}' that runs a kernel",
                                          options_.path, name));
      const auto first = static_cast<std::uint32_t>(unit - units.layers.begin());
      if (first <= choices.back().first_unit)
        throw InputError(pos, fmt::format("{}.begins: '{}' does not come after the layer that the stage "
                                          "before begins with",
                                          options_.path, name));
      choices.push_back({first, slots(choices.size())});
    }
    return choices;
  }

  PipelineOptions options_;
};

}  // namespace

StrategyEntry pipeline_entry() {
  return {"pipeline",
          "the network cut into consecutive stages on devices of their own, fed with micro-batches",
          texts_of(pipeline_keys()), &read_pipeline,
          "[{schedule: [1f1b, gpipe], micro_batches: [4, 8, 16, 32], replicas: [1, 2, 4]}, "
          "{micro_batches: [8, 32], stages: [2, 4]}, "
          "{schedule: [1f1b, gpipe], micro_batches: [8, 32], recompute: always}, "
          "{stages: [2, 4], micro_batches: [4, 16], inner: {kind: data_parallel, sync: all_reduce, zero: [0, "
          "1]}}, "
          "{stages: auto, micro_batches: 8, inner: {kind: data_parallel, sync: all_reduce}}, "
          "{stages: 2, micro_batches: [4, 16], recompute: [never, always], inner: {kind: hybrid, conv: "
          "batch, fc: "
          "pairs}}]"};
}

std::unique_ptr<Strategy> read_pipeline(YamlMap& map) {
  return std::make_unique<Pipeline>(read_pipeline_options(map));
}

}  // namespace convoy::strategies
