// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/partition/hypergraph_partition.h"

namespace convoy {

/// k-way Fiduccia-Mattheyses on one level, in place. @param limit weight that no part should exceed.
class FmRefinement {
 public:
  FmRefinement(const Hypergraph& graph, Parts& parts, std::uint32_t count, double limit);
  /// Passes until one brings nothing. Leaves the best partition it has seen in `parts`.
  void run();

 private:
  struct Score {
    double excess, cost;
    bool operator<(const Score& other) const {
      return excess != other.excess ? excess < other.excess : cost < other.cost;
    }
  };
  struct Move {
    std::uint32_t vertex, to;
    double gain;
  };
  bool pass();
  bool best_move(const std::vector<char>& locked, Move& best) const;
  void move(std::uint32_t vertex, std::uint32_t to);
  double gain(std::uint32_t vertex, std::uint32_t to) const;
  Score score() const;
  bool allowed(std::uint32_t vertex, std::uint32_t to) const;
  std::uint32_t& pins_in(std::uint32_t net, std::uint32_t part) { return pins_in_[net * count_ + part]; }

  const Hypergraph& graph_;
  Parts& parts_;
  std::uint32_t count_;
  double limit_;
  std::vector<std::vector<std::uint32_t>> nets_of_;  ///< by vertex
  std::vector<std::uint32_t> pins_in_;               ///< by net and part
  std::vector<double> leaving_;   ///< by vertex: cost of nets that are in its part for it alone
  std::vector<double> entering_;  ///< by vertex and part: cost of its nets that are not there
  std::vector<double> part_weight_;
  double cost_ = 0;
};

}  // namespace convoy
