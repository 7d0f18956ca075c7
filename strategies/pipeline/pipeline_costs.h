// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/costs/issue_queue.h"
#include "sim/lowering/units.h"
#include "strategies/pipeline/pipeline_shape.h"
#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// What a stage made of units [begin, end) would cost, as the partitioners see it: an estimate, since all of
/// them are compared. All times of one micro-batch.
class PipelineCosts {
 public:
  /// @param input whose machine must outlive the costs, as the units must
  PipelineCosts(const StrategyInput& input, const Units& units, const PipelineShape& shape);

  struct StageCost {
    double compute_s;   ///< forward and backward (and forward again), on the slowest of its devices
    double issue_s;     ///< in which the slowest of their hosts issues that; without flush the update as well
    double messages_s;  ///< what it waits for: activations and gradients that it gets, with their latencies
    /// Summing gradients over its replicas, a micro-batch's share of it; without flush the update as well.
    double sync_s;
    /// Time between two micro-batches that it could keep up with: the largest of computing (or being issued
    /// to) and summing, getting and sending activations, the same for gradients, and all that it gets, or
    /// sends, over a link that both need.
    double interval_s;
    bool fits;  ///< resident memory, held activations and the largest operands in the device's memory
    double sum_s() const { return compute_s + messages_s + sync_s; }
    /// Of a micro-batch among many, without its messages.
    double busy_s() const { return std::max(compute_s, issue_s); }
  };
  /// The way between neighbouring slots, of which each pipeline has its share.
  struct Cable {
    double bandwidth_Bps = 0, latency_s = 0;
    bool operator==(const Cable&) const = default;
  };
  /// The way from a stage to the next. Their slots take turns: a message of micro-batch m goes from slot m of the one
  /// to slot m of the other, each counted around.
  struct Border {
    Cable message;  ///< in the mean, one message at a time
    /// Of all messages together, as the busiest link carries them. Slots of a stage begin together and take equally
    /// long, so that their messages meet on links that they share: each then has its part of that.
    double pace_Bps = 0;
    /// @param senders slots of the stage that sends  @param bytes of a message, with its latency
    double message_s(double bytes, std::uint32_t senders) const {
      return message.latency_s + std::max(bytes / message.bandwidth_Bps, bytes * senders / pace_Bps);
    }
    bool operator==(const Border&) const = default;
  };
  /// Links that what a stage gets (or sends) from before and from behind both cross; infinite: there are
  /// none.
  struct SharedLinks {
    double in_Bps, out_Bps;
    bool operator==(const SharedLinks&) const = default;
  };
  /// All that the times of a stage depend on beside its units: on equal places the same units take as long.
  struct Place {
    std::vector<std::uint32_t> kinds;  ///< of devices that the stage has, ascending
    std::uint32_t slots, of_stage_before;  ///< slots of the stage, and of the one before it
    /// All-reduces of sum_sizes_ over its devices; empty where it has one device.
    std::vector<double> sums_s;
    Border before, behind;
    bool has_stage_behind;
    SharedLinks shared;
    bool operator==(const Place&) const = default;
  };
  /// The same for whether a stage fits in memory.
  struct Room {
    double devices, capacity_bytes;  ///< of the smallest device, without what is reserved
    std::int64_t in_flight, weight_versions;
    bool operator==(const Room&) const = default;
  };
  /// The stages on both sides have as many slots as `stage_slots` says, or as stages have on average.
  /// @param slots_before of the stages before it
  Place place(std::uint32_t slots_before, std::uint32_t slots) const;
  /// @param of_stage_before, of_stage_behind slots of the stages on both sides, 0 where there is none
  Place place(std::uint32_t slots_before, std::uint32_t slots, std::uint32_t of_stage_before,
              std::uint32_t of_stage_behind) const;
  Room room(std::uint32_t slots_before, std::uint32_t slots) const;
  /// Of a stage made of units [begin, end), without `fits`.
  StageCost times(std::uint32_t begin, std::uint32_t end, const Place& place) const;
  bool stage_fits(std::uint32_t begin, std::uint32_t end, const Room& room) const;
  /// @param slots_before of the stages before it
  StageCost stage(std::uint32_t begin, std::uint32_t end, std::uint32_t slots_before,
                  std::uint32_t slots) const;
  /// What a kind of device takes for units [begin, end) of a micro-batch, and its host to issue them.
  struct PassTimes {
    QueuedTime forward, backward;  ///< without the forward pass again
  };
  PassTimes passes(std::uint32_t begin, std::uint32_t end, std::uint32_t kind) const;
  QueuedTime update(std::uint32_t begin, std::uint32_t end, std::uint32_t kind) const;
  /// When its host begins to issue a step.
  double begin_s(std::uint32_t kind) const { return device_kinds_[kind].begin_s; }
  /// Kinds of devices in a slot: other types, or other numbers of devices in a host; of devices that differ
  /// in speed alone the slowest is there.
  const std::vector<std::uint32_t>& kinds_of_slot(std::uint32_t slot) const { return kinds_of_slot_[slot]; }
  /// The way from a slot to another, of which each of their pipelines has its share.
  const Cable& cable(std::uint32_t from, std::uint32_t to) const;
  /// From a stage on slots [from, from + left) to one on [to, to + right).
  const Border& border(std::uint32_t from, std::uint32_t left, std::uint32_t to, std::uint32_t right) const;
  /// What a stage makes and another one reads: a message of every micro-batch, and one back with its gradients.
  struct Edge {
    std::uint32_t from, to;
    double bytes = 0, gradient_bytes = 0;  ///< of an image
  };
  std::vector<Edge> edges(const std::vector<StageChoice>& stages) const;
  /// How long the busiest link carries what all messages and sums of a step send, which no step is shorter than.
  /// Gradients count whole, though compression may send less of them, and go as an all-reduce of sum_sizes_.back() does.
  double busiest_link_s(const std::vector<StageChoice>& stages) const;
  const std::vector<Units::Tensor>& tensors() const { return tensors_; }
  /// How much longer than its last backward pass a stage needs to sum its gradients over its replicas: bucket by
  /// bucket, each from when its last gradient is there, or all after the pass; with nothing else under way.
  double exposed_sum_s(std::uint32_t begin, std::uint32_t end, const Place& place) const;

