// SPDX-License-Identifier: MIT
#include "strategies/filter_parallel/filter_exchanges.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "sim/lowering/plan_ops.h"

namespace convoy::inline strategies {

FilterExchanges::FilterExchanges(const FilterOptions& options, const StrategyInput& input,
                                 std::uint32_t devices, double images)
    : options_(options),
      graph_(input.graph),
      tensor_bytes_(input.graph),
      index_(input.graph),
      devices_(devices),
      images_(images) {
  work_.images = images;
  work_.micro_batches = options.placed.micro_batches;
  work_.replicas = options.placed.replicas;
  work_.devices_a_replica = devices;
  if (input.meaning) begin_meaning();
  for (SharedConvolution& shared : share_filters(input, options.shares, options.master, images, devices))
    add_exchange(std::move(shared));
  for (FilterExchange& exchange : exchanges_) add_messages(exchange);
}

void FilterExchanges::add_exchange(SharedConvolution shared) {
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
  exchange.shared = options_.broadcast == InputBroadcast::scatter_allgather && exchange.workers.size() > 1 &&
                    images_ >= static_cast<double>(exchange.workers.size());
  if (work_.meaning && !exchange.workers.empty()) exchange.layout = layout_of(shared);
  if (work_.meaning && exchange.shared) exchange.slices = slices_of(exchange);
  exchange.convolution = std::move(shared);
  exchanges_.push_back(std::move(exchange));
}

// Meaning.

/// The first layout is all of a tensor. Where a convolution reads a view of the images, it is not said what
/// is sent.
void FilterExchanges::begin_meaning() {
  for (const Layer& layer : graph_.model.layers)
    for (const LayerIndex input : layer.inputs)
      if (is_convolution(layer) && input != image_input && !maker_of(input)) return;
  work_.meaning = std::make_shared<Meaning>();
  work_.meaning->layouts = {{Region{}}};
  work_.meaning->has_images.assign(devices_, false);
  work_.meaning->has_images[options_.master] = true;
}

std::optional<OpId> FilterExchanges::maker_of(LayerIndex layer) const {
  if (layer == image_input) return std::nullopt;
  const std::optional<OpId> made = index_.forward(static_cast<std::size_t>(layer));
  return made ? made : maker_of(graph_.model.layers[static_cast<std::size_t>(layer)].inputs.front());
}

std::uint32_t FilterExchanges::layout_of(const SharedConvolution& shared) {
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

std::uint32_t FilterExchanges::slices_of(const FilterExchange& e) {
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

void FilterExchanges::mean(PlanOp& op, OpId id, std::uint32_t layout) {
  OpMeaning meaning;
  meaning.operation = id;
  meaning.layout = layout;
  work_.mean(op, meaning);
}

void FilterExchanges::mean_messages(const FilterExchange& e) {
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
double FilterExchanges::slice(const FilterExchange& e, EndpointId d) const {
  if (!e.shared) return 1;
  const IndexRange range = e.images_of(d, images_);
  return static_cast<double>(range.end - range.begin) / images_;
}

double FilterExchanges::down_forward(const FilterExchange& e, EndpointId d) const {
  return slice(e, d) * e.input_bytes + e.convolution.fraction(d) * e.filter_bytes;
}

double FilterExchanges::up_backward(const FilterExchange& e, EndpointId d) const {
  return slice(e, d) * partial_bytes(e) + e.convolution.fraction(d) * e.filter_bytes;
}

template <class Bytes>
std::uint32_t FilterExchanges::add_message(const FilterExchange& exchange, bool down, std::string_view what,
                                           Bytes bytes) {
  PlacedMessage message{fmt::format("{}.{}", graph_.model.layers[exchange.convolution.layer].name, what), {}};
  for (const EndpointId d : exchange.workers)
    message.parts.push_back({down ? options_.master : d, down ? d : options_.master, bytes(exchange, d)});
  work_.messages.push_back(std::move(message));
  return static_cast<std::uint32_t>(work_.messages.size() - 1);
}

/// From every worker to every other one. @param bytes of the sender, or the receiver, for its images
std::uint32_t FilterExchanges::add_message_among_workers(const FilterExchange& e, std::string_view what,
                                                         bool of_sender) {
  PlacedMessage message{fmt::format("{}.{}", graph_.model.layers[e.convolution.layer].name, what), {}};
  for (const EndpointId from : e.workers)
    for (const EndpointId to : e.workers)
      if (from != to) message.parts.push_back({from, to, slice(e, of_sender ? from : to) * e.input_bytes});
  work_.messages.push_back(std::move(message));
  return static_cast<std::uint32_t>(work_.messages.size() - 1);
}

void FilterExchanges::add_messages(FilterExchange& e) {
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

// Operations.

PlanOp FilterExchanges::kernel(const FilterExchange& e, OpId id, EndpointId d) {
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

PlanOp FilterExchanges::sum_of_partials(const FilterExchange& e, double additions, double share,
                                        std::uint32_t layout) {
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

PlanOp FilterExchanges::added_filters(const FilterExchange& e) {
  const double bytes = returned_bytes(e);
  PlanOp op = elementwise_op(graph_.operations[e.weight_gradient].name + " sum",
                             bytes / element_bytes(graph_.options.precision), 3 * bytes);
  OpMeaning meaning;
  meaning.act = OpMeaning::Act::add;
  meaning.operation = e.weight_gradient;
  meaning.layer = e.convolution.layer;
  work_.mean(op, meaning);
  return op;
}

}  // namespace convoy::strategies
