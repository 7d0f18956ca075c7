// SPDX-License-Identifier: MIT
#include "strategies/filter_parallel/filter_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "models/frozen.h"
#include "models/tensor_bytes.h"
#include "sim/lowering/graph_index.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline strategies {
namespace {

/// What one convolution sends, and its operations.
struct FilterExchange {
  SharedConvolution convolution;
  double input_bytes, output_bytes;  ///< of all images
  double filter_bytes;               ///< of all filters
  OpId forward, weight_gradient;
  std::optional<OpId> data_gradient;
  std::vector<EndpointId> workers;                                    ///< with filters of this layer
  std::uint32_t inputs = 0, outputs = 0, gradients = 0, results = 0;  ///< messages
  std::uint32_t layout = no_meaning;                                  ///< filters of each device
  // Where workers pass inputs on to each other:
  bool shared = false;
  std::uint32_t passed_on = 0, partials = 0;  ///< messages between workers
  std::uint32_t slices = no_meaning;          ///< layout: the images that each of them gets from the master
  /// Of worker d: the first and the one behind the last.
  IndexRange images_of(EndpointId d, double images) const {
    const auto w = static_cast<std::int64_t>(workers.size()), all = static_cast<std::int64_t>(images);
    const auto i = std::lower_bound(workers.begin(), workers.end(), d) - workers.begin();
    return {all * i / w, all * (i + 1) / w};
  }
};

class FilterPlanner {
 public:
  FilterPlanner(const FilterOptions& options, const StrategyInput& input, std::uint32_t devices,
                double images)
      : options_(options),
        input_(input),
        graph_(input.graph),
        tensor_bytes_(input.graph),
        index_(input.graph),
        devices_(devices),
        images_(images) {
    work_.images = images;
    work_.micro_batches = options.placed.micro_batches;
    work_.replicas = options.placed.replicas;
    work_.devices_a_replica = devices;
    if (input.meaning && work_.replicas == 1) begin_meaning();
    for (SharedConvolution& shared : share_filters(input, options.shares, options.master, images, devices))
      add_exchange(std::move(shared));
    for (FilterExchange& exchange : exchanges_) add_messages(exchange);
  }

  Annotation build() {
    work_.devices.push_back(master());
    add_workers();
    return {std::move(work_), options_.placed.sync, {.partition = summary()}};
  }

 private:
  void add_exchange(SharedConvolution shared) {
    const Layer& layer = graph_.model.layers[shared.layer];
    const double element = element_bytes(graph_.options.precision);
    FilterExchange exchange{};
    exchange.forward = index_.forward(shared.layer).value();
    exchange.data_gradient = index_.data_gradient(shared.layer);
    exchange.weight_gradient = index_.weight_gradient(shared.layer).value();
    exchange.input_bytes = images_ * tensor_bytes_.of_inputs(shared.layer);
    exchange.output_bytes = images_ * tensor_bytes_(static_cast<LayerIndex>(shared.layer));
    for (const ParameterTensor& tensor : layer.parameters)
      if (tensor.role == ParameterRole::weight)
        exchange.filter_bytes += element * static_cast<double>(tensor.elements);
    for (EndpointId d = 0; d < shared.filters.size(); ++d)
      if (d != options_.master && shared.filters[d] > 0) exchange.workers.push_back(d);
    exchange.shared = options_.broadcast == InputBroadcast::scatter_allgather &&
                      exchange.workers.size() > 1 && images_ >= static_cast<double>(exchange.workers.size());
    if (work_.meaning && !exchange.workers.empty()) exchange.layout = layout_of(shared);
    if (work_.meaning && exchange.shared) exchange.slices = slices_of(exchange);
    exchange.convolution = std::move(shared);
    exchanges_.push_back(std::move(exchange));
  }

  // Meaning.

  /// The first layout is all of a tensor. Where a convolution reads a view of the images, it is not said what
  /// is sent.
  void begin_meaning() {
    for (const Layer& layer : graph_.model.layers)
      for (const LayerIndex input : layer.inputs)
        if (is_convolution(layer) && input != image_input && !maker_of(input)) return;
    work_.meaning = std::make_shared<Meaning>();
    work_.meaning->layouts = {{Region{}}};
    work_.meaning->has_images.assign(devices_, false);
    work_.meaning->has_images[options_.master] = true;
  }
  static constexpr std::uint32_t all_of_it = 0;

