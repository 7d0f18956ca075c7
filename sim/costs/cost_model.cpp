// SPDX-License-Identifier: MIT
#include "sim/costs/cost_model.h"

#include <algorithm>

#include "sim/costs/peak_share.h"
#include "sim/costs/software_evidence.h"
#include "sim/costs/tensor_rate.h"

namespace convoy::inline costs {
namespace {

/// The sums for scale and shift are computed by the kernel of the data gradient.
bool is_part_of_another(const Work& work) {
  return work.kind == KernelKind::normalization && work.phase == Phase::weight_gradient;
}

bool is_fused(const Work& work, const Software& software) {
  return software.execution == ExecutionMode::compiled
             ? work.fusion != Fusion::none
             : work.fusion == Fusion::normalization && software.costs.fused < 1;
}

struct Amount {
  double flops, bytes;
  bool is_nothing(const Work& work) const {
    return flops <= 0 && bytes <= 0 && work.aside_bytes_per_image <= 0 && work.aside_bytes_fixed <= 0;
  }
};
Amount amount_of(const Work& work, double images) {
  return {work.flops_per_image * images + work.flops_fixed, work.bytes_per_image * images + work.bytes_fixed};
}

/// The share of a peak or bandwidth that is reached where a framework's kernels take `factor` of the usual
/// time: no more than all of it, `limit`, unless the device's own share is beyond that.
double reached(double share, double factor, double limit) {
  return std::min(share / factor, std::max(share, limit));
}

/// Seconds of a kernel on the units that compute `precision`, and of the transposes around a product.
/// @param factor of the framework on the time of its kernels
double kernel_time_s(const Work& work, double images, Precision precision, Layout layout,
                     const DeviceType& device, double factor) {
  const Efficiency& efficiency = device.efficiency[static_cast<std::size_t>(precision)];
  Amount amount = amount_of(work, images);
  if (device.issue_factor > 0) amount.bytes *= work.traffic;
  const KernelClass kernel = kernel_class(work);
  const double peak =
      device.peak_flops.at(precision) *
      reached(compute_efficiency(work, images, precision, efficiency, layout, tensor_rate(device, precision)),
              factor, largest_share(kernel, precision));
  const double bandwidth = device.memory_bandwidth_Bps *
                           reached(efficiency.bandwidth[static_cast<std::size_t>(kernel)], factor, 1);
  double time_s = std::max(amount.flops / peak, amount.bytes / bandwidth);
  const double copy_bandwidth =
      device.memory_bandwidth_Bps *
      reached(efficiency.bandwidth[static_cast<std::size_t>(KernelClass::elementwise)], factor, 1);
  time_s += (work.aside_bytes_per_image * images + work.aside_bytes_fixed) / copy_bandwidth;
  if (layout == Layout::nchw && precision != Precision::fp32 && work.kind == KernelKind::convolution)
    time_s += efficiency.transpose_passes * work.bytes_per_image * images / copy_bandwidth;
  if (device.issue_factor > 0)
    time_s += work.reordered_bytes / (device.memory_bandwidth_Bps * efficiency.filter_order);
  return time_s;
}

/// SoftwareCosts' factor on the time of kernels of this class that compute in this precision.
double factor_of(KernelClass kernel, Precision precision, const SoftwareCosts& costs,
                 const DeviceType& device) {
  double of_products = products_follow_framework(device) ? costs.kepler : 1;
  if (element_bytes(precision) == 2 && device.has_tensor_cores()) of_products *= costs.half;
  if (kernel == KernelClass::convolution_depthwise) return of_products * costs.depthwise;
  if (is_product(kernel)) return of_products * costs.convolution;
  if (kernel == KernelClass::normalization) return costs.normalization;
  return kernel == KernelClass::elementwise || kernel == KernelClass::pooling ? costs.elementwise : 1;
}

/// Bytes that are moved to copy between a convolution's images and the matrix of its product (im2col and its
/// inverse); a row of the matrix holds the inputs of one output pixel. Forward, a value is read and written;
/// a gradient is read and added to its image. The product of the weight gradient uses the matrix of the
/// forward pass.
double matrix_copy_bytes(const Work& work, double images, Precision precision) {
  if (work.kind != KernelKind::convolution && work.kind != KernelKind::depthwise_convolution) return 0;
  if (work.phase == Phase::weight_gradient) return 0;
  const double accesses = work.phase == Phase::data_gradient ? 3 : 2;
  const auto values =
      static_cast<double>(work.in_channels * work.kernel_h * work.kernel_w * work.out_h * work.out_w);
  return accesses * values * images * element_bytes(precision);
}

/// Seconds of the work that one thread of a CPU does (SoftwareCosts::one_thread): the copies around a
/// product, or all of an operation that is not a product.
double one_thread_s(const Work& work, double images, const Software& software, const DeviceType& device) {
  const KernelClass kernel = kernel_class(work);
  const bool product = is_product(kernel);
  const double bytes =
      product ? matrix_copy_bytes(work, images, software.precision) : amount_of(work, images).bytes;
  const Efficiency& efficiency = device.efficiency[static_cast<std::size_t>(software.precision)];
  const double share =
      efficiency.bandwidth[static_cast<std::size_t>(product ? KernelClass::elementwise : kernel)];
  return software.costs.one_thread * bytes / (device.memory_bandwidth_Bps / device.sms * share);
}

/// Whether the framework leaves everything that is not a product to one thread of this CPU. This applies to
/// CPUs of the catalogue only, since a device with given efficiencies has no such costs.
bool has_one_thread(const Software& software, const DeviceType& device) {
  return device.kind->in_process && device.sms > 0 && device.evidence_spread > 0 &&
         software.costs.one_thread > 0;
}

/// Whether the framework's tensors are in another order on this CPU than the library's (see has_one_thread).
bool has_plain_tensors(const Software& software, const DeviceType& device) {
  return device.kind->in_process && device.evidence_spread > 0 && software.costs.plain_tensors;
}

/// Seconds in which a convolution's filter, inputs and outputs are put in the library's order and back. A
/// weight gradient is made in a buffer of the library's order and copied to a tensor, and both are new in
/// every step: the system's page faults are part of it.
double plain_order_s(const Work& work, double images, const Software& software, const DeviceType& device) {
  if (work.kind != KernelKind::convolution && work.kind != KernelKind::depthwise_convolution) return 0;
  const Efficiency& efficiency = device.efficiency[static_cast<std::size_t>(software.precision)];
  const double groups = std::max<double>(1.0, static_cast<double>(work.groups));
  const double filter_bytes =
      element_bytes(software.precision) / groups *
      static_cast<double>(work.in_channels * work.out_channels * work.kernel_h * work.kernel_w);
  double time_s = 2 * filter_bytes / (device.memory_bandwidth_Bps * efficiency.filter_order);
  if (work.phase == Phase::weight_gradient)
    time_s += 2 * filter_bytes / (device.memory_bandwidth_Bps * efficiency.first_touch);
  if (software.layout == Layout::nchw)
    time_s += efficiency.transpose_passes * work.bytes_per_image * images /
              (device.memory_bandwidth_Bps *
               efficiency.bandwidth[static_cast<std::size_t>(KernelClass::elementwise)]);
  return time_s;
}

/// Seconds in which the windows of pooling are gone through value by value: PyTorch has vectors for channels
/// last alone (aten/src/ATen/native/cpu/MaxPoolKernel.cpp), and for the mean of a whole channel, which is a sum
/// (aten/src/ATen/native/AdaptiveAveragePooling.cpp).
double window_s(const Work& work, double images, const Software& software, const DeviceType& device) {
  if (work.kind != KernelKind::pooling || work.is_whole_mean || software.layout != Layout::nchw) return 0;
  const Efficiency& efficiency = device.efficiency[static_cast<std::size_t>(software.precision)];
  return amount_of(work, images).flops /
         (device.peak_flops.at(software.precision) * efficiency.pooling_windows);
}

/// Seconds in which a CPU computes the exponentials of an activation, beside moving its values.
double exponentials_s(const Work& work, double images, const Software& software, const DeviceType& device) {
  if (!device.kind->in_process || device.evidence_spread == 0) return 0;
  return work.peak_flops_a_flop * amount_of(work, images).flops / device.peak_flops.at(software.precision);
}

}  // namespace

double launches(const Work& work, const Software& software, const DeviceType& device) {
  if (device.issue_factor <= 0) return 1;
  return is_part_of_another(work) || is_fused(work, software) ? 0 : work.launches;
}

double operation_time_s(const Work& work, double images, const Software& software, const DeviceType& device) {
  if (work.seconds_per_image > 0) return work.seconds_per_image * images;
  const Amount amount = amount_of(work, images);
  if (amount.is_nothing(work)) return 0;
  const KernelClass kernel = kernel_class(work);
  const bool is_issued = device.issue_factor > 0;
  const double launch_s = launches(work, software, device) * device.launch_overhead_s;
  const bool one_thread = has_one_thread(software, device) && work.phase != Phase::update;
  const bool counts = is_issued && !one_thread && work.phase != Phase::update;
  const auto factor = [&](Precision precision) {
    return counts ? factor_of(kernel, precision, software.costs, device) : 1;
  };
  double time_s =
      kernel_time_s(work, images, software.precision, software.layout, device, factor(software.precision));
  if (has_plain_tensors(software, device))
    time_s = std::max(time_s + plain_order_s(work, images, software, device),
                      window_s(work, images, software, device));
  time_s += exponentials_s(work, images, software, device);
  if (one_thread)
    return launch_s + one_thread_s(work, images, software, device) + (is_product(kernel) ? time_s : 0);
  if (!is_issued) return launch_s + time_s;
  if (work.phase == Phase::update)
    return launch_s + time_s + software.costs.wait_update_s * device.issue_factor;
  if (is_product(kernel) && software.precision != Precision::fp32 && device.runs(Precision::fp32))
    time_s = std::min(time_s, kernel_time_s(work, images, Precision::fp32, software.layout, device,
                                            factor(Precision::fp32)));
  if (is_fused(work, software)) time_s *= software.costs.fused;
  return launch_s + time_s;
}

double issue_time_s(const Work& work, double images, const Software& software, const DeviceType& device) {
  if (device.issue_factor <= 0 || is_part_of_another(work) || is_fused(work, software)) return 0;
  const Amount amount = amount_of(work, images);
  if (amount.is_nothing(work)) return 0;
  const SoftwareCosts& costs = software.costs;
  const double typical_s = work.phase == Phase::forward  ? costs.issue_forward_s
                           : work.phase == Phase::update ? costs.issue_update_s
                                                         : costs.issue_backward_s;
  // An update's kernels are one operation of the host (optimizer_update.h).
  const double operations = work.phase == Phase::update ? 1 : work.launches;
  return operations * typical_s * device.issue_factor;
}

double begin_time_s(const Software& software, const DeviceType& device) {
  return device.issue_factor > 0 ? software.costs.issue_step_s * device.issue_factor : 0;
}

CostModel CostModel::with(const Software& software) const {
  CostModel other = *this;
  other.software_ = software;
  return other;
}

double CostModel::scale(const DeviceType& device) const {
  if (scale_.empty()) return 1;
  const auto scale = scale_.find(device.name);
  return scale == scale_.end() ? 1 : scale->second.factor;
}

double CostModel::time_s(const Work& work, double images, const DeviceType& device) const {
  double time = operation_time_s(work, images, software_, device);
  if (const auto layers = measured_.find(device.name);
      layers != measured_.end() && work.layer < layers->second.size())
    time *= work.phase == Phase::forward ? layers->second[work.layer].forward
                                         : layers->second[work.layer].backward;
  return scale_.empty() ? time : time * scale(device);
}

double CostModel::issue_s(const Work& work, double images, const DeviceType& device,
                          std::uint32_t devices) const {
  const double time = issue_time_s(work, images, software_, device) * scale(device);
  return software_.one_process_a_host ? time * devices : time;
}

double CostModel::begin_s(const DeviceType& device) const {
  return begin_time_s(software_, device) * scale(device);
}

QueuedTime CostModel::queued_time(const Work& work, double images, const Machine& machine,
                                  const Device& device) const {
  const DeviceType& type = machine.device_types[device.type];
  return QueuedTime::operation(issue_s(work, images, type, devices_of_host(machine, device)),
                               time_s(work, images, type) / device.speed);
}

void CostModel::measured(const TrainingGraph& graph, std::uint32_t layer, double images, double forward_s,
                         double backward_s, const DeviceType& device) {
  std::vector<Factors>& factors = measured_[device.name];
  factors.resize(graph.model.layers.size());
  double predicted_forward_s = 0, predicted_backward_s = 0;
  for (const Operation& op : graph.operations)
    if (op.work.layer == layer && !op.again)
      (op.phase == Phase::forward ? predicted_forward_s : predicted_backward_s) +=
          operation_time_s(op.work, images, software_, device);
  if (predicted_forward_s > 0) factors[layer].forward = forward_s / predicted_forward_s;
  if (predicted_backward_s > 0) factors[layer].backward = backward_s / predicted_backward_s;
}

void CostModel::anchor(const TrainingGraph& graph, double images, double images_per_s,
                       const DeviceType& device) {
  scale_.erase(device.name);
  const double predicted = step_time_s(graph, images, *this, device, false);
  if (predicted > 0) scale_[device.name] = {images / images_per_s / predicted, images};
}

std::vector<double> CostModel::anchored_images() const {
  std::vector<double> images;
  for (const auto& [device, scale] : scale_) images.push_back(scale.images);
  return images;
}

std::uint32_t devices_of_host(const Machine& machine, const Device& device) {
  return machine.hosts.empty() ? 1 : machine.hosts[device.host].device_count;
}

double step_time_s(const TrainingGraph& graph, double images, const CostModel& cost, const DeviceType& device,
                   bool with_recomputation) {
  IssueQueue queue(cost.begin_s(device));
  for (const Operation& operation : graph.operations)
    if (with_recomputation || !operation.again)
      queue.run(cost.issue_s(operation.work, images, device), cost.time_s(operation.work, images, device));
  return queue.end_s();
}

double step_time_s(const TrainingGraph& graph, double images, const CostModel& cost, const Machine& machine,
                   const Device& device) {
  IssueQueue queue(cost.begin_s(machine.device_types[device.type]));
  for (const Operation& operation : graph.operations)
    queue.run(cost.queued_time(operation.work, images, machine, device));
  return queue.end_s();
}

std::vector<double> operation_prices_s(const TrainingGraph& graph, double images, const CostModel& cost,
                                       const Machine& machine, const Device& device) {
  IssueQueue queue(cost.begin_s(machine.device_types[device.type]));
  std::vector<double> prices_s;
  for (const Operation& operation : graph.operations) {
    const double before_s = queue.end_s();
    queue.run(cost.queued_time(operation.work, images, machine, device));
    prices_s.push_back(queue.end_s() - before_s);
  }
  return prices_s;
}

}  // namespace convoy::costs
