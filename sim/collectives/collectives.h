// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/rings.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy {

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

enum class AllReduceAlgorithm : std::uint8_t { ring, tree, halving_doubling, hierarchical, automatic };
inline const std::vector<std::string> all_reduce_algorithm_names{"ring", "tree", "halving_doubling",
                                                                 "hierarchical", "auto"};
/// @param bytes what `automatic` chooses for: the algorithm whose estimate_s is least (ties: the first
/// named).
Pattern all_reduce_pattern(AllReduceAlgorithm algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine, double bytes, RingOrder order = RingOrder::mesh);

/// Half an all-reduce of S bytes, as a pattern of Communication::bytes = S: after a reduce-scatter every rank
/// has its 1/N of the sum; after an all-gather every rank has the 1/N of all. Every rank sends and receives
/// (N-1)/N S. ring: the first or second half of ring_all_reduce, (N-1) (alpha + S/(N B)). halving_doubling:
/// recursive halving, or doubling, log2 N alpha + (N-1)/N S/B. hierarchical: inside the hosts first, then
/// between them; or the other way round. automatic: of those that there are, as all_reduce_pattern.
/// Source: Thakur, Rabenseifner & Gropp, Int. J. High Perform. Comput. Appl. 19(1), 2005, sections 4.1, 4.4.
/// @pre why_no_scatter(algorithm, ranks, machine) is empty
Pattern reduce_scatter_pattern(AllReduceAlgorithm algorithm, const std::vector<EndpointId>& ranks,
                               const Machine& machine, double bytes, RingOrder order = RingOrder::mesh);
Pattern all_gather_pattern(AllReduceAlgorithm algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine, double bytes, RingOrder order = RingOrder::mesh);

/// Why an algorithm cannot scatter the result equally over these ranks, for an error; empty where it can:
/// a tree sums everything in one place, halving and doubling needs a power of two, hierarchical equal hosts.
std::string why_no_scatter(AllReduceAlgorithm algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine);

/// Time of a pattern alone on the machine, if every round waits for the last: the sum over rounds of their
/// repetitions times (greatest latency + greatest bytes / bandwidth of a link). A choice between algorithms,
/// not a prediction.
double estimate_s(const Pattern& pattern, const Machine& machine, double bytes);

}  // namespace convoy
