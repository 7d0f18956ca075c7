// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_schedule.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <stdexcept>

namespace convoy::inline strategies {
namespace {

class Walk {
 public:
  Walk(const PipelineCosts& costs, const std::vector<StageChoice>& choices, std::int64_t micro_batches)
      : costs_(costs), shape_(costs.shape()), micro_batches_(micro_batches) {
    std::vector<std::uint32_t> stage_of(costs.unit_count());
    for (std::uint32_t s = 0, before = 0; s < choices.size(); before += choices[s++].slots) {
      const std::uint32_t begin = choices[s].first_unit;
      const std::uint32_t end = s + 1 < choices.size() ? choices[s + 1].first_unit : costs.unit_count();
      std::fill(stage_of.begin() + begin, stage_of.begin() + end, s);
      Stage& stage = stages_.emplace_back();
      stage.first_slot = before;
      stage.slots = choices[s].slots;
      stage.summing_s = costs.summing_s(begin, end, costs.place(before, stage.slots));
      for (std::uint32_t k = 0; k < choices[s].slots; ++k) add_slot(s, begin, end, k);
    }
    add_edges(stage_of);
  }

  double run() {
    std::deque<std::uint32_t> ready;
    for (std::uint32_t q = 0; q < slots_.size(); ++q) ready.push_back(q);
    for (; !ready.empty(); ready.pop_front()) advance(slots_[ready.front()], ready);
    double end_s = 0;
    for (std::uint32_t s = 0; s < stages_.size(); ++s) end_s = std::max(end_s, update_s(stages_[s]));
    return end_s;
  }

 private:
  /// A message of every micro-batch, to another stage.
  struct Edge {
    std::uint32_t to;
    double time_s;
  };
  /// Of a stage and direction: what it sends, in order, and by micro-batch what it waits for.
  struct Messages {
    std::vector<Edge> edges;
    std::uint32_t awaited = 0;
    std::vector<std::uint32_t> missing;
    std::vector<double> arrived_s;
  };
  struct Stage {
    std::uint32_t first_slot = 0, slots = 0;
    double summing_s = 0;
    Messages forward, backward;
    Messages& messages(bool is_backward) { return is_backward ? backward : forward; }
  };
  /// A device of each kind that a slot has.
  struct Lane {
    QueuedTime forward, backward, again;  ///< again: forward and backward
    QueuedTime update;
    IssueQueue queue;
  };
  struct Slot {
    std::uint32_t stage;
    std::vector<Lane> lanes;
    std::vector<MicroBatchPass> order;
    std::size_t next = 0;
    double sent_activations_s = 0, sent_gradients_s = 0;  ///< when the last of them has arrived
    double last_begin_s = 0, end_s = 0;                   ///< of the last pass
  };

