// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "models/training_graph.h"
#include "topologies/device.h"

namespace convoy {

/// Which of the efficiencies is that of `work`.
KernelClass kernel_class(const Work& work);

/// Time of `work` on `images` images (design A3; docs/cost_model.md):
///   launch overhead + max(FLOPs / (peak efficiency), bytes / (bandwidth efficiency))
/// Work with a measured time takes that time. Zero FLOPs and zero bytes cost nothing, not even the launch.
/// The precision must be in device.peak_flops (the experiment reader checks it). Never less for more images.
double operation_time_s(const Work& work, double images, Precision precision, const DeviceType& device);

/// Share of peak that `work` reaches on `images` images: what the FLOPs above are divided by.
/// @param precision what `efficiency` is of: tensor cores want channels in multiples of 16 bytes
double compute_efficiency(const Work& work, double images, Precision precision, const Efficiency& efficiency);

/// The one cost model of an experiment: the roofline above, times a factor per layer and pass where the
/// experiment has measured times of them (`training.profile`), times a factor per device type where it
/// anchors it to a measured throughput (`training.anchor`).
class CostModel {
 public:
  explicit CostModel(Precision precision) : precision_(precision) {}
  double time_s(const Work& work, double images, const DeviceType& device) const;
  /// Scales the times of a layer on `device` so that its forward pass and its backward pass (data and weight
  /// gradient together) on `images` images take as long as measured. A pass without work is left as it is.
  void measured(const TrainingGraph& graph, std::uint32_t layer, double images, double forward_s,
                double backward_s, const DeviceType& device);
  /// Scales every time on `device` so that one step of `graph` on `images` images alone takes images /
  /// images_per_s. A graph without work is left as it is. Anchoring again replaces the factor.
  void anchor(const TrainingGraph& graph, double images, double images_per_s, const DeviceType& device);
  Precision precision() const { return precision_; }

 private:
  Precision precision_;
  std::map<std::string, double> scale_;  ///< by device name
  struct Factors {
    double forward = 1, backward = 1;
  };
  std::map<std::string, std::vector<Factors>> measured_;  ///< by device name and layer
};

/// One step of the whole graph on one device: the sum of its operation times.
double step_time_s(const TrainingGraph& graph, double images, const CostModel& cost,
                   const DeviceType& device);

}  // namespace convoy