  std::optional<OpId> maker_of(LayerIndex layer) const {
    if (layer == image_input) return std::nullopt;
    const std::optional<OpId> made = index_.forward(static_cast<std::size_t>(layer));
    return made ? made : maker_of(graph_.model.layers[static_cast<std::size_t>(layer)].inputs.front());
  }

  std::uint32_t layout_of(const SharedConvolution& shared) {
    PartLayout layout;
    std::int64_t begin = 0;
    for (const std::int64_t filters : shared.filters) {
      Region& region = layout.emplace_back();
      region.channels.emplace();
      if (filters > 0) region.channels->push_back({begin, begin + filters});
      begin += filters;
    }
    work_.meaning->layouts.push_back(std::move(layout));
    return static_cast<std::uint32_t>(work_.meaning->layouts.size() - 1);
  }

  std::uint32_t slices_of(const FilterExchange& e) {
    PartLayout layout(devices_);
    for (EndpointId d = 0; d < layout.size(); ++d) {
      if (d == options_.master) continue;
      layout[d].images.emplace();
      if (std::binary_search(e.workers.begin(), e.workers.end(), d))
        layout[d].images->push_back(e.images_of(d, images_));
    }
    work_.meaning->layouts.push_back(std::move(layout));
    return static_cast<std::uint32_t>(work_.meaning->layouts.size() - 1);
  }

  void mean(PlanOp& op, OpId id, std::uint32_t layout = no_meaning) {
    OpMeaning meaning;
    meaning.operation = id;
    meaning.layout = layout;
    work_.mean(op, meaning);
  }

  void mean_messages(const FilterExchange& e) {
    const std::uint32_t layer = e.convolution.layer;
    const LayerIndex input = graph_.model.layers[layer].inputs.front();
    const auto of_input = static_cast<std::uint32_t>(input);
    std::vector<CommMeaning::Result>& inputs = work_.messages[e.inputs].meaning.results;
    const std::uint32_t to_worker = e.shared ? e.slices : all_of_it;
    const auto input_result = [&](std::uint32_t from, std::uint32_t to) {
      return input == image_input ? CommMeaning::Result{no_meaning, 0, from, to}
                                  : CommMeaning::Result{*maker_of(input), of_input, from, to};
    };
    inputs.push_back(input_result(all_of_it, to_worker));
    if (e.shared) work_.messages[e.passed_on].meaning.results = {input_result(e.slices, all_of_it)};
    inputs.push_back({*index_.update(layer), layer, all_of_it, e.layout});
    work_.messages[e.outputs].meaning.results = {{e.forward, layer, e.layout, all_of_it}};
    OpId gradient = backward_of(e);  // where the network's output has no loss, nobody makes its gradient
    for (const OpId of : graph_.operations[e.weight_gradient].inputs)
      if (graph_.operations[of].phase == Phase::data_gradient) gradient = of;
    work_.messages[e.gradients].meaning.results = {{gradient, layer, all_of_it, e.layout}};
    CommMeaning& results = work_.messages[e.results].meaning;
    results.kind = CommMeaning::Kind::parts;
    results.results = {{e.weight_gradient, layer, e.layout, all_of_it}};
    if (!e.data_gradient) return;
    results.results.push_back({*e.data_gradient, of_input, to_worker, all_of_it});
    if (!e.shared) return;
    CommMeaning& partials = work_.messages[e.partials].meaning;
    partials.kind = CommMeaning::Kind::parts;
    partials.results = {{*e.data_gradient, of_input, all_of_it, e.slices}};
  }

  // Bytes between the master and worker d.
  /// Share of the images that worker d takes from the master, and whose gradients it sends there.
  double slice(const FilterExchange& e, EndpointId d) const {
    if (!e.shared) return 1;
    const IndexRange range = e.images_of(d, images_);
    return static_cast<double>(range.end - range.begin) / images_;
  }
  double down_forward(const FilterExchange& e, EndpointId d) const {
    return slice(e, d) * e.input_bytes + e.convolution.fraction(d) * e.filter_bytes;
  }
  static double slice_bytes(const FilterExchange& e, EndpointId d) {
    return e.convolution.fraction(d) * e.output_bytes;
  }
  static double partial_bytes(const FilterExchange& e) { return e.data_gradient ? e.input_bytes : 0; }
  double up_backward(const FilterExchange& e, EndpointId d) const {
    return slice(e, d) * partial_bytes(e) + e.convolution.fraction(d) * e.filter_bytes;
  }

