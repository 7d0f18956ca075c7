// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_schedule.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace convoy::inline strategies {
namespace {

class Walk {
 public:
  Walk(const PipelineCosts& costs, const std::vector<StageChoice>& choices, std::int64_t micro_batches)
      : costs_(costs),
        shape_(costs.shape()),
        micro_batches_(micro_batches),
        delayed_(shape_.weights == Weights::double_buffered && choices.size() > 1) {
    for (std::uint32_t s = 0, before = 0; s < choices.size(); before += choices[s++].slots) {
      const std::uint32_t begin = choices[s].first_unit;
      const std::uint32_t end = s + 1 < choices.size() ? choices[s + 1].first_unit : costs.unit_count();
      Stage& stage = stages_.emplace_back();
      stage.first_slot = before;
      stage.slots = choices[s].slots;
      stage.exposed_sum_s = costs.exposed_sum_s(begin, end, costs.place(before, stage.slots));
      if (shape_.endless()) stage.share_of_update = share_of_update(shape_, stage.slots);
      for (std::uint32_t k = 0; k < choices[s].slots; ++k) add_slot(s, begin, end, k);
    }
    add_edges(costs.edges(choices));
  }

  /// Goes through the passes that come first with fewer micro-batches too. @return the walk of these, which goes on from there
  Walk shorter(std::int64_t micro_batches) {
    for (Slot& slot : slots_) slot.until = slot.order.in_common_with(micro_batches);
    advance_all();
    for (Slot& slot : slots_) slot.until = slot.order.size();
    Walk other = *this;
    other.micro_batches_ = micro_batches;
    for (Slot& slot : other.slots_) {
      slot.order = slot.order.with(micro_batches);
      slot.until = slot.order.size();
    }
    return other;
  }

  double run() {
    advance_all();
    double end_s = 0;
    for (const Stage& stage : stages_)
      end_s = std::max(end_s, shape_.endless() ? passes_end_s(stage) : update_s(stage));
    return end_s;
  }

 private:
  /// A message of every micro-batch, to another stage.
  struct Edge {
    std::uint32_t to;
    double bytes, together_s;  ///< of one message, and where all slots of the stage send theirs at a time
    /// By micro-batch, up to where both stages' slots have their turns again; once it was asked for.
    std::vector<const PipelineCosts::Cable*> cables;
  };
  /// What a pass waits for.
  struct Arrival {
    std::uint32_t missing;  ///< messages that are not there yet
    double last_s = 0;      ///< when the last of the others was there
  };
  /// Of a stage and direction: what it sends, in order, and by micro-batch what it waits for.
  struct Messages {
    std::vector<Edge> edges;
    std::uint32_t awaited = 0;
    std::vector<Arrival> arrivals;
  };
  /// Of the gradients of an update, over the slots of a stage.
  struct Sum {
    std::uint32_t slots_done = 0;
    double from_s = 0;
  };
  struct Stage {
    std::uint32_t first_slot = 0, slots = 0;
    double exposed_sum_s = 0;
    std::int64_t share_of_update = 0;  ///< of each slot's backward passes; none with a flush
    std::vector<Sum> sums{};           ///< without flush, by update
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
    PassOrder order;
    std::int64_t until;  ///< passes of the order that are to be gone through
    std::vector<Lane> lanes{};
    std::int64_t backward_done = 0;
    std::size_t due = 0,
                updates = 0;  ///< without flush: updates whose gradients it has made, and that it has run
    double sent_activations_s = 0, sent_gradients_s = 0;  ///< when the last of them has arrived
    double end_s = 0;                                     ///< of the last pass
    bool is_next(const MicroBatchPass& pass) const { return order.passed() < until && order.next() == pass; }
  };

  void add_edges(const std::vector<PipelineCosts::Edge>& edges) {
    for (const PipelineCosts::Edge& edge : edges) {
      add_edge(edge.from, edge.to, edge.bytes, false);
      add_edge(edge.to, edge.from, edge.gradient_bytes, true);
    }
    for (Stage& stage : stages_)
      for (const bool backward : {false, true}) {
        Messages& messages = stage.messages(backward);
        messages.arrivals.assign(static_cast<std::size_t>(micro_batches_), {messages.awaited});
      }
  }

  void add_edge(std::uint32_t from, std::uint32_t to, double bytes, bool backward) {
    if (bytes <= 0) return;
    const Stage &left = stages_[std::min(from, to)], &right = stages_[std::max(from, to)];
    const double pace_Bps =
        costs_.border(left.first_slot, left.slots, right.first_slot, right.slots).pace_Bps;
    bytes *= shape_.images;
    const std::int64_t turns =
        std::min(micro_batches_, std::lcm(std::int64_t{left.slots}, std::int64_t{right.slots}));
    stages_[from].messages(backward).edges.push_back(
        {to, bytes, bytes * stages_[from].slots / pace_Bps,
         std::vector<const PipelineCosts::Cable*>(static_cast<std::size_t>(turns))});
    ++stages_[to].messages(backward).awaited;
  }

