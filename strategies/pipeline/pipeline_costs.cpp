// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_costs.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/lowering/gradient_sync.h"

namespace convoy::inline strategies {
namespace {

constexpr std::uint32_t no_unit = Units::none;

bool recomputes(const PipelineShape& shape) {
  return shape.recompute == Recompute::always ||
         (shape.recompute == Recompute::except_last && shape.micro_batches > 1);
}

}  // namespace

PipelineCosts::PipelineCosts(const StrategyInput& input, const Units& units, const PipelineShape& shape)
    : shape_(shape), count_(units.size()), options_(input.graph.options) {
  for (Table* table :
       {&in_bytes_, &in_gradient_bytes_, &out_bytes_, &out_gradient_bytes_, &held_bytes_, &operand_bytes_})
    *table = {count_ + 1, std::vector<double>((count_ + 1) * (count_ + 1), 0.0)};
  add_times(input, units);
  add_bytes(units);
  add_memory(input, units);
  add_cables(input.machine);
}

void PipelineCosts::add_times(const StrategyInput& input, const Units& units) {
  parameters_before_.assign(count_ + 1, 0.0);
  std::partial_sum(units.parameters.begin(), units.parameters.end(), parameters_before_.begin() + 1);
  const double again = recomputes(shape_) ? 2 : 1;
  using Times = std::vector<std::vector<double>>;
  Times passes, updates;  // time of each unit, by device type
  for (const DeviceType& type : input.machine.device_types) {
    passes.emplace_back(count_, 0.0);
    updates.emplace_back(count_, 0.0);
    for (const Operation& op : input.graph.operations) {
      if (units.unit_of[op.layer] == no_unit) continue;
      if (op.phase == Phase::update)
        updates.back()[units.unit_of[op.layer]] += input.cost.time_s(op.work, 1, type);
      else
        passes.back()[units.unit_of[op.layer]] +=
            (op.phase == Phase::forward ? again : 1) * input.cost.time_s(op.work, shape_.images, type);
    }
  }
  const auto before = [&](const std::vector<EndpointId>& slot, const Times& of_type) {
    std::vector<double> sums(count_ + 1, 0.0);
    for (std::size_t u = 0; u < count_; ++u) {
      double slowest_s = 0;
      for (const EndpointId e : slot)
        slowest_s =
            std::max(slowest_s, of_type[input.machine.devices[e].type][u] / input.machine.devices[e].speed);
      sums[u + 1] = sums[u] + slowest_s;
    }
    return sums;
  };
  for (const std::vector<EndpointId>& slot : shape_.slots) {
    time_before_s_.push_back(before(slot, passes));
    update_before_s_.push_back(before(slot, updates));
  }
  add_kinds();
}

void PipelineCosts::add_kinds() {
  const std::size_t slots = shape_.slots.size();
  least_before_s_.assign(count_ + 1, 0.0);
  for (std::size_t u = 0; u < count_; ++u) {
    double least_s = std::numeric_limits<double>::infinity();
    for (const std::vector<double>& sums : time_before_s_) least_s = std::min(least_s, sums[u + 1] - sums[u]);
    least_before_s_[u + 1] = least_before_s_[u] + least_s;
  }
  std::vector<std::uint32_t> first_like(slots);
  for (std::uint32_t q = 0; q < slots; ++q)
    for (first_like[q] = 0; first_like[q] < q; ++first_like[q])
      if (time_before_s_[first_like[q]] == time_before_s_[q] &&
          update_before_s_[first_like[q]] == update_before_s_[q])
        break;
  kinds_.resize(slots * (slots + 1));
  for (std::size_t first = 0; first < slots; ++first)
    for (std::size_t count = 1; first + count <= slots; ++count) {
      std::vector<std::uint32_t>& kinds = kinds_[first * (slots + 1) + count];
      kinds = kinds_[first * (slots + 1) + count - 1];
      const std::uint32_t kind = first_like[first + count - 1];
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    }
}

void PipelineCosts::add_bytes(const Units& units) {
  for (const Units::Tensor& tensor : units.tensors) {
    const double gradient = tensor.has_gradient ? tensor.bytes_per_image : 0;
    // Got by [begin, end) if the first reader from begin on is in it and the producer is not.
    for (std::size_t begin = tensor.producer + 1; begin < count_; ++begin) {
      const auto reader = std::lower_bound(tensor.readers.begin(), tensor.readers.end(), begin);
      if (reader == tensor.readers.end()) break;
      in_bytes_.at(begin, *reader + 1) += tensor.bytes_per_image;
      in_gradient_bytes_.at(begin, *reader + 1) += gradient;
    }
    // Sent by [begin, end) if the producer is in it and the last reader is not.
    for (std::size_t begin = 0; begin <= tensor.producer; ++begin) {
      out_bytes_.at(begin, tensor.producer + 1) += tensor.bytes_per_image;
      out_bytes_.at(begin, tensor.readers.back() + 1) -= tensor.bytes_per_image;
      out_gradient_bytes_.at(begin, tensor.producer + 1) += gradient;
      out_gradient_bytes_.at(begin, tensor.readers.back() + 1) -= gradient;
    }
  }
  for (Table* table : {&in_bytes_, &in_gradient_bytes_, &out_bytes_, &out_gradient_bytes_})
    for (std::size_t begin = 0; begin < count_; ++begin)
      for (std::size_t end = begin + 1; end <= count_; ++end)
        table->at(begin, end) += table->at(begin, end - 1);
}

void PipelineCosts::add_memory(const StrategyInput& input, const Units& units) {
  const TrainingGraph& graph = input.graph;
  const auto unit_of = [&](OpId op) { return units.unit_of[graph.operations[op].layer]; };
  std::vector<double> operands(graph.operations.size(), 0.0);
  for (const Buffer& buffer : graph.buffers) {
    std::vector<std::uint32_t> forward, backward;
    for (const OpId op : buffer.uses)
      if (unit_of(op) != no_unit)
        (graph.operations[op].phase == Phase::forward ? forward : backward).push_back(unit_of(op));
    if (forward.empty() || backward.empty()) {
      for (const OpId op : buffer.uses) operands[op] += buffer.bytes_per_image;
      continue;
    }
    std::sort(forward.begin(), forward.end());
    std::sort(backward.begin(), backward.end());
    for (std::size_t begin = 0; begin < count_; ++begin) {
      const auto f = std::lower_bound(forward.begin(), forward.end(), begin);
      const auto b = std::lower_bound(backward.begin(), backward.end(), begin);
      if (f == forward.end() || b == backward.end()) break;
      held_bytes_.at(begin, std::max(*f, *b) + 1) += buffer.bytes_per_image;
    }
  }
  std::vector<double> of_unit(count_, 0.0);
  for (OpId op = 0; op < operands.size(); ++op)
    if (unit_of(op) != no_unit) of_unit[unit_of(op)] = std::max(of_unit[unit_of(op)], operands[op]);
  for (std::size_t begin = 0; begin < count_; ++begin)
    for (std::size_t end = begin + 1; end <= count_; ++end) {
      held_bytes_.at(begin, end) += held_bytes_.at(begin, end - 1);
      operand_bytes_.at(begin, end) = std::max(operand_bytes_.at(begin, end - 1), of_unit[end - 1]);
    }
  for (const std::vector<EndpointId>& slot : shape_.slots) {
    double capacity = std::numeric_limits<double>::infinity();
    for (const EndpointId e : slot) {
      const DeviceType& type = input.machine.device_types[input.machine.devices[e].type];
      capacity = std::min(capacity, type.memory_bytes - type.reserved_bytes);
    }
    capacity_bytes_.push_back(capacity);
  }
}

PipelineCosts::Place PipelineCosts::place(std::uint32_t slots_before, std::uint32_t slots) const {
  constexpr double none = std::numeric_limits<double>::infinity();
  const bool has_stage_behind = slots_before + slots < shape_.slots.size();
  Place place{kinds(slots_before, slots),
              slots,
              static_cast<double>(slots * shape_.slots[slots_before].size()),
              rings_[slots_before][slots],
              cables_[slots_before],
              has_stage_behind ? cables_[slots_before + slots] : Cable{},
              has_stage_behind,
              {none, none}};
  std::sort(place.kinds.begin(), place.kinds.end());
  if (slots_before > 0 && has_stage_behind) place.shared = shared_[slots_before][slots];
  return place;
}

PipelineCosts::Room PipelineCosts::room(std::uint32_t slots_before, std::uint32_t slots) const {
  const auto first = capacity_bytes_.begin() + slots_before;
  return {static_cast<double>(slots * shape_.slots[slots_before].size()),
          *std::min_element(first, first + slots), in_flight(shape_, slots_before, slots),
          weight_versions(shape_, slots_before, slots)};
}

double PipelineCosts::compute_s(std::uint32_t begin, std::uint32_t end, const Place& place) const {
  double slowest_s = 0;
  for (const std::uint32_t q : place.kinds)
    slowest_s = std::max(slowest_s, time_before_s_[q][end] - time_before_s_[q][begin]);
  return slowest_s;
}

/// Ring all-reduce of the stage's gradients, 2(N-1) alpha + 2(N-1)/N S/B, shared by the micro-batches of an
/// update; without flush the update itself as well, of which there is one for every few micro-batches.
double PipelineCosts::sync_s(std::uint32_t begin, std::uint32_t end, const Place& place) const {
  const double n = place.devices;
  const double bytes =
      (parameters_before_[end] - parameters_before_[begin]) * element_bytes(options_.precision);
  const double ring_s =
      n < 2 ? 0 : 2 * (n - 1) * place.ring.latency_s + 2 * (n - 1) / n * bytes / place.ring.bandwidth_Bps;
  if (!shape_.endless()) return ring_s / static_cast<double>(shape_.micro_batches);
  double update_s = 0;
  for (const std::uint32_t q : place.kinds)
    update_s = std::max(update_s, update_before_s_[q][end] - update_before_s_[q][begin]);
  return (ring_s + update_s) / static_cast<double>(place.slots * share_of_update(shape_, place.slots));
}

double PipelineCosts::memory_bytes(std::uint32_t begin, std::uint32_t end, const Room& room) const {
  const double parameters = parameters_before_[end] - parameters_before_[begin];
  const auto resident = sharded_resident_bytes(parameters, options_, shape_.zero, room.devices);
  const double flying = static_cast<double>(room.in_flight);
  const double held = held_bytes_.at(begin, end);
  const double activations =
      recomputes(shape_) ? (flying - 1) * std::min(held, in_bytes_.at(begin, end)) + held : flying * held;
  const double stashed =
      static_cast<double>(room.weight_versions - 1) * parameters * element_bytes(options_.precision);
  return std::accumulate(resident.begin(), resident.end(), stashed) +
         shape_.images * (activations + operand_bytes_.at(begin, end));
}

PipelineCosts::StageCost PipelineCosts::stage(std::uint32_t begin, std::uint32_t end,
                                              std::uint32_t slots_before, std::uint32_t slots) const {
  StageCost cost = times(begin, end, place(slots_before, slots));
  cost.fits = stage_fits(begin, end, room(slots_before, slots));
  return cost;
}

bool PipelineCosts::stage_fits(std::uint32_t begin, std::uint32_t end, const Room& room) const {
  return memory_bytes(begin, end, room) <= room.capacity_bytes;
}

PipelineCosts::StageCost PipelineCosts::times(std::uint32_t begin, std::uint32_t end,
                                              const Place& place) const {
  StageCost cost{};
  cost.compute_s = compute_s(begin, end, place);
  const double share = 1.0 / place.slots;
  cost.sync_s = sync_s(begin, end, place);
  cost.interval_s = share * cost.compute_s + cost.sync_s;
  if (begin > 0) {
    const Cable& cable = place.before;
    const double forward_s = in_bytes_.at(begin, end) * shape_.images / cable.bandwidth_Bps;
    const double backward_s = in_gradient_bytes_.at(begin, end) * shape_.images / cable.bandwidth_Bps;
    if (in_bytes_.at(begin, end) > 0) cost.messages_s += cable.latency_s + forward_s;
    if (in_gradient_bytes_.at(begin, end) > 0) cost.messages_s += cable.latency_s + backward_s;
    cost.interval_s = std::max({cost.interval_s, share * forward_s, share * backward_s});
  }
  if (end < count_ && place.has_stage_behind) {
    const Cable& cable = place.behind;
    cost.interval_s =
        std::max({cost.interval_s, share * out_bytes_.at(begin, end) * shape_.images / cable.bandwidth_Bps,
                  share * out_gradient_bytes_.at(begin, end) * shape_.images / cable.bandwidth_Bps});
    if (begin > 0) {
      const double in = in_bytes_.at(begin, end) + out_gradient_bytes_.at(begin, end),
                   out = out_bytes_.at(begin, end) + in_gradient_bytes_.at(begin, end);
      cost.interval_s = std::max({cost.interval_s, share * in * shape_.images / place.shared.in_Bps,
                                  share * out * shape_.images / place.shared.out_Bps});
    }
  }
  return cost;
}

double PipelineCosts::interval_weight() const {
  if (shape_.endless()) return static_cast<double>(shape_.micro_batches);
  return shape_.schedule == PipelineSchedule::naive ? 0 : static_cast<double>(shape_.micro_batches - 1);
}

double PipelineCosts::sum_weight() const {
  if (shape_.endless()) return 0;
  return shape_.schedule == PipelineSchedule::naive ? static_cast<double>(shape_.micro_batches) : 1;
}

double PipelineCosts::under_way(std::uint32_t slots_before, std::uint32_t slots) const {
  const std::int64_t flying = in_flight(shape_, slots_before, slots) * slots;
  if (shape_.schedule != PipelineSchedule::one_f_one_b ||
      (!shape_.endless() && flying >= shape_.micro_batches))
    return std::numeric_limits<double>::infinity();
  return static_cast<double>(flying);
}

double PipelineCosts::round_trip_s(const StageCost& cost, double rest_s, std::uint32_t slots_before,
                                   std::uint32_t slots) const {
  return (cost.compute_s + rest_s) / under_way(slots_before, slots);
}

double PipelineCosts::step_s(const std::vector<StageChoice>& stages) const {
  double sum_s = 0, interval_s = 0;
  std::uint32_t end = unit_count(), before = slot_count();
  for (auto stage = stages.rbegin(); stage != stages.rend(); end = stage++->first_unit) {
    before -= stage->slots;
    const StageCost cost = this->stage(stage->first_unit, end, before, stage->slots);
    interval_s = std::max({interval_s, cost.interval_s, round_trip_s(cost, sum_s, before, stage->slots)});
    sum_s += cost.sum_s();
  }
  return sum_weight() * sum_s + interval_weight() * interval_s;
}

double PipelineCosts::step_with_sums_s(const std::vector<StageChoice>& stages, bool overlap) const {
  if (shape_.endless()) return step_s(stages);
  // Data gradient and weight gradient take as long as the forward pass each.
  constexpr double backward_share = 2.0 / 3;
  struct Sum {
    double backward_s, sum_s;
  };
  std::vector<Sum> sums;  // from the last stage on
  double sum_s = 0, interval_s = 0;
  std::uint32_t end = unit_count(), before = slot_count();
  for (auto stage = stages.rbegin(); stage != stages.rend(); end = stage++->first_unit) {
    before -= stage->slots;
    StageCost cost = this->stage(stage->first_unit, end, before, stage->slots);
    const double summing_s = cost.sync_s * static_cast<double>(shape_.micro_batches);
    const double backward_s = backward_share * cost.compute_s;
    sums.push_back({backward_s + cost.messages_s / 2, std::max(0.0, summing_s - (overlap ? backward_s : 0))});
    cost.interval_s -= std::min(cost.interval_s, cost.sync_s);
    cost.sync_s = 0;
    interval_s = std::max({interval_s, cost.interval_s, round_trip_s(cost, sum_s, before, stage->slots)});
    sum_s += cost.sum_s();
  }
  const double passes_s = sum_weight() * sum_s + interval_weight() * interval_s;
  double step_s = passes_s, after_s = 0;  // of the stages before, whose last backward passes come later
  for (auto stage = sums.rbegin(); stage != sums.rend(); ++stage) {
    step_s = std::max(step_s, passes_s - after_s + stage->sum_s);
    after_s += stage->backward_s;
  }
  return step_s;
}

bool PipelineCosts::fits(const std::vector<StageChoice>& stages) const {
  for (std::uint32_t s = 0, before = 0; s < stages.size(); before += stages[s++].slots) {
    const std::uint32_t end = s + 1 < stages.size() ? stages[s + 1].first_unit : unit_count();
    if (!stage(stages[s].first_unit, end, before, stages[s].slots).fits) return false;
  }
  return true;
}

}  // namespace convoy::strategies
