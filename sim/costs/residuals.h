// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/framework.h"
#include "models/work.h"
#include "topologies/machine.h"

namespace convoy::inline costs {

/// Kinds of steps whose predictions have similar errors: by network (plain convolutions, or grouped and
/// depthwise ones and many small operations), by the units that compute, and by whether a step is short.
inline constexpr std::size_t residual_kind_count = 12;
std::string_view residual_kind_name(std::size_t kind);

/// The kind of a step of `works` on `images` images.
std::size_t residual_kind(const std::vector<Work>& works, double images, Precision precision);

/// Networks whose steps are alike: kinds of steps, short and long ones together ("plain_fp16").
inline constexpr std::size_t network_kind_count = residual_kind_count / 2;
constexpr std::size_t network_kind(std::size_t residual_kind) { return residual_kind / 2; }
std::string_view network_kind_name(std::size_t network_kind);
constexpr bool is_grouped(std::size_t network_kind) { return network_kind >= network_kind_count / 2; }

/// What no published figure tells of a step on one device. Each has a spread of log(time) of its own, fitted to
/// sources of figures that were left out of the fit in turn (topologies/catalog/software/unknowns.yaml). What
/// a device without any figure has at least is left_out_device_spread().
enum class Unknown : std::uint8_t {
  machine,       ///< the machine itself: nobody's figures of it were fitted, as of no user's
  networks,      ///< networks of this kind on this device, of which others may have been fitted
  convolutions,  ///< grouped and depthwise convolutions of a framework of which none was fitted on any GPU
  software,      ///< kernels of the framework's way of execution (software_evidence.h)
  hosts,         ///< log(time to issue an operation): how fast the host issues, of which nobody says anything
  /// log(time of products) with the framework on a generation of GPUs, of which others' figures were fitted, where
  /// that is up to the framework (products_follow_framework)
  generation,
};
inline constexpr std::array<std::string_view, 6> unknown_names{"machine",  "networks", "convolutions",
                                                               "software", "hosts",    "generation"};
/// @throws InputError if the file is wrong
double unknown_spread(Unknown unknown);

/// Whether published figures of whole networks on a device were fitted, or its owner's own.
bool device_is_seen(const DeviceType& device);

/// Where the efficiencies of a device come from that is not seen: "nobody measured X: its efficiencies are those
/// of its generation (hopper)", or, where kernels alone were timed, "nobody measured a network on X: ...". Empty
/// for devices that are seen, and for exact ones.
std::string unseen_device_text(const DeviceType& device);

/// Whether published figures of networks of this kind on a device were fitted, or its owner's own. A device of
/// one's own with the efficiencies of one of the catalogue has its figures. @throws InputError if a file is wrong
bool networks_are_seen(const DeviceType& device, std::size_t network_kind);

/// unknown_spread(convolutions) where networks of this kind have grouped or depthwise convolutions, and none of them
/// was fitted with the framework on any GPU in any precision (topologies/catalog/software/networks.csv): plain ones
/// are a library's, these are each framework's own. 0 elsewhere, on a CPU, and where the device is exact or its
/// owner calibrated it. @throws InputError if a file is wrong
double unseen_convolutions_spread(const DeviceType& device, std::size_t network_kind, Framework framework);

/// What unknown_spread(generation) adds to log(step time): half of what lies between steps whose products take
/// longer and shorter by the ends of its 80 % interval. 0 where a figure of the framework on the device's generation
/// was fitted (topologies/catalog/software/networks.csv), or products take as long with all frameworks, or the
/// device is exact or its owner calibrated it. @throws InputError if a file is wrong
/// @param step_s of the step on the device where products take `factor` times as long
double unseen_generation_spread(const DeviceType& device, Framework framework,
                                const std::function<double(double factor)>& step_s);

/// Standard deviation of log(time) that is left open by a device's own parameters: its evidence, and where
/// nothing like what it computes was fitted no less than unknown_spread(networks) and, without any figure of the
/// device, left_out_device_spread(), so that it is never surer of what it has fewer figures of.
/// @param seen device_is_seen(), or of a network networks_are_seen()
/// @throws InputError: a wrong file
double device_spread(const DeviceType& device, bool seen);

/// Standard deviation of log(time) of a step on `images` images whose predictions are scaled to a measured step
/// of the same network on the same device (CostModel::anchor): two measurements of one set-up differ by as much,
/// and by the more the less alike the numbers of images are (topologies/catalog/software/anchors.yaml).
/// @param measured_images of the measured step @throws InputError if the file is wrong
double anchored_spread(double images, double measured_images);

/// Ways of communication whose predicted times have similar errors: over a network with TCP or RDMA, or
/// inside a host through its memory or over links between devices.
enum class CommKind : std::uint8_t { tcp, rdma, staged, links };
inline constexpr std::size_t comm_kind_count = 4;
std::string_view comm_kind_name(CommKind kind);

/// How the devices of `machine` communicate: over its network if they are in several hosts. Nothing if
/// software between them costs nothing (an ideal fabric), or if there is only one device and host.
std::optional<CommKind> comm_kind(const Machine& machine);

/// Standard deviation of log(predicted / true) of the time of communication of this kind
/// (topologies/catalog/software/communication.yaml). @throws InputError if the file is wrong.
double comm_spread(CommKind kind);

/// Standard deviation of log(predicted / true) that steps of several devices have in addition to computing
/// and communication: waiting for one another, hosts that serve several devices (the same file).
double devices_spread();

/// Standard deviation of log(predicted / true) of steps of this kind, in addition to what the devices'
/// parameters leave open: of figures that were fitted (topologies/catalog/software/residuals.yaml). @throws
/// InputError if the file is wrong.
double residual_spread(std::size_t kind);

/// What a machine adds to it of which no figure was fitted: unknown_spread(machine); 0 for a device that its
/// owner calibrated on the machine. @throws InputError if the file is wrong.
double machine_spread(const DeviceType& device);

/// Standard deviation of log(step time) that a host of which nothing is known leaves: half of what lies
/// between hosts that are slower and quicker than the typical one by the ends of their 80 % interval, so that
/// nothing is open where the device never waits for its host, nor of a device that its owner calibrated, which
/// was with its host.
/// @param step_s of the step on the device with another issue_factor
double unknown_host_spread(const DeviceType& device, const std::function<double(const DeviceType&)>& step_s);

/// Standard deviation of log(predicted / true) of the memory of a process
/// (topologies/catalog/software/memory.yaml): of all frameworks with measured rows where this one has none.
/// @throws InputError where the file is wrong.
double memory_spread(Framework framework);

/// Of a normal distribution, 80 % lie within so many standard deviations of its middle.
inline constexpr double quantile_80 = 1.2815515655446004;

/// The factor within which a process's memory is of what is predicted, with probability 80 %. @throws
/// InputError as memory_spread()
double memory_factor(Framework framework);

}  // namespace convoy::costs
