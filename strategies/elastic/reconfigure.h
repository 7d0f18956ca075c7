// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/yaml_map.h"
#include "sim/plan/phases.h"
#include "strategies/strategy.h"

namespace convoy {

/// How long it takes to get a worker to train, piece by piece. What a device set's change costs is put
/// together of these and of messages that are replayed. Defaults were measured by others, on other machines
/// (sources in reconfigure.cpp and docs/strategies.md); a user with a system of his own gives his own.
struct RestartTimes {
  double stop_s;                             ///< the old workers' end
  std::optional<double> checkpoint_write_s;  ///< nothing: state bytes / storage_Bps
  double process_start_s;                    ///< until the worker's program runs
  double framework_init_s;                   ///< libraries are loaded
  double graph_build_s;                      ///< session, context of the device, the network's graph
  std::optional<double> checkpoint_read_s;   ///< nothing: state bytes / storage_Bps
  double communicator_s;                     ///< of any size ...
  double communicator_per_device_s;          ///< ... and for each of its devices
  double storage_Bps;

  /// Set-up of a communicator; a device alone needs none.
  double communicator(std::uint32_t devices) const {
    return devices < 2 ? 0 : communicator_s + communicator_per_device_s * devices;
  }
};

/// Reads `times:`; every key has a default. @throws InputError
RestartTimes read_restart_times(YamlMap& map);

/// Bytes that a checkpoint has: weights and optimizer state of the network.
double state_bytes(const TrainingGraph& graph);
/// Bytes that a worker needs to begin with under a plan: weights and optimizer state of the device that keeps
/// most. Replicas need all of the network's.
double state_bytes(const Plan& plan);

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

/// The same where devices have parts of the network, which all change when their number does: newcomers start
/// while the old devices train on; then there is a communicator's set-up, and every device of the new set gets
/// the parts that it is to have from one of the old set, all at once.
/// @param state_bytes that each of them gets
Reconfiguration redistributed(const RestartTimes& times, double state_bytes, const Machine& machine,
                              std::uint32_t from, std::uint32_t to);

/// The first `holders` devices of `machine` send the state to the others: in each round everyone who has it
/// sends it to one who has not, of his own host where there is one. ceil(log2(devices / holders)) rounds.
Pattern broadcast_to_newcomers(const Machine& machine, std::uint32_t holders);

}  // namespace convoy
