// SPDX-License-Identifier: MIT
#include "sim/lowering/device_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "models/tensor_bytes.h"
#include "models/unfused_work.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
namespace {

/// A share of the images, channels or positions of an operation without parameters.
Work share_of_elements(const Work& whole, double share) {
  Work work = whole;
  work.flops_per_image *= share;
  work.bytes_per_image *= share;
  work.seconds_per_image *= share;
  work.aside_bytes_per_image *= share;
  return work;
}

class StageMaker {
 public:
  StageMaker(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
             const GraphSchedule& schedule, std::uint32_t stage, std::size_t device, PartLayouts* layouts)
      : graph_(graph),
        tensor_bytes_(graph),
        shardings_(shardings),
        schedule_(schedule),
        stage_(stage),
        device_(device),
        layouts_(layouts) {}

  DeviceStage make(const std::vector<std::uint32_t>& stages) {
    add_operations();
    add_tensors();
    add_passes();
    add_layers(stages);
    return std::move(made_);
  }

 private:
  /// A step of the stage, and what is received when it is over.
  struct Own {
    std::uint32_t step;
    StageOp op, end;
  };

  void add_operations() {
    position_.assign(schedule_.steps.size(), 0);
    for (std::uint32_t s = 0; s < schedule_.steps.size(); ++s) {
      if (schedule_.steps[s].stage != stage_) continue;
      position_[s] = 2 * own_.size();
      own_.push_back({s, operation(schedule_.steps[s]), {StageOp::none, "", {}, {}, {}, {}}});
    }
  }

  void add_tensors() {
    std::vector<LiveTensor<StageMemory>> tensors;
    for (const GraphSchedule::Copy& copy : schedule_.copies) {
      if (!copy.life.is_used() || schedule_.steps[copy.life.first / 2].stage != stage_) continue;
      StageMemory memory = schedule_.memory(copy, device_);
      if (copy.parameters_of != GraphSchedule::none)
        memory.bytes_fixed *= parameters_share(copy.parameters_of);
      if (memory.bytes_per_image > 0 || memory.bytes_fixed > 0)
        tensors.push_back({memory, {position(copy.life.first), position(copy.life.last)}});
    }
    std::vector<StageOp*> program;
    for (Own& own : own_) {
      program.push_back(&own.op);
      program.push_back(&own.end);
    }
    place_tensors(tensors, program);
  }

  /// Of the schedule's in the stage's program.
  std::size_t position(std::size_t of_schedule) const { return position_[of_schedule / 2] + of_schedule % 2; }

  void add_passes() {
    std::vector<bool> begins(schedule_.steps.size(), false);  // whether exchanges do after a step
    for (const GraphSchedule::Exchange& exchange : schedule_.exchanges)
      if (exchange.is_needed()) begins[exchange.after] = true;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      Own& own = own_[i];
      const bool backward = schedule_.steps[own.step].backward;
      if (!begins[own.step] && i + 1 < own_.size() &&
          schedule_.steps[own_[i + 1].step].backward == backward && is_received_with(own.op, own_[i + 1].op))
        continue;
      std::vector<StageOp>& ops = backward ? made_.stage.backward : made_.stage.forward;
      std::vector<DeviceStage::Position>& positions = made_.positions[backward];
      positions.push_back({own.step, DeviceStage::none});
      if (layouts_) mean(schedule_.steps[own.step], positions.back(), own.step);
      if (!own.end.allocates.empty()) {
        own.end.name = "buffers of " + own.op.name;
        ops.push_back(std::move(own.op));
        ops.push_back(std::move(own.end));
        positions.emplace_back();
      } else {
        ops.push_back(std::move(own.op));
      }
      positions.back().starts = own.step;
    }
  }

  /// What a stage runs a second time it has dropped until then.
  void mean(const GraphSchedule::Step& step, DeviceStage::Position& position, std::uint32_t id) {
    position.layout = layouts_->of_step(id);
    position.is_dropped =
        step.op != GraphSchedule::no_op && !step.again &&
        std::any_of(schedule_.steps.begin(), schedule_.steps.end(),
                    [&](const GraphSchedule::Step& other) { return other.again && other.op == step.op; });
  }

  /// What a pass begins with needs no operation of its own where another one comes next.
  static bool is_received_with(StageOp& received, StageOp& next) {
    if (received.op != StageOp::none || !received.frees.empty()) return false;
    received.allocates.insert(received.allocates.end(), next.allocates.begin(), next.allocates.end());
    next.allocates = std::move(received.allocates);
    return true;
  }

  void add_layers(const std::vector<std::uint32_t>& stages) {
    Stage& stage = made_.stage;
    for (std::uint32_t i = 0; i < stages.size(); ++i) {
      if (stages[i] != stage_) continue;
      const Layer& layer = graph_.model.layers[i];
      stage.layers.push_back(layer.name);
      (layer.frozen ? stage.frozen_elements : stage.parameter_elements) +=
          parameters_on(layer, shardings_[i], device_);
    }
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p)
      if (stages[graph_.parameters[p].layer] == stage_) stage.parameters.push_back(p);
    for (OpId id = 0; id < graph_.operations.size(); ++id) {
      const Operation& op = graph_.operations[id];
      if (op.phase != Phase::update || stages[op.layer] != stage_) continue;
      stage.update.push_back({id, op.name, share_of_update(op.work, parameters_share(op.layer)), {}, {}, {}});
      if (layouts_) made_.update_layouts.push_back(layouts_->of_parameters(op.layer));
    }
  }

  StageOp operation(const GraphSchedule::Step& step) const {
    if (step.op == GraphSchedule::no_op) return {StageOp::none, "received", {}, {}, {}, {}};
    std::optional<Operation> again;
    if (step.again) {
      again = graph_.operations[step.op];
      again->work = work_again(again->work, graph_.model.layers[again->layer], graph_.options.execution);
    }
    const Operation& op = again ? *again : graph_.operations[step.op];
    std::string name = op.name;
    if (step.again) name += " again";
    if (step.part > 0) name += fmt::format(" #{}", step.part - 1);
    const Sharding& split = step.sharding ? *step.sharding : shardings_[op.layer].output;
    if (split.over == Sharding::Over::batch)
      return {step.op,   std::move(name), op.work, {}, {}, static_cast<double>(split.shards->counts[device_]),
              step.again};
    const Work work = step.sharding ? share_of_elements(op.work, split.share(device_))
                                    : share_of_kernel(graph_.model, op, tensor_bytes_.of_inputs(op.layer),
                                                      shardings_[op.layer], device_);
    return {step.op, std::move(name), work, {}, {}, schedule_.images(step.part), step.again};
  }

  double parameters_share(std::uint32_t layer) const {
    return convoy::parameters_share(graph_.model.layers[layer], shardings_[layer], device_);
  }

  const TrainingGraph& graph_;
  const TensorBytes tensor_bytes_;
  const std::vector<LayerSharding>& shardings_;
  const GraphSchedule& schedule_;
  std::uint32_t stage_;
  std::size_t device_;
  PartLayouts* layouts_;
  std::vector<Own> own_;
  std::vector<std::size_t> position_;  ///< by step of the schedule: of those of the stage
  DeviceStage made_;
};

}  // namespace

DeviceStage device_stage(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                         const GraphSchedule& schedule, const std::vector<std::uint32_t>& stages,
                         std::uint32_t stage, std::size_t device, PartLayouts* layouts) {
  return StageMaker(graph, shardings, schedule, stage, device, layouts).make(stages);
}

}  // namespace convoy::lowering
