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
/// builds its rings on such machines (4 rings on a DGX-1 with P100, 6 with V100). Everywhere else there is
/// one ring: hosts in the order of their first rank, and the ranks of each host along such a cycle if there
/// is one, cut open where the route to other hosts has the highest bandwidth, otherwise in the given order.
std::vector<std::vector<std::uint32_t>> find_rings(const std::vector<EndpointId>& ranks,
                                                   const Machine& machine, RingOrder order = RingOrder::mesh);

/// The same for the ranks of each host alone; hosts are in the order of their first rank.
std::vector<std::vector<std::vector<std::uint32_t>>> rings_by_host(const std::vector<EndpointId>& ranks,
                                                                   const Machine& machine,
                                                                   RingOrder order = RingOrder::mesh);

/// Positions of the ranks on each host; hosts are in the order of their first rank.
std::vector<std::vector<std::uint32_t>> positions_by_host(const std::vector<EndpointId>& ranks,
                                                          const Machine& machine);

}  // namespace convoy::collectives
