// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace convoy::inline partition {

using NodeId = std::uint32_t;                                      ///< index into a Dag's vectors
using Part = std::uint32_t;                                        ///< a device of a placement, from 0
inline constexpr Part no_part = std::numeric_limits<Part>::max();  ///< of what is not placed yet
using Placement = std::vector<Part>;                               ///< part of each node

/// Two devices hold each of them a part: what a message between any two of them costs.
struct PartLink {
  double latency_us = 25;
  double bandwidth_Bpus = 130'000;  ///< bytes/us; 130,000 is 130 GB/s
  double cost_us(double bytes) const { return latency_us + bytes / bandwidth_Bpus; }
};

/// An edge list that no order of execution satisfies.
class CycleError : public std::runtime_error {
 public:
  explicit CycleError(NodeId node);
  NodeId node;  ///< one of the nodes on a cycle
};

/// Operations with their times and the bytes they hand on, and who reads whose output. Plain values: the
/// raw graph that `convoy partition` reads, or a training graph seen by a partitioner.
///
/// Times are microseconds, as in the files of graphs: whole ones add up exactly, so that two equally long paths
/// stay equal, whatever the order of their sums, and ties are broken by rule and not by rounding.
class Dag {
 public:
  struct Node {
    double time_us = 0;
    double output_bytes = 0;
    double memory_bytes = 0;  ///< that stay on its device throughout (parameters and the like)
  };
  /// @param edges from producer to consumer; none twice
  /// @param together pairs of nodes that must share a device, beside the updates of variables (below)
  /// @throws CycleError
  Dag(std::vector<Node> nodes, const std::vector<std::pair<NodeId, NodeId>>& edges,
      const std::vector<std::pair<NodeId, NodeId>>& together = {});

  NodeId size() const { return static_cast<NodeId>(time_us_.size()); }
  std::size_t edge_count() const { return children_.size(); }
  double time_us(NodeId v) const { return time_us_[v]; }
  double output_bytes(NodeId v) const { return output_bytes_[v]; }
  double memory_bytes(NodeId v) const { return memory_bytes_[v]; }
  double total_time_us() const { return total_time_us_; }
  std::span<const NodeId> children(NodeId v) const { return slice(children_, child_begin_, v); }
  std::span<const NodeId> parents(NodeId v) const { return slice(parents_, parent_begin_, v); }

  /// Topological order: of the nodes that could come next, the smallest id.
  const std::vector<NodeId>& order() const { return order_; }

  /// Nodes that share a device are a unit: a variable (memory_bytes > 0) with its updates, and what
  /// `together` says. An update is an operation that reads exactly one variable and whose result nobody
  /// reads: all it can be there for is to write that variable. Every other node is a unit of its own.
  NodeId unit_count() const { return static_cast<NodeId>(unit_begin_.size() - 1); }
  NodeId unit(NodeId v) const { return unit_[v]; }
  std::span<const NodeId> members(NodeId unit) const { return slice(members_, unit_begin_, unit); }

 private:
  static std::span<const NodeId> slice(const std::vector<NodeId>& all,
                                       const std::vector<std::uint32_t>& begin, NodeId v) {
    return {all.data() + begin[v], all.data() + begin[v + 1]};
  }
  void link(const std::vector<std::pair<NodeId, NodeId>>& edges);
  void sort_topologically();
  void form_units(const std::vector<std::pair<NodeId, NodeId>>& together);

  std::vector<double> time_us_, output_bytes_, memory_bytes_;
  double total_time_us_ = 0;
  std::vector<std::uint32_t> child_begin_, parent_begin_, unit_begin_;
  std::vector<NodeId> children_, parents_, order_, unit_, members_;
};

/// Longest way from each node to an end of the graph, its own time included: t(v) + max over children w of
/// (cross_us[v] + level(w)). Without `cross_us` messages cost nothing.
std::vector<double> bottom_levels(const Dag& dag, const std::vector<double>& cross_us = {});

/// max(longest way without messages, total work / parts): no schedule is shorter.
double lower_bound_us(const Dag& dag, Part parts);

/// What a message of each node's output costs between two parts.
std::vector<double> message_costs(const Dag& dag, const PartLink& link);

}  // namespace convoy::partition
