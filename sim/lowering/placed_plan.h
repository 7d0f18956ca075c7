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

/// What devices send each other in every micro-batch, as one communication.
struct PlacedMessage {
  struct Part {
    EndpointId from, to;
    double bytes;
  };
  std::string name;
  std::vector<Part> parts;
  CommMeaning meaning{};  ///< for micro-batch 0, if the work has a meaning
};

/// What a device does in every micro-batch without doing anything else in between.
struct PlacedStep {
  std::string name;          ///< of the task that ends with it; "": the next step may continue the task
  bool forward = true;       ///< if both could begin at the same time, backward steps go first
  bool after_sends = false;  ///< it begins when everything that the device has sent has been delivered
  std::vector<std::uint32_t> receives;  ///< messages that it waits for
  std::vector<PlanOp> ops;
  std::vector<std::uint32_t> sends;  ///< messages that leave at its end
  /// A weight gradient that other devices have made in full or in part: an operation of the step adds what
  /// they send to what is here, and the device's update uses the sum.
  struct TakenIn {
    OpId gradient;
    std::size_t op;  ///< among the step's
  };
  std::optional<TakenIn> takes_in{};
};

/// A device with its part of the work, or several devices that do the same.
struct PlacedDevice {
  std::string name;
  std::vector<EndpointId> members;
  /// By parameter of the graph: elements that it updates, and keeps the states of; empty: none.
  std::vector<double> parameters;
  double frozen_elements = 0;                    ///< elements that it keeps and does not train
  std::vector<PlacedStep> steps;                 ///< of a micro-batch, in order
  std::vector<LiveTensor<MemoryDelta>> tensors;  ///< positions count the steps' operations
  std::vector<PlanOp> update;                    ///< after all micro-batches
};

/// An annotation of work that is placed on devices operation by operation or channel by channel, instead of
/// layer by layer on stages: what each device does, in which order, and what it sends. Messages follow from
/// the devices that make and read each tensor.
struct PlacedWork {
  double images = 0;  ///< of a micro-batch of a replica
  std::uint32_t micro_batches = 1;
  std::vector<PlacedMessage> messages;
  std::vector<PlacedDevice> devices;
  /// Number of replicas of this work side by side, each with images of its own. Device d of replica r is
  /// device r * devices_a_replica + d of the machine.
  std::uint32_t replicas = 1;
  std::uint32_t devices_a_replica = 0;
  /// If a meaning is asked for: the layouts, which devices of the first replica have images, and the meaning
  /// of the operations (by PlanOp::meaning) without their micro-batches and images. A device's position is
  /// its number.
  std::shared_ptr<Meaning> meaning{};

  /// Records the meaning of an operation, if that is asked for.
  void mean(PlanOp& op, const OpMeaning& of);
};

/// The plan of placed work. Within a micro-batch, a device runs its steps in their order; several
/// micro-batches overlap in the order of a list schedule (micro_batch_order.h). Tensors are allocated and
/// freed by the liveness pass, in every micro-batch. A device and the corresponding devices of the other
/// replicas sum their gradients and update their parameters as `sync` says (ReplicaProgram), bucket by
/// bucket, as soon as no micro-batch adds to a bucket any more, with the launches (grouped_launch.h) and
/// waits (held_normalization.h) of replicas.
/// @throws InputError as GroupSync
Plan plan_placed(PlacedWork work, const TrainingGraph& graph, const Machine& machine, const CostModel& cost,
                 const GradientSync& sync);

}  // namespace convoy::lowering
