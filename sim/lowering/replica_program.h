// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/training_graph.h"
#include "sim/lowering/compute_tasks.h"
#include "sim/lowering/gradient_sync.h"
#include "sim/lowering/stages.h"

namespace convoy::inline lowering {

/// One pass of a micro-batch through the layers of a stage.
struct Pass {
  bool backward;
  std::int64_t micro_batch;
  double images;            ///< of it on this device
  std::string suffix;       ///< of its operations' names: " #3"
  bool completes = false;   ///< a backward pass that completes the gradients of an update
  bool recomputes = false;  ///< the stage keeps only its inputs, and runs forward again before backward
  double first_image = 0;   ///< of the global batch, on the first device (ImageRange); for meaning only
  bool operator==(const Pass&) const = default;
};

/// Messages that operations of a pass wait for, or that wait for operations.
class PassMessages {
 public:
  virtual ~PassMessages() = default;
  /// Before (after) the operation at a position of the pass is added to the role's tasks.
  virtual void before(const Pass& pass, std::size_t position, ComputeTasks& tasks) = 0;
  virtual void after(const Pass& pass, std::size_t position, ComputeTasks& tasks) = 0;
  /// Says more of what that operation means, or one of the stage's update. Only where that is asked for.
  virtual void mean(const Pass& pass, std::size_t position, OpMeaning& meaning) const {
    (void)pass, (void)position, (void)meaning;
  }
  virtual void mean_update(std::size_t position, OpMeaning& meaning) const { (void)position, (void)meaning; }
};

/// The program of a device that computes a stage's layers, of which others may have replicas: micro-batches
/// forward and backward in any order, the sums of gradients with the replicas, and updates.
///
/// Gradients of a micro-batch are added to those before. A bucket is summed over the replicas when the pass
/// that completes the update has made its gradients, while that pass goes on (overlap), or after it; the
/// update waits for all of them.
///
/// ZeRO (Rajbhandari, Rasley, Ruwase & He, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
/// Models", SC 2020, sections 5 and 7) cuts states evenly over the replicas. Stage 1 shards the optimizer's
/// states: buckets are reduce-scattered, every replica updates 1/N of the parameters, and all-gathers bring
/// the new parameters to all, bucket by bucket, after the update. Stage 2 shards the gradients as well: a
/// bucket of whole layers is there from its first gradient until it has been reduce-scattered, in every
/// micro-batch, which adds to the device's shard. Two buckets may be there at a time: backward begins to fill
/// a third when the first is gone (as DeepSpeed's `overlap_comm` does). Stage 3 shards the parameters as
/// well: a bucket's are all-gathered before its layers run forward, freed after, and gathered again for
/// backward. The next bucket's are gathered while one's are in use, also those of the next pass. Without
/// overlap computation waits for every message, and one bucket is there at a time.
///
/// A device sends (N-1)/N of so many times the parameters in the precision of gradients: 2 in stage 1 (as
/// much as an all-reduce), M + 1 in stage 2 and 3 M in stage 3 with M micro-batches. What recomputation reads
/// again is gathered again, but for a bucket that is there.
class ReplicaProgram {
 public:
  /// @param groups that the device is a member of; each of the stage's parameters is in one of them at most;
  ///        none: gradients are not summed by collectives
  /// @param role gets the program; its resident memory is the caller's (GroupSync::resident_bytes), but for
  ///        compression's residual
  /// @param stream of the role on which gradients are summed; with GradientSync::cycle_s, devices agree on
  ///        the one after it
  /// @param passes all that will be run, in order
  /// @param messages of the passes beside the groups', if any
  /// @param meaning gets what the operations mean, if it is asked for
  ReplicaProgram(const TrainingGraph& graph, const Stage& stage, std::vector<GroupSync*> groups, Role& role,
                 int stream, std::vector<Pass> passes, PassMessages* messages = nullptr,
                 Meaning* meaning = nullptr);

  /// Appends the next pass, which runs after `after`.
  /// @param task what its last task is called; "": the pass after it may go into the same task
  /// @return the task at whose end it is done, where it has a name
  TaskId next_pass(const std::vector<TaskId>& after, std::string task);

