// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/schedule/one_by_one.h"
#include "sim/schedule/sharing.h"

namespace convoy::inline schedule {

/// What one more GPU adds to a throughput p(w), for w below the largest useful number: relative to the
/// throughput then, (p(w + 1) - p(w)) / p(w + 1), and to the throughput now, (p(w + 1) - p(w)) / p(w).
struct AfsGains {
  explicit AfsGains(const OfferCurve& curve);
  std::vector<double> over_next;  ///< 1 without GPUs
  std::vector<double> over_own;   ///< infinite without GPUs
};

/// Hands out GPUs by AFS's rule (policies.h), level by level instead of GPU by GPU.
///
/// Each GPU goes to the shortest of the jobs whose gain over_own reaches the level, which is the largest gain
/// over_next of all jobs. While the level stays the same, every job that reaches it and is shorter than the
/// longest job that sets it is given GPUs until it no longer reaches the level, the shortest job first. Then
/// that longest job is given GPUs until its over_next is below the level, and the level falls. (If gains rise
/// again, as when a host is full, a job that is being given GPUs has the largest gain of all until it is
/// below the level again, and no other job comes in between.)
///
/// Jobs of equal throughput reach levels together, in the order of their lengths, which for equal numbers of
/// GPUs is that of their remaining images. They are kept in this order from one sharing to the next. During a
/// sharing they are a few stretches with equal numbers of GPUs, so that the time per level depends on the
/// number of different throughputs and not on that of jobs or GPUs.
class AfsLevels {
 public:
  /// @param offers by job
  explicit AfsLevels(std::vector<Offer>& offers) : offers_(offers) {}
  void insert(std::size_t job);
  void erase(std::size_t job);
  /// Writes the images left into the job's offer.
  void change(std::size_t job, double left_images);
  /// Gives GPUs until none is left, or none is useful; offers have none before. Returns the jobs that have
  /// some.
  std::vector<std::size_t> share(std::uint32_t gpus);

 private:
  /// The order of jobs, the shortest first. Waiting jobs, which have no GPUs, are longer than all others and
  /// are ordered among each other by their length on one GPU; among equal ones, the first to arrive is
  /// shorter.
  struct Rank {
    bool waiting = false;
    double length_s = 0, left_images = 0;
    std::size_t job = 0;
    bool operator<(const Rank& other) const;
  };
  /// Jobs that have equal numbers of GPUs, up to a position in their group.
  struct Stretch {
    std::size_t end = 0;
    std::uint32_t gpus = 0;
  };
  /// Jobs of equal throughput.
  struct Group {
    AfsGains gains;
    JobOrder jobs;                   ///< by images left: the shortest first
    std::vector<Stretch> stretches;  ///< each with fewer GPUs than the one before

    std::size_t job(std::size_t position) const { return jobs.entries()[position].job; }
    /// Jobs up to `end` have this many GPUs; does nothing if there are no such jobs.
    void append(std::size_t end, std::uint32_t gpus);
  };
  /// The largest gain over_next, and the longest job that has it: the last one of a stretch.
  struct Level {
    double gain = -1;  ///< negative: more GPUs are useful to no job
    std::size_t group = 0, stretch = 0;
    Rank longest = {};
  };
  /// The first jobs of a stretch are given GPUs up to this number.
  struct Move {
    std::size_t group = 0, stretch = 0, begin = 0, end = 0;
    std::uint32_t from = 0, to = 0;
  };

  Rank rank(std::size_t job, std::uint32_t gpus) const;
  Level next_level() const;
  /// The moves of the jobs that reach the level and are shorter than its longest job, stretch by stretch; the
  /// longest job comes last.
  std::vector<Move> moves_at(const Level& level) const;
  void carry_out(std::vector<Move> moves);
  void give(std::size_t job, std::uint32_t gpus);
  /// What the stretches say.
  void give_stretches();
  /// Gives as many GPUs as there are, to the shortest job first.
  void give_in_order(std::vector<Move> moves, std::uint32_t gpus);

  std::vector<Offer>& offers_;
  std::vector<Group> groups_;
  std::map<const OfferCurve*, std::size_t> group_of_curve_;
  std::vector<std::size_t> group_of_;  ///< by job
  std::vector<std::size_t> given_;     ///< jobs that have GPUs
};

}  // namespace convoy::schedule
