// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/lowering/liveness.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline lowering {

/// What devices send each other for every micro-batch, all of it one communication.
struct PlacedMessage {
  struct Part {
    EndpointId from, to;
    double bytes;
  };
  std::string name;
  std::vector<Part> parts;
  CommMeaning meaning{};  ///< of micro-batch 0; where the work has a meaning
};

/// What a device does at one go, for every micro-batch.
struct PlacedStep {
  std::string name;          ///< of the task that it ends with; "": the next step may go into the same
  bool forward = true;       ///< backward steps go before forward ones that could begin as early
  bool after_sends = false;  ///< everything that the device has sent is delivered before it begins
  std::vector<std::uint32_t> receives;  ///< messages that it waits for
  std::vector<PlanOp> ops;
  std::vector<std::uint32_t> sends;  ///< messages that leave at its end
  /// A weight gradient of which other devices have made all or parts: an operation of the step adds these to
  /// those here, and the device's update uses the sum.
  struct TakenIn {
    OpId gradient;
    std::size_t op;  ///< among the step's
  };
  std::optional<TakenIn> takes_in{};
};

/// A device with its own part of the work, or several that do the same.
struct PlacedDevice {
  std::string name;
  std::vector<EndpointId> members;
  /// By parameter of the graph: elements that it updates, and keeps the states of; empty: none.
  std::vector<double> parameters;
  double frozen_elements = 0;                    ///< that it keeps and does not train
  std::vector<PlacedStep> steps;                 ///< of a micro-batch, in order
  std::vector<LiveTensor<MemoryDelta>> tensors;  ///< positions count the steps' operations
  std::vector<PlanOp> update;                    ///< after all micro-batches
};

/// An annotation of work that is placed on devices operation by operation or channel by channel, and not
/// layer by layer on stages: what each device does in which order, and what it sends. Messages follow from
/// who makes a tensor and who reads it.
struct PlacedWork {
  double images = 0;  ///< of a micro-batch of a replica
  std::uint32_t micro_batches = 1;
  std::vector<PlacedMessage> messages;
  std::vector<PlacedDevice> devices;
  /// All of it several times side by side: replica r has its device d where the first has device
  /// r * devices_a_replica + d, and works on images of its own.
  std::uint32_t replicas = 1;
  std::uint32_t devices_a_replica = 0;
  /// Where it is asked for: layouts, and of the first replica's devices who has images, and what the operations
  /// (by PlanOp::meaning) mean, but for micro-batches and images. A device's position is its number.
  std::shared_ptr<Meaning> meaning{};

  /// Notes what an operation means, where that is asked for.
  void mean(PlanOp& op, const OpMeaning& of);
};

/// The plan of placed work. A device goes through its steps in their order; of several micro-batches, which
/// are under way at a time, in that of a list schedule (micro_batch_order.h). Tensors are allocated and freed
/// by the liveness pass, in every micro-batch. A device and those that stand for it in the other replicas sum
/// its gradients and update its parameters as `sync` says (ReplicaProgram), bucket by bucket when no micro-batch
/// adds to them any more, with the launches (grouped_launch.h) and waits (held_normalization.h) of replicas.
/// @throws InputError as GroupSync
Plan plan_placed(PlacedWork work, const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                 const GradientSync& sync);

}  // namespace convoy::lowering
