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
  double images;            ///< of the micro-batch, on this device
  std::string suffix;       ///< of its operations' names: " #3"
  bool completes = false;   ///< a backward pass that completes the gradients of an update
  bool recomputes = false;  ///< the stage keeps only its inputs, and runs forward again before backward
  double first_image = 0;   ///< of the global batch, on the first device (ImageRange); for meaning only
  bool operator==(const Pass&) const = default;
};

/// The messages for which the operations of a pass wait, and those that wait for operations.
class PassMessages {
 public:
  virtual ~PassMessages() = default;
  /// Before (after) the operation at a position of the pass is added to the role's tasks.
  virtual void before(const Pass& pass, std::size_t position, ComputeTasks& tasks) = 0;
  virtual void after(const Pass& pass, std::size_t position, ComputeTasks& tasks) = 0;
  /// Completes the meaning of the operation at that position, or of one of the stage's update. Called only if
  /// meanings are asked for.
  virtual void mean(const Pass& pass, std::size_t position, OpMeaning& meaning) const {
    (void)pass, (void)position, (void)meaning;
  }
  virtual void mean_update(std::size_t position, OpMeaning& meaning) const { (void)position, (void)meaning; }
};

/// The program of a device that computes the layers of a stage, of which other devices may have replicas: the
/// forward and backward passes of micro-batches in any order, the sums of gradients with the replicas, and
/// updates.
///
/// Gradients of a micro-batch are added to those of earlier ones. A bucket is summed over the replicas when
/// the last pass before the update has made its gradients: while that pass goes on (overlap), or after it.
/// The update waits for all buckets.
///
/// ZeRO (Rajbhandari, Rasley, Ruwase & He, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
/// Models", SC 2020, sections 5 and 7) cuts states evenly over the replicas. Stage 1 shards the optimizer's
/// states: buckets are reduce-scattered, every replica updates 1/N of the parameters, and all-gathers bring
/// the new parameters to all, bucket by bucket, after the update. Stage 2 shards the gradients as well: in
/// every micro-batch, a bucket of whole layers is in memory from its first gradient until it has been
/// reduce-scattered, and the result is added to the device's shard. Two buckets may be in memory at a time:
/// backward begins to fill a third when the first has been freed (as DeepSpeed's `overlap_comm` does). Stage
/// 3 shards the parameters as well: those of a bucket are all-gathered before its layers run forward, freed
/// after that, and gathered again for backward. While one bucket is in use, the next one is gathered, also
/// across the border of two passes. Without overlap, computation waits for every message, and only one bucket
/// is in memory at a time.
///
/// With M micro-batches a device sends (N-1)/N times the bytes of the parameters, in the precision of
/// gradients, and that 2 times in stage 1 (as much as an all-reduce), M + 1 times in stage 2 and 3 M times in
/// stage 3. What recomputation reads again is gathered again, unless its bucket is in memory.
class ReplicaProgram {
 public:
  /// @param groups the groups of which the device is a member; each parameter of the stage is in at most one
  /// of them; empty: gradients are not summed by collectives
  /// @param role gets the program; the caller sets its resident memory (GroupSync::resident_bytes), except
  /// for the residual of compression
  /// @param stream the stream of the role on which gradients are summed; with GradientSync::cycle_s, devices
  /// agree on the stream after it
  /// @param passes all passes that will be run, in order
  /// @param messages of the passes, apart from those of the groups; may be nullptr
  /// @param meaning gets the meaning of the operations, if that is asked for
  ReplicaProgram(const TrainingGraph& graph, const Stage& stage, std::vector<GroupSync*> groups, Role& role,
                 int stream, std::vector<Pass> passes, PassMessages* messages = nullptr,
                 Meaning* meaning = nullptr);

  /// Appends the next pass, which runs after `after`.
  /// @param task the name of its last task; "": the next pass may continue the same task
  /// @return the task at whose end the pass is done, if it has a name
  TaskId next_pass(const std::vector<TaskId>& after, std::string task);

  /// For passes that are interleaved operation by operation: appends the operations `first` ... `end` - 1 of
  /// a pass. What they make is complete if no other pass will run them again. Not with ZeRO's stages 2 and 3,
  /// which free memory after each pass.
  void next_operations(const Pass& pass, std::size_t first, std::size_t end);
  /// Called after the last operation of all passes has been appended.
  void end_passes();

  /// Appends the sums that are still due after the last completing pass, and the update.
  void update(const std::string& suffix);

  /// For operations that follow those of the passes.
  ComputeTasks& tasks() { return tasks_; }

  /// Allocates and frees the buffers that messages fill. Nothing may be appended after this.
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
  /// All-gathers of the parameters that the last update has changed, which the next forward pass reads.
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
