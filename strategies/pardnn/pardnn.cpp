// SPDX-License-Identifier: MIT
#include "strategies/pardnn/pardnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "models/frozen.h"
#include "sim/base/quantity.h"
#include "sim/lowering/plan_ops.h"
#include "strategies/cost_table.h"
#include "strategies/pardnn/operation_dag.h"
#include "strategies/partition/report.h"
#include "strategies/placed_replicas.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

struct PardnnOptions {
  std::optional<std::uint32_t> parts;
  SourcePos parts_pos;
  bool refine = true;
  std::size_t method = 0;  ///< in partition_methods()
  SourcePos method_pos;
  std::optional<double> memory_bytes;
  PlacedReplicas placed;
};

std::vector<std::string> placer_names() {
  std::vector<std::string> placers;
  for (const PartitionMethod& method : partition_methods()) placers.emplace_back(method.name);
  return placers;
}

const Keys<PardnnOptions>& pardnn_keys() {
  using Options = PardnnOptions;
  static const Keys<Options> own{
      optional_integer_key<Options>("parts", "devices / replicas", 1, 1024,
                                    "devices of a replica that take part", &Options::parts)
          .at(&Options::parts_pos),
      choice_key<Options>("method", placer_names(), "who places the operations (docs/partition.md)",
                          &Options::method)
          .at(&Options::method_pos),
      flag_key<Options>("refine", "of methods pardnn and best: with the refinement phase", &Options::refine),
      quantity_key<Options>("memory", "the device's", Dimension::bytes,
                            "of a device, which the partitioner keeps within", &Options::memory_bytes,
                            [](const Options&) { return std::optional<double>(); })};
  static const Keys<Options> keys = [] {
    Keys<Options> table = own;
    append_keys(table, keys_of_part<Options>(placed_replica_keys(), &Options::placed));
    return table;
  }();
  return keys;
}

/// A placement as work of its devices.
class Placer {
 public:
  Placer(const StrategyInput& input, const PlacedReplicas& placed, const OperationDag& graph, double images,
         const PartitionTask& task, const PartitionAnswer& answer, std::string_view method)
      : input_(input),
        placed_(placed),
        method_(method),
        graph_(graph),
        dag_(graph.dag),
        images_(images),
        task_(task),
        placement_(answer.placement),
        memory_(emulate_memory(dag_, task.link, task.parts, placement_, own_schedule(task, answer))) {}

  Annotation run() {
    work_.images = images_;
    work_.micro_batches = placed_.micro_batches;
    work_.replicas = placed_.replicas;
    work_.devices_a_replica = task_.parts;
    if (input_.meaning) begin_meaning();
    add_messages();
    for (Part part = 0; part < task_.parts; ++part) work_.devices.push_back(device(part));
    PartitionSummary partition = summary();
    return {std::move(work_), placed_.sync, {.partition = std::move(partition)}};
  }

 private:
  /// Images are where the node is that reads them.
  void begin_meaning() {
    work_.meaning = std::make_shared<Meaning>();
    work_.meaning->has_images.assign(task_.parts, false);
    for (NodeId v = 0; v < dag_.size(); ++v)
      if (graph_.nodes[v].content == OperationDag::Content::images)
        work_.meaning->has_images[placement_[v]] = true;
  }

  /// What a node hands on.
  CommMeaning meaning_of(NodeId v) const {
    CommMeaning meaning;
    if (!work_.meaning) return meaning;
    const OperationDag::Node& node = graph_.nodes[v];
    if (node.content == OperationDag::Content::images) {
      meaning.results = {{no_meaning, 0}};
    } else if (node.content == OperationDag::Content::variable) {
      for (const Parameter& parameter : input_.graph.parameters)
        if (parameter.layer == node.index && meaning.results.empty())
          meaning.results = {{parameter.update, node.index}};
    } else {
      const Operation& operation = input_.graph.operations[node.index];
      const bool of_inputs =
          operation.phase == Phase::data_gradient && operation.part == OperationPart::layer;
      if (!of_inputs) meaning.results = {{node.index, operation.layer}};
      for (const LayerIndex input : input_.graph.model.layers[operation.layer].inputs)
        if (of_inputs && input != image_input)
          meaning.results.push_back({node.index, static_cast<std::uint32_t>(input)});
    }
    return meaning;
  }

