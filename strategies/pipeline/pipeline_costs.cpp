// SPDX-License-Identifier: MIT
#include "strategies/pipeline/pipeline_costs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "models/frozen.h"
#include "sim/lowering/gradient_sync.h"

namespace convoy::inline strategies {
namespace {

constexpr std::uint32_t no_unit = Units::none;

}  // namespace

PipelineCosts::PipelineCosts(const StrategyInput& input, const Units& units, const PipelineShape& shape)
    : shape_(shape),
      machine_(input.machine),
      tensors_(units.tensors),
      begins_(units.begins),
      count_(units.size()),
      options_(input.graph.options) {
  for (Table* table :
       {&in_bytes_, &in_gradient_bytes_, &out_bytes_, &out_gradient_bytes_, &held_bytes_, &operand_bytes_})
    *table = {count_ + 1, std::vector<double>((count_ + 1) * (count_ + 1), 0.0)};
  add_times(input, units);
  add_bytes(units);
  add_memory(input, units);
  add_buckets();
  add_sum_sizes();
  add_shared_links();
}

void PipelineCosts::add_times(const StrategyInput& input, const Units& units) {
  parameters_before_.assign(count_ + 1, 0.0);
  std::partial_sum(units.parameters.begin(), units.parameters.end(), parameters_before_.begin() + 1);
  frozen_before_.assign(count_ + 1, 0.0);
  std::partial_sum(units.frozen.begin(), units.frozen.end(), frozen_before_.begin() + 1);
  add_kinds(input.machine);
  const TrainingGraph& graph = input.graph;
  std::vector<double> least_s(count_, std::numeric_limits<double>::infinity());
  for (Kind& kind : device_kinds_) {
    std::vector<QueuedTime> forward(count_), backward(count_), update(count_);
    for (const Operation& op : graph.operations) {
      if (units.unit_of[op.layer] == no_unit) continue;
      std::vector<QueuedTime>& pass = op.phase == Phase::forward  ? forward
                                      : op.phase == Phase::update ? update
                                                                  : backward;
      pass[units.unit_of[op.layer]].then(input.cost.queued_time(
          op.work, op.phase == Phase::update ? 1 : shape_.images, input.machine, kind.like));
    }
    const double again = recomputes(shape_) ? 2 : 1;
    for (std::size_t u = 0; u < count_; ++u)
      least_s[u] = std::min(least_s[u], again * forward[u].device_s + backward[u].device_s);
    kind.begin_s = input.cost.begin_s(input.machine.device_types[kind.like.type]);
    kind.forward = {forward, QueuedSequence::Order::ascending};
    kind.backward = {backward, QueuedSequence::Order::descending};
    kind.update = {update, QueuedSequence::Order::ascending};
  }
  least_before_s_.assign(count_ + 1, 0.0);
  std::partial_sum(least_s.begin(), least_s.end(), least_before_s_.begin() + 1);
}

void PipelineCosts::add_kinds(const Machine& machine) {
  const auto in_host = [&](const Device& device) { return devices_of_host(machine, device); };
  for (const std::vector<EndpointId>& slot : shape_.slots) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, EndpointId> slowest;
    for (const EndpointId e : slot) {
      const Device& device = machine.devices[e];
      EndpointId& known = slowest.try_emplace({device.type, in_host(device)}, e).first->second;
      if (device.speed < machine.devices[known].speed) known = e;
    }
    std::vector<std::uint32_t>& kinds = kinds_of_slot_.emplace_back();
    for (const auto& [key, e] : slowest) {
      const Device& device = machine.devices[e];
      const auto like = std::find_if(device_kinds_.begin(), device_kinds_.end(), [&](const Kind& kind) {
        return kind.like.type == device.type && kind.like.speed == device.speed &&
               kind.in_host == in_host(device);
      });
      kinds.push_back(static_cast<std::uint32_t>(like - device_kinds_.begin()));
      if (like == device_kinds_.end()) device_kinds_.push_back({device, in_host(device), {}, {}, {}, 0});
    }
  }
  const std::size_t slots = shape_.slots.size();
  kinds_.resize(slots * (slots + 1));
  for (std::size_t first = 0; first < slots; ++first) {
    std::set<std::uint32_t> kinds;
    for (std::size_t count = 1; first + count <= slots; ++count) {
      kinds.insert(kinds_of_slot_[first + count - 1].begin(), kinds_of_slot_[first + count - 1].end());
      kinds_[first * (slots + 1) + count].assign(kinds.begin(), kinds.end());
    }
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
  const std::uint32_t behind = slot_count() - slots_before - slots;
  if (shape_.stage_slots.empty()) {
    const std::uint32_t usual = std::max(1U, slot_count() / shape_.stages);
    return place(slots_before, slots, std::min(usual, slots_before), std::min(usual, behind));
  }
  std::size_t stage = 0;
  for (std::uint32_t before = 0; before < slots_before; ++stage) before += shape_.stage_slots[stage];
  return place(slots_before, slots, stage > 0 ? shape_.stage_slots[stage - 1] : 0,
               behind > 0 ? shape_.stage_slots[stage + 1] : 0);
}

PipelineCosts::Place PipelineCosts::place(std::uint32_t slots_before, std::uint32_t slots,
                                          std::uint32_t of_stage_before,
                                          std::uint32_t of_stage_behind) const {
  constexpr double none = std::numeric_limits<double>::infinity();
  Place place{
      kinds(slots_before, slots),
      slots,
      of_stage_before,
      sums_s(slots_before, slots),
      of_stage_before > 0 ? border(slots_before - of_stage_before, of_stage_before, slots_before, slots)
                          : Border{},
      of_stage_behind > 0 ? border(slots_before, slots, slots_before + slots, of_stage_behind) : Border{},
      of_stage_behind > 0,
      {none, none}};
  if (of_stage_before > 0 && of_stage_behind > 0) place.shared = shared_[slots_before][slots];
  return place;
}

PipelineCosts::Room PipelineCosts::room(std::uint32_t slots_before, std::uint32_t slots) const {
  const auto first = capacity_bytes_.begin() + slots_before;
  return {static_cast<double>(slots * shape_.slots[slots_before].size()),
          *std::min_element(first, first + slots), in_flight(shape_, slots_before, slots),
          weight_versions(shape_, slots_before, slots)};
}

PipelineCosts::PassTimes PipelineCosts::passes(std::uint32_t begin, std::uint32_t end,
                                               std::uint32_t kind) const {
  return {device_kinds_[kind].forward.of(begin, end), device_kinds_[kind].backward.of(begin, end)};
}

QueuedTime PipelineCosts::update(std::uint32_t begin, std::uint32_t end, std::uint32_t kind) const {
  return device_kinds_[kind].update.of(begin, end);
}

double PipelineCosts::sum_s(double bytes, const Place& place) const {
  if (bytes == 0) return 0;
  const auto above = std::lower_bound(sum_sizes_.begin(), sum_sizes_.end(), bytes) - sum_sizes_.begin();
  if (above == 0) return place.sums_s.front();
  const auto high = std::min(static_cast<std::size_t>(above), sum_sizes_.size() - 1);
  const double share = (bytes - sum_sizes_[high - 1]) / (sum_sizes_[high] - sum_sizes_[high - 1]);
  return place.sums_s[high - 1] + share * (place.sums_s[high] - place.sums_s[high - 1]);
}

double PipelineCosts::exposed_sum_s(std::uint32_t begin, std::uint32_t end, const Place& place) const {
  if (place.sums_s.empty()) return 0;
  double exposed_s = 0;
  for (const std::uint32_t kind : place.kinds) {
    double done_s = -std::numeric_limits<double>::infinity();  // from the end of the pass on
    const auto sum = [&](std::uint32_t first, std::uint32_t last) {
      const double made_s = shape_.sync.overlap ? -device_kinds_[kind].backward.of(begin, first).device_s : 0;
      done_s = std::max(done_s, made_s) + sum_s((parameters_before_[last] - parameters_before_[first]) *
                                                    element_bytes(options_.precision),
                                                place);
    };
    std::uint32_t last = end;
    for (const std::uint32_t first : buckets_[end]) {
      if (first <= begin) break;
      sum(first, last);
      last = first;
    }
    sum(begin, last);
    exposed_s = std::max(exposed_s, done_s);
  }
  return exposed_s;
}

/// The sum of the stage's gradients as far as it is exposed, shared by the micro-batches of an update; without flush
/// the update itself as well, of which there is one for every few micro-batches.
double PipelineCosts::sync_s(std::uint32_t begin, std::uint32_t end, const Place& place) const {
  const double exposed_s = exposed_sum_s(begin, end, place);
  if (!shape_.endless()) return exposed_s / static_cast<double>(shape_.micro_batches);
  double update_s = 0;
  for (const std::uint32_t kind : place.kinds)
    update_s = std::max(update_s, update(begin, end, kind).device_s);
  return (exposed_s + update_s) / static_cast<double>(place.slots * share_of_update(shape_, place.slots));
}

double PipelineCosts::memory_bytes(std::uint32_t begin, std::uint32_t end, const Room& room) const {
  const double parameters = parameters_before_[end] - parameters_before_[begin];
  const auto resident = sharded_resident_bytes(parameters, options_, shape_.sync.zero, room.devices);
  const double flying = static_cast<double>(room.in_flight);
  const double held = held_bytes_.at(begin, end);
  const double activations =
      recomputes(shape_) ? (flying - 1) * std::min(held, in_bytes_.at(begin, end)) + held : flying * held;
  const double stashed =
      static_cast<double>(room.weight_versions - 1) * parameters * element_bytes(options_.precision);
  const double frozen = frozen_bytes(frozen_before_[end] - frozen_before_[begin], options_);
  return std::accumulate(resident.begin(), resident.end(), stashed + frozen) +
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
  const double again = recomputes(shape_) ? 2 : 1;
  for (const std::uint32_t kind : place.kinds) {
    const PassTimes times = passes(begin, end, kind);
    cost.compute_s = std::max(cost.compute_s, again * times.forward.device_s + times.backward.device_s);
    double issue_s = again * times.forward.issue_s + times.backward.issue_s;
    if (shape_.endless())
      issue_s += update(begin, end, kind).issue_s / static_cast<double>(share_of_update(shape_, place.slots));
    cost.issue_s = std::max(cost.issue_s, issue_s);
  }
  const double share = 1.0 / place.slots;
  // Between messages of so many bytes: a slot's go one after the other, and all share the links.
  const auto interval_s = [&](double bytes, const Border& border) {
    return bytes == 0 ? 0 : std::max(share * bytes / border.message.bandwidth_Bps, bytes / border.pace_Bps);
  };
  cost.sync_s = sync_s(begin, end, place);
  cost.interval_s = std::max(share * cost.compute_s + cost.sync_s, share * cost.issue_s);
  if (begin > 0) {
    const double in = in_bytes_.at(begin, end) * shape_.images,
                 back = in_gradient_bytes_.at(begin, end) * shape_.images;
    if (in > 0) cost.messages_s += place.before.message_s(in, place.of_stage_before);
    if (back > 0) cost.messages_s += place.before.message_s(back, place.slots);
    cost.interval_s = std::max(cost.interval_s, interval_s(std::max(in, back), place.before));
  }
  if (end < count_ && place.has_stage_behind) {
    const double most = std::max(out_bytes_.at(begin, end), out_gradient_bytes_.at(begin, end));
    cost.interval_s = std::max(cost.interval_s, interval_s(most * shape_.images, place.behind));
    if (begin > 0) {
      const double in = in_bytes_.at(begin, end) + out_gradient_bytes_.at(begin, end),
                   out = out_bytes_.at(begin, end) + in_gradient_bytes_.at(begin, end);
      cost.interval_s = std::max({cost.interval_s, share * in * shape_.images / place.shared.in_Bps,
                                  share * out * shape_.images / place.shared.out_Bps});
    }
  }
  return cost;
}

double PipelineCosts::step_s(double sum_s, double interval_s) const {
  const auto micro_batches = static_cast<double>(shape_.micro_batches);
  if (shape_.endless()) return micro_batches * interval_s;
  if (shape_.schedule == PipelineSchedule::naive) return micro_batches * std::max(sum_s, interval_s);
  return sum_s + (micro_batches - 1) * interval_s;
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
  for (std::size_t s = stages.size(); s-- > 0; end = stages[s].first_unit) {
    const std::uint32_t slots = stages[s].slots;
    before -= slots;
    const StageCost cost = times(stages[s].first_unit, end,
                                 place(before, slots, s > 0 ? stages[s - 1].slots : 0,
                                       s + 1 < stages.size() ? stages[s + 1].slots : 0));
    interval_s = std::max({interval_s, cost.interval_s, round_trip_s(cost, sum_s, before, slots)});
    sum_s += cost.sum_s();
  }
  return step_s(sum_s, interval_s);
}

bool PipelineCosts::may_begin(const std::vector<StageChoice>& stages) const {
  return std::all_of(stages.begin(), stages.end(),
                     [&](const StageChoice& stage) { return may_begin(stage.first_unit); });
}

bool PipelineCosts::fits(const std::vector<StageChoice>& stages) const {
  for (std::uint32_t s = 0, before = 0; s < stages.size(); before += stages[s++].slots) {
    const std::uint32_t end = s + 1 < stages.size() ? stages[s + 1].first_unit : unit_count();
    if (!stage(stages[s].first_unit, end, before, stages[s].slots).fits) return false;
  }
  return true;
}

}  // namespace convoy::strategies
