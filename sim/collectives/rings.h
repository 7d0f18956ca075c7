// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/machine.h"

namespace convoy::inline collectives {

/// How rings run inside a host. `mesh`: along its point-to-point cables, as many rings as these can carry
/// (NCCL 2). `in_order`: one ring, in the order of the devices, whatever connects them (NCCL 1).
enum class RingOrder : std::uint8_t { mesh, in_order };

/// Orders of `ranks` (as positions in it) for rings that run side by side and share the data equally.
///
/// With `mesh`, for ranks of one host with point-to-point cables among them (NVLink meshes): as many
/// edge-disjoint Hamiltonian cycles over the cables as a search finds, each in both directions, as NCCL
/// builds its rings on such machines (4 rings on a DGX-1 with P100, 6 with V100). In other hosts there is one
/// ring, in the given order.
///
/// Over several hosts, in the order of their first rank, there are as many rings as the ranks of the host
/// with the fewest have NICs that are nearest to them (one where hosts have no NICs), as NCCL builds a
/// channel a NIC. Each host's chain in a ring is one of its own rings in turn, cut open where the rings
/// before it enter and leave the fewest times, so that in equal hosts every NIC is entered and left by as
/// many rings. With several rings, every other host is passed backwards, so that messages stay between NICs
/// of the same number (rails) if the number of hosts is even. A single ring is cut open where the routes to
/// other hosts are widest, if it follows cables.
/// Source: NVIDIA/nccl 5067397c, src/graph/search.cc (crossNic).
std::vector<std::vector<std::uint32_t>> find_rings(const std::vector<EndpointId>& ranks,
                                                   const Machine& machine, RingOrder order = RingOrder::mesh);

/// The same for the ranks of each host alone; hosts are in the order of their first rank.
std::vector<std::vector<std::vector<std::uint32_t>>> rings_by_host(const std::vector<EndpointId>& ranks,
                                                                   const Machine& machine,
                                                                   RingOrder order = RingOrder::mesh);

/// By host, in the order of their first rank, and by ring of find_rings: the chain of the host's ranks,
/// always forwards. On one host, one chain.
std::vector<std::vector<std::vector<std::uint32_t>>> channels_by_host(const std::vector<EndpointId>& ranks,
                                                                      const Machine& machine,
                                                                      RingOrder order = RingOrder::mesh);

/// Positions of the ranks on each host; hosts are in the order of their first rank.
std::vector<std::vector<std::uint32_t>> positions_by_host(const std::vector<EndpointId>& ranks,
                                                          const Machine& machine);

}  // namespace convoy::collectives
