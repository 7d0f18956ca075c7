// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/machine.h"

namespace convoy::inline collectives {

/// How rings run inside a host: `mesh`: along its point-to-point cables, as many as they carry (NCCL 2);
/// `in_order`: one, in the order of the devices, whatever lies between them (NCCL 1).
enum class RingOrder : std::uint8_t { mesh, in_order };

/// Orders of `ranks` (as positions in it) for rings that run side by side and share the data equally.
///
/// With `mesh`, ranks of one host with point-to-point cables among them (NVLink meshes): as many
/// edge-disjoint Hamiltonian cycles over the cables as a search finds, each in both directions, as NCCL
/// builds its rings on such machines (4 rings on a DGX-1 with P100, 6 with V100). Everywhere else one ring:
/// hosts in the order of their first rank, each host's ranks along such a cycle where there is one, cut open
/// where the way to other hosts is widest, and in the order given otherwise.
std::vector<std::vector<std::uint32_t>> find_rings(const std::vector<EndpointId>& ranks,
                                                   const Machine& machine, RingOrder order = RingOrder::mesh);

/// The same for each host's ranks alone, hosts in the order of their first rank.
std::vector<std::vector<std::vector<std::uint32_t>>> rings_by_host(const std::vector<EndpointId>& ranks,
                                                                   const Machine& machine,
                                                                   RingOrder order = RingOrder::mesh);

/// Positions of the ranks on each host, hosts in the order of their first rank.
std::vector<std::vector<std::uint32_t>> positions_by_host(const std::vector<EndpointId>& ranks,
                                                          const Machine& machine);

}  // namespace convoy::collectives
