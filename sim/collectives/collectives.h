// SPDX-License-Identifier: MIT
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "sim/collectives/rings.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline collectives {

// All-reduce algorithms as patterns, for S bytes on N ranks, where alpha is the latency and B the bandwidth
// of every message.

/// Reduce-scatter and all-gather around the rings of find_rings (on a switch: one, in the order of `ranks`):
/// 2(N-1) alpha + 2(N-1)/N S/B; with R rings side by side, S/R in place of S.
/// Source: Patarasuk & Yuan, J. Parallel Distrib. Comput. 69(2), 2009.
Pattern ring_all_reduce(const std::vector<EndpointId>& ranks, const Machine& machine,
                        RingOrder order = RingOrder::mesh);

/// Binomial reduce to the first rank and broadcast back: 2 ceil(log2 N) (alpha + S/B).
/// Source: Thakur, Rabenseifner & Gropp, Int. J. High Perform. Comput. Appl. 19(1), 2005.
Pattern tree_all_reduce(const std::vector<EndpointId>& ranks);

/// Recursive halving and doubling: 2 log2 N alpha + 2(N-1)/N S/B for a power of two. Otherwise, the N - 2^k
/// excess ranks first give their data to a neighbour and get the result back at the end: + 2 (alpha + S/B).
/// Source: Rabenseifner, ICCS 2004; Thakur, Rabenseifner & Gropp 2005.
Pattern halving_doubling_all_reduce(const std::vector<EndpointId>& ranks);

/// By host. With g ranks on each of n hosts: reduce-scatter inside each host (ring), g parallel ring
/// all-reduces of S/g between the hosts, all-gather inside each host. With unequal hosts: binomial reduce to
/// a leader in each host, ring of the leaders, binomial broadcast. Source: Jia et al., arXiv:1807.11205,
/// section 3.3 (hierarchical all-reduce).
Pattern hierarchical_all_reduce(const std::vector<EndpointId>& ranks, const Machine& machine,
                                RingOrder order = RingOrder::mesh);

/// NCCL's double binary trees: two trees over the hosts such that every host is an inner node of at most one
/// of them, for each ring of find_rings over the same ranks: R pairs of trees enter and leave the hosts by as
/// many NICs. Each tree carries its share (half of the data, with R = 1) to its root and back, in consecutive
/// chunks. Inside a host,
/// the ranks form a chain behind the rank at which the edges of the host's tree end (the first rank for one
/// tree, the last for the other). With L levels of edges from the farthest rank to the root, and k chunks,
/// the time is at most (k + 2 L - 1) (alpha + 2 S/(k B)) if B is the bandwidth at which a rank can send, so 2
/// S/B + 2 L alpha for large k. It is an upper bound, since in many rounds (with few hosts, in most of them)
/// no link carries chunks of both trees; k is at most 64 and minimises this bound. Sources: Sanders, Speck &
/// Traff, Parallel Computing 35(12), 2009 (two trees); Jeaugey, "Massively scale your deep learning training
/// with NCCL 2.4", NVIDIA Developer Blog, 2019.
Pattern double_binary_tree_all_reduce(const std::vector<EndpointId>& ranks, const Machine& machine,
                                      double bytes, RingOrder order = RingOrder::mesh);

/// Half an all-reduce of S bytes, as rounds with Communication::bytes = S: after a reduce-scatter, every rank
/// has its 1/N of the sum; after an all-gather (`gather`), every rank has the 1/N of all ranks. Every rank
/// sends and receives (N-1)/N S. This is the first or second half of the all-reduce of that name. The ring's
/// takes (N-1) (alpha + S/(N B)); recursive halving, or doubling, takes log2 N alpha + (N-1)/N S/B; the
/// hierarchical one works first inside the hosts and then between them, or the other way round.
/// Source: Thakur, Rabenseifner & Gropp, Int. J. High Perform. Comput. Appl. 19(1), 2005, sections 4.1, 4.4.
std::vector<Round> ring_half(const std::vector<EndpointId>& ranks, const Machine& machine, RingOrder order);
/// @pre a power of two of ranks
std::vector<Round> halving_doubling_half(const std::vector<EndpointId>& ranks, bool gather);
/// @pre has_equal_hosts(ranks, machine)
std::vector<Round> hierarchical_half(const std::vector<EndpointId>& ranks, const Machine& machine,
                                     RingOrder order, bool gather);

/// Whether all hosts have the same number of these ranks.
bool has_equal_hosts(const std::vector<EndpointId>& ranks, const Machine& machine);

/// A step of nothing but one collective of all devices of the machine, which are the pattern's group.
Plan collective_of_all(Pattern pattern, std::string name, double bytes, const Machine& machine);

/// Time of a pattern alone on the machine if every round waits for the one before: the sum over rounds of
/// their repetitions times (greatest latency + greatest bytes / bandwidth of a link, or of a connection of
/// the transport). For choosing between algorithms, not a prediction.
/// @param enough_s a time of that or more is not added up to its end
double estimate_s(const Pattern& pattern, const Machine& machine, double bytes,
                  double enough_s = std::numeric_limits<double>::infinity());

}  // namespace convoy::collectives
