// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/input_error.h"
#include "sim/base/keys.h"
#include "sim/collectives/table.h"
#include "sim/lowering/buckets.h"
#include "sim/lowering/compression.h"
#include "sim/lowering/low_rank.h"
#include "sim/lowering/stages.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Of gradients that are sent as one message unless told otherwise: PyTorch DistributedDataParallel,
/// bucket_cap_mb=25.
inline constexpr double default_bucket_bytes = 25.0 * 1024 * 1024;

/// Which processes launch a collective on the devices of a host (grouped_launch.h): one process for all
/// devices together, one process for each device in turn, or a process for each device.
enum class CollectiveLaunches : std::uint8_t { by_framework, together, apart, per_process };
inline constexpr std::array<std::string_view, 4> collective_launches_names{"by_framework", "together",
                                                                           "apart", "per_process"};

/// How replicas of the same layers keep their parameters the same: which gradients are summed when and by
/// whom, and which device keeps which states.
struct GradientSync {
  SumAlgorithm algorithm;
  RingOrder rings = RingOrder::mesh;
  CollectiveLaunches launches = CollectiveLaunches::by_framework;
  double bucket_bytes = 0;
  bool bucket_given = false;
  /// The first bucket closes at so many bytes, so that sending begins early; unless given, as
  /// DistributedDataParallel's if it is what chooses the buckets, else as the others.
  std::optional<double> first_bucket_bytes;
  bool overlap = true;  ///< a bucket is sent as soon as it is complete; otherwise after backward
  /// If above 0, gradients are sent in cycles of this length (BucketCycles). At the end of each cycle the
  /// devices agree on the gradients that are complete on all of them.
  double cycle_s = 0;
  Fidelity fidelity = Fidelity::automatic;
  int zero = 0;  ///< stage of ZeRO: what is sharded over the replicas (replica_program.h)
  Compression compression;
  std::string path = "strategy";  ///< of the mapping that says all this, for errors
  SourcePos algorithm_pos;
  bool operator==(const GradientSync&) const = default;
};

const Keys<GradientSync>& gradient_sync_keys();
/// Reads gradient_sync_keys() of a mapping. @throws InputError, also where they do not go together
GradientSync read_gradient_sync(YamlMap& map);
/// @throws InputError where what was read does not go together
void check_gradient_sync(const YamlMap& map, const GradientSync& sync);
/// @throws InputError (at sync.algorithm_pos) where its algorithm has no all-reduce over these ranks
void check_all_reduce(const GradientSync& sync, const std::vector<EndpointId>& ranks, const Machine& machine);
/// Bytes of a bucket unless `bucket` is given: default_bucket_bytes, or all gradients if nothing overlaps.
double usual_bucket_bytes(bool overlap);
/// One all-reduce of all gradients, when backward is done.
GradientSync summed_after_backward();

/// "ring all-reduce, ZeRO-1, no overlap"
std::string label_of(const GradientSync& sync);

/// Parameters of which several devices have replicas.
struct Replicated {
  std::vector<std::vector<EndpointId>>
      groups;                    ///< each keeps its own replicas the same; equally many devices
  std::vector<double> elements;  ///< by parameter of the graph, on each device; 0: it is not replicated
  /// The elements by which buckets are filled, so that devices with smaller shares of the parameters put the
  /// same parameters into theirs; empty: `elements`
  std::vector<double> filling = {};
  /// When each operation of the graph ends on the slowest device; only if gradients are sent in cycles
  std::vector<double> made_s = {};
};
/// The parameters of a stage.
Replicated replicated(const TrainingGraph& graph, const Stage& stage, std::vector<EndpointId> devices);
/// The buckets of their gradients, in the order in which they are sent; none for a group of one device.
std::vector<Bucket> buckets_of(const GradientSync& sync, const TrainingGraph& graph,
                               const Replicated& parameters);

/// The sums of the gradients of replicas in a plan: the buckets, and the communications in which the programs
/// of all members take part, in the same order.
class GroupSync {
 public:
  /// @param of what is added to the name of a communication: "", " of stage 2"
  /// @throws InputError (at sync.algorithm_pos) if the algorithm has no all-reduce over a group, or cannot
  /// scatter over it as ZeRO and top_k need, or (at compression.pos) if the gradients are not in fp32
  GroupSync(const GradientSync& sync, const TrainingGraph& graph, const Machine& machine,
            Replicated parameters, std::string of, Plan& plan);

