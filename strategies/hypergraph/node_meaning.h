// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "sim/lowering/placed_plan.h"
#include "strategies/hypergraph/node_shares.h"

namespace convoy::inline strategies {

/// Says what the operations and messages of parts mean (sim/plan/meaning.h), where that is asked for.
class NodeMeaning {
 public:
  /// Both are referred to.
  NodeMeaning(const NodeShares& shares, PlacedWork& work) : shares_(shares), work_(work) {}

  /// Begins to say it: lists who has which nodes.
  void begin();
  /// A part's slice of an operation of layer i.
  void of_kernel(PlanOp& op, std::uint32_t i, OpId id);
  /// A kernel that adds up all gradients of layer i's nodes that are there and have come: of the part's own
  /// nodes, or of those that it reads of others.
  void of_sum(PlanOp& op, std::uint32_t i, bool own);
  /// An operation whose result another one tells.
  void of_nothing(PlanOp& op) { work_.mean(op, {}); }
  /// What parts send each other of layer j: outputs forward, gradients backward.
  CommMeaning of_message(std::uint32_t j, bool forward) const;

 private:
  static std::uint32_t owned(std::uint32_t i) { return 2 * i; }     ///< layouts
  static std::uint32_t read(std::uint32_t i) { return 2 * i + 1; }  ///< by p's nodes, and others'
  OpId gradient_made_for(std::uint32_t j) const;
  OpId made_by(std::uint32_t i) const;

  const NodeShares& shares_;
  PlacedWork& work_;
};

}  // namespace convoy::strategies
