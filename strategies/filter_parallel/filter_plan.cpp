// SPDX-License-Identifier: MIT
#include "strategies/filter_parallel/filter_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/lowering/plan_ops.h"
#include "strategies/replicas.h"

namespace convoy {
namespace {

/// What one convolution sends, and its operations.
struct Exchange {
  SharedConvolution convolution;
  double input_bytes, output_bytes;  ///< of all images
  double filter_bytes;               ///< of all filters
  OpId forward, weight_gradient;
  std::optional<OpId> data_gradient;
  std::vector<EndpointId> workers;  ///< with filters of this layer
  CommId inputs = 0, outputs = 0, gradients = 0, results = 0;
};

class FilterPlanner {
 public:
  FilterPlanner(const FilterOptions& options, const StrategyInput& input, double images)
      : options_(options), input_(input), graph_(input.graph), images_(images) {
    plan_.images = images;
    std::map<std::uint32_t, std::size_t> known;
    for (SharedConvolution& shared : share_filters(input, options.shares, options.master, images)) {
      known[shared.layer] = exchanges_.size();
      add_exchange(std::move(shared));
    }
    for (OpId id = 0; id < graph_.operations.size(); ++id) {
      const Operation& operation = graph_.operations[id];
      const auto it = known.find(operation.layer);
      if (it == known.end() || !is_convolution_kernel(operation)) continue;
      Exchange& exchange = exchanges_[it->second];
      if (operation.phase == Phase::forward) exchange.forward = id;
      if (operation.phase == Phase::data_gradient) exchange.data_gradient = id;
      if (operation.phase == Phase::weight_gradient) exchange.weight_gradient = id;
    }
    for (Exchange& exchange : exchanges_) add_communications(exchange);
  }

  ReportedPlan build() {
    plan_.roles.push_back(master());
    add_workers();
    return {std::move(plan_), {.partition = summary()}};
  }

 private:
  /// Not the sum of gradients that several readers of its output make, nor a loss.
  bool is_convolution_kernel(const Operation& operation) const {
    return operation.work.kind == KernelKind::convolution ||
           operation.work.kind == KernelKind::depthwise_convolution;
  }

  void add_exchange(SharedConvolution shared) {
    const Layer& layer = graph_.model.layers[shared.layer];
    const double element = element_bytes(graph_.options.precision);
    Exchange exchange{};
    exchange.input_bytes = images_ * input_bytes(graph_, shared.layer);
    exchange.output_bytes = images_ * element * static_cast<double>(elements(layer.output));
    for (const ParameterTensor& tensor : layer.parameters)
      if (tensor.name == "weight") exchange.filter_bytes += element * static_cast<double>(tensor.elements);
    for (EndpointId d = 0; d < shared.filters.size(); ++d)
      if (d != options_.master && shared.filters[d] > 0) exchange.workers.push_back(d);
    exchange.convolution = std::move(shared);
    exchanges_.push_back(std::move(exchange));
  }

  // Bytes between the master and worker d.
  static double down_forward(const Exchange& e, EndpointId d) {
    return e.input_bytes + e.convolution.fraction(d) * e.filter_bytes;
  }
  static double slice_bytes(const Exchange& e, EndpointId d) {
    return e.convolution.fraction(d) * e.output_bytes;
  }
  static double partial_bytes(const Exchange& e) { return e.data_gradient ? e.input_bytes : 0; }
  static double up_backward(const Exchange& e, EndpointId d) {
    return partial_bytes(e) + e.convolution.fraction(d) * e.filter_bytes;
  }

  template <class Bytes>
  CommId add_communication(const Exchange& exchange, bool down, std::string_view what, Bytes bytes) {
    std::vector<EndpointId> group{options_.master};
    Round round{{}, {}, 1};
    double total = 0;
    for (const EndpointId d : exchange.workers) total += bytes(exchange, d);
    for (const EndpointId d : exchange.workers) {
      const auto position = static_cast<std::uint32_t>(group.size());
      group.push_back(d);
      round.pairs.emplace_back(down ? 0 : position, down ? position : 0);
      round.fractions.push_back(bytes(exchange, d) / total);
    }
    plan_.patterns.push_back({{std::move(group)}, {std::move(round)}});
    plan_.communications.push_back(
        {fmt::format("{}.{}", graph_.model.layers[exchange.convolution.layer].name, what),
         static_cast<std::uint32_t>(plan_.patterns.size() - 1), total});
    return static_cast<CommId>(plan_.communications.size() - 1);
  }

  void add_communications(Exchange& e) {
    if (e.workers.empty()) return;
    e.inputs = add_communication(e, true, "inputs and filters", down_forward);
    e.outputs = add_communication(e, false, "outputs", slice_bytes);
    e.gradients = add_communication(e, true, "output gradients", slice_bytes);
    e.results = add_communication(e, false, "gradients", up_backward);
  }