  template <class Bytes>
  std::uint32_t add_message(const FilterExchange& exchange, bool down, std::string_view what, Bytes bytes) {
    PlacedMessage message{fmt::format("{}.{}", graph_.model.layers[exchange.convolution.layer].name, what),
                          {}};
    for (const EndpointId d : exchange.workers)
      message.parts.push_back({down ? options_.master : d, down ? d : options_.master, bytes(exchange, d)});
    work_.messages.push_back(std::move(message));
    return static_cast<std::uint32_t>(work_.messages.size() - 1);
  }

  /// From every worker to every other one. @param bytes of the sender, or the receiver, for its images
  std::uint32_t add_message_among_workers(const FilterExchange& e, std::string_view what, bool of_sender) {
    PlacedMessage message{fmt::format("{}.{}", graph_.model.layers[e.convolution.layer].name, what), {}};
    for (const EndpointId from : e.workers)
      for (const EndpointId to : e.workers)
        if (from != to) message.parts.push_back({from, to, slice(e, of_sender ? from : to) * e.input_bytes});
    work_.messages.push_back(std::move(message));
    return static_cast<std::uint32_t>(work_.messages.size() - 1);
  }

  void add_messages(FilterExchange& e) {
    if (e.workers.empty()) return;
    const auto down = [&](const FilterExchange& of, EndpointId d) { return down_forward(of, d); };
    const auto up = [&](const FilterExchange& of, EndpointId d) { return up_backward(of, d); };
    e.inputs = add_message(e, true, "inputs and filters", down);
    if (e.shared) e.passed_on = add_message_among_workers(e, "inputs passed on", true);
    e.outputs = add_message(e, false, "outputs", slice_bytes);
    e.gradients = add_message(e, true, "output gradients", slice_bytes);
    if (e.shared && e.data_gradient) e.partials = add_message_among_workers(e, "partial gradients", false);
    e.results = add_message(e, false, "gradients", up);
    if (work_.meaning) mean_messages(e);
  }

  /// The convolution's kernel with the filters of device d. Workers get images of the master, which alone
  /// runs what reads them first.
  PlanOp kernel(const FilterExchange& e, OpId id, EndpointId d) {
    const Operation& operation = graph_.operations[id];
    PlanOp op{operation.name,
              part_of(operation.work, e.input_bytes / images_, e.convolution.fraction(d), 1),
              images_,
              {},
              {},
              d == options_.master ? id : PlanOp::of_plan};
    mean(op, id, e.layout);
    return op;
  }

  // The master runs the graph in order and waits for its workers at every convolution.

  PlacedDevice master() {
    PlacedDevice device;
    device.name = "master";
    device.members = {options_.master};
    for (const Parameter& parameter : graph_.parameters)
      device.parameters.push_back(static_cast<double>(parameter.elements));
    for (const Layer& layer : graph_.model.layers) device.frozen_elements += frozen_elements(layer);
    std::map<OpId, const FilterExchange*> begins;
    std::vector<bool> moved(graph_.operations.size());  // weight gradients that run with the data gradient
    for (const FilterExchange& e : exchanges_) {
      if (e.workers.empty()) continue;
      begins[e.forward] = &e;
      begins[backward_of(e)] = &e;
      if (e.data_gradient) moved[e.weight_gradient] = true;
    }
    std::vector<std::size_t> positions(graph_.operations.size(), Lifetime::nowhere);
    std::size_t count = 0;
    const auto add = [&](PlanOp op) {
      if (op.work.phase != Phase::forward) device.steps.back().forward = false;
      device.steps.back().ops.push_back(std::move(op));
      return count++;
    };
    device.steps.emplace_back();
    for (OpId id = 0; id < graph_.operations.size(); ++id) {
      const Operation& operation = graph_.operations[id];
      if (operation.phase == Phase::update)
        mean(device.update.emplace_back(PlanOp{operation.name, operation.work, 1, {}, {}, id}), id);
      if (operation.phase == Phase::update || moved[id]) continue;
      const auto it = begins.find(id);
      if (it == begins.end()) {
        PlanOp op{operation.name, operation.work, images_, {}, {}, id};
        mean(op, id);
        positions[id] = add(std::move(op));
        continue;
      }
      const FilterExchange& e = *it->second;
      const bool forward = id == e.forward;
      device.steps.back().sends.push_back(forward ? e.inputs : e.gradients);
      device.steps.emplace_back().after_sends = !options_.overlap;
      positions[id] = add(kernel(e, id, options_.master));
      if (!forward && e.data_gradient)
        positions[e.weight_gradient] = add(kernel(e, e.weight_gradient, options_.master));
      device.steps.emplace_back().receives.push_back(forward ? e.outputs : e.results);
      if (!forward && work_.micro_batches > 1) add(added_filters(e));
      if (!forward && e.data_gradient) {
        const double come = e.shared ? 1 : static_cast<double>(e.workers.size());
        const bool own = e.convolution.filters[options_.master] > 0;
        const std::size_t sum = add(sum_of_partials(e, come - (own ? 0 : 1), 1, all_of_it));
        const double received = come * e.input_bytes;
        device.tensors.push_back({{MemoryClass::activations, received}, {sum, sum}});
      }
    }
    for (const Buffer& buffer : graph_.buffers)
      if (const double bytes = bytes_of(buffer, images_); bytes > 0)
        device.tensors.push_back({{buffer.memory_class, bytes}, lifetime_of(buffer, positions)});
    return device;
  }

