// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/plan/plan.h"
#include "tests/laws/random_experiment.h"

namespace convoy::lab {

/// What can be wrong in a lowering or in a collective, done to the plan that it would have made.
enum class PlanMutant : std::uint8_t {
  message_dropped,    ///< one of a pattern's
  send_dropped,       ///< a task that sends, receives or takes part in a collective
  round_too_few,      ///< of a collective
  bucket_twice,       ///< a collective is done again
  tensor_twice,       ///< a tensor is in two buckets
  gradient_lost,      ///< a tensor is in no bucket
  result_lost,        ///< a message carries a tensor less
  operation_dropped,  ///< of the graph
  wait_removed,       ///< on which the order of tasks depends
  border_off_by_one,  ///< an operation's images
  bytes_off_by_one,   ///< a message's
  lanes_swapped,      ///< two replicas get each other's results
  micro_batch_twice,  ///< an operation runs on the images of another micro-batch
  freed_early,        ///< a buffer, an operation or more before its last user
  update_dropped,     ///< a layer's last one, on all its replicas
  one_image_less,     ///< each device works on one image less of each micro-batch, and all else goes by that
  work_changed,       ///< another operation's in place of an operation's
  message_twice,      ///< one sender's, in place of those of the others
  copies_swapped,     ///< a bucket is copied after it has been compressed, or back before it is decompressed
  round_too_many,     ///< of a collective: not wrong, but more than the rules follow
  sent_late,          ///< results, when more has been computed since they were dropped
};
inline constexpr int plan_mutants = 21;

/// Changes the plan, or where a plan does not show it (which images, which tensors) what the plan says of
/// itself. @return what was done, for people; "": there is nothing of the kind in the plan
std::string change(Plan& plan, const TrainingGraph& graph, PlanMutant mutant, Dice& dice);

/// Whole gradients are freed although their sum may not have come: the wait for it is dropped. Whether this operation
/// frees some.
bool frees_gradients_early(const Role& role, Task& task, const PlanOp& op);
/// Gradients have room only from where it is given back. Whether this operation gives some back.
bool makes_gradients_late(const Role& role, const Task& task, PlanOp& op);

}  // namespace convoy::lab
