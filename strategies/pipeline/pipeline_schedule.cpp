// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_schedule.h"

#include <algorithm>
#include <deque>
#include <stdexcept>

namespace convoy::inline strategies {
namespace {

constexpr double not_yet = -1;

double message_s(double bytes, const PipelineCosts::Cable& cable) {
  return bytes > 0 ? cable.latency_s + bytes / cable.bandwidth_Bps : 0;
}

class Walk {
 public:
  Walk(const PipelineCosts& costs, const std::vector<StageChoice>& choices)
      : costs_(costs), shape_(costs.shape()) {
    for (std::uint32_t s = 0, before = 0; s < choices.size(); before += choices[s++].slots) {
      const std::uint32_t begin = choices[s].first_unit;
      const std::uint32_t end = s + 1 < choices.size() ? choices[s + 1].first_unit : costs.unit_count();
      const auto stage = static_cast<std::uint32_t>(stages_.size());
      stages_.push_back({before, choices[s].slots, costs.place(before, choices[s].slots), 0, 0, 0,
                         arrivals(costs.activation_bytes(begin, end), s > 0),
                         arrivals(costs.gradient_bytes(begin, end), s + 1 < choices.size())});
      Stage& it = stages_.back();
      it.activation_s = message_s(costs.activation_bytes(begin, end), it.place.before);
      it.gradient_s = message_s(costs.gradient_bytes(begin, end), it.place.behind);
      it.summing_s = costs.summing_s(begin, end, it.place);
      for (std::uint32_t k = 0; k < choices[s].slots; ++k) add_slot(stage, begin, end, k);
    }
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
  struct Stage {
    std::uint32_t first_slot, slots;
    PipelineCosts::Place place;
    double activation_s, gradient_s;  ///< that the messages take which it gets for a micro-batch
    double summing_s;
    /// By micro-batch, when its activations and its gradients have come; empty: none are sent.
    std::vector<double> activations_s, gradients_s;
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
    double sent_activations_s = 0, sent_gradients_s = 0;  ///< when the last of them had arrived
    double last_begin_s = 0, end_s = 0;                   ///< of the last pass
  };

  std::vector<double> arrivals(double bytes, bool has_neighbour) const {
    if (bytes <= 0 || !has_neighbour) return {};
    return std::vector<double>(static_cast<std::size_t>(shape_.micro_batches), not_yet);
  }

  void add_slot(std::uint32_t stage, std::uint32_t begin, std::uint32_t end, std::uint32_t k) {
    const std::uint32_t before = stages_[stage].first_slot;
    Slot& slot = slots_.emplace_back();
    slot.stage = stage;
    slot.order = order_of_passes(shape_, before, stages_[stage].slots, k, shape_.micro_batches);
    for (const std::uint32_t kind : costs_.kinds_of_slot(before + k)) {
      const PipelineCosts::PassTimes times = costs_.passes(begin, end, kind);
      QueuedTime again = times.forward;
      again.then(times.backward);
      slot.lanes.push_back({times.forward, times.backward, again, costs_.update(begin, end, kind), {}});
    }
  }

  std::uint32_t slot_of(const Stage& stage, std::int64_t micro_batch) const {
    return stage.first_slot + static_cast<std::uint32_t>(micro_batch % stage.slots);
  }

  /// Goes on with a slot's passes up to one whose message is not there.
  void advance(Slot& slot, std::deque<std::uint32_t>& ready) {
    const Stage& stage = stages_[slot.stage];
    for (; slot.next < slot.order.size(); ++slot.next) {
      const MicroBatchPass& pass = slot.order[slot.next];
      const auto m = static_cast<std::size_t>(pass.micro_batch);
      const std::vector<double>& arrived_s = pass.backward ? stage.gradients_s : stage.activations_s;
      const double from_s = arrived_s.empty() ? 0 : arrived_s[m];
      if (from_s == not_yet) return;
      slot.last_begin_s = std::max(slot.end_s, from_s);
      const bool again = pass.backward && recomputes(shape_, pass.micro_batch, shape_.micro_batches);
      for (Lane& lane : slot.lanes) {
        lane.queue.wait_until(from_s);
        lane.queue.run(again ? lane.again : pass.backward ? lane.backward : lane.forward);
        slot.end_s = std::max(slot.end_s, lane.queue.end_s());
      }
      if (pass.backward ? slot.stage > 0 : slot.stage + 1 < stages_.size()) send(slot, pass, ready);
    }
  }

  void send(Slot& slot, const MicroBatchPass& pass, std::deque<std::uint32_t>& ready) {
    Stage& to = stages_[pass.backward ? slot.stage - 1 : slot.stage + 1];
    std::vector<double>& arrived_s = pass.backward ? to.gradients_s : to.activations_s;
    if (arrived_s.empty()) return;
    double& sent_s = pass.backward ? slot.sent_gradients_s : slot.sent_activations_s;
    sent_s = std::max(sent_s, slot.end_s) + (pass.backward ? to.gradient_s : to.activation_s);
    arrived_s[static_cast<std::size_t>(pass.micro_batch)] = sent_s;
    ready.push_back(slot_of(to, pass.micro_batch));
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
  std::vector<Stage> stages_;
  std::vector<Slot> slots_;
};

}  // namespace

double schedule_s(const PipelineCosts& costs, const std::vector<StageChoice>& stages) {
  if (costs.shape().endless()) return costs.step_s(stages);
  return Walk(costs, stages).run();
}

}  // namespace convoy::strategies
