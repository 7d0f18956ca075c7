// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/keys.h"
#include "sim/plan/phases.h"
#include "strategies/elastic/state_moves.h"
#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// How long it takes to get a worker to train, piece by piece. What a device set's change costs is put
/// together of these and of messages that are replayed. Defaults were measured by others, on other machines;
/// a user with a system of his own gives his own:
///   framework_init_s  `import tensorflow` (2.1) on a workstation (github.com/tensorflow/tensorflow, issue
///                     37729)
///   graph_build_s     tf.Session() on a P100, once kernels are compiled: 1 to 5 s; the middle. The same,
///                     issue 22043
///   communicator_s    ncclCommInitRank on V100 with InfiniBand: 16.3 s for 8 communicators of 8 ranks, 130 s
///                     for 32 of 32 (github.com/NVIDIA/nccl, issue 534): 2.04 s and 4.06 s each, and the
///                     straight line through them
///   process_start_s   what is left of 12.2 s from a change of workers to the end of rendezvous, with 2
///                     workers (TorchElastic on AKS, GPU virtual machines of one device):
///                     12.2 - 4.3 - 3 - (1.36 + 2 0.0844)
///   storage_Bps       what the cable of a SATA 3.0 disk carries: 6 Gbit/s, 10 bits a byte. Favours the
///                     restart
struct RestartTimes {
  double stop_s = 0;                           ///< the old workers' end
  std::optional<double> checkpoint_write_s{};  ///< nothing: state bytes / storage_Bps
  double process_start_s = 3.37;               ///< until the worker's program runs
  double framework_init_s = 4.3;               ///< libraries are loaded
  double graph_build_s = 3;                    ///< session, context of the device, the network's graph
  std::optional<double> checkpoint_read_s{};   ///< nothing: state bytes / storage_Bps
  double communicator_s = 1.36;                ///< of any size ...
  double communicator_per_device_s = 0.0844;   ///< ... and for each of its devices
  double storage_Bps = 600e6;

  /// Standard deviations of log(time): 0 where the file states the time. Of the others, four of five are taken to be
  /// within a factor of two of the one measurement that there is; sessions took 1 to 5 s.
  struct Spreads {
    static constexpr double of_one_measurement = 0.54;  // log(2) / 1.28
    double process_start = of_one_measurement, framework_init = of_one_measurement;
    double graph_build = 0.63;  // log(5) / 2 / 1.28
    double communicator = of_one_measurement, storage = of_one_measurement;
  };
  Spreads spreads{};

  /// Set-up of a communicator; a device alone needs none.
  double communicator(std::uint32_t devices) const {
    return devices < 2 ? 0 : communicator_s + communicator_per_device_s * devices;
  }
};

/// What `times:` may say; every key has a default.
const Keys<RestartTimes>& restart_time_keys();

/// Bytes that a checkpoint has: weights and optimizer state of the network.
double state_bytes(const TrainingGraph& graph);

/// Stop and restart from a checkpoint: everyone stops, the state is written, workers start from nothing and
/// read it. No one trains meanwhile.
Reconfiguration restart(const RestartTimes& times, const TrainingGraph& graph, std::uint32_t to);

/// Newcomers start while the `from` old devices train on. Growing, the pause is a communicator's set-up and
/// the state's broadcast (broadcast_to_newcomers). Shrinking, the devices agree at the end of a step who
/// leaves, by an all-reduce of one value; those that stay have made their communicator before.
/// @param state_bytes that a newcomer gets
/// @param machine of max(from, to) devices
Reconfiguration overlapped(const RestartTimes& times, double state_bytes, const Machine& machine,
                           std::uint32_t from, std::uint32_t to);

/// The same where devices have parts of the network, which change when their number does: newcomers start
/// while the old devices train on; then there is a communicator's set-up, and every device of the new set
/// gets what it is to keep and has not kept before, all at once.
/// @param traffic between devices of both sets
Reconfiguration redistributed(const RestartTimes& times, MoveTraffic traffic, const Machine& machine,
                              std::uint32_t from, std::uint32_t to);

/// The first `holders` devices of `machine` send the state to the others: in each round everyone who has it
/// sends it to one who has not, of his own host where there is one. ceil(log2(devices / holders)) rounds.
Pattern broadcast_to_newcomers(const Machine& machine, std::uint32_t holders);

}  // namespace convoy::strategies