  /// One for each output and each other device that reads it. A device that reads parameters of another one
  /// has a copy of them, so the update waits for nothing of it.
  void add_messages() {
    for (NodeId v = 0; v < dag_.size(); ++v) {
      if (graph_.nodes[v].content == OperationDag::Content::end_of_reading) continue;
      for (const NodeId w : dag_.children(v)) {
        const Part from = placement_[v], to = placement_[w];
        if (from == to || message_.contains({v, to})) continue;
        message_.emplace(std::pair{v, to}, static_cast<std::uint32_t>(work_.messages.size()));
        work_.messages.push_back({graph_.nodes[v].name, {{from, to, dag_.output_bytes(v)}}, meaning_of(v)});
      }
    }
  }

  PlacedDevice device(Part part) {
    PlacedDevice device;
    device.name = fmt::format("part {} on {}", part, input_.machine.devices[part].name);
    device.members = {part};
    device.parameters.assign(input_.graph.parameters.size(), 0.0);
    std::set<NodeId> received;
    for (const NodeId v : memory_.sequence[part]) {
      add_parameters(device, v);
      PlacedStep step;
      for (const NodeId u : dag_.parents(v))
        if (const auto message = message_.find({u, part}); message != message_.end())
          if (received.insert(u).second) step.receives.push_back(message->second);
      if (updates_at_end() && phase_of(v) == Phase::update)
        take_in_gradient(v, step, device);
      else
        step.ops.push_back(plan_op(v));
      step.forward = phase_of(v) == Phase::forward;
      for (Part to = 0; to < task_.parts; ++to)
        if (const auto message = message_.find({v, to}); message != message_.end())
          step.sends.push_back(message->second);
      device.steps.push_back(std::move(step));
    }
    for (const HeldOutput& held : memory_.outputs)
      if (held.part == part)
        device.tensors.push_back(
            {{graph_.nodes[held.node].output_class, held.bytes}, {held.first, held.last}});
    return device;
  }

  /// Of micro-batches or replicas an update waits for the gradients of all.
  bool updates_at_end() const { return !placed_.is_one(); }

  /// What does not compute goes forward, but for the end of reading parameters.
  Phase phase_of(NodeId v) const {
    const OperationDag::Node& node = graph_.nodes[v];
    if (node.content == OperationDag::Content::operation) return input_.graph.operations[node.index].phase;
    return node.content == OperationDag::Content::end_of_reading ? Phase::data_gradient : Phase::forward;
  }

  /// In place of an update: a gradient that has come from another part is added to those of the micro-batches
  /// before; one that was made here has been.
  void take_in_gradient(NodeId update, PlacedStep& step, PlacedDevice& device) {
    const OpId id = graph_.nodes[update].index;
    device.update.push_back(plan_op(update));
    const std::string name = graph_.nodes[update].name;
    for (const OpId input : input_.graph.operations[id].inputs) {
      if (input_.graph.operations[input].phase != Phase::weight_gradient) continue;
      if (!message_.contains({input, device.members.front()})) continue;
      const double bytes = dag_.output_bytes(input);
      step.takes_in = {input, step.ops.size()};
      step.ops.push_back(placed_.micro_batches == 1
                             ? memory_op(name + " waits", {}, {})
                             : elementwise_op(graph_.nodes[input].name + " sum",
                                              bytes / element_bytes(input_.graph.options.precision),
                                              3 * bytes));
      OpMeaning meaning;
      meaning.act = OpMeaning::Act::add;
      meaning.operation = input;
      meaning.layer = input_.graph.operations[input].layer;
      if (placed_.micro_batches > 1) work_.mean(step.ops.back(), meaning);
    }
    if (step.ops.empty()) step.ops.push_back(memory_op(name + " waits", {}, {}));
  }

  void add_parameters(PlacedDevice& device, NodeId v) const {
    if (graph_.nodes[v].content != OperationDag::Content::variable) return;
    const std::uint32_t layer = graph_.nodes[v].index;
    for (std::size_t p = 0; p < device.parameters.size(); ++p)
      if (input_.graph.parameters[p].layer == layer)
        device.parameters[p] = static_cast<double>(input_.graph.parameters[p].elements);
    device.frozen_elements += frozen_elements(input_.graph.model.layers[layer]);
  }

  PlanOp plan_op(NodeId v) {
    const OperationDag::Node& node = graph_.nodes[v];
    if (node.content != OperationDag::Content::operation) return memory_op(node.name, {}, {});
    const Operation& operation = input_.graph.operations[node.index];
    PlanOp op{node.name, operation.work, operation.phase == Phase::update ? 1 : images_, {}, {}, node.index};
    OpMeaning meaning;
    meaning.operation = node.index;
    work_.mean(op, meaning);
    return op;
  }

