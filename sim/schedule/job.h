// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy {

/// A training job of a cluster's queue.
struct Job {
  std::string model;
  double arrival_s = 0;
  double images = 0;        ///< to be trained on, > 0
  std::uint32_t asked = 1;  ///< GPUs its owner asks for, which policies without elasticity give it
  /// Images/s on so many GPUs; [0] is 0, [1] > 0. Its size bounds what the job may get.
  std::vector<double> throughput;

  std::uint32_t most() const { return static_cast<std::uint32_t>(throughput.size()) - 1; }
  /// Of `gpus`, how many are best used: the fewest of those numbers up to it that train fastest. The others
  /// would slow the job down or stand idle.
  std::uint32_t best_of(std::uint32_t gpus) const;
};

/// What a policy sees of a job that has arrived and is not done.
struct ActiveJob {
  const Job* job = nullptr;
  double left_images = 0;
  double served_gpu_s = 0;   ///< GPUs times seconds so far
  double fair_finish_s = 0;  ///< from arrival to end in an equal share of the cluster (Themis)
  std::uint32_t gpus = 0;    ///< now
  double granted_s = 0;      ///< when it was given these, or its lease of them was last renewed
  double remaining_s(std::uint32_t on) const { return left_images / job->throughput[on]; }
};

}  // namespace convoy
