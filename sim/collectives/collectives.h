// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/collectives/rings.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline collectives {

// All-reduce algorithms as patterns: of S bytes on N ranks, alpha the latency and B the bandwidth of every
// message.

/// Reduce-scatter and all-gather around the rings of find_rings (on a switch: one, in the order of `ranks`):
/// 2(N-1) alpha + 2(N-1)/N S/B, with R rings side by side S/R in place of S.
/// Source: Patarasuk & Yuan, J. Parallel Distrib. Comput. 69(2), 2009.
Pattern ring_all_reduce(const std::vector<EndpointId>& ranks, const Machine& machine,
                        RingOrder order = RingOrder::mesh);

/// Binomial reduce to the first rank and broadcast back: 2 ceil(log2 N) (alpha + S/B).
/// Source: Thakur, Rabenseifner & Gropp, Int. J. High Perform. Comput. Appl. 19(1), 2005.
Pattern tree_all_reduce(const std::vector<EndpointId>& ranks);

/// Recursive halving and doubling: 2 log2 N alpha + 2(N-1)/N S/B for a power of two; otherwise the N - 2^k
/// ranks too many first give their data to a neighbour and get the result back at the end: + 2 (alpha + S/B).
/// Source: Rabenseifner, ICCS 2004; Thakur, Rabenseifner & Gropp 2005.
Pattern halving_doubling_all_reduce(const std::vector<EndpointId>& ranks);

/// By host. With g ranks on each of n hosts: reduce-scatter inside each host (ring), g ring all-reduces of
/// S/g between the hosts side by side, all-gather inside. With unequal hosts: binomial reduce to a leader in
/// each host, ring of the leaders, binomial broadcast. Source: Jia et al., arXiv:1807.11205, section 3.3
/// (hierarchical all-reduce).
Pattern hierarchical_all_reduce(const std::vector<EndpointId>& ranks, const Machine& machine,
                                RingOrder order = RingOrder::mesh);

/// NCCL's double binary trees: two trees over the hosts in which every host is inside at most one, half of
/// the data down and up each, in chunks that follow one another; inside a host the ranks stand in a chain
/// behind the one that the host's tree edges end at (the first rank for one tree, the last for the other).
/// With L levels of edges from the farthest rank to the root, and k chunks: at most (k + 2 L - 1) (alpha +
/// 2 S/(k B)) where a rank's way out is B wide, so 2 S/B + 2 L alpha for large k. An upper bound, since in many
/// rounds, of few hosts in most, no link has the chunks of both trees; k is the one, at most 64, for which it is
/// least. Sources: Sanders, Speck & Traff, Parallel Computing 35(12), 2009 (two trees); Jeaugey, "Massively
/// scale your deep learning training with NCCL 2.4", NVIDIA Developer Blog, 2019.
Pattern double_binary_tree_all_reduce(const std::vector<EndpointId>& ranks, const Machine& machine,
                                      double bytes);

/// Half an all-reduce of S bytes, as rounds of Communication::bytes = S: after a reduce-scatter every rank
/// has its 1/N of the sum; after an all-gather (`gather`) every rank has the 1/N of all. Every rank sends and
/// receives (N-1)/N S. The first or second half of the all-reduce of that name; the ring's takes (N-1) (alpha
/// + S/(N B)), recursive halving, or doubling, log2 N alpha + (N-1)/N S/B, hierarchical goes inside the hosts
/// first, then between them, or the other way round.
/// Source: Thakur, Rabenseifner & Gropp, Int. J. High Perform. Comput. Appl. 19(1), 2005, sections 4.1, 4.4.
std::vector<Round> ring_half(const std::vector<EndpointId>& ranks, const Machine& machine, RingOrder order);
/// @pre a power of two of ranks
std::vector<Round> halving_doubling_half(const std::vector<EndpointId>& ranks, bool gather);
/// @pre has_equal_hosts(ranks, machine)
std::vector<Round> hierarchical_half(const std::vector<EndpointId>& ranks, const Machine& machine,
                                     RingOrder order, bool gather);

/// Whether all hosts have as many of the ranks.
bool has_equal_hosts(const std::vector<EndpointId>& ranks, const Machine& machine);

/// Time of a pattern alone on the machine, if every round waits for the last: the sum over rounds of their
/// repetitions times (greatest latency + greatest bytes / bandwidth of a link). A choice between algorithms,
/// not a prediction.
double estimate_s(const Pattern& pattern, const Machine& machine, double bytes);

}  // namespace convoy::collectives