  PartitionSummary summary() const {
    PartitionSummary summary;
    summary.method = method_;
    std::vector<bool> sent(dag_.size());
    for (const auto& [key, message] : message_) {
      summary.connectivity_bytes += dag_.output_bytes(key.first);
      if (!sent[key.first]) summary.cut_bytes += dag_.output_bytes(key.first);
      sent[key.first] = true;
    }
    for (double* bytes : {&summary.connectivity_bytes, &summary.cut_bytes})
      *bytes *= placed_.micro_batches * placed_.replicas;
    summary.load_imbalance = load_imbalance(dag_, task_.parts, placement_);
    return summary;
  }

  const StrategyInput& input_;
  const PlacedReplicas& placed_;
  const std::string_view method_;
  const OperationDag& graph_;
  const Dag& dag_;
  const double images_;
  const PartitionTask& task_;
  const Placement& placement_;
  const MemoryUse memory_;
  std::map<std::pair<NodeId, Part>, std::uint32_t> message_;  ///< of an output to a part
  PlacedWork work_;
};

class Pardnn : public Annotator {
 public:
  explicit Pardnn(PardnnOptions options) : options_(std::move(options)) {}

  std::string label() const override {
    const bool own = options_.method == 0;
    return fmt::format("{}{}{}{}", own ? "pardnn" : fmt::format("placed by {}", method().name),
                       options_.parts ? fmt::format(", {} parts", *options_.parts) : "",
                       options_.refine ? "" : ", not refined", options_.placed.label());
  }

  /// Operations that are placed whole take at least the longest path of them.
  std::optional<StepFloor> floor(const BatchSpec& batch, CostTable& table) const override {
    return options_.placed.floor(batch, table, options_.parts, "operations",
                                 [&](double images, std::int64_t) { return table.quickest(images).chain_s; });
  }

  std::string_view refuses_shared_parameters() const override {
    return "pardnn places each layer with parameters of its own";
  }

  const GradientSync* sums() const override { return options_.placed.sums(); }

  Annotation annotate(const StrategyInput& input) const override {
    const PlacedReplicas& placed = options_.placed;
    const std::uint32_t parts =
        placed.devices_a_replica(input.machine.devices.size(), options_.parts, options_.parts_pos);
    const auto images = static_cast<double>(placed.images(input.batch, parts));
    check_plan_size(input, placed.micro_batches);
    if (parts == 1) return annotate_undivided(input, placed);
    const OperationDag graph = operation_dag(input, images, parts);
    const PartitionTask task{
        graph.dag, parts, part_link(input.machine, parts), room(input.machine, parts), 1, options_.refine};
    if (!method().available())
      throw InputError(options_.method_pos,
                       fmt::format("strategy.method: this convoy was built without {} (docs/partition.md)",
                                   method().name));
    return Placer(input, placed, graph, images, task, method().run(task), method().name).run();
  }

 private:
  const PartitionMethod& method() const { return partition_methods()[options_.method]; }

  /// What the smallest device has beside what is reserved on it.
  double room(const Machine& machine, std::uint32_t parts) const {
    double smallest = 0;
    for (std::uint32_t d = 0; d < parts; ++d) {
      const DeviceType& type = machine.device_types[machine.devices[d].type];
      const double bytes = options_.memory_bytes.value_or(type.memory_bytes) - type.reserved_bytes;
      smallest = d == 0 ? bytes : std::min(smallest, bytes);
    }
    return std::max(0.0, smallest);
  }

  PardnnOptions options_;
};

std::unique_ptr<Strategy> read_pardnn(YamlMap& map) {
  PardnnOptions options;
  read_keys(pardnn_keys(), map, options);
  const std::string_view method = partition_methods()[options.method].name;
  if (!options.refine && method != "pardnn" && method != "best")
    map.fail("refine", fmt::format("only the methods pardnn and best refine; leave it out with {}", method));
  return std::make_unique<Pardnn>(std::move(options));
}

}  // namespace

StrategyEntry pardnn_entry() {
  return {"pardnn", "operations placed one by one by the ParDNN partitioner", texts_of(pardnn_keys()),
          &read_pardnn, "[{}]"};
}

}  // namespace convoy::strategies
