// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/partition/slicing.h"

namespace convoy::inline partition {

/// The messages between each cluster of a graph and the others, one for each edge that leads from one cluster
/// to another: in the order of the cluster's nodes, of each node those to its readers and then those from its
/// inputs.
class ClusterMessages {
 public:
  /// @param message_us of each node's output
  ClusterMessages(const Dag& dag, const Slices& slices, const std::vector<double>& message_us);

  /// The other end of each message of a cluster.
  std::span<const std::uint32_t> others(std::uint32_t cluster) const { return slice(other_, cluster); }
  /// What each of them costs, in the same order.
  std::span<const double> costs_us(std::uint32_t cluster) const { return slice(cost_us_, cluster); }

 private:
  template <typename T>
  std::span<const T> slice(const std::vector<T>& all, std::uint32_t cluster) const {
    return {all.data() + begin_[cluster], all.data() + begin_[cluster + 1]};
  }
  std::vector<std::size_t> begin_;  ///< of each cluster's messages
  std::vector<std::uint32_t> other_;
  std::vector<double> cost_us_;
};

}  // namespace convoy::partition