  const std::string& comm_name(CommId comm) const { return plan_.communications[comm].name; }

  /// The convolution's kernel with the filters of device d.
  PlanOp kernel(const Exchange& e, OpId id, EndpointId d) const {
    const Operation& operation = graph_.operations[id];
    return {operation.name,
            part_of(operation.work, e.input_bytes / images_, e.convolution.fraction(d), 1),
            images_,
            {},
            {}};
  }

  // The master runs the graph in order and waits for its workers at every convolution.

  Role master() {
    Role role = replica_role(
        input_,
        {input_.machine.devices[options_.master].type, static_cast<std::int64_t>(images_), {options_.master}},
        graph_.resident_bytes());
    role.name = "master";
    role.streams = {"compute"};
    const PlanOps plan_op(graph_);
    std::map<OpId, const Exchange*> begins;
    std::vector<bool> moved(graph_.operations.size());  // weight gradients that run with the data gradient
    for (const Exchange& e : exchanges_) {
      if (e.workers.empty()) continue;
      begins[e.forward] = &e;
      begins[e.data_gradient.value_or(e.weight_gradient)] = &e;
      if (e.data_gradient) moved[e.weight_gradient] = true;
    }
    std::vector<PlanOp> ops;
    std::vector<TaskId> after;
    std::string first;
    const auto close = [&] {
      if (ops.empty() && after.empty()) return std::vector<TaskId>{};
      const std::string name = ops.empty() ? "wait" : fmt::format("compute from {}", ops.front().name);
      const TaskId task = add_compute(role, name, std::move(ops), std::move(after));
      ops.clear();
      after.clear();
      return std::vector<TaskId>{task};
    };
    const auto own_share = [&](const Exchange& e, OpId id) {
      PlanOp whole = plan_op(id, images_, graph_.operations[id].name);
      whole.work = kernel(e, id, options_.master).work;
      return whole;
    };
    for (OpId id = 0; id < graph_.operations.size(); ++id) {
      if (graph_.operations[id].phase == Phase::update || moved[id]) continue;
      const auto it = begins.find(id);
      if (it == begins.end()) {
        ops.push_back(plan_op(id, images_, graph_.operations[id].name));
        continue;
      }
      const Exchange& e = *it->second;
      const bool forward = id == e.forward;
      const CommId out = forward ? e.inputs : e.gradients, back = forward ? e.outputs : e.results;
      const TaskId sent = add_message(role, Task::Kind::send, "send " + comm_name(out), out, close());
      ops.push_back(own_share(e, id));
      if (!forward && e.data_gradient) ops.push_back(own_share(e, e.weight_gradient));
      if (!options_.overlap) after.push_back(sent);
      const std::vector<TaskId> computed = close();
      after = {computed.front(),
               add_message(role, Task::Kind::receive, "receive " + comm_name(back), back, {})};
      if (!forward && e.data_gradient) ops.push_back(sum_of_partials(e));
    }
    const std::vector<TaskId> end = close();
    add_update(role, graph_, end);
    return role;
  }

  /// Adding up the data gradients of all who had filters: two read, one written each time.
  PlanOp sum_of_partials(const Exchange& e) const {
    const bool own = e.convolution.filters[options_.master] > 0;
    const double additions = static_cast<double>(e.workers.size()) - (own ? 0 : 1);
    const double element = element_bytes(graph_.options.precision);
    Work work;
    work.kind = KernelKind::elementwise;
    work.phase = Phase::data_gradient;
    work.flops_per_image = additions * e.input_bytes / images_ / element;
    work.bytes_per_image = 3 * additions * e.input_bytes / images_;
    const std::vector<MemoryDelta> received{
        {MemoryClass::activations, static_cast<double>(e.workers.size()) * e.input_bytes}};
    return {graph_.operations[*e.data_gradient].name + " sum", work, images_, received, received};
  }

  // Workers with the same filters of every layer have one program.

  void add_workers() {
    std::map<std::pair<std::uint32_t, std::vector<std::int64_t>>, std::vector<EndpointId>> alike;
    for (EndpointId d = 0; d < input_.machine.devices.size(); ++d) {
      if (d == options_.master) continue;
      std::vector<std::int64_t> filters;
      for (const Exchange& e : exchanges_) filters.push_back(e.convolution.filters[d]);
      if (std::any_of(filters.begin(), filters.end(), [](std::int64_t k) { return k > 0; }))
        alike[{input_.machine.devices[d].type, std::move(filters)}].push_back(d);
    }
    for (auto& [key, members] : alike) plan_.roles.push_back(worker(std::move(members)));
  }

