// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/partition/layered_nets.h"

namespace convoy::inline partition {

/// k-way Fiduccia-Mattheyses on one level, in place. Gains are real numbers, so that instead of buckets of
/// equal gain there are buckets of neighbouring vertices that know their best gain into every part: a move
/// looks at the buckets, and anew only at those whose best gain the one before has lowered. Parts into which
/// no move can gain as much as the best one found are not looked at.
class FmRefinement {
 public:
  /// @param limits weight that each part should not exceed; as many as there are parts
  FmRefinement(const LayeredNets& graph, Parts& parts, std::vector<double> limits);
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
  /// Of a bucket's vertices that may leave their parts, into one part.
  struct Best {
    double gain;
    double lightest;  ///< of them, or less
  };
  bool pass();
  bool best_move(Move& best);
  /// Takes the best move into a part where it is better than `best`.
  void look_at_part(std::uint32_t to, double over, Move& best);
  void look_into(std::uint32_t bucket, std::uint32_t to, Move& best) const;
  const Best& best_of(std::uint32_t bucket, std::uint32_t to);
  void forget_gains();
  void lock(std::uint32_t vertex);
  /// @pre the vertex is locked: no bucket counts on it
  void move(std::uint32_t vertex, std::uint32_t to);
  /// What the move of `vertex` does to the gains of the pins of `net`, whose numbers of pins in both parts
  /// have been changed; that of pins that the net has through a layer is added up in change_.
  void move_in_net(std::uint32_t net, std::uint32_t vertex, std::uint32_t from, std::uint32_t to);
  void apply_changes(std::uint32_t vertex, std::uint32_t from, std::uint32_t to);
  /// The only vertex of a layer in a part but `other`; its number must be known to be one.
  std::uint32_t only_member(std::uint32_t layer, std::uint32_t part, std::uint32_t other) const;
  void revise(std::uint32_t vertex, std::uint32_t part, double before);
  void change_leaving(std::uint32_t vertex, double by);
  void change_entering(std::uint32_t vertex, std::uint32_t part, double by);
  void count_pins();
  void find_gains();
  double gain(std::uint32_t vertex, std::uint32_t to) const {
    return leaving_[vertex] - entering_[to * vertices_ + vertex];
  }
  Score score() const;
  /// How far the part is above its limit that is furthest; 0 where all are within theirs.
  double mark_overloaded();
  void change_candidates(std::uint32_t part);
  bool may_leave(std::uint32_t vertex) const;
  bool allowed(std::uint32_t vertex, std::uint32_t to) const;
  std::uint32_t& pins_in(std::uint32_t net, std::uint32_t part) { return pins_in_[net * count_ + part]; }
  std::uint32_t& layer_in(std::uint32_t layer, std::uint32_t part) {
    return layer_in_[layer * count_ + part];
  }

  const LayeredNets& graph_;
  Parts& parts_;
  std::vector<double> limits_;
  std::size_t count_, vertices_;
  std::vector<std::vector<std::uint32_t>> nets_of_;        ///< by vertex: that have it as a pin
  std::vector<std::vector<std::uint32_t>> nets_of_layer_;  ///< by layer: that name it
  std::vector<std::uint32_t> pins_in_;                     ///< by net and part
  std::vector<std::uint32_t> layer_in_;                    ///< by layer and part: vertices
  std::vector<double> leaving_;   ///< by vertex: cost of nets that are in its part for it alone
  std::vector<double> entering_;  ///< by part and vertex: cost of its nets that are not there
  std::vector<double> part_weight_;
  std::vector<char> locked_;
  std::vector<char> above_;   ///< by part: whether it is above its limit
  bool overloaded_ = false;   ///< some part is: only such parts are left
  std::vector<Best> best_;    ///< by part and bucket
  std::vector<char> known_;   ///< by part and bucket: whether best_ holds
  std::vector<double> most_;  ///< by part: no move into it gains more

  struct LayerChange {
    double entering_from = 0, entering_to = 0, leaving_from = 0, leaving_to = 0;
  };
  std::vector<LayerChange> change_;  ///< by layer
  std::vector<std::uint32_t> changed_;
  double cost_ = 0;
};

}  // namespace convoy::partition
