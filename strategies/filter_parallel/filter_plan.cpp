// SPDX-License-Identifier: MIT
#include "strategies/filter_parallel/filter_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/lowering/compute_tasks.h"
#include "sim/lowering/graph_index.h"
#include "sim/lowering/liveness.h"
#include "sim/lowering/plan_ops.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

/// What one convolution sends, and its operations.
struct FilterExchange {
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
      : options_(options), input_(input), graph_(input.graph), index_(input.graph), images_(images) {
    plan_.images = images;
    for (SharedConvolution& shared : share_filters(input, options.shares, options.master, images))
      add_exchange(std::move(shared));
    for (FilterExchange& exchange : exchanges_) add_communications(exchange);
  }

  ReportedPlan build() {
    plan_.roles.push_back(master());
    add_workers();
    return {std::move(plan_), {.partition = summary()}};
  }

 private:
  void add_exchange(SharedConvolution shared) {
    const Layer& layer = graph_.model.layers[shared.layer];
    const double element = element_bytes(graph_.options.precision);
    FilterExchange exchange{};
    exchange.forward = index_.forward(shared.layer).value();
    exchange.data_gradient = index_.data_gradient(shared.layer);
    exchange.weight_gradient = index_.weight_gradient(shared.layer).value();
    exchange.input_bytes = images_ * input_bytes(graph_, shared.layer);
    exchange.output_bytes = images_ * element * static_cast<double>(elements(layer.output));
    for (const ParameterTensor& tensor : layer.parameters)
      if (tensor.role == ParameterRole::weight)
        exchange.filter_bytes += element * static_cast<double>(tensor.elements);
    for (EndpointId d = 0; d < shared.filters.size(); ++d)
      if (d != options_.master && shared.filters[d] > 0) exchange.workers.push_back(d);
    exchange.convolution = std::move(shared);
    exchanges_.push_back(std::move(exchange));
  }

  // Bytes between the master and worker d.
  static double down_forward(const FilterExchange& e, EndpointId d) {
    return e.input_bytes + e.convolution.fraction(d) * e.filter_bytes;
  }
  static double slice_bytes(const FilterExchange& e, EndpointId d) {
    return e.convolution.fraction(d) * e.output_bytes;
  }
  static double partial_bytes(const FilterExchange& e) { return e.data_gradient ? e.input_bytes : 0; }
  static double up_backward(const FilterExchange& e, EndpointId d) {
    return partial_bytes(e) + e.convolution.fraction(d) * e.filter_bytes;
  }

