// SPDX-License-Identifier: MIT
#include "strategies/filter_parallel/filter_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "models/frozen.h"
#include "sim/lowering/plan_ops.h"
#include "strategies/filter_parallel/filter_exchanges.h"

namespace convoy::inline strategies {
namespace {

class FilterPlanner {
 public:
  FilterPlanner(const FilterOptions& options, const StrategyInput& input, std::uint32_t devices,
                double images)
      : options_(options),
        input_(input),
        graph_(input.graph),
        devices_(devices),
        images_(images),
        exchanges_(options, input, devices, images) {}

  Annotation build() {
    work_.devices.push_back(master());
    add_workers();
    PartitionSummary partition = summary();
    return {std::move(work_), options_.placed.sync, {.partition = std::move(partition)}};
  }

 private:
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
    for (const FilterExchange& e : exchanges_.all()) {
      if (e.workers.empty()) continue;
      begins[e.forward] = &e;
      begins[FilterExchanges::backward_of(e)] = &e;
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
        exchanges_.mean(device.update.emplace_back(PlanOp{operation.name, operation.work, 1, {}, {}, id}),
                        id);
      if (operation.phase == Phase::update || moved[id]) continue;
      const auto it = begins.find(id);
      if (it == begins.end()) {
        PlanOp op{operation.name, operation.work, images_, {}, {}, id};
        exchanges_.mean(op, id);
        positions[id] = add(std::move(op));
        continue;
      }
      const FilterExchange& e = *it->second;
      const bool forward = id == e.forward;
      device.steps.back().sends.push_back(forward ? e.inputs : e.gradients);
      device.steps.emplace_back().after_sends = !options_.overlap;
      positions[id] = add(exchanges_.kernel(e, id, options_.master));
      if (!forward && e.data_gradient)
        positions[e.weight_gradient] = add(exchanges_.kernel(e, e.weight_gradient, options_.master));
      device.steps.emplace_back().receives.push_back(forward ? e.outputs : e.results);
      if (!forward && work_.micro_batches > 1) {
        const std::size_t added = add(exchanges_.added_filters(e));
        device.tensors.push_back(
            {{MemoryClass::gradients, FilterExchanges::returned_bytes(e)}, {added, added}});
      }
      if (!forward && e.data_gradient) {
        const double come = e.shared ? 1 : static_cast<double>(e.workers.size());
        const bool own = e.convolution.filters[options_.master] > 0;
        const std::size_t sum =
            add(exchanges_.sum_of_partials(e, come - (own ? 0 : 1), 1, FilterExchanges::all_of_it));
        const double received = come * e.input_bytes;
        device.tensors.push_back({{MemoryClass::activations, received}, {sum, sum}});
      }
      // Replicas sum the filters' gradients, which are complete when those of the workers are here.
      if (!forward && work_.replicas > 1) {
        PlacedStep& step = device.steps.back();
        if (step.ops.empty()) add(memory_op(graph_.operations[e.weight_gradient].name + " waits", {}, {}));
        step.takes_in = {e.weight_gradient, 0};
      }
    }
    for (const Buffer& buffer : graph_.buffers)
      if (const double bytes = bytes_of(buffer, images_); bytes > 0)
        device.tensors.push_back({{buffer.memory_class, bytes}, lifetime_of(buffer, positions)});
    return device;
  }

  // Workers with the same filters of every layer, and equally many images of it, have one program.

  void add_workers() {
    std::map<std::pair<std::uint32_t, std::vector<std::int64_t>>, std::vector<EndpointId>> alike;
    for (EndpointId d = 0; d < devices_; ++d) {
      if (d == options_.master) continue;
      std::vector<std::int64_t> filters;
      for (const FilterExchange& e : exchanges_.all()) filters.push_back(e.convolution.filters[d]);
      if (std::none_of(filters.begin(), filters.end(), [](std::int64_t k) { return k > 0; })) continue;
      for (const FilterExchange& e : exchanges_.all()) {
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
        add(exchanges_.sum_of_partials(e, others, exchanges_.slice(e, d), e.slices));
        hold(MemoryClass::activations, others * exchanges_.slice(e, d) * e.input_bytes);
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
      add(exchanges_.kernel(e, step.forward ? e.forward : FilterExchanges::backward_of(e), d));
      if (step.forward) {
        if (!e.shared)
          kept[&e] = {hold(MemoryClass::activations, e.input_bytes),
                      hold(MemoryClass::weights, filter_bytes)};
        under_way = {hold(MemoryClass::activations, FilterExchanges::slice_bytes(e, d))};
      } else {
        under_way = {hold(MemoryClass::gradients, filter_bytes)};
        if (e.data_gradient) under_way.push_back(hold(MemoryClass::activations, e.input_bytes));
        kept[&e].push_back(
            hold(MemoryClass::activations, FilterExchanges::slice_bytes(e, d)));  // output gradients
        if (e.data_gradient) add(exchanges_.kernel(e, e.weight_gradient, d));
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
    for (const FilterExchange& e : exchanges_.all()) {
      result.push_back({e.forward, &e, true});
      result.push_back({FilterExchanges::backward_of(e), &e, false});
    }
    std::sort(result.begin(), result.end(), [](const Step& a, const Step& b) { return a.at < b.at; });
    return result;
  }

  PartitionSummary summary() const {
    PartitionSummary summary;
    summary.method = filter_shares_names[static_cast<std::size_t>(options_.shares)];
    std::vector<double> time_s(devices_, 0.0);
    for (const FilterExchange& e : exchanges_.all()) {
      if (!e.workers.empty()) summary.cut_bytes += e.input_bytes + FilterExchanges::partial_bytes(e);
      for (const EndpointId d : e.workers) {
        // As many, whether they come from the master or from other workers.
        summary.connectivity_bytes += e.input_bytes + FilterExchanges::partial_bytes(e) +
                                      2 * FilterExchanges::slice_bytes(e, d) +
                                      2 * e.convolution.fraction(d) * e.filter_bytes;
        summary.cut_bytes +=
            2 * FilterExchanges::slice_bytes(e, d) + 2 * e.convolution.fraction(d) * e.filter_bytes;
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
  std::uint32_t devices_;  ///< of a replica
  double images_;          ///< of a micro-batch
  FilterExchanges exchanges_;
  PlacedWork& work_ = exchanges_.work();
};

}  // namespace

Annotation annotate_filters(const FilterOptions& options, const StrategyInput& input, std::uint32_t devices,
                            double images) {
  return FilterPlanner(options, input, devices, images).build();
}

}  // namespace convoy::strategies