  /// No buckets for a group of one device, or without parameters.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  const GradientSync& how() const { return sync_; }
  /// Never `by_framework`.
  CollectiveLaunches launches() const;
  /// ZeRO's stage: 0 where there is nothing to sum.
  int zero() const { return buckets_.empty() ? 0 : sync_.zero; }
  /// Of a group.
  double members() const { return static_cast<double>(parameters_.groups.front().size()); }
  const Compressor& compressor() const { return compressor_; }
  /// By bucket, with compression: powersgd; else empty.
  const std::vector<LowRankBucket>& low_rank() const { return low_rank_; }
  /// Whether gradients are copied into their bucket (divided by the number of replicas) and back, as
  /// PyTorch's DistributedDataParallel (gradient_as_bucket_view=False, its default) and Horovod do: with
  /// zero: 0, unless the fabric is ideal. A gradient that is alone in its bucket is sent without a copy.
  bool is_copied(const Bucket& bucket) const;

  /// Bytes of states on each member, throughout the step.
  StateBytes resident_bytes() const;

  enum class Kind : std::uint8_t {
    all_reduce,
    reduce_scatter,
    all_gather,
    all_reduce_factors,  ///< of a bucket's second factors (LowRankBucket)
    agreement,           ///< with cycles: that the bucket's gradients are complete on all members
  };

  /// Begins the program of another member: its next communication is the first of the group.
  void begin_role() { next_ = 0; }
  /// Appends the task of the group's next communication to a member's program, on `stream`.
  /// @param what adds to its name, "bucket 3": " for conv1.forward"
  /// @param bytes of the whole message, as all members have it
  TaskId add(Role& role, int stream, Kind kind, std::size_t bucket, const std::string& what, double bytes,
             std::vector<TaskId> after);
  /// The same for the message by which members agree, at the end of a cycle, that its gradients are complete.
  /// @param bucket the last one of the cycle
  TaskId add_agreement(Role& role, int stream, std::size_t bucket, const std::string& what, TaskId after);
  /// Patterns of the group's communications in the plan.
  std::vector<std::uint32_t> patterns() const;
  const Replicated& parameters() const { return parameters_; }

  struct Sent {
    CommId comm;
    std::size_t bucket;
    Kind kind;
    std::string what;
    double bytes;
  };
  const std::vector<Sent>& sent() const { return sent_; }  ///< in the order of the programs
  /// Adds to the plan the communications of programs that were made for another plan.
  /// @param sent the communications that an equal group had in that plan  @pre nothing has been sent yet
  void send_again(const std::vector<Sent>& sent);
  /// Index into Meaning::buckets. @pre the plan says what its tasks mean
  std::uint32_t meaning_of(std::size_t bucket);

 private:
  void send(Kind kind, std::size_t bucket, const std::string& what, double bytes);
  std::uint32_t pattern(Kind kind, double bytes);
  std::uint32_t meaning_of(Kind kind, std::size_t bucket);  ///< of a communication

  const GradientSync& sync_;
  const TrainingGraph& graph_;
  const Machine& machine_;
  Replicated parameters_;
  std::string of_;
  Plan& plan_;
  std::vector<Bucket> buckets_;
  Compressor compressor_;
  std::vector<LowRankBucket> low_rank_;
  std::map<std::pair<Kind, double>, std::uint32_t> patterns_;
  std::vector<Sent> sent_;
  std::size_t next_ = 0;
  std::vector<std::uint32_t> meanings_;  ///< by bucket
};

/// Bytes of states on each of `devices` replicas with so many parameters between them, throughout the step.
/// With psi parameters, mixed precision and Adam (K = 12: fp32 parameters and two moments): ZeRO's stage 1
/// (2 + 2) psi + K psi/N, stage 2 2 psi + (2 + K) psi/N, stage 3 (2 + 2 + K) psi/N (Rajbhandari et al., SC
/// 2020, section 5). In fp32 there are no copies of the parameters beside those that all devices compute
/// with.
StateBytes sharded_resident_bytes(double elements, const TrainingOptions& options, int stage, double devices);

}  // namespace convoy::lowering
