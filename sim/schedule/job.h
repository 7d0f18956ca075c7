// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace convoy::inline schedule {

/// Images/s of a job on GPUs of one kind.
struct Throughput {
  /// On so many GPUs, on as few hosts as hold them; [0] is 0, [1] > 0. Its size bounds what the job may get;
  /// empty: the job cannot run on this kind.
  std::vector<double> packed;
  /// [hosts - 1][GPUs], where places make a difference; on more hosts than listed as on the most. Empty: as
  /// packed.
  std::vector<std::vector<double>> spread = {};

  std::uint32_t most() const { return packed.empty() ? 0 : static_cast<std::uint32_t>(packed.size()) - 1; }
  /// @param hosts 0: as few as hold them
  double on(std::uint32_t gpus, std::uint32_t hosts) const;
  /// Of `gpus`, how many are best used: the fewest of those numbers up to it that train fastest. The others
  /// would slow the job down or stand idle.
  std::uint32_t best_of(std::uint32_t gpus) const;
};

/// A training job of a cluster's queue.
struct Job {
  std::string model;
  double arrival_s = 0;
  double images = 0;        ///< to be trained on, > 0
  std::uint32_t asked = 1;  ///< GPUs its owner asks for, which policies without elasticity give it
  std::shared_ptr<const std::vector<Throughput>> kinds;         ///< by kind of GPU, as the cluster's pools
  double deadline_s = std::numeric_limits<double>::infinity();  ///< on the clock of arrivals

  const Throughput& on(std::size_t kind) const { return (*kinds)[kind]; }
  /// The kind on which so many GPUs train fastest; 0 where none can.
  std::size_t fastest_kind(std::uint32_t gpus) const;
};

/// GPUs of one kind.
struct Allocation {
  std::uint32_t kind = 0, gpus = 0;
  bool operator==(const Allocation&) const = default;
};

/// The cluster's GPUs of one kind.
struct GpuPool {
  std::uint32_t gpus = 1;
  std::uint32_t gpus_per_host = 0;  ///< 0: places make no difference
};

/// What a policy sees of a job that has arrived and is not done.
struct ActiveJob {
  const Job* job = nullptr;
  double left_images = 0;
  double served_gpu_s = 0;   ///< GPUs times seconds so far
  double fair_finish_s = 0;  ///< from arrival to end in an equal share of the cluster (Themis)
  Allocation held = {};      ///< now
  double granted_s = 0;      ///< when it was given these, or its lease of them was last renewed
  std::int64_t changes = 0;  ///< of its GPUs so far
  bool admitted = true;      ///< its deadline was found to be one that can be kept
  double remaining_s(std::size_t kind, std::uint32_t gpus) const {
    return left_images / job->on(kind).packed[gpus];
  }
  /// On the GPUs asked for, of the kind on which they train fastest.
  double remaining_as_asked_s() const { return remaining_s(job->fastest_kind(job->asked), job->asked); }
};

}  // namespace convoy::schedule