  void add_slot(std::uint32_t stage, std::uint32_t begin, std::uint32_t end, std::uint32_t k) {
    const std::uint32_t before = stages_[stage].first_slot;
    const PassOrder order(shape_, before, stages_[stage].slots, k, micro_batches_);
    Slot& slot = slots_.emplace_back(Slot{stage, order, order.size()});
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

  const PipelineCosts::Cable& cable_of(const Stage& from, Edge& edge, std::int64_t micro_batch) const {
    const PipelineCosts::Cable*& cable =
        edge.cables[static_cast<std::size_t>(micro_batch) % edge.cables.size()];
    if (!cable) cable = &costs_.cable(slot_of(from, micro_batch), slot_of(stages_[edge.to], micro_batch));
    return *cable;
  }

  void advance_all() {
    std::vector<std::uint32_t> ready(slots_.size());
    std::iota(ready.begin(), ready.end(), 0);
    while (!ready.empty()) {
      Slot& slot = slots_[ready.back()];
      ready.pop_back();
      advance(slot, ready);
    }
  }

  /// Goes on with a slot's passes up to one whose message is not there.
  void advance(Slot& slot, std::vector<std::uint32_t>& ready) {
    for (; slot.order.passed() < slot.until; slot.order.pass()) {
      const MicroBatchPass pass = slot.order.next();
      const auto m = static_cast<std::size_t>(pass.micro_batch);
      Messages& messages = stages_[slot.stage].messages(pass.backward);
      const Arrival& arrival = messages.arrivals[m];
      if (arrival.missing > 0) return;
      // Double-buffered weights are not needed before the next gradients are.
      if (slot.due > slot.updates && (pass.backward || !delayed_) && !update(slot)) return;
      const bool again = pass.backward && recomputes(shape_, pass.micro_batch, micro_batches_);
      for (Lane& lane : slot.lanes) {
        lane.queue.wait_until(arrival.last_s);
        lane.queue.run(again ? lane.again : pass.backward ? lane.backward : lane.forward);
        slot.end_s = std::max(slot.end_s, lane.queue.end_s());
      }
      if (pass.backward) note_gradients(slot, ready);
      double& sent_s = pass.backward ? slot.sent_gradients_s : slot.sent_activations_s;
      for (Edge& edge : messages.edges) {
        Stage& to = stages_[edge.to];
        const PipelineCosts::Cable& cable = cable_of(stages_[slot.stage], edge, pass.micro_batch);
        sent_s = std::max(sent_s, slot.end_s) + cable.latency_s +
                 std::max(edge.bytes / cable.bandwidth_Bps, edge.together_s);
        Arrival& there = to.messages(pass.backward).arrivals[m];
        there.last_s = std::max(there.last_s, sent_s);
        const std::uint32_t receiver = slot_of(to, pass.micro_batch);
        if (--there.missing == 0 && slots_[receiver].is_next(pass)) ready.push_back(receiver);
      }
    }
  }

  /// Without flush: whether the gradients that a slot has made are those of a whole update.
  void note_gradients(Slot& slot, std::vector<std::uint32_t>& ready) {
    Stage& stage = stages_[slot.stage];
    ++slot.backward_done;
    if (stage.share_of_update == 0 || slot.backward_done % stage.share_of_update != 0 ||
        slot.backward_done * stage.slots > micro_batches_)
      return;
    if (stage.sums.size() == slot.due) stage.sums.emplace_back();
    Sum& sum = stage.sums[slot.due++];
    sum.from_s = std::max(sum.from_s, slot.end_s);
    if (++sum.slots_done == stage.slots)
      for (std::uint32_t q = 0; q < stage.slots; ++q) ready.push_back(stage.first_slot + q);
  }

  /// @return whether the sum is there
  bool update(Slot& slot) {
    const Stage& stage = stages_[slot.stage];
    const Sum& sum = stage.sums[slot.updates];
    if (sum.slots_done < stage.slots) return false;
    for (Lane& lane : slot.lanes) {
      lane.queue.wait_until(sum.from_s + stage.exposed_sum_s);
      lane.queue.run(lane.update);
      slot.end_s = std::max(slot.end_s, lane.queue.end_s());
    }
    ++slot.updates;
    return true;
  }

  double passes_end_s(const Stage& stage) const {
    double end_s = 0;
    for (std::uint32_t k = 0; k < stage.slots; ++k) {
      const Slot& slot = slots_[stage.first_slot + k];
      if (slot.order.passed() < slot.order.size())
        throw std::logic_error("stages of a pipeline wait for each other");
      end_s = std::max(end_s, slot.end_s);
    }
    return end_s;
  }

  /// When a stage's parameters are updated.
  double update_s(const Stage& stage) {
    const double summed_s = passes_end_s(stage) + stage.exposed_sum_s;
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
  std::int64_t micro_batches_;
  bool delayed_;
  std::vector<Stage> stages_;
  std::vector<Slot> slots_;
};

/// Micro-batches after which every slot of every stage has its turn again.
std::int64_t turns_of_slots(const std::vector<StageChoice>& stages) {
  std::int64_t turns = 1;
  for (const StageChoice& stage : stages) turns = std::lcm(turns, std::int64_t{stage.slots});
  return turns;
}

/// What is gone through of a pipeline: so many micro-batches, and to see its pace, once more without the last of them.
struct Walks {
  std::int64_t micro_batches = 0, further = 0;
};

Walks walks_of(const PipelineShape& shape, const std::vector<StageChoice>& stages) {
  constexpr std::int64_t most_walked = 512, least_steady = 96, rounds_to_fill = 4;
  const std::int64_t turns = turns_of_slots(stages), slots = static_cast<std::int64_t>(shape.slots.size());
  const auto whole = [](std::int64_t micro_batches, std::int64_t round) {
    return (micro_batches + round - 1) / round * round;
  };
  if (shape.endless()) {
    const std::int64_t round = std::lcm(turns, shape.micro_batches), further = whole(least_steady, round);
    const Walks walks{whole(rounds_to_fill * slots, round) + further, further};
    return walks.micro_batches <= 2 * most_walked ? walks : Walks{};
  }
  const std::int64_t walked = std::min(shape.micro_batches, most_walked), left = shape.micro_batches - walked;
  const std::int64_t further = walked / 4 / turns * turns;
  if (left < further || further == 0) return {shape.micro_batches, 0};
  return {shape.micro_batches - left / turns * turns, further};  // whole turns are left out
}

/// As if each message had the links to itself but for those of its stage's other slots.
double walked_s(const PipelineCosts& costs, const std::vector<StageChoice>& stages) {
  const PipelineShape& shape = costs.shape();
  const Walks walks = walks_of(shape, stages);
  if (walks.micro_batches == 0) return costs.step_s(stages);
  Walk walk(costs, stages, walks.micro_batches);
  if (walks.further == 0) return walk.run();
  const double shorter_s = walk.shorter(walks.micro_batches - walks.further).run();
  const double all_s = walk.run();
  const double pace_s = (all_s - shorter_s) / static_cast<double>(walks.further);
  if (shape.endless()) return pace_s * static_cast<double>(shape.micro_batches);
  return all_s + pace_s * static_cast<double>(shape.micro_batches - walks.micro_batches);
}

}  // namespace

std::int64_t walked_micro_batches(const PipelineShape& shape, const std::vector<StageChoice>& stages) {
  const Walks walks = walks_of(shape, stages);
  return walks.further > 0 ? 2 * walks.micro_batches - walks.further : walks.micro_batches;
}

double least_schedule_s(const PipelineCosts& costs, const std::vector<StageChoice>& stages) {
  const PipelineShape& shape = costs.shape();
  double busiest_s = costs.busiest_link_s(stages);
  for (std::uint32_t s = 0, before = 0; s < stages.size(); before += stages[s++].slots) {
    const std::uint32_t begin = stages[s].first_unit, slots = stages[s].slots;
    const std::uint32_t end = s + 1 < stages.size() ? stages[s + 1].first_unit : costs.unit_count();
    for (std::uint32_t k = 0; k < slots; ++k) {
      const std::int64_t passes = shape.endless()
                                      ? shape.micro_batches / slots  // in the mean, whatever is left over
                                      : (shape.micro_batches - k + slots - 1) / slots;
      for (const std::uint32_t kind : costs.kinds_of_slot(before + k)) {
        const PipelineCosts::PassTimes times = costs.passes(begin, end, kind);
        busiest_s = std::max(
            busiest_s, static_cast<double>(passes) * (times.forward.device_s + times.backward.device_s));
      }
    }
  }
  return busiest_s;
}

double schedule_s(const PipelineCosts& costs, const std::vector<StageChoice>& stages) {
  return std::max(walked_s(costs, stages), least_schedule_s(costs, stages));
}

}  // namespace convoy::strategies