  /// For passes that take turns operation by operation: appends those from `first` to before `end` of a pass,
  /// which completes what they make where no other pass is to run them any more. Not with ZeRO's stages 2 and 3,
  /// which free after each pass.
  void next_operations(const Pass& pass, std::size_t first, std::size_t end);
  /// The last of them has been appended.
  void end_passes();

  /// Appends the sums that are still due after the last completing pass, and the update.
  void update(const std::string& suffix);

  /// For operations that follow those of the passes.
  ComputeTasks& tasks() { return tasks_; }

  /// Allocates and frees what messages fill, when nothing more is appended.
  void end() { tasks_.place_tensors(); }

 private:
  /// A bucket of one of the groups.
  struct GroupBucket {
    GroupSync* group;
    std::size_t index;  ///< in the group
    std::size_t after;  ///< operations of a backward pass that come after its last gradient

    const Bucket& bucket() const { return group->buckets()[index]; }
    double bytes() const { return bucket().bytes; }
  };
  /// Consecutive operations of a pass, first to last, in which no other bucket's parameters are read.
  struct Use {
    std::size_t bucket;       ///< position in buckets_
    std::size_t first, last;  ///< positions in the pass' operations
    std::size_t pass;
  };

  const GradientSync& how() const { return groups_.front()->how(); }
  int zero() const;
  const std::vector<StageOp>& operations(const Pass& pass) const;
  void find_buckets();
  void find_uses();
  void find_first_gradients();
  std::size_t depth() const { return how().overlap ? 2 : 1; }

  void begin();
  bool sends_during(const Pass& pass) const;
  void before(std::size_t position, const StageOp& op);
  void use_buffers(std::size_t position, const StageOp& op);
  void after(std::size_t position, const StageOp& op);
  bool is_last_use(std::size_t position) const;
  void add_gather_buffer(std::size_t use);
  void gather(std::size_t use, TaskId after);
  void scatter(std::size_t bucket, TaskId after);
  void release();
  void free_gradients();

  void prepare_message(std::size_t bucket);
  void complete_buckets(std::size_t left);
  std::vector<TaskId> agreements(const std::string& suffix);
  void sum_buckets(std::vector<TaskId>& before_update, const std::string& suffix);
  void sum_factors(std::vector<TaskId>& summed, const std::string& suffix);
  double message_bytes(const GroupBucket& of) const;
  const LowRankBucket* low_rank(const GroupBucket& of) const;
  std::vector<double> updated_shares() const;

  void mean_pass(const Pass& pass, const StageOp& op, std::size_t position);
  void mean_bucket(OpMeaning::Act act, std::size_t bucket);

  const TrainingGraph& graph_;
  const Stage& stage_;
  std::vector<GroupSync*> groups_;
  std::vector<GroupBucket> buckets_;  ///< of all groups, in the order in which backward completes them
  Role& role_;
  int stream_;
  std::vector<Pass> passes_;
  PassMessages* messages_;
  Meaning* meaning_;
  ComputeTasks tasks_;
  std::size_t pass_ = 0;  ///< under way, then the next one
  // Where gradients are whole on every replica: what completed them.
  std::vector<TaskId> ready_;  ///< by bucket
  TaskId completed_ = 0;       ///< all of them
  // Stages 2 and 3 of ZeRO.
  std::vector<std::size_t> first_gradient_;  ///< by operation of the graph: bucket whose gradients it begins
  std::vector<std::size_t> last_gradient_;   ///< the same, completes
  std::vector<Use> uses_;                    ///< of all passes; stage 3
  std::size_t use_ = 0;                      ///< under way
  std::vector<TaskId> gathers_, scatters_;
  /// All-gathers of parameters that the last update has renewed: the next forward pass reads them.
  std::vector<TaskId> renewed_;
  /// A bucket whose gradients are reduce-scattered.
  struct Scattered {
    std::size_t bucket, gradients;
  };
  std::vector<Scattered> scattered_;  ///< by reduce-scatter
  std::size_t released_ = 0;          ///< reduce-scatters whose buckets' gradients are free again
  // Tensors that tasks_ holds.
  std::vector<std::size_t> gathered_;    ///< by use: a bucket's parameters
  std::vector<std::size_t> whole_;       ///< by bucket: the gradients that were begun last
  std::vector<std::size_t> compressed_;  ///< by bucket: the gradients as they are sent
};

}  // namespace convoy::lowering