  /// The first operation of a convolution's backward pass.
  static OpId backward_of(const FilterExchange& e) { return e.data_gradient.value_or(e.weight_gradient); }

  /// Adding up data gradients of those who had filters: two read, one written each time.
  /// @param share of the images  @param layout of these
  PlanOp sum_of_partials(const FilterExchange& e, double additions, double share, std::uint32_t layout) {
    const LayerIndex input = graph_.model.layers[e.convolution.layer].inputs.front();
    Work work;
    work.kind = KernelKind::elementwise;
    work.phase = Phase::data_gradient;
    work.flops_per_image = additions * e.input_bytes / images_ / tensor_bytes_.of_value(input);
    work.bytes_per_image = 3 * additions * e.input_bytes / images_;
    PlanOp op{graph_.operations[*e.data_gradient].name + " sum", work, share * images_, {}, {}};
    OpMeaning meaning;
    meaning.act = OpMeaning::Act::add;
    meaning.operation = *e.data_gradient;
    meaning.layer = static_cast<std::uint32_t>(input);
    if (layout != all_of_it) meaning.layout = layout;
    work_.mean(op, meaning);
    return op;
  }

  /// What workers made of their filters' gradients, added to those of the micro-batches before.
  PlanOp added_filters(const FilterExchange& e) const {
    double bytes = 0;
    for (const EndpointId d : e.workers) bytes += e.convolution.fraction(d) * e.filter_bytes;
    return elementwise_op(graph_.operations[e.weight_gradient].name + " sum",
                          bytes / element_bytes(graph_.options.precision), 3 * bytes);
  }

  // Workers with the same filters of every layer, and equally many images of it, have one program.

  void add_workers() {
    std::map<std::pair<std::uint32_t, std::vector<std::int64_t>>, std::vector<EndpointId>> alike;
    for (EndpointId d = 0; d < devices_; ++d) {
      if (d == options_.master) continue;
      std::vector<std::int64_t> filters;
      for (const FilterExchange& e : exchanges_) filters.push_back(e.convolution.filters[d]);
      if (std::none_of(filters.begin(), filters.end(), [](std::int64_t k) { return k > 0; })) continue;
      for (const FilterExchange& e : exchanges_) {
        const bool slice = e.shared && e.convolution.filters[d] > 0;
        const IndexRange images = slice ? e.images_of(d, images_) : IndexRange{};
        filters.push_back(images.end - images.begin);
      }
      alike[{input_.machine.devices[d].type, std::move(filters)}].push_back(d);
    }
    for (auto& [key, members] : alike) work_.devices.push_back(worker(std::move(members)));
  }

