// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "models/training_graph.h"
#include "sim/costs/issue_queue.h"
#include "sim/costs/software.h"
#include "topologies/machine.h"

namespace convoy::inline costs {

/// Time of `work` on `images` images (design A3; docs/cost_model.md):
///   launch overhead + max(FLOPs / (peak efficiency), bytes / (bandwidth efficiency))    (peak_share.h)
///   + bytes of elementwise kernels beside a product / (bandwidth efficiency of those)
/// Work with a measured time takes that time. Zero FLOPs and zero bytes cost nothing, not even the launch. On
/// devices with tensor cores, products in lower precisions run on these or on the ordinary cores, whichever
/// takes less time. The precision must be in device.peak_flops (the experiment reader checks it). More images
/// never take less time.
double operation_time_s(const Work& work, double images, const Software& software, const DeviceType& device);

/// Number of launch overheads in the time of work, unless there is no work.
double launches(const Work& work, const Software& software, const DeviceType& device);

/// Host time from this operation to the next. It is 0 if the device's hosts cost nothing, and for operations
/// that are not a kernel of their own: the sums for scale and shift of a normalization, and chains of
/// elementwise operations that are one kernel.
double issue_time_s(const Work& work, double images, const Software& software, const DeviceType& device);

/// Host time in a step before the first operation. 0 if the device's hosts cost nothing.
double begin_time_s(const Software& software, const DeviceType& device);

/// The one cost model of an experiment: the roofline above, times a factor per layer and pass if the
/// experiment has measured times for them (`training.profile`), times a factor per device type if it scales
/// that type to a measured throughput (`training.anchor`).
class CostModel {
 public:
  explicit CostModel(const Software& software) : software_(software) {}
  double time_s(const Work& work, double images, const DeviceType& device) const;
  /// Time of the host's thread that issues to the device, if it issues to `devices` devices
  /// (Software::one_process_a_host).
  double issue_s(const Work& work, double images, const DeviceType& device, std::uint32_t devices = 1) const;
  /// Time of the host's thread before it issues a step's first operation.
  double begin_s(const DeviceType& device) const;
  /// Time of the operation on one of a machine's devices, at that device's speed, and on its host, which
  /// issues to all of its devices.
  QueuedTime queued_time(const Work& work, double images, const Machine& machine, const Device& device) const;
  /// Scales the times of a layer on `device` so that its forward pass and its backward pass (data and weight
  /// gradient together) on `images` images take as long as measured. A pass without work is not changed.
  void measured(const TrainingGraph& graph, std::uint32_t layer, double images, double forward_s,
                double backward_s, const DeviceType& device);
  /// Whether times on the device depend on the layer (measured()).
  bool has_measured_layers(const DeviceType& device) const { return measured_.contains(device.name); }
  /// Scales all times on `device` so that one step of `graph` on `images` images alone takes images /
  /// images_per_s. A graph without work is not changed. Anchoring again replaces the factor.
  void anchor(const TrainingGraph& graph, double images, double images_per_s, const DeviceType& device);
  /// Whether the times of any device are scaled to a measurement of a whole step.
  bool is_anchored() const { return !scale_.empty(); }
  /// Of the measurements that is_anchored() tells of, the number of images a step had.
  std::vector<double> anchored_images() const;
  /// How many times as long as without an anchor what is done on the device takes.
  double scale(const DeviceType& device) const;
  Precision precision() const { return software_.precision; }
  const Software& software() const { return software_; }
  /// The same with other costs of software.
  CostModel with(const Software& software) const;
  bool operator==(const CostModel&) const = default;

 private:
  Software software_;
  struct Scale {
    double factor = 1, images = 0;
    bool operator==(const Scale&) const = default;
  };
  std::map<std::string, Scale> scale_;  ///< by device name
  struct Factors {
    double forward = 1, backward = 1;
    bool operator==(const Factors&) const = default;
  };
  std::map<std::string, std::vector<Factors>> measured_;  ///< by device name and layer
};

/// Number of devices to which the host of this device issues; 1 if the machine has no hosts.
std::uint32_t devices_of_host(const Machine& machine, const Device& device);

/// One step of the whole graph on one device: its operations in order, each when the host has issued it and
/// the one before it is done.
/// @param with_recomputation false: without the operations that run a second time
double step_time_s(const TrainingGraph& graph, double images, const CostModel& cost, const DeviceType& device,
                   bool with_recomputation = true);
/// The same on one of a machine's devices, at that device's speed, whose host issues to all of its devices.
double step_time_s(const TrainingGraph& graph, double images, const CostModel& cost, const Machine& machine,
                   const Device& device);

/// For each operation of the graph: how much later the step on the device ends because of it. These prices
/// add up to step_time_s. The time in which an operation waits for the host belongs to the operations for
/// which the device waits. Operations for which the host is ahead, as it may be for small operations after
/// large ones, cost their time on the device. For callers that need a price per operation which can be added
/// up.
std::vector<double> operation_prices_s(const TrainingGraph& graph, double images, const CostModel& cost,
                                       const Machine& machine, const Device& device);

}  // namespace convoy::costs