  /// What computing units [begin, end) takes on the fastest device, unit by unit: no stages of them take less
  /// in sum, whichever slots they have.
  double least_compute_s(std::uint32_t begin, std::uint32_t end) const {
    return least_before_s_[end] - least_before_s_[begin];
  }

  /// Step of a cut pipeline, as far as it is one of sums and largest ones: every stage once, and for each
  /// further micro-batch the slowest interval,
  ///   sum (compute + messages + sync) + (M - 1) max interval;   naive: M max(sum, max interval).
  /// The makespan of a flow line with equal jobs, with forward and backward taken as one. Of hosts it knows
  /// that none issues a micro-batch in less than its time for it, not where in the step a device waits for
  /// one: that is in schedule_s (pipeline_schedule.h). Without flush the line never runs empty: M max
  /// interval. Under 1F1B an interval is also no less than round_trip_s, since a stage has no more
  /// micro-batches under way than it may hold.
  double step_s(const std::vector<StageChoice>& stages) const;
  /// The same of stages' sum and slowest interval. It falls with neither.
  double step_s(double sum_s, double interval_s) const;
  bool fits(const std::vector<StageChoice>& stages) const;
  /// Whether a stage may begin with a unit (Units::begins), and all stages of a cut with theirs.
  bool may_begin(std::uint32_t unit) const { return begins_[unit]; }
  bool may_begin(const std::vector<StageChoice>& stages) const;
  /// Time from a micro-batch's forward on a stage to the end of its backward, over those under way meanwhile.
  /// @param rest_s sum of the later stages; 0 where the schedule sets no such limit
  double round_trip_s(const StageCost& cost, double rest_s, std::uint32_t slots_before,
                      std::uint32_t slots) const;
  /// Those under way meanwhile; infinitely many where the schedule sets no such limit.
  double under_way(std::uint32_t slots_before, std::uint32_t slots) const;

  const PipelineShape& shape() const { return shape_; }
  std::uint32_t unit_count() const { return static_cast<std::uint32_t>(count_); }
  std::uint32_t slot_count() const { return static_cast<std::uint32_t>(shape_.slots.size()); }

