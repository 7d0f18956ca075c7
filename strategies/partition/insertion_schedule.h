// SPDX-License-Identifier: MIT
#pragma once

#include <utility>
#include <vector>

#include "strategies/partition/gaps.h"
#include "strategies/partition/method.h"

namespace convoy::inline partition {

/// A schedule that grows operation by operation: each goes into the earliest gap of a part that is long
/// enough for it after its inputs have come (the insertion-based policy of HEFT and CPOP; Topcuoglu, Hariri,
/// Wu, IEEE TPDS 13(3), 2002, section 5).
class InsertionSchedule {
 public:
  /// @param message by operation: time that its output takes to another part. Both must outlive the object.
  InsertionSchedule(const PartitionTask& task, const std::vector<double>& message);

  /// Places an operation, whose parents have been, on the one of the first `parts` parts where it can begin
  /// earliest (ties: the first of them); a further one of a unit where the first is.
  void place(NodeId operation, Part parts);

  PartitionAnswer take() { return std::move(answer_); }

 private:
  const Dag& dag_;
  const std::vector<double>& message_;
  PartitionAnswer answer_;
  std::vector<Gaps> gaps_;  ///< by part
  static constexpr Part none = ~Part{0};
  Placement unit_part_;  ///< by unit: where its first operation went
};

}  // namespace convoy::partition
