// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "models/training_graph.h"
#include "sim/costs/issue_queue.h"
#include "sim/costs/software.h"
#include "topologies/machine.h"

namespace convoy::inline costs {

/// Which of the efficiencies is that of `work`.
KernelClass kernel_class(const Work& work);

/// Time of `work` on `images` images (design A3; docs/cost_model.md):
///   launch overhead + max(FLOPs / (peak efficiency), bytes / (bandwidth efficiency))
/// Work with a measured time takes that time. Zero FLOPs and zero bytes cost nothing, not even the launch. On
/// devices with tensor cores, products in lower precisions run on them or on the ordinary cores, whichever
/// takes less. The precision must be in device.peak_flops (the experiment reader checks it). Never less for
/// more images.
double operation_time_s(const Work& work, double images, const Software& software, const DeviceType& device);

/// Launch overheads in the time of work that is not nothing.
double launches(const Work& work, const Software& software, const DeviceType& device);

/// Share of peak that `work` reaches on `images` images: what the FLOPs above are divided by. Never more than
/// the saving in multiplications of the fastest algorithm (Efficiency).
/// @param precision what `efficiency` is of: tensor cores want channels in multiples of 16 bytes
double compute_efficiency(const Work& work, double images, Precision precision, const Efficiency& efficiency,
                          Layout layout = Layout::nchw);

/// Host time from this operation to the next; 0 where the device's hosts cost nothing, and for what is no
/// kernel of its own: the sums for scale and shift of a normalization, and chains of elementwise operations
/// that are one kernel.
double issue_time_s(const Work& work, double images, const Software& software, const DeviceType& device);

/// The one cost model of an experiment: the roofline above, times a factor per layer and pass where the
/// experiment has measured times of them (`training.profile`), times a factor per device type where it
/// anchors it to a measured throughput (`training.anchor`).
class CostModel {
 public:
  explicit CostModel(const Software& software) : software_(software) {}
  double time_s(const Work& work, double images, const DeviceType& device) const;
  /// Of the host's thread that issues to the device, where it issues to `devices`
  /// (Software::one_process_a_host).
  double issue_s(const Work& work, double images, const DeviceType& device, std::uint32_t devices = 1) const;
  /// What the operation takes of one of a machine's devices, as fast as it is, and of its host, which issues
  /// to all devices that it has.
  QueuedTime queued_time(const Work& work, double images, const Machine& machine, const Device& device) const;
  /// Scales the times of a layer on `device` so that its forward pass and its backward pass (data and weight
  /// gradient together) on `images` images take as long as measured. A pass without work is left as it is.
  void measured(const TrainingGraph& graph, std::uint32_t layer, double images, double forward_s,
                double backward_s, const DeviceType& device);
  /// Scales every time on `device` so that one step of `graph` on `images` images alone takes images /
  /// images_per_s. A graph without work is left as it is. Anchoring again replaces the factor.
  void anchor(const TrainingGraph& graph, double images, double images_per_s, const DeviceType& device);
  /// Whether any device's times are scaled to a measurement of a whole step.
  bool is_anchored() const { return !scale_.empty(); }
  Precision precision() const { return software_.precision; }
  const Software& software() const { return software_; }

 private:
  double scale(const DeviceType& device) const;

  Software software_;
  std::map<std::string, double> scale_;  ///< by device name
  struct Factors {
    double forward = 1, backward = 1;
  };
  std::map<std::string, std::vector<Factors>> measured_;  ///< by device name and layer
};

/// Devices of its host, to all of which that issues; 1 where the machine has no hosts.
std::uint32_t devices_of_host(const Machine& machine, const Device& device);

/// One step of the whole graph on one device: its operations in order, each when the host has issued it and
/// the one before is done.
/// @param with_recomputation false: without the operations that run a second time
double step_time_s(const TrainingGraph& graph, double images, const CostModel& cost, const DeviceType& device,
                   bool with_recomputation = true);
/// The same on one of a machine's devices, as fast as it is, whose host issues to all that it has.
double step_time_s(const TrainingGraph& graph, double images, const CostModel& cost, const Machine& machine,
                   const Device& device);

/// By operation of the graph: how much later such a step on the device has come to its end with it. They add
/// up to step_time_s. What waits for the host is in the operations that the device waits for, and where the
/// host is ahead, as small operations after large ones may find it, they take their time on the device: the
/// price of an operation for those who have to add prices up.
std::vector<double> operation_prices_s(const TrainingGraph& graph, double images, const CostModel& cost,
                                       const Machine& machine, const Device& device);

}  // namespace convoy::costs