  /// What it sends is free when it is delivered, which is waited for before the next message is taken.
  PlacedDevice worker(std::vector<EndpointId> members) {
    const EndpointId d = members.front();
    PlacedDevice device;
    device.name =
        fmt::format("worker on {}", input_.machine.device_types[input_.machine.devices[d].type].name);
    device.members = std::move(members);
    std::map<const FilterExchange*, std::vector<std::size_t>> kept;  // tensors that backward uses
    std::vector<std::size_t> under_way;                              // of the last message
    std::size_t count = 0;
    const auto add = [&](PlanOp op) {
      device.steps.back().ops.push_back(std::move(op));
      ++count;
    };
    const auto hold = [&](MemoryClass memory_class, double bytes) {
      device.tensors.push_back({{memory_class, bytes}, {count - 1, count - 1}});
      return device.tensors.size() - 1;
    };
    const auto use = [&](const std::vector<std::size_t>& tensors) {
      for (const std::size_t tensor : tensors) device.tensors[tensor].life.use(count - 1);
    };
    const auto begin_step = [&](bool forward) {
      PlacedStep& step = device.steps.emplace_back();
      step.after_sends = true;
      step.forward = forward;
      if (under_way.empty()) return;
      add(memory_op("release", {}, {}));
      use(std::exchange(under_way, {}));
    };
    for (const Step& step : steps()) {
      const FilterExchange& e = *step.exchange;
      // What others made of the gradient of its images, added to its own.
      const auto add_sum = [&] {
        device.steps.back().sends = {e.partials};
        device.steps.emplace_back().receives = {e.partials};
        device.steps.back().forward = false;
        device.steps.back().sends = {e.results};
        const double others = static_cast<double>(e.workers.size()) - 1;
        add(sum_of_partials(e, others, slice(e, d), e.slices));
        hold(MemoryClass::activations, others * slice(e, d) * e.input_bytes);
      };
      if (e.convolution.filters[d] == 0) continue;
      const double filter_bytes = e.convolution.fraction(d) * e.filter_bytes;
      begin_step(step.forward);
      device.steps.back().receives = {step.forward ? e.inputs : e.gradients};
      if (step.forward && e.shared) {
        add(memory_op("take in", {}, {}));
        kept[&e] = {hold(MemoryClass::activations, e.input_bytes), hold(MemoryClass::weights, filter_bytes)};
        device.steps.back().sends = {e.passed_on};
        device.steps.emplace_back().receives = {e.passed_on};
      }
      device.steps.back().sends = {step.forward ? e.outputs : e.results};
      add(kernel(e, step.forward ? e.forward : backward_of(e), d));
      if (step.forward) {
        if (!e.shared)
          kept[&e] = {hold(MemoryClass::activations, e.input_bytes),
                      hold(MemoryClass::weights, filter_bytes)};
        under_way = {hold(MemoryClass::activations, slice_bytes(e, d))};
      } else {
        under_way = {hold(MemoryClass::gradients, filter_bytes)};
        if (e.data_gradient) under_way.push_back(hold(MemoryClass::activations, e.input_bytes));
        kept[&e].push_back(hold(MemoryClass::activations, slice_bytes(e, d)));  // output gradients
        if (e.data_gradient) add(kernel(e, e.weight_gradient, d));
        use(kept[&e]);
        if (e.data_gradient && e.shared) add_sum();
      }
    }
    begin_step(false);
    device.steps.back().name = "end";
    return device;
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
    std::vector<double> time_s(devices_, 0.0);
    for (const FilterExchange& e : exchanges_) {
      if (!e.workers.empty()) summary.cut_bytes += e.input_bytes + partial_bytes(e);
      for (const EndpointId d : e.workers) {
        // As many, whether they come from the master or from other workers.
        summary.connectivity_bytes += e.input_bytes + partial_bytes(e) + 2 * slice_bytes(e, d) +
                                      2 * e.convolution.fraction(d) * e.filter_bytes;
        summary.cut_bytes += 2 * slice_bytes(e, d) + 2 * e.convolution.fraction(d) * e.filter_bytes;
      }
      for (std::size_t d = 0; d < time_s.size(); ++d) time_s[d] += e.convolution.time_s[d];
    }
    double total_s = 0, longest_s = 0;
    for (const double t : time_s) total_s += t, longest_s = std::max(longest_s, t);
    for (double* bytes : {&summary.connectivity_bytes, &summary.cut_bytes})
      *bytes *= work_.micro_batches * work_.replicas;
    if (total_s > 0) summary.load_imbalance = longest_s / (total_s / static_cast<double>(time_s.size()));
    return summary;
  }

  const FilterOptions& options_;
  const StrategyInput& input_;
  const TrainingGraph& graph_;
  const TensorBytes tensor_bytes_;
  const GraphIndex index_;
  std::uint32_t devices_;  ///< of a replica
  double images_;          ///< of a micro-batch
  PlacedWork work_;
  std::vector<FilterExchange> exchanges_;  ///< by layer
};

}  // namespace

Annotation annotate_filters(const FilterOptions& options, const StrategyInput& input, std::uint32_t devices,
                            double images) {
  return FilterPlanner(options, input, devices, images).build();
}

}  // namespace convoy::strategies
