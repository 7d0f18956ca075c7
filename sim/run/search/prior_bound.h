// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/search/assess.h"
#include "sim/run/simulate.h"

namespace convoy {

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
  explicit CostTable(const PreparedRun& run) : run_(run) {}

  const PreparedRun& run() const { return run_; }
  /// Of each kind of device in the cluster, at its speed.
  const std::vector<Passes>& of_kinds(double images);
  Passes quickest(double images);  ///< each number's least over the kinds

 private:
  const PreparedRun& run_;
  std::map<double, std::vector<Passes>> rows_;
};

/// A bound of a candidate's step before anything of it is planned, from the cost table alone; nothing where
/// there is none. Below, N devices, and F and B the forward and backward time of a micro-batch.
///
/// Replicas (data_parallel) and a single device run all of F and B of each of their micro-batches one after
/// the other, and the update where the states are not sharded; the slowest device too.
///
/// A pipeline that runs empty before its update takes m micro-batches through S stages. Each of them goes
/// forward and back through all, so that no step is shorter than F + B; no device is idle in less than m (F +
/// B) / S. A stage can begin its first backward pass only when one micro-batch has been forward through all
/// stages and back to it, and the last of its m backward passes has still to go back to the first: with the
/// stage's backward pass b the step takes at least F + B + (m - 1) b, and some stage has b >= B / S. The same
/// of forward passes, from the end. Where stages take several devices each, some device of every stage still
/// has two micro-batches if there are more of them than a stage can have devices.
///
/// Operations that are placed whole (pardnn) take at least the longest path of them.
///
/// Tests hold it against the bounds of plans and against simulations.
/// @param candidate a readable `strategy:` mapping  @param label what results call it
std::optional<Assessment> prior_bound(const YamlNode& candidate, const std::string& label,
                                      const BatchSpec& batch, CostTable& table);

}  // namespace convoy
