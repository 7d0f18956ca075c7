// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collectives/rings.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline collectives {

/// Rows of the table of collectives, in this order.
enum class AllReduceAlgorithm : std::uint8_t {
  ring,
  tree,
  halving_doubling,
  hierarchical,
  double_binary_tree,
  nccl,
  automatic
};

/// The participants, the machine, and the number of bytes.
struct CollectiveCall {
  const std::vector<EndpointId>& ranks;
  const Machine& machine;
  double bytes;
  RingOrder order = RingOrder::mesh;
};

/// A row: everything that the program knows about an algorithm. What strategies accept, what `auto` chooses
/// from, what errors suggest and what ZeRO scatters with all follow from the table.
struct CollectiveAlgorithm {
  AllReduceAlgorithm id;
  std::string_view name;
  Pattern (*all_reduce)(const CollectiveCall& call);
  /// Reduce-scatter, or with `gather` all-gather; null if there is none.
  Pattern (*half)(const CollectiveCall& call, bool gather);
  /// Why it cannot scatter equally over the ranks ("needs a power of two of devices, found 6"); empty if it
  /// can.
  std::string (*scatter_needs)(const CollectiveCall& call);
  bool by_bytes;   ///< its rounds depend on the number of bytes
  bool same_half;  ///< all-gather and reduce-scatter are the same rounds
  /// `auto` considers it for up to this many ranks; 0: never.
  std::size_t auto_ranks;
};

class SumSchedule;

/// What sums: a row of the table, the schedule of a file, or the quickest of some of them.
struct SumAlgorithm {
  SumAlgorithm(AllReduceAlgorithm of_table = AllReduceAlgorithm::ring) : row(of_table) {}

  AllReduceAlgorithm row;
  std::shared_ptr<const SumSchedule> schedule = {};  ///< where given, in place of the row
  /// Of `automatic`; none: the rows of the table that say so (auto_ranks).
  std::vector<SumAlgorithm> candidates = {};

  bool is_auto() const { return !schedule && row == AllReduceAlgorithm::automatic; }
  /// "ring", "auto", "auto of ring, tree" or the schedule's file.
  std::string name() const;
  bool by_bytes() const;   ///< its rounds depend on the number of bytes
  bool same_half() const;  ///< all-gather and reduce-scatter are the same rounds
  bool operator==(const SumAlgorithm&) const = default;
};

const std::vector<CollectiveAlgorithm>& collective_table();
const CollectiveAlgorithm& collective(AllReduceAlgorithm algorithm);

/// Names of the rows in order: the values of a strategy's key `algorithm`.
const std::vector<std::string>& all_reduce_algorithm_names();
/// The values of a strategy's keys `rings` and `fidelity`.
inline const std::vector<std::string> ring_order_names{"mesh", "in_order"};
inline const std::vector<std::string> fidelity_names{"auto", "chunk", "fluid"};

/// @param bytes the number of bytes for which to choose, if the algorithm depends on it: `auto` takes the row
/// with the least estimate_s (ties: the first), `nccl` the one that NCCL would take (nccl_pattern.h).
/// @pre why_no_all_reduce(algorithm, ranks, machine) is empty
/// @throws InputError a schedule is no all-reduce
Pattern all_reduce_pattern(const SumAlgorithm& algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine, double bytes, RingOrder order = RingOrder::mesh);

/// Of groups that follow one pattern, the one for which the pattern is to be made where that depends on
/// bytes: that whose own all-reduce takes the longest. Groups are told apart by how many ranks they have on
/// each host.
const std::vector<EndpointId>& slowest_group(const SumAlgorithm& algorithm,
                                             const std::vector<std::vector<EndpointId>>& groups,
                                             const Machine& machine, double bytes,
                                             RingOrder order = RingOrder::mesh);

/// The name of what `auto` takes for this many bytes.
/// @param half choose for a reduce-scatter or all-gather instead of an all-reduce
std::string chosen_algorithm(const SumAlgorithm& automatic, const std::vector<EndpointId>& ranks,
                             const Machine& machine, double bytes, RingOrder order, bool half);

/// Halves of an all-reduce as patterns with Communication::bytes = S (collectives.h).
/// @pre why_no_scatter(algorithm, ranks, machine) is empty
Pattern reduce_scatter_pattern(const SumAlgorithm& algorithm, const std::vector<EndpointId>& ranks,
                               const Machine& machine, double bytes, RingOrder order = RingOrder::mesh);
Pattern all_gather_pattern(const SumAlgorithm& algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine, double bytes, RingOrder order = RingOrder::mesh);

/// Why an algorithm cannot scatter the result equally over these ranks, and which ones can, for an error;
/// empty if it can.
std::string why_no_scatter(const SumAlgorithm& algorithm, const std::vector<EndpointId>& ranks,
                           const Machine& machine);
/// Why there is no all-reduce over these ranks; empty if there is. Rows of the table have one for any ranks.
std::string why_no_all_reduce(const SumAlgorithm& algorithm, const std::vector<EndpointId>& ranks,
                              const Machine& machine);

}  // namespace convoy::collectives
