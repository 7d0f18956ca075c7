// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/one_by_one.h"

namespace convoy {

/// Hands out GPUs by AFS's comparisons (policies.h): for each GPU the jobs are gone through in their order,
/// the one preferred so far against the next. That relation is not transitive, so that no heap finds the last
/// one preferred; but after a GPU only its job has changed, and with it only the end of the chain of those
/// that were preferred on the way. The next of a chain is found in a tree of bounds over the jobs.
class AfsOrder {
 public:
  explicit AfsOrder(std::vector<Offer>& offers);
  /// Gives GPUs one by one until none is left, or none is of use.
  void share(std::uint32_t gpus);

 private:
  /// What comparisons look at. A job without GPUs is longer than any with some.
  struct Job {
    bool open = false;                             ///< one more GPU is of use
    bool waiting = false;                          ///< has none yet
    double length_s = 0;                           ///< of a waiting one: on one GPU
    double gain_over_next = 0, gain_over_own = 0;  ///< (p(w+1) - p(w)) / p(w+1) and / p(w)
  };
  /// Of the open jobs below a node of the tree.
  struct Bounds {
    double shortest_waiting_s, shortest_s, longest_s, most_over_next, most_over_own;
  };
  void look_at(std::size_t job);
  void set_leaf(std::size_t job);
  static Bounds none();
  static Bounds both(const Bounds& a, const Bounds& b);
  static bool second_preferred(const Job& first, const Job& second);
  /// Whether a second one below the node could be preferred to `first`.
  static bool possible(const Job& first, const Bounds& bounds);
  /// The first job from `begin` on that is preferred to `first`, or is open where there is none; size() if
  /// none.
  std::size_t find(const Job* first, std::size_t begin) const;
  std::size_t find_in(const Job* first, std::size_t begin, std::size_t node, std::size_t from,
                      std::size_t size) const;
  /// On from the last of the chain, past those before `begin`, which are known not to be preferred to it.
  void extend_chain(std::size_t begin);

  std::vector<Offer>& offers_;
  std::vector<Job> jobs_;
  std::size_t leaves_ = 1;          ///< a power of two
  std::vector<Bounds> tree_;        ///< tree_[1] is the root; leaves behind leaves_
  std::vector<std::size_t> chain_;  ///< of jobs preferred on the way; the last gets the GPU
};

}  // namespace convoy
