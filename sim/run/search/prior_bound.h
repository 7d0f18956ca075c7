// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/run/search/assess.h"
#include "sim/run/simulate.h"

namespace convoy::inline search {

/// What one device computes of a step, by the images that it has at once: shared by all candidates of a
/// search, since none of them changes the devices, the network or the software.
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

  /// @param run of the cluster's own hosts; must outlive the table
  explicit CostTable(const PreparedRun& run);

  const PreparedRun& run() const { return run_; }
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

  const PreparedRun& run_;
  std::set<std::pair<std::uint32_t, double>> kinds_;
  /// By images, devices, and the rows of their grid (0: none).
  std::map<std::tuple<double, std::int64_t, std::int64_t>, std::vector<Passes>> rows_;
  std::optional<double> spread_s_;
};

/// A bound of a candidate's step before anything of it is planned, from the cost table alone; nothing where
/// there is none. Below, N devices, and F and B the forward and backward time of a micro-batch.
///
/// Replicas (data_parallel) and a single device run all of F and B of each of their micro-batches one after
/// the other, and the update where the states are not sharded; the slowest device too. Where servers on the
/// nodes have whole tensors, one of them sends the largest to every other node.
///
/// A pipeline that runs empty before its update takes m micro-batches through S stages. Each of them goes
/// forward and back through all, so that no step is shorter than F + B; no device is idle in less than m (F +
/// B) / S. A stage can begin its first backward pass only when one micro-batch has been forward through all
/// stages and back to it, and the last of its m backward passes has still to go back to the first: with the
/// stage's backward pass b the step takes at least F + B + (m - 1) b, and some stage has b >= B / S. The same
/// of forward passes, from the end. Where stages take several devices each, some device of every stage still
/// has two micro-batches if there are more of them than a stage can have devices.
///
/// Devices that split layers (hybrid) each run their part of every operation of every micro-batch, and no
/// part of an operation takes less than least_split_time_s, whatever the layouts are.
///
/// Stages that hold another strategy are such a pipeline, in which F and B are those of a device of a stage:
/// of its images (data_parallel), or of its part of every operation (hybrid). Where the number of stages is
/// chosen, the bound is the least over those that it may be.
///
/// Operations that are placed whole (pardnn) take at least the longest path of them. Where channels are
/// placed (hypergraph), node_chain_s says how long the path of a micro-batch takes at least.
///
/// Tests hold it against the bounds of plans and against simulations.
/// @param candidate a readable `strategy:` mapping  @param label what results call it
std::optional<Assessment> prior_bound(const YamlNode& candidate, const std::string& label,
                                      const BatchSpec& batch, CostTable& table);

}  // namespace convoy::search
