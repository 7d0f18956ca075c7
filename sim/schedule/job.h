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
  /// On this number of GPUs, on as few hosts as hold them; [0] is 0, [1] > 0. Its size limits what the job
  /// may get; empty: the job cannot run on this kind.
  std::vector<double> packed;
  /// [hosts - 1][GPUs], if placement matters; on more hosts than listed, as on the largest listed number.
  /// Empty: as packed.
  std::vector<std::vector<double>> spread = {};

  std::uint32_t most() const { return packed.empty() ? 0 : static_cast<std::uint32_t>(packed.size()) - 1; }
  /// @param hosts 0: as few as hold them
  double on(std::uint32_t gpus, std::uint32_t hosts) const;
  /// How many of `gpus` are best used: the smallest number up to it that trains fastest. The others would
  /// slow the job down or be idle.
  std::uint32_t best_of(std::uint32_t gpus) const;
};

/// A training job of a cluster's queue.
struct Job {
  std::string model;
  double arrival_s = 0;
  double images = 0;        ///< to be trained on, > 0
  std::uint32_t asked = 1;  ///< GPUs that its owner asks for, which policies without elasticity give it
  std::shared_ptr<const std::vector<Throughput>> kinds;         ///< by kind of GPU, as the cluster's pools
  double deadline_s = std::numeric_limits<double>::infinity();  ///< on the clock of arrivals

  const Throughput& on(std::size_t kind) const { return (*kinds)[kind]; }
  /// The kind on which this number of GPUs trains fastest; 0 if the job cannot run on any.
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
  std::uint32_t gpus_per_host = 0;  ///< 0: placement does not matter
};

/// What a policy sees of a job that has arrived and is not done.
struct ActiveJob {
  const Job* job = nullptr;
  double left_images = 0;
  double served_gpu_s = 0;   ///< GPUs times seconds so far
  double fair_finish_s = 0;  ///< from arrival to end in an equal share of the cluster (Themis)
  Allocation held = {};      ///< now
  double granted_s = 0;      ///< when it was given these GPUs, or when its lease of them was last renewed
  std::int64_t changes = 0;  ///< of its GPUs so far
  bool admitted = true;      ///< its deadline was found to be feasible
  double remaining_s(std::size_t kind, std::uint32_t gpus) const {
    return left_images / job->on(kind).packed[gpus];
  }
  /// On the GPUs asked for, of the kind on which they train fastest.
  double remaining_as_asked_s() const { return remaining_s(job->fastest_kind(job->asked), job->asked); }
};

}  // namespace convoy::schedule
