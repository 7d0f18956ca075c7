// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>

#include "sim/prove/parts_prover.h"

namespace convoy::inline prove {
namespace parts {

void PartsProver::check_memory() const {
  for (std::uint32_t r = 0; r < plan_.roles.size(); ++r)
    for (const EndpointId e : followed_[r]) check_held(plan_.roles[r], needed_bytes(devices_[e]), machine_);
}

std::vector<NeededBytes> PartsProver::needed_bytes(const Device& device) const {
  Positions positions;
  BufferUses all = buffer_uses(device, positions);
  std::vector<NeededBytes> needed;
  for (auto& [of, uses] : all) {
    const auto& [b, micro_batch] = of;
    const Buffer& buffer = graph_.buffers[b];
    if (buffer.role == BufferRole::image || buffer.role == BufferRole::other) {
      add_other(buffer, uses, needed);
      continue;
    }
    std::vector<const Value*> values = values_in(device, buffer, micro_batch);
    if (values.empty()) continue;
    // As it is sent, which may be without the copy of another precision that a reader makes.
    const double element_bytes = std::min(
        buffer.bytes_per_image * static_cast<double>(maps_.images()) / maps_.tensor(buffer.layer).volume(),
        tensor_bytes_.of_value(static_cast<LayerIndex>(buffer.layer)));
    std::reverse(uses.begin(), uses.end());
    std::map<std::optional<std::uint32_t>, std::vector<Box>> there;  // by pass: of earlier values
    const auto sent = device.sent_parts.find({micro_batch, buffer.layer});
    for (const Value* value : values) {
      const std::optional<std::size_t> there_from = position_of(device, positions, *value, uses);
      if (!there_from) continue;
      std::vector<Box>& earlier = there[value->pass];
      std::vector<Box> fresh{value->box};
      for (const Box& box : earlier) subtract(fresh, box);
      if (buffer.role == BufferRole::output_gradient) {
        // What another device adds up is none of this one's, and may come back as a whole.
        if (sent != device.sent_parts.end())
          for (const Box& box : sent->second) subtract(fresh, box);
        for (const Value* later : values)
          if (later->number > value->number && has_come(device, *later)) subtract(fresh, later->box);
      }
      earlier.insert(earlier.end(), fresh.begin(), fresh.end());
      for (const BufferUse& use : uses) {  // the last of them first
        if (use.position < *there_from || (value->pass && *value->pass != use.pass)) continue;
        double elements = 0;
        for (const Box& box : fresh) elements += intersection(box, use.box).volume();
        subtract(fresh, use.box);
        if (elements > 0)
          needed.push_back({*there_from, use.position, buffer.memory_class, elements * element_bytes});
      }
    }
  }
  return needed;
}

std::vector<const Value*> PartsProver::values_in(const Device& device, const Buffer& buffer,
                                                 std::int64_t micro_batch) const {
  std::vector<const Value*> found;
  const auto add = [&](const Device::Outputs& tensors, std::uint32_t layer, auto is_in) {
    if (const auto values = tensors.find({micro_batch, layer}); values != tensors.end())
      for (const Value& value : values->second)
        if (is_in(value)) found.push_back(&value);
  };
  if (buffer.role == BufferRole::output_gradient) {
    add(device.gradients, buffer.layer, [](const Value&) { return true; });
    return found;
  }
  add(device.outputs, buffer.layer, [&](const Value& value) { return value.maker == buffer.born; });
  for (const OpId op : buffer.uses)
    if (graph_.operations[op].phase == Phase::forward && is_in_place_[graph_.operations[op].layer])
      add(device.outputs, graph_.operations[op].layer, [&](const Value& value) {
        return value.maker == op && plan_.roles[device.role].program[value.task].kind != Task::Kind::compute;
      });
  std::stable_sort(found.begin(), found.end(),
                   [](const Value* a, const Value* b) { return a->number < b->number; });
  return found;
}

void PartsProver::add_other(const Buffer& buffer, const std::vector<BufferUse>& uses,
                            std::vector<NeededBytes>& needed) const {
  const std::uint32_t layer = graph_.operations[buffer.born].layer;
  if (buffer.role == BufferRole::image) return add_images(buffer, layer, uses, needed);
  // What a pass that drops it has made is made again.
  const auto first =
      std::find_if(uses.begin(), uses.end(), [](const BufferUse& use) { return !use.is_dropped; });
  if (first == uses.end() || buffer.bytes_per_image == 0) return;
  const Box whole = maps_.tensor(layer), &own = first->box;
  double share = 1;
  for (const Box::Axis axis : {Box::images, Box::channels, Box::rows, Box::columns})
    share *= static_cast<double>(count(own[axis])) / static_cast<double>(count(whole[axis]));
  // What is done image by image lives more than once.
  if (std::all_of(first, uses.end(), [&](const BufferUse& use) { return use.box == own; }))
    needed.push_back({first->position, uses.back().position, buffer.memory_class,
                      share * buffer.bytes_per_image * static_cast<double>(maps_.images())});
}

void PartsProver::add_images(const Buffer& buffer, std::uint32_t layer, const std::vector<BufferUse>& uses,
                             std::vector<NeededBytes>& needed) const {
  const std::vector<LayerIndex>& inputs = graph_.model.layers[layer].inputs;
  const auto input = std::find(inputs.begin(), inputs.end(), image_input);
  if (input == inputs.end()) return;
  const auto k = static_cast<std::size_t>(input - inputs.begin());
  const auto read_by = [&](Box work) {
    work[Box::inputs] = maps_.work(layer)[Box::inputs];
    return maps_.read(layer, k, work);
  };
  // What a pass that drops it has read is read again.
  const auto first =
      std::find_if(uses.begin(), uses.end(), [](const BufferUse& use) { return !use.is_dropped; });
  if (first == uses.end()) return;
  const Box read = read_by(first->box);
  if (std::all_of(first, uses.end(), [&](const BufferUse& use) { return read_by(use.box) == read; }))
    needed.push_back({first->position, uses.back().position, buffer.memory_class,
                      read.volume() / maps_.image_tensor().volume() * buffer.bytes_per_image *
                          static_cast<double>(maps_.images())});
}

PartsProver::BufferUses PartsProver::buffer_uses(const Device& device, Positions& positions) const {
  BufferUses uses;
  const Role& role = plan_.roles[device.role];
  for (TaskId t = 0; t < role.program.size(); ++t)
    for (const PlanOp& op : role.program[t].ops) {
      const std::size_t position = positions.begins.size();
      positions.begins.push_back(order_.of(device.role).begins[t]);
      positions.last[t] = position;
      const OpMeaning* means = meaning_in_graph(meaning_, op);
      if (!means || means->act != Act::compute) continue;
      positions.of.emplace(std::tuple{t, means->operation, means->micro_batch}, position);
      const Operation& operation = graph_.operations[means->operation];
      if (operation.phase == Phase::update) continue;
      const bool is_dropped = means->is_dropped || (operation.phase == Phase::forward && !operation.again &&
                                                    runs_again_[operation.layer]);
      const Box work = in_layout(means->layout, device.endpoint, maps_.work(operation.layer));
      for (const std::uint32_t b : buffers_of_[means->operation]) {
        // As by read_all: a data gradient does not read images.
        if (graph_.buffers[b].role == BufferRole::image && operation.phase == Phase::data_gradient) continue;
        for (Box& box : boxes_used(graph_.buffers[b], operation, work))
          if (!box.empty())
            uses[{b, means->micro_batch}].push_back({position, means->pass, is_dropped, std::move(box)});
      }
    }
  return uses;
}

std::vector<Box> PartsProver::boxes_used(const Buffer& buffer, const Operation& operation,
                                         const Box& work) const {
  std::vector<Box> boxes;
  if (operation.part == OperationPart::gradient_sum) return boxes;
  const bool is_tensor = buffer.role == BufferRole::output || buffer.role == BufferRole::output_gradient;
  const std::uint32_t layer = is_tensor ? buffer.layer : graph_.operations[buffer.born].layer;
  if (operation.layer == layer || operation.part == OperationPart::loss) {
    boxes.push_back(work);
    boxes.back()[Box::inputs] = all_of(1);
  } else if (buffer.role == BufferRole::output) {
    add_read(operation.layer, work, buffer.layer, boxes);
  } else if (buffer.role == BufferRole::output_gradient) {
    Box elements = work;
    elements[Box::inputs] = all_of(1);
    add_handed_on(operation.layer, elements, buffer.layer, boxes);
  }
  return boxes;
}

void PartsProver::add_handed_on(std::uint32_t layer, const Box& elements, std::uint32_t from,
                                std::vector<Box>& boxes) const {
  for (const auto& [reader, k] : readers_[layer]) {
    if (data_gradient_[reader]) continue;
    Box of_reader = maps_.readers(reader, k, elements);
    of_reader[Box::inputs] = all_of(1);
    if (of_reader.empty()) continue;
    if (reader == from)
      boxes.push_back(std::move(of_reader));
    else
      add_handed_on(reader, of_reader, from, boxes);
  }
}

void PartsProver::add_read(std::uint32_t layer, const Box& work, std::uint32_t of,
                           std::vector<Box>& boxes) const {
  const std::vector<LayerIndex>& inputs = graph_.model.layers[layer].inputs;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k] == image_input) continue;
    const auto input = static_cast<std::uint32_t>(inputs[k]);
    if (input == of)
      boxes.push_back(maps_.read(layer, k, work));
    else if (is_view_of(input, of) || is_in_place_[input])
      add_read(input, maps_.read(layer, k, work), of, boxes);
  }
}

bool PartsProver::has_come(const Device& device, const Value& value) const {
  return plan_.roles[device.role].program[value.task].kind != Task::Kind::compute;
}

std::optional<std::size_t> PartsProver::position_of(const Device& device, const Positions& positions,
                                                    const Value& value,
                                                    const std::vector<BufferUse>& uses) const {
  const std::vector<std::uint32_t>& begins = positions.begins;
  if (!has_come(device, value)) {
    const auto made = positions.of.find({value.task, value.maker, value.micro_batch});
    return made != positions.of.end() ? made->second : positions.last.at(value.task);
  }
  const auto after = std::lower_bound(begins.begin(), begins.end(), order_.of(device.role).ends[value.task]) -
                     begins.begin();
  std::optional<std::size_t> first;
  for (const BufferUse& use : uses)
    if (use.position >= static_cast<std::size_t>(after) && overlap(use.box, value.box))
      first = std::min(first.value_or(use.position), use.position);
  return first;
}

}  // namespace parts
}  // namespace convoy::prove