  /// What a later stage reads of a stage's outputs is one message, and its gradients are one back.
  void add_edges(const std::vector<std::uint32_t>& stage_of) {
    struct Bytes {
      double forward = 0, backward = 0;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> edges;
    for (const Units::Tensor& tensor : costs_.tensors()) {
      std::uint32_t last = stage_of[tensor.producer];
      for (const std::uint32_t reader : tensor.readers) {
        if (stage_of[reader] == last) continue;
        last = stage_of[reader];
        Bytes& bytes = edges[{stage_of[tensor.producer], last}];
        bytes.forward += tensor.bytes_per_image;
        if (tensor.has_gradient) bytes.backward += tensor.bytes_per_image;
      }
    }
    for (const auto& [ends, bytes] : edges) {
      add_edge(ends.first, ends.second, bytes.forward, false);
      add_edge(ends.second, ends.first, bytes.backward, true);
    }
    for (Stage& stage : stages_)
      for (const bool backward : {false, true}) {
        Messages& messages = stage.messages(backward);
        messages.missing.assign(static_cast<std::size_t>(micro_batches_), messages.awaited);
        messages.arrived_s.assign(static_cast<std::size_t>(micro_batches_), 0);
      }
  }

  void add_edge(std::uint32_t from, std::uint32_t to, double bytes, bool backward) {
    if (bytes <= 0) return;
    const PipelineCosts::Cable& cable = costs_.cable(stages_[from].first_slot, stages_[to].first_slot);
    stages_[from].messages(backward).edges.push_back(
        {to, cable.latency_s + bytes * shape_.images / cable.bandwidth_Bps});
    ++stages_[to].messages(backward).awaited;
  }

  void add_slot(std::uint32_t stage, std::uint32_t begin, std::uint32_t end, std::uint32_t k) {
    const std::uint32_t before = stages_[stage].first_slot;
    Slot& slot = slots_.emplace_back();
    slot.stage = stage;
    slot.order = order_of_passes(shape_, before, stages_[stage].slots, k, micro_batches_);
    for (const std::uint32_t kind : costs_.kinds_of_slot(before + k)) {
      const PipelineCosts::PassTimes times = costs_.passes(begin, end, kind);
      QueuedTime again = times.forward;
      again.then(times.backward);
      slot.lanes.push_back({times.forward, times.backward, again, costs_.update(begin, end, kind),
                            IssueQueue(costs_.begin_s(kind))});
    }
  }

  std::uint32_t slot_of(const Stage& stage, std::int64_t micro_batch) const {
    return stage.first_slot + static_cast<std::uint32_t>(micro_batch % stage.slots);
  }

  /// Goes on with a slot's passes up to one whose message is not there.
  void advance(Slot& slot, std::deque<std::uint32_t>& ready) {
    for (; slot.next < slot.order.size(); ++slot.next) {
      const MicroBatchPass& pass = slot.order[slot.next];
      const auto m = static_cast<std::size_t>(pass.micro_batch);
      const Messages& messages = stages_[slot.stage].messages(pass.backward);
      if (messages.missing[m] > 0) return;
      const double from_s = messages.arrived_s[m];
      slot.last_begin_s = std::max(slot.end_s, from_s);
      const bool again = pass.backward && recomputes(shape_, pass.micro_batch, micro_batches_);
      for (Lane& lane : slot.lanes) {
        lane.queue.wait_until(from_s);
        lane.queue.run(again ? lane.again : pass.backward ? lane.backward : lane.forward);
        slot.end_s = std::max(slot.end_s, lane.queue.end_s());
      }
      double& sent_s = pass.backward ? slot.sent_gradients_s : slot.sent_activations_s;
      for (const Edge& edge : messages.edges) {
        sent_s = std::max(sent_s, slot.end_s) + edge.time_s;
        Stage& to = stages_[edge.to];
        Messages& there = to.messages(pass.backward);
        there.arrived_s[m] = std::max(there.arrived_s[m], sent_s);
        if (--there.missing[m] == 0) ready.push_back(slot_of(to, pass.micro_batch));
      }
    }
  }

  /// When a stage's parameters are updated.
  double update_s(const Stage& stage) {
    double summed_s = 0;
    for (std::uint32_t k = 0; k < stage.slots; ++k) {
      const Slot& slot = slots_[stage.first_slot + k];
      if (slot.next < slot.order.size()) throw std::logic_error("stages of a pipeline wait for each other");
      const double from_s = shape_.overlap ? slot.last_begin_s : slot.end_s;
      summed_s = std::max({summed_s, slot.end_s, from_s + stage.summing_s});
    }
    double end_s = 0;
    for (std::uint32_t k = 0; k < stage.slots; ++k)
      for (Lane& lane : slots_[stage.first_slot + k].lanes) {
        lane.queue.wait_until(summed_s);
        lane.queue.run(lane.update);
        end_s = std::max(end_s, lane.queue.end_s());
      }
    return end_s;
  }

  const PipelineCosts& costs_;
  const PipelineShape& shape_;
  const std::int64_t micro_batches_;
  std::vector<Stage> stages_;
  std::vector<Slot> slots_;
};

/// Micro-batches after which every slot of every stage has its turn again.
std::int64_t turns_of_slots(const std::vector<StageChoice>& stages) {
  std::int64_t turns = 1;
  for (const StageChoice& stage : stages) turns = std::lcm(turns, std::int64_t{stage.slots});
  return turns;
}

}  // namespace

std::int64_t walked_micro_batches(const PipelineShape& shape) {
  constexpr std::int64_t most_walked = 512;
  return std::min(shape.micro_batches, most_walked);
}

double schedule_s(const PipelineCosts& costs, const std::vector<StageChoice>& stages) {
  const PipelineShape& shape = costs.shape();
  if (shape.endless()) return costs.step_s(stages);
  const auto walk_s = [&](std::int64_t micro_batches) { return Walk(costs, stages, micro_batches).run(); };
  const std::int64_t turns = turns_of_slots(stages), left = shape.micro_batches - walked_micro_batches(shape);
  const std::int64_t further = walked_micro_batches(shape) / 4 / turns * turns;
  if (left < further || further == 0) return walk_s(shape.micro_batches);
  // Whole turns are left out, at the pace of the last of those that are not.
  const std::int64_t walked = shape.micro_batches - left / turns * turns;
  const double all_s = walk_s(walked), fewer_s = walk_s(walked - further);
  return all_s +
         (all_s - fewer_s) / static_cast<double>(further) * static_cast<double>(shape.micro_batches - walked);
}

}  // namespace convoy::strategies