 private:
  void add_times(const StrategyInput& input, const Units& units);
  void add_kinds(const Machine& machine);
  void add_bytes(const Units& units);
  void add_memory(const StrategyInput& input, const Units& units);
  void add_buckets();
  void add_sum_sizes();
  const std::vector<double>& sums_s(std::uint32_t first_slot, std::uint32_t slots) const;
  void add_shared_links();
  /// Links, in order, and how much crosses each.
  using Crossings = std::vector<std::pair<LinkId, double>>;
  /// How often pairs of equal positions in two slots cross each link on their way.
  const Crossings& crossings(std::uint32_t from, std::uint32_t to) const;
  /// Bytes on each link for one that is summed over the devices of slots.
  const Crossings& sum_loads(std::uint32_t first_slot, std::uint32_t slots) const;
  Pattern sum_over(const std::vector<EndpointId>& devices, double bytes) const;
  std::vector<EndpointId> devices_of(std::uint32_t first_slot, std::uint32_t slots) const;
  static double narrowest_common_Bps(const Machine& machine, const Crossings& a, const Crossings& b);
  double memory_bytes(std::uint32_t begin, std::uint32_t end, const Room& room) const;
  double sync_s(std::uint32_t begin, std::uint32_t end, const Place& place) const;
  /// An all-reduce of so many bytes.
  double sum_s(double bytes, const Place& place) const;

  /// Upper triangle of a table by (begin, end).
  struct Table {
    std::size_t width = 0;
    std::vector<double> values;
    double& at(std::size_t begin, std::size_t end) { return values[begin * width + end]; }
    double at(std::size_t begin, std::size_t end) const { return values[begin * width + end]; }
  };

  /// Kinds of devices in slots [first, first + count).
  const std::vector<std::uint32_t>& kinds(std::uint32_t first, std::uint32_t count) const {
    return kinds_[first * (shape_.slots.size() + 1) + count];
  }

  /// Devices that take equally long, and for which their hosts do.
  struct Kind {
    Device like;                               ///< one of them
    std::uint32_t in_host;                     ///< devices of its host
    QueuedSequence forward, backward, update;  ///< by unit
    double begin_s = 0;                        ///< of the host, before it issues (CostModel::begin_s)
  };

  PipelineShape shape_;
  const Machine& machine_;
  const std::vector<Units::Tensor>& tensors_;
  const std::vector<bool>& begins_;
  std::size_t count_;
  TrainingOptions options_;
  std::vector<Kind> device_kinds_;
  std::vector<std::vector<std::uint32_t>> kinds_of_slot_;
  std::vector<double> least_before_s_;  ///< of all units before a unit, each on its fastest device
  std::vector<std::vector<std::uint32_t>> kinds_;
  std::vector<double> parameters_before_;
  std::vector<double> frozen_before_;   ///< the same of parameters that are not trained
  Table in_bytes_, in_gradient_bytes_;  ///< of an image: what [begin, end) reads from before; gradients of it
  Table out_bytes_, out_gradient_bytes_;  ///< what later units read of [begin, end); gradients of it
  Table held_bytes_;                      ///< of an image: made in forward, read in backward
  Table operand_bytes_;                   ///< of an image: the most that one operation has beside these
  std::vector<double> capacity_bytes_;    ///< by slot, without what is reserved
  /// By two slots, or the first of some and their number; what was asked for.
  template <class T>
  using KnownOfSlots = std::map<std::pair<std::uint32_t, std::uint32_t>, T>;
  mutable KnownOfSlots<Cable> cables_;
  mutable KnownOfSlots<Crossings> crossings_, sum_loads_;
  mutable KnownOfSlots<std::vector<double>> sums_s_;  ///< Place::sums_s
  mutable std::map<std::array<std::uint32_t, 4>, Border> borders_;
  /// Ascending numbers of bytes for which sums are estimated (estimate_s), up to the largest that there are; between them
  /// times are taken to be linear, as they are from no bytes on where an algorithm's rounds do not depend on bytes.
  std::vector<double> sum_sizes_;
  std::vector<std::vector<std::uint32_t>>
      buckets_;  ///< by end of a stage, full ones: their first units, falling
  std::vector<std::vector<SharedLinks>> shared_;  ///< by first and number of slots of a stage in the middle
};

}  // namespace convoy::strategies
