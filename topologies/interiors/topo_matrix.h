// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/input_error.h"

namespace convoy::inline topologies {

/// How two devices of a server see each other, from near to far: through one PCIe switch (PIX), several
/// (PXB), the host bridge of a CPU (PHB), between host bridges of one NUMA node (NODE), between NUMA nodes
/// (SYS).
enum class PcieNearness : std::uint8_t { pix, pxb, phb, node, sys, unknown };

/// What `nvidia-smi topo -m` prints: GPUs before NICs.
struct TopoMatrix {
  std::uint32_t gpus = 0, nics = 0;
  /// By row and column of GPUs and NICs; `unknown` on the diagonal, and between GPUs that have NVLinks (the
  /// table shows only those).
  std::vector<std::vector<PcieNearness>> nearness;
  std::vector<std::vector<std::uint32_t>> nvlinks;  ///< between GPUs
  std::vector<std::string> cpu_affinity;            ///< of GPUs; "" where not told

  std::uint32_t places() const { return gpus + nics; }
};

/// @throws InputError with the place: no table, rows and columns that do not match, an unknown word, two
/// entries that contradict each other
TopoMatrix read_topo_matrix(const std::string& file);

}  // namespace convoy::topologies
