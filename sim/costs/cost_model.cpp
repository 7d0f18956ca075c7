// SPDX-License-Identifier: MIT
#include "sim/costs/cost_model.h"

#include <algorithm>

namespace convoy {
namespace {

double saturation(double size, double half) { return half > 0 ? size / (size + half) : 1.0; }

// Tensor cores load 16 bytes at a time: 8 channels of 2 bytes, 4 of tf32 (NVIDIA, Convolutional Layers User's
// Guide, "Tensor Core Requirements"). Grouped convolutions have a class of their own instead.
bool fits_tensor_cores(const Work& work, Precision precision) {
  if (precision == Precision::fp32 || work.groups > 1) return true;
  const std::int64_t multiple = 16 / element_bytes(precision);
  return work.in_channels % multiple == 0 && work.out_channels % multiple == 0;
}

double phase_share(Phase phase, const Efficiency& efficiency) {
  if (phase == Phase::data_gradient) return efficiency.data_gradient;
  return phase == Phase::weight_gradient ? efficiency.weight_gradient : 1.0;
}

}  // namespace

KernelClass kernel_class(const Work& work) {
  switch (work.kind) {
    case KernelKind::convolution:
      if (work.groups > 1) return KernelClass::convolution_grouped;
      if (work.kernel_h == 1 && work.kernel_w == 1) return KernelClass::convolution_1x1;
      if (work.kernel_h == work.kernel_w && work.stride == 1)
        return work.kernel_h < 5 ? KernelClass::convolution_3x3 : KernelClass::convolution_5x5;
      return KernelClass::convolution_other;
    case KernelKind::depthwise_convolution:
      return KernelClass::convolution_depthwise;
    case KernelKind::matmul:
      return KernelClass::matmul;
    case KernelKind::normalization:
      return KernelClass::normalization;
    case KernelKind::elementwise:
      return KernelClass::elementwise;
    case KernelKind::pooling:
      return KernelClass::pooling;
    case KernelKind::softmax_loss:
      return KernelClass::softmax_loss;
    case KernelKind::update:
      return KernelClass::update;
    case KernelKind::custom:
      return KernelClass::custom;
  }
  return KernelClass::custom;
}

double compute_efficiency(const Work& work, double images, Precision precision,
                          const Efficiency& efficiency) {
  const KernelClass kernel = kernel_class(work);
  double share = efficiency.compute[static_cast<std::size_t>(kernel)];
  if (kernel > KernelClass::matmul) return share;
  share *= phase_share(work.phase, efficiency);
  if (kernel == KernelClass::convolution_depthwise) return share;
  const bool weights = work.phase == Phase::weight_gradient;
  const double groups = std::max<double>(1.0, static_cast<double>(work.groups));
  const double area = static_cast<double>(std::max<std::int64_t>(1, work.kernel_h * work.kernel_w));
  const double pixels = static_cast<double>(std::max<std::int64_t>(1, work.out_h * work.out_w));
  const double inputs = static_cast<double>(work.in_channels) / groups;
  const double outputs = static_cast<double>(work.out_channels) / groups;
  double shape = 1;
  if (outputs > 0)
    shape *= saturation(outputs, weights ? efficiency.half_weight_outputs : efficiency.half_outputs);
  if (inputs > 0)
    shape *=
        saturation(inputs * area, weights ? efficiency.half_weight_reduction : efficiency.half_reduction);
  const bool winograd = kernel == KernelClass::convolution_3x3 && efficiency.half_winograd > 0;
  if (winograd) {
    const double general = efficiency.compute[static_cast<std::size_t>(KernelClass::convolution_other)] *
                           phase_share(work.phase, efficiency) * shape;
    const double half = efficiency.half_winograd;
    share = std::max(share * saturation(inputs, half) * saturation(outputs, half), general);
  } else {
    share *= shape;
  }
  if (work.phase == Phase::data_gradient && work.stride > 1) share *= efficiency.strided_data_gradient;
  if (!fits_tensor_cores(work, precision)) share *= efficiency.unaligned;
  // Only the FLOPs of images have rows; were fixed ones to speed up with them, more images could take less
  // time.
  const double of_images = work.flops_per_image * images;
  if (of_images > 0) {
    const double half = kernel == KernelClass::matmul ? efficiency.half_matmul_rows
                        : weights                     ? efficiency.half_weight_rows
                                                      : efficiency.half_rows;
    const double stretched = of_images / saturation(images * pixels, half);
    share *= (of_images + work.flops_fixed) / (stretched + work.flops_fixed);
  }
  return share;
}

double operation_time_s(const Work& work, double images, Precision precision, const DeviceType& device) {
  if (work.seconds_per_image > 0) return work.seconds_per_image * images;
  const double flops = work.flops_per_image * images + work.flops_fixed;
  const double bytes = work.bytes_per_image * images + work.bytes_fixed;
  if (flops <= 0 && bytes <= 0) return 0;
  const Efficiency& efficiency = device.efficiency[static_cast<std::size_t>(precision)];
  const double bandwidth =
      device.memory_bandwidth_Bps * efficiency.bandwidth[static_cast<std::size_t>(kernel_class(work))];
  const double peak =
      device.peak_flops.at(precision) * compute_efficiency(work, images, precision, efficiency);
  return device.launch_overhead_s + std::max(flops / peak, bytes / bandwidth);
}

double CostModel::time_s(const Work& work, double images, const DeviceType& device) const {
  double time = operation_time_s(work, images, precision_, device);
  if (const auto layers = measured_.find(device.name);
      layers != measured_.end() && work.layer < layers->second.size())
    time *= work.phase == Phase::forward ? layers->second[work.layer].forward
                                         : layers->second[work.layer].backward;
  if (scale_.empty()) return time;
  const auto scale = scale_.find(device.name);
  return scale == scale_.end() ? time : time * scale->second;
}

void CostModel::measured(const TrainingGraph& graph, std::uint32_t layer, double images, double forward_s,
                         double backward_s, const DeviceType& device) {
  std::vector<Factors>& factors = measured_[device.name];
  factors.resize(graph.model.layers.size());
  double predicted_forward_s = 0, predicted_backward_s = 0;
  for (const Operation& op : graph.operations)
    if (op.work.layer == layer && !op.again)
      (op.phase == Phase::forward ? predicted_forward_s : predicted_backward_s) +=
          operation_time_s(op.work, images, precision_, device);
  if (predicted_forward_s > 0) factors[layer].forward = forward_s / predicted_forward_s;
  if (predicted_backward_s > 0) factors[layer].backward = backward_s / predicted_backward_s;
}

void CostModel::anchor(const TrainingGraph& graph, double images, double images_per_s,
                       const DeviceType& device) {
  scale_.erase(device.name);
  double predicted = 0;
  for (const Operation& operation : graph.operations)
    if (!operation.again) predicted += time_s(operation.work, images, device);
  if (predicted > 0) scale_[device.name] = images / images_per_s / predicted;
}

double step_time_s(const TrainingGraph& graph, double images, const CostModel& cost,
                   const DeviceType& device) {
  double sum = 0;
  for (const Operation& operation : graph.operations) sum += cost.time_s(operation.work, images, device);
  return sum;
}

}  // namespace convoy
