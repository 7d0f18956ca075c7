// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/schedule/one_by_one.h"

namespace convoy::inline schedule {

/// What one more GPU adds to a throughput p(w), for w below the most that are of use: as a part of what it is
/// then, (p(w + 1) - p(w)) / p(w + 1), and of what it is now, (p(w + 1) - p(w)) / p(w).
struct AfsGains {
  explicit AfsGains(const OfferCurve& curve);
  std::vector<double> over_next;  ///< 1 without GPUs
  std::vector<double> over_own;   ///< infinite without GPUs
};

/// Hands out GPUs by AFS's rule (policies.h), level by level instead of GPU by GPU.
///
/// Each GPU goes to the shortest of the jobs whose gain over_own reaches the level, the greatest gain
/// over_next of all. While the level stays, every job that reaches it and is shorter than the longest one
/// that sets it is given GPUs until it no longer reaches the level, the shortest first; then that longest one
/// is, until its over_next is below it, and the level falls. (Where gains rise again, as when a host is full,
/// a job that is being given GPUs has the greatest gain of all until it is below the level again, and nobody
/// comes between.)
///
/// Jobs of equal throughput reach levels together, in the order of their lengths, which for equal numbers of
/// GPUs is that of their images left. They are kept in this order, as a few stretches with equal numbers of
/// GPUs, so that a level takes time by throughputs that differ and not by jobs or GPUs.
class AfsLevels {
 public:
  explicit AfsLevels(std::vector<Offer>& offers);
  /// Gives GPUs until none is left, or none is of use.
  void share(std::uint32_t gpus);

 private:
  /// What jobs are ordered by, the shortest first. Waiting ones, which have no GPUs, are longer than all
  /// others and among each other ordered by their length on one GPU; of equal ones the first to arrive is
  /// shorter.
  struct Rank {
    bool waiting = false;
    double length_s = 0, left_images = 0;
    std::size_t job = 0;
    bool operator<(const Rank& other) const;
  };
  /// Jobs that hold equal numbers of GPUs, up to a position of their group.
  struct Stretch {
    std::size_t end = 0;
    std::uint32_t gpus = 0;
  };
  /// Jobs of equal throughput.
  struct Group {
    AfsGains gains;
    std::vector<std::size_t> jobs;   ///< the shortest first
    std::vector<Stretch> stretches;  ///< each with fewer GPUs than the one before

    /// Jobs up to `end` hold so many; nothing where there are none.
    void append(std::size_t end, std::uint32_t gpus);
  };
  /// The greatest gain over_next, and the longest job that has it: the last one of a stretch.
  struct Level {
    double gain = -1;  ///< negative: more GPUs are of use to nobody
    std::size_t group = 0, stretch = 0;
    Rank longest = {};
  };
  /// The first jobs of a stretch are given GPUs up to a number.
  struct Move {
    std::size_t group = 0, stretch = 0, begin = 0, end = 0;
    std::uint32_t from = 0, to = 0;
  };

  Rank rank(std::size_t job, std::uint32_t gpus) const;
  Level next_level() const;
  /// Of the jobs that reach the level and are shorter than its longest, stretch by stretch; last the longest.
  std::vector<Move> moves_at(const Level& level) const;
  void carry_out(std::vector<Move> moves);
  void write_offers();
  /// As many GPUs as there are, the shortest job first.
  void give_in_order(std::vector<Move> moves, std::uint32_t gpus);

  std::vector<Offer>& offers_;
  std::vector<Group> groups_;
};

}  // namespace convoy::schedule
