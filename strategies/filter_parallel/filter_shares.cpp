// SPDX-License-Identifier: MIT
#include "strategies/filter_parallel/filter_shares.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "models/tensor_bytes.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline strategies {
namespace {

bool is_kernel(const Operation& operation) {
  return operation.phase != Phase::update && operation.work.kind != KernelKind::elementwise &&
         operation.work.kind != KernelKind::softmax_loss;
}

/// Times of a layer's kernels (no update) with some of its filters on a device. Each kind of device and
/// number of filters is timed once: a cluster has few of them, and perhaps many devices.
class Probe {
 public:
  Probe(const StrategyInput& input, const SharedConvolution& shared, double images)
      : input_(input),
        shared_(shared),
        images_(images),
        read_bytes_(TensorBytes(input.graph).of_inputs(shared.layer)) {}

  double time_s(const Device& device, std::int64_t filters) {
    const auto [known, fresh] = known_s_.try_emplace({device.type, filters});
    if (fresh) known->second = kernels_s(input_.machine.device_types[device.type], filters);
    return known->second / device.speed;
  }

 private:
  double kernels_s(const DeviceType& type, std::int64_t filters) const {
    const double fraction = static_cast<double>(filters) / static_cast<double>(shared_.total);
    double time_s = 0;
    for (const Operation& operation : input_.graph.operations)
      if (operation.layer == shared_.layer && is_kernel(operation))
        time_s += input_.cost.time_s(part_of(operation.work, read_bytes_, fraction, 1), images_, type);
    return time_s;
  }

  const StrategyInput& input_;
  const SharedConvolution& shared_;
  double images_, read_bytes_;
  std::map<std::pair<std::uint32_t, std::int64_t>, double> known_s_;  ///< by type of device and filters
};

/// What a device takes for the kernels of each whole convolution where it runs all convolutions of the
/// network one after the other, issued by its host: by layer.
std::vector<double> probed_layers_s(const StrategyInput& input, const Device& device, double images) {
  std::vector<double> times_s(input.graph.model.layers.size(), 0.0);
  IssueQueue queue;
  for (const Operation& operation : input.graph.operations) {
    if (!is_kernel(operation) || !is_convolution(input.graph.model.layers[operation.layer])) continue;
    const double before_s = queue.end_s();
    queue.run(input.cost.queued_time(operation.work, images, input.machine, device));
    times_s[operation.layer] += queue.end_s() - before_s;
  }
  return times_s;
}

/// The master first, then the others in order.
std::vector<EndpointId> in_order(std::size_t devices, EndpointId master) {
  std::vector<EndpointId> order{master};
  for (EndpointId d = 0; d < devices; ++d)
    if (d != master) order.push_back(d);
  return order;
}

std::vector<std::int64_t> equal_shares(std::int64_t filters, const std::vector<EndpointId>& order) {
  const auto n = static_cast<std::int64_t>(order.size());
  std::vector<std::int64_t> result(order.size(), filters / n);
  for (std::int64_t i = 0; i < filters % n; ++i) ++result[order[static_cast<std::size_t>(i)]];
  return result;
}

std::vector<std::int64_t> probed_shares(std::int64_t filters, const std::vector<double>& time_s,
                                        std::vector<EndpointId> order) {
  double total = 0;
  for (const double t : time_s) total += 1 / t;
  std::vector<std::int64_t> result;
  for (const double t : time_s)
    result.push_back(std::llround(static_cast<double>(filters) * (1 / t) / total));
  std::stable_sort(order.begin(), order.end(),
                   [&](EndpointId a, EndpointId b) { return time_s[a] < time_s[b]; });
  std::int64_t left = filters - std::accumulate(result.begin(), result.end(), std::int64_t{0});
  for (const EndpointId d : order) {
    const std::int64_t change = std::max(left, -result[d]);
    result[d] += change;
    left -= change;
  }
  return result;
}

}  // namespace

std::vector<SharedConvolution> share_filters(const StrategyInput& input, FilterShares shares,
                                             EndpointId master, double images,
                                             std::optional<std::uint32_t> device_count) {
  std::vector<Device> devices = input.machine.devices;
  if (device_count) devices.resize(*device_count);
  const std::vector<EndpointId> order = in_order(devices.size(), master);
  std::map<std::tuple<std::uint32_t, double, std::uint32_t>, std::vector<double>> kinds;  // of devices
  std::vector<const std::vector<double>*> layers_s;
  for (const Device& device : devices) {
    const auto [kind, fresh] =
        kinds.try_emplace({device.type, device.speed, devices_of_host(input.machine, device)});
    if (fresh) kind->second = probed_layers_s(input, device, images);
    layers_s.push_back(&kind->second);
  }
  std::vector<SharedConvolution> result;
  for (std::uint32_t layer = 0; layer < input.graph.model.layers.size(); ++layer) {
    if (const Layer& of = input.graph.model.layers[layer]; !is_convolution(of) || of.frozen) continue;
    SharedConvolution shared{layer, {}, {}, input.graph.model.layers[layer].output.front()};
    Probe probe(input, shared, images);
    std::vector<double> whole_s;
    for (const std::vector<double>* of_device : layers_s) whole_s.push_back((*of_device)[layer]);
    shared.filters = shares == FilterShares::equal ? equal_shares(shared.total, order)
                                                   : probed_shares(shared.total, whole_s, order);
    for (EndpointId d = 0; d < devices.size(); ++d)
      shared.time_s.push_back(shared.filters[d] == 0 ? 0 : probe.time_s(devices[d], shared.filters[d]));
    result.push_back(std::move(shared));
  }
  return result;
}

}  // namespace convoy::strategies
