// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "models/layer.h"
#include "models/training_graph.h"
#include "sim/costs/cost_model.h"
#include "topologies/machine.h"

namespace convoy::inline strategies {

/// What one device computes of a step, by the images that it has at once: shared by all strategies whose
/// floors (Strategy::floor) are asked for, since none of them changes the devices, the network or the
/// software.
class CostTable {
 public:
  struct Passes {
    double forward_s = 0, backward_s = 0, update_s = 0;
    /// Forward and backward of the whole batch, each operation when the host has issued it.
    double issued_s = 0;
    double host_s = 0;   ///< that the host takes to issue forward and backward
    double chain_s = 0;  ///< the longest path of operations that wait for each other, without the updates
    double both_s() const { return forward_s + backward_s; }
  };

  /// @param machine with the cluster's own hosts only. All three must outlive the table.
  CostTable(const TrainingGraph& graph, const Machine& machine, const CostModel& cost);

  const TrainingGraph& graph() const { return graph_; }
  const Machine& machine() const { return machine_; }
  const CostModel& cost() const { return cost_; }
  std::int64_t device_count() const { return static_cast<std::int64_t>(machine_.devices.size()); }
  /// Types and speeds of the cluster's devices, each pair once.
  const std::set<std::pair<std::uint32_t, double>>& kinds() const { return kinds_; }
  /// Of each kind of device in the cluster, at its speed.
  const std::vector<Passes>& of_kinds(double images) { return of_kinds(images, {}); }
  /// Devices that split every layer of the images among them, as hybrids may (least_split_time_s).
  struct Split {
    std::int64_t devices = 1;
    std::optional<Size2> grid = {};  ///< of rows and columns, where they may be split by both
  };
  /// Each number's least over the kinds; of several devices without the updates.
  Passes quickest(double images) { return quickest(images, {}); }
  Passes quickest(double images, const Split& split);
  /// What the server of the largest tensor takes at least to send it to all other nodes; 0 where nothing is
  /// known of the ways between hosts.
  double spread_largest_tensor_s();

 private:
  const std::vector<Passes>& of_kinds(double images, const Split& split);

  const TrainingGraph& graph_;
  const Machine& machine_;
  const CostModel& cost_;
  std::set<std::pair<std::uint32_t, double>> kinds_;
  /// By images, devices, and the rows of their grid (0: none).
  std::map<std::tuple<double, std::int64_t, std::int64_t>, std::vector<Passes>> rows_;
  std::optional<double> spread_s_;
};

}  // namespace convoy::strategies