  Role worker(std::vector<EndpointId> members) {
    const EndpointId d = members.front();
    const DeviceType& type = input_.machine.device_types[input_.machine.devices[d].type];
    Role role;
    role.name = fmt::format("worker on {}", type.name);
    role.members = std::move(members);
    role.streams = {"compute"};
    role.resident_bytes[static_cast<std::size_t>(MemoryClass::reserved)] = type.reserved_bytes;

    std::optional<PlanOp> release;  // buffers of the last message, free once it has been sent
    std::vector<TaskId> sent;
    const auto exchange = [&](CommId in, CommId out, std::vector<PlanOp> ops,
                              std::vector<MemoryDelta> sends) {
      const TaskId received = add_message(role, Task::Kind::receive, "receive " + comm_name(in), in, sent);
      if (release) ops.insert(ops.begin(), std::move(*release));
      const std::string name = ops.back().name;
      const TaskId computed = add_compute(role, name, std::move(ops), {received});
      sent = {add_message(role, Task::Kind::send, "send " + comm_name(out), out, {computed})};
      release = memory_op("release " + comm_name(out), {}, std::move(sends));
    };
    for (const Step& step : steps()) {
      const Exchange& e = *step.exchange;
      if (e.convolution.filters[d] == 0) continue;
      if (step.forward)
        exchange(e.inputs, e.outputs, forward_ops(e, d), {{MemoryClass::activations, slice_bytes(e, d)}});
      else
        exchange(e.gradients, e.results, backward_ops(e, d), returned(e, d));
    }
    if (release) add_compute(role, "end", {std::move(*release)}, sent);
    return role;
  }

  struct Step {
    OpId at;
    const Exchange* exchange;
    bool forward;
  };
  /// Forward and backward of all distributed convolutions in the master's order.
  std::vector<Step> steps() const {
    std::vector<Step> result;
    for (const Exchange& e : exchanges_) {
      result.push_back({e.forward, &e, true});
      result.push_back({e.data_gradient.value_or(e.weight_gradient), &e, false});
    }
    std::sort(result.begin(), result.end(), [](const Step& a, const Step& b) { return a.at < b.at; });
    return result;
  }

  static MemoryDelta filters_of(const Exchange& e, EndpointId d, MemoryClass memory_class) {
    return {memory_class, e.convolution.fraction(d) * e.filter_bytes};
  }

  /// Inputs and filters stay for backward.
  std::vector<PlanOp> forward_ops(const Exchange& e, EndpointId d) const {
    PlanOp op = kernel(e, e.forward, d);
    op.allocates = {filters_of(e, d, MemoryClass::weights),
                    {MemoryClass::activations, e.input_bytes + slice_bytes(e, d)}};
    return {std::move(op)};
  }

  std::vector<MemoryDelta> returned(const Exchange& e, EndpointId d) const {
    std::vector<MemoryDelta> deltas{filters_of(e, d, MemoryClass::gradients)};
    if (e.data_gradient) deltas.push_back({MemoryClass::activations, e.input_bytes});
    return deltas;
  }

  std::vector<PlanOp> backward_ops(const Exchange& e, EndpointId d) const {
    std::vector<PlanOp> ops;
    if (e.data_gradient) ops.push_back(kernel(e, *e.data_gradient, d));
    ops.push_back(kernel(e, e.weight_gradient, d));
    ops.front().allocates = returned(e, d);
    ops.front().allocates.push_back({MemoryClass::activations, slice_bytes(e, d)});
    ops.back().frees = {filters_of(e, d, MemoryClass::weights),
                        {MemoryClass::activations, e.input_bytes + slice_bytes(e, d)}};
    return ops;
  }

  PartitionSummary summary() const {
    PartitionSummary summary;
    summary.method = filter_shares_names[static_cast<std::size_t>(options_.shares)];
    std::vector<double> time_s(input_.machine.devices.size(), 0.0);
    for (const Exchange& e : exchanges_) {
      if (!e.workers.empty()) summary.cut_bytes += e.input_bytes + partial_bytes(e);
      for (const EndpointId d : e.workers) {
        summary.connectivity_bytes += down_forward(e, d) + 2 * slice_bytes(e, d) + up_backward(e, d);
        summary.cut_bytes += 2 * slice_bytes(e, d) + 2 * e.convolution.fraction(d) * e.filter_bytes;
      }
      for (std::size_t d = 0; d < time_s.size(); ++d) time_s[d] += e.convolution.time_s[d];
    }
    double total_s = 0, longest_s = 0;
    for (const double t : time_s) total_s += t, longest_s = std::max(longest_s, t);
    if (total_s > 0) summary.load_imbalance = longest_s / (total_s / static_cast<double>(time_s.size()));
    return summary;
  }

  const FilterOptions& options_;
  const StrategyInput& input_;
  const TrainingGraph& graph_;
  double images_;
  Plan plan_;
  std::vector<Exchange> exchanges_;  ///< by layer
};

}  // namespace

ReportedPlan plan_filters(const FilterOptions& options, const StrategyInput& input, double images) {
  return FilterPlanner(options, input, images).build();
}

}  // namespace convoy
