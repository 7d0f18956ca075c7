// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "sim/lowering/exchanges.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/plan/strategy_report.h"

namespace convoy::inline lowering {

/// Who has replicas of what on a stage. Weights that all devices of a group have are everyone's, of all
/// groups; a device's share of weights, and what all of a group compute alike, is that of the same position
/// in every group.
class ShardReplicas {
 public:
  /// @param stages of each layer
  ShardReplicas(Plan& plan, const TrainingGraph& graph, const Machine& machine, const DeviceGroups& groups,
                const std::vector<std::uint32_t>& stages, const std::vector<LayerSharding>& shardings,
                const GradientSync& sync);

  /// Those that a device of a stage's groups is a member of.
  /// @param device of a group, by position
  std::vector<GroupSync*> of(std::uint32_t stage, std::size_t device) { return of_[stage][device]; }

  /// What the layouts are and what they send, once all programs have been made.
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
