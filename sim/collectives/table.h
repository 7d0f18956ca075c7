// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collectives/rings.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline collectives {

/// Rows of the table of collectives, in its order.
enum class AllReduceAlgorithm : std::uint8_t {
  ring,
  tree,
  halving_doubling,
  hierarchical,
  double_binary_tree,
  nccl,
  automatic
};

/// Who takes part, over which machine, and how much there is of it.
struct CollectiveCall {
  const std::vector<EndpointId>& ranks;
  const Machine& machine;
  double bytes;
  RingOrder order = RingOrder::mesh;
};

/// A row: everything that the program knows of an algorithm. What strategies accept, `auto` chooses from,
/// errors suggest and ZeRO scatters with follows from the table.
struct CollectiveAlgorithm {
  AllReduceAlgorithm id;
  std::string_view name;
  Pattern (*all_reduce)(const CollectiveCall& call);
  /// Reduce-scatter, or with `gather` all-gather; null where there is none.
  Pattern (*half)(const CollectiveCall& call, bool gather);
  /// Why it cannot scatter equally over the ranks ("needs a power of two of devices, found 6"); empty where
  /// it can.
  std::string (*scatter_needs)(const CollectiveCall& call);
  bool by_bytes;   ///< its rounds depend on the number of bytes
  bool same_half;  ///< all-gather and reduce-scatter are the same rounds
  /// Up to so many ranks `auto` weighs it; 0: not at all.
  std::size_t auto_ranks;
};

const std::vector<CollectiveAlgorithm>& collective_table();
const CollectiveAlgorithm& collective(AllReduceAlgorithm algorithm);

/// Names of the rows in order: what the key `algorithm` of a strategy takes.
const std::vector<std::string>& all_reduce_algorithm_names();
/// What the keys `rings` and `fidelity` of a strategy take.
inline const std::vector<std::string> ring_order_names{"mesh", "in_order"};
inline const std::vector<std::string> fidelity_names{"auto", "chunk", "fluid"};

/// @param bytes what algorithms that go by it choose for: `auto` takes the row with the least estimate_s
/// (ties: the first), `nccl` the one that NCCL would (nccl_tuning.h).
Pattern all_reduce_pattern(AllReduceAlgorithm algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine, double bytes, RingOrder order = RingOrder::mesh);

/// The name of the row that `auto` takes for so many bytes.
/// @param half of a reduce-scatter or all-gather, rather than of an all-reduce
std::string_view chosen_algorithm(const std::vector<EndpointId>& ranks, const Machine& machine, double bytes,
                                  RingOrder order, bool half);

/// Halves of an all-reduce as patterns of Communication::bytes = S (collectives.h).
/// @pre why_no_scatter(algorithm, ranks, machine) is empty
Pattern reduce_scatter_pattern(AllReduceAlgorithm algorithm, const std::vector<EndpointId>& ranks,
                               const Machine& machine, double bytes, RingOrder order = RingOrder::mesh);
Pattern all_gather_pattern(AllReduceAlgorithm algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine, double bytes, RingOrder order = RingOrder::mesh);

/// Why an algorithm cannot scatter the result equally over these ranks, and which can, for an error; empty
/// where it can.
std::string why_no_scatter(AllReduceAlgorithm algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine);

}  // namespace convoy::collectives
