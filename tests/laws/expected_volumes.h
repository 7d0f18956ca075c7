// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "tests/laws/laws.h"

namespace convoy::lab {

// Bytes that the devices of a trial send in a step, by formulas that do not look at the messages of its plan. N is the
// number of devices and S the bytes of the parameters. Nothing: there is no formula for this trial.

/// Number of replicas of placed work in the rows: two if the number of devices is even.
double placed_replicas(const Trial& trial);

/// Whether the cluster has hosts without devices, on which the servers are.
bool dedicated(const Machine& machine);

/// Rings and trees: 2 (N - 1) S.
std::optional<double> all_reduced(const Trial& trial);

/// Rings of half precision: (N - 1) S.
std::optional<double> half_reduced(const Trial& trial);

/// One bucket: all devices' hundredth of it, as values and indices, to all others.
std::optional<double> hundredth_gathered(const Trial& trial);

/// One bucket: all devices' codes of 4 bits and two scales, to all others.
std::optional<double> codes_gathered(const Trial& trial);

/// One bucket: all devices' signs and a scale, to all others.
std::optional<double> signs_gathered(const Trial& trial);

/// Rings of both factors of each matrix, and of what goes whole.
std::optional<double> factors_reduced_of(const Trial& trial, int rank);

template <int rank>
std::optional<double> factors_reduced(const Trial& trial) {
  return factors_reduced_of(trial, rank);
}

/// Averages in fp32: 2 (N - 1) S in one of H steps.
std::optional<double> averaged(const Trial& trial);

/// To one device each.
std::optional<double> sent_to_one(const Trial& trial);

/// To one device each, and as much back.
std::optional<double> exchanged_with_one(const Trial& trial);

/// The hosts' devices sum their gradients, one of each sends its parameters to one of another host, and what comes
/// goes to all others of the host.
std::optional<double> sent_between_hosts(const Trial& trial);

/// ZeRO: so many times (N - 1) S. What recomputation needs of stage 3 depends on its segments.
std::optional<double> sharded_times(const Trial& trial, int times);

template <int times>
std::optional<double> sharded(const Trial& trial) {
  return sharded_times(trial, times);
}

/// Every worker pushes and pulls everything; what a server has in its worker's host does not travel. Without
/// a common step workers near a server may do more of them: where all are equally far there is a formula.
/// Where hosts have several devices, ways within them depend on their interconnects.
std::optional<double> pushed_and_pulled(const Trial& trial);

/// What the partition of the graph says that it cuts.
std::optional<double> connectivity_of_partition(const Trial& trial);

/// Marques: of each shared convolution every worker gets the input, its filters and its gradients and returns
/// its outputs, filter gradients and, where there is one, a whole partial data gradient. Shares from the work
/// done.
std::optional<double> filters_and_slices(const Trial& trial);

/// And what replicas sum, parameter by parameter, each among two of them.
std::optional<double> connectivity_and_sums(const Trial& trial);

/// Compressed pushes: half the bytes.
std::optional<double> half_pushed_and_pulled(const Trial& trial);

}  // namespace convoy::lab
