// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "sim/lowering/exchanges.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/plan/strategy_report.h"

namespace convoy::inline lowering {

/// Which devices of a stage have replicas of which weights. Weights that every device of a group has are
/// replicated on all devices of all groups. A device's share of weights, and weights whose gradients all
/// devices of a group compute alike, are replicated on the devices with the same position in every group.
class ShardReplicas {
 public:
  /// @param stages of each layer
  ShardReplicas(Plan& plan, const TrainingGraph& graph, const Machine& machine, const DeviceGroups& groups,
                const std::vector<std::uint32_t>& stages, const std::vector<LayerSharding>& shardings,
                const GradientSync& sync);

  /// The groups of replicas of which a device of a stage is a member.
  /// @param device its position in its group
  std::vector<GroupSync*> of(std::uint32_t stage, std::size_t device) { return of_[stage][device]; }

  /// The layouts and what they send. @pre all programs have been made
  std::vector<LayerGroup> describe(const GraphSchedule& schedule, const ExchangeComms& exchanges) const;

 private:
  void add(std::uint32_t stage);
  void add_shares(std::uint32_t stage, const std::vector<std::size_t>& parameters, const std::string& of);
  GroupSync& add(Replicated parameters, const std::string& of);
  double elements_on(std::size_t parameter, std::size_t device) const;
  bool is_everyones(std::size_t layer) const;
  double sent_bytes(CommId comm) const;

  Plan& plan_;
  const TrainingGraph& graph_;
  const Machine& machine_;
  const DeviceGroups& groups_;
  const std::vector<std::uint32_t>& stages_;
  const std::vector<LayerSharding>& shardings_;
  const GradientSync& sync_;
  std::size_t devices_;                                   ///< of a group
  std::vector<const ParameterTensor*> tensors_;           ///< by parameter of the graph
  std::deque<GroupSync> all_;                             ///< they stay where they are
  std::vector<std::vector<std::vector<GroupSync*>>> of_;  ///< by stage and device
};

}  // namespace convoy::lowering
