// SPDX-License-Identifier: MIT
#pragma once

#include "sim/base/yaml_node.h"
#include "topologies/machine.h"

namespace convoy::inline planning {

/// How long the links of one of several equal hosts are busy, at least, with each byte that its devices send: if
/// everything that they send were spread evenly over all links of a kind. s/B; 0: nothing is known.
struct HostWays {
  double alone_s_per_byte = 0;    ///< one host by itself: from one of its devices to another
  double any_s_per_byte = 0;      ///< of several hosts: from one device to another, wherever it is
  double between_s_per_byte = 0;  ///< of several hosts: from one host to another
  /// Before the first byte of a sum flows (Communication::overhead_s), on one host and on several.
  double alone_start_s = 0, several_start_s = 0;
  bool copies = false;  ///< gradients are copied into their buckets and back (GroupSync::is_copied)
};

/// @param one of one such host @param two of two of them; nullptr: nothing joins them
HostWays ways_of(const Machine& one, const Machine* two);

/// What the links need at least, however the messages are ordered, until each of `devices` devices on `hosts` equal
/// hosts has the sum of all their gradients. Where devices add them up, every element of the sum is sent at least
/// 2 (n - 1) times between n of those that have a part in it: so many one-way messages it takes until everybody
/// knows what everybody knew (F. Harary, A. J. Schwenk, The communication problem on graphs and digraphs, Journal of
/// the Franklin Institute 297(6), 1974). The busiest links of a kind carry at least the mean of all.
/// @param bytes of the gradients of one device
double least_sum_s(const HostWays& ways, double bytes, double devices, double hosts);

/// Whether every device runs whole steps and all gradients of each are summed once, as they are, by one of the
/// program's algorithms that add them up on devices; `nccl` may let switches add them up.
/// @throws InputError as read_strategy()
bool sums_on_devices(const YamlNode& strategy);

}  // namespace convoy::planning