  template <class Bytes>
  CommId add_communication(const FilterExchange& exchange, bool down, std::string_view what, Bytes bytes) {
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

  void add_communications(FilterExchange& e) {
    if (e.workers.empty()) return;
    e.inputs = add_communication(e, true, "inputs and filters", down_forward);
    e.outputs = add_communication(e, false, "outputs", slice_bytes);
    e.gradients = add_communication(e, true, "output gradients", slice_bytes);
    e.results = add_communication(e, false, "gradients", up_backward);
  }

  /// The convolution's kernel with the filters of device d.
  PlanOp kernel(const FilterExchange& e, OpId id, EndpointId d) const {
    const Operation& operation = graph_.operations[id];
    return {operation.name,
            part_of(operation.work, e.input_bytes / images_, e.convolution.fraction(d), 1),
            images_,
            {},
            {},
            id};
  }

  // The master runs the graph in order and waits for its workers at every convolution.

  Role master() {
    Role role = replica_role(
        input_,
        {input_.machine.devices[options_.master].type, static_cast<std::int64_t>(images_), {options_.master}},
        graph_.resident_bytes());
    role.name = "master";
    role.streams = {"compute"};
    std::map<OpId, const FilterExchange*> begins;
    std::vector<bool> moved(graph_.operations.size());  // weight gradients that run with the data gradient
    for (const FilterExchange& e : exchanges_) {
      if (e.workers.empty()) continue;
      begins[e.forward] = &e;
      begins[backward_of(e)] = &e;
      if (e.data_gradient) moved[e.weight_gradient] = true;
    }
    ComputeTasks tasks(role);
    std::vector<std::size_t> positions(graph_.operations.size(), Lifetime::nowhere);
    std::vector<LiveTensor<MemoryDelta>> tensors;
    for (OpId id = 0; id < graph_.operations.size(); ++id) {
      const Operation& operation = graph_.operations[id];
      if (operation.phase == Phase::update || moved[id]) continue;
      const auto it = begins.find(id);
      if (it == begins.end()) {
        positions[id] = tasks.add({operation.name, operation.work, images_, {}, {}});
        continue;
      }
      const FilterExchange& e = *it->second;
      const bool forward = id == e.forward;
      const TaskId sent = tasks.send(plan_, forward ? e.inputs : e.gradients);
      if (!options_.overlap) tasks.wait_for(sent);
      positions[id] = tasks.add(kernel(e, id, options_.master));
      if (!forward && e.data_gradient)
        positions[e.weight_gradient] = tasks.add(kernel(e, e.weight_gradient, options_.master));
      tasks.receive(plan_, forward ? e.outputs : e.results);
      if (!forward && e.data_gradient) {
        const std::size_t sum = tasks.add(sum_of_partials(e));
        const double received = static_cast<double>(e.workers.size()) * e.input_bytes;
        tensors.push_back({{MemoryClass::activations, received}, {sum, sum}});
      }
    }
    const TaskId last = tasks.close();
    add_update(role, graph_, {last});
    for (const Buffer& buffer : graph_.buffers)
      if (const double bytes = bytes_of(buffer, images_); bytes > 0)
        tensors.push_back({{buffer.memory_class, bytes}, lifetime_of(buffer, positions)});
    place_tensors(tensors, operations_of(role));
    return role;
  }

  /// The first operation of a convolution's backward pass.
  static OpId backward_of(const FilterExchange& e) { return e.data_gradient.value_or(e.weight_gradient); }

  /// Adding up the data gradients of all who had filters: two read, one written each time.
  PlanOp sum_of_partials(const FilterExchange& e) const {
    const bool own = e.convolution.filters[options_.master] > 0;
    const double additions = static_cast<double>(e.workers.size()) - (own ? 0 : 1);
    const double element = element_bytes(graph_.options.precision);
    Work work;
    work.kind = KernelKind::elementwise;
    work.phase = Phase::data_gradient;
    work.flops_per_image = additions * e.input_bytes / images_ / element;
    work.bytes_per_image = 3 * additions * e.input_bytes / images_;
    return {graph_.operations[*e.data_gradient].name + " sum", work, images_, {}, {}};
  }

  // Workers with the same filters of every layer have one program.

  void add_workers() {
    std::map<std::pair<std::uint32_t, std::vector<std::int64_t>>, std::vector<EndpointId>> alike;
    for (EndpointId d = 0; d < input_.machine.devices.size(); ++d) {
      if (d == options_.master) continue;
      std::vector<std::int64_t> filters;
      for (const FilterExchange& e : exchanges_) filters.push_back(e.convolution.filters[d]);
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

    ComputeTasks tasks(role);
    std::map<const FilterExchange*, std::vector<std::size_t>>
        kept;  // tensors that backward uses: inputs, filters
    std::vector<TaskId> sent;
    std::vector<std::size_t> under_way;  // tensors of the last message: free once it has been sent
    const auto release = [&] {
      if (under_way.empty()) return;
      tasks.add_unnamed(memory_op("release", {}, {}));
      for (const std::size_t tensor : under_way) tasks.use(tensor);
      under_way.clear();
    };
    const auto hold = [&](MemoryClass memory_class, double bytes) {
      const std::size_t tensor = tasks.hold({memory_class, bytes});
      tasks.use(tensor);
      return tensor;
    };
    for (const Step& step : steps()) {
      const FilterExchange& e = *step.exchange;
      if (e.convolution.filters[d] == 0) continue;
      const double filter_bytes = e.convolution.fraction(d) * e.filter_bytes;
      tasks.receive(plan_, step.forward ? e.inputs : e.gradients, sent);
      release();
      tasks.add(kernel(e, step.forward ? e.forward : backward_of(e), d));
      if (step.forward) {
        kept[&e] = {hold(MemoryClass::activations, e.input_bytes), hold(MemoryClass::weights, filter_bytes)};
        under_way = {hold(MemoryClass::activations, slice_bytes(e, d))};
      } else {
        under_way = {hold(MemoryClass::gradients, filter_bytes)};
        if (e.data_gradient) under_way.push_back(hold(MemoryClass::activations, e.input_bytes));
        kept[&e].push_back(hold(MemoryClass::activations, slice_bytes(e, d)));  // output gradients
        if (e.data_gradient) tasks.add(kernel(e, e.weight_gradient, d));
        for (const std::size_t tensor : kept[&e]) tasks.use(tensor);
      }
      sent = {tasks.send(plan_, step.forward ? e.outputs : e.results)};
    }
    tasks.wait_for(sent.front());
    release();
    tasks.close("end");
    tasks.place_tensors();
    return role;
  }

  struct Step {
    OpId at;
    const FilterExchange* exchange;
    bool forward;
  };
  /// Forward and backward of all distributed convolutions in the master's order.
  std::vector<Step> steps() const {
    std::vector<Step> result;
    for (const FilterExchange& e : exchanges_) {
      result.push_back({e.forward, &e, true});
      result.push_back({backward_of(e), &e, false});
    }
    std::sort(result.begin(), result.end(), [](const Step& a, const Step& b) { return a.at < b.at; });
    return result;
  }

  PartitionSummary summary() const {
    PartitionSummary summary;
    summary.method = filter_shares_names[static_cast<std::size_t>(options_.shares)];
    std::vector<double> time_s(input_.machine.devices.size(), 0.0);
    for (const FilterExchange& e : exchanges_) {
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
  const GraphIndex index_;
  double images_;
  Plan plan_;
  std::vector<FilterExchange> exchanges_;  ///< by layer
};

}  // namespace

ReportedPlan plan_filters(const FilterOptions& options, const StrategyInput& input, double images) {
  return FilterPlanner(options, input, images).build();
}

}  // namespace convoy::strategies
