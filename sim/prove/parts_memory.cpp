// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>

#include "sim/prove/parts_prover.h"

namespace convoy::inline prove {
namespace parts {

void PartsProver::check_memory() const {
  for (std::uint32_t r = 0; r < plan_.roles.size(); ++r)
    for (const EndpointId e : followed_[r]) {
      std::vector<NeededBytes> needed = needed_bytes(devices_[e]);
      add_scattered(plan_, plan_.roles[r], order_.of(r), graph_, needed);
      check_held(plan_.roles[r], needed, machine_);
    }
}

std::vector<NeededBytes> PartsProver::needed_bytes(const Device& device) const {
  Positions positions;
  const BufferUses all = buffer_uses(device, positions);
  std::vector<NeededBytes> needed;
  for (const auto& [of, uses] : all) {
    const auto& [b, micro_batch] = of;
    const Buffer& buffer = graph_.buffers[b];
    if (buffer.role == BufferRole::image || buffer.role == BufferRole::other) {
      add_other(buffer, uses, needed);
      continue;
    }
    const std::vector<const Value*> values = values_in(device, buffer, micro_batch);
    if (buffer.role == BufferRole::output)
      add_outputs(device, positions, micro_batch, buffer, values, uses, needed);
    else
      add_gradients(device, positions, {micro_batch, buffer.layer}, buffer, values, uses, needed);
  }
  return needed;
}

void PartsProver::add_gradients(const Device& device, const Positions& positions,
                                const std::pair<std::int64_t, std::uint32_t>& of, const Buffer& buffer,
                                const std::vector<const Value*>& values, const std::vector<BufferUse>& uses,
                                std::vector<NeededBytes>& needed) const {
  std::vector<Box> earlier;
  const auto sent = device.sent_parts.find(of);
  for (const Value* value : values) {
    const std::optional<std::size_t> from = position_of(device, positions, *value, uses);
    if (!from) continue;
    std::vector<Box> fresh{value->box};
    for (const Box& box : earlier) subtract(fresh, box);
    // What another device adds up is none of this one's, and may come back as a whole.
    if (sent != device.sent_parts.end())
      for (const Box& box : sent->second) subtract(fresh, box);
    for (const Value* later : values)
      if (later->number > value->number && has_come(device, *later)) subtract(fresh, later->box);
    earlier.insert(earlier.end(), fresh.begin(), fresh.end());
    add_until_last_use(fresh, *from, uses, buffer.memory_class, bytes_of_value(buffer), needed);
  }
}

void PartsProver::add_until_last_use(std::vector<Box> boxes, std::size_t from,
                                     const std::vector<BufferUse>& uses, MemoryClass memory_class,
                                     double value_bytes, std::vector<NeededBytes>& needed) {
  for (auto use = uses.rbegin(); use != uses.rend() && use->position >= from; ++use) {
    double elements = 0;
    for (const Box& box : boxes) elements += intersection(box, use->box).volume();
    subtract(boxes, use->box);
    if (elements > 0) needed.push_back({from, use->position, memory_class, elements * value_bytes});
  }
}

const Value* PartsProver::come_as_view(const Device& device, const Positions& positions,
                                       std::int64_t micro_batch, const Buffer& buffer,
                                       const BufferUse& use) const {
  if (!use.of_view) return nullptr;
  const auto values = device.outputs.find({micro_batch, use.of_view->layer});
  if (values == device.outputs.end()) return nullptr;
  for (const Value& value : values->second)
    if (value.is_copy && value.maker == buffer.born && value.box == use.of_view->box &&
        (!value.pass || *value.pass == use.pass) && there_from(device, positions, value) <= use.position)
      return &value;
  return nullptr;
}

void PartsProver::add_outputs(const Device& device, const Positions& positions, std::int64_t micro_batch,
                              const Buffer& buffer, const std::vector<const Value*>& values,
                              const std::vector<BufferUse>& uses, std::vector<NeededBytes>& needed) const {
  struct Held {
    const Value* value;
    std::vector<Box> boxes;  // without elements in common
    std::size_t from;        // the first operation that it can be there for
    std::optional<std::size_t> first{}, last{};
    std::vector<BufferUse> reads{};

    double volume() const {
      double sum = 0;
      for (const Box& box : boxes) sum += box.volume();
      return sum;
    }
    bool has(const Box& box) const { return boxes.size() == 1 && intersection(boxes.front(), box) == box; }
    void read(const BufferUse& use) {
      first = std::min(first.value_or(use.position), use.position);
      last = std::max(last.value_or(use.position), use.position);
      reads.push_back(use);
    }
  };
  std::vector<Held> all;
  for (const Value* value : values) {
    if (!value->terms.empty()) continue;
    Held held{value, {value->box}, there_from(device, positions, *value)};
    for (const Held& other : all)  // what comes beside the others is what these do not have
      if (!value->is_copy && !other.value->is_copy && other.value->pass == value->pass)
        for (const Box& box : other.boxes) subtract(held.boxes, box);
    std::erase_if(held.boxes, [](const Box& box) { return box.empty(); });
    all.push_back(std::move(held));
  }
  struct ReadView {
    const Value* view;
    std::size_t first, last;
  };
  std::map<std::size_t, ReadView> views;  // by their numbers

  std::vector<std::pair<const BufferUse*, std::vector<Held*>>> open;  // of several copies any may be read
  for (const BufferUse& use : uses) {
    if (const Value* view = come_as_view(device, positions, micro_batch, buffer, use)) {
      views.try_emplace(view->number, ReadView{view, use.position, use.position}).first->second.last =
          use.position;
      continue;
    }
    std::vector<Held*> there, covering, exact;
    for (Held& held : all) {
      if (held.from > use.position || (held.value->pass && *held.value->pass != use.pass)) continue;
      there.push_back(&held);
      if (held.has(use.box)) covering.push_back(&held);
      if (held.boxes == std::vector<Box>{use.box}) exact.push_back(&held);
    }
    if (exact.size() == 1 || covering.size() == 1) {
      (exact.size() == 1 ? exact : covering).front()->read(use);
    } else if (!covering.empty()) {
      open.emplace_back(&use, std::move(covering));
    } else {
      std::vector<Box> left{use.box};
      for (Held* held : there)
        for (const Box& box : held->boxes) {
          if (std::any_of(left.begin(), left.end(), [&](const Box& other) { return overlap(other, box); }))
            held->read(use);
          subtract(left, box);
        }
    }
  }
  for (const auto& [use, copies] : open) {
    const auto is_held = [position = use->position](const Held* held) { return held->last >= position; };
    if (std::any_of(copies.begin(), copies.end(), is_held)) continue;
    (*std::min_element(copies.begin(), copies.end(), [](const Held* a, const Held* b) {
      return a->volume() < b->volume();
    }))->read(*use);
  }
  const double value_bytes = bytes_of_value(buffer);
  for (const auto& [number, read] : views)
    needed.push_back({read.first, read.last, buffer.memory_class, read.view->box.volume() * value_bytes});
  for (Held& held : all) {
    if (!held.last) continue;
    if (!has_come(device, *held.value) || held.value->is_copy) {
      const std::size_t from = has_come(device, *held.value) ? *held.first : held.from;
      needed.push_back({from, *held.last, buffer.memory_class, held.volume() * value_bytes});
      continue;
    }
    // Beside others, of which some may have the same elements.
    std::sort(held.reads.begin(), held.reads.end(),
              [](const BufferUse& a, const BufferUse& b) { return a.position < b.position; });
    add_until_last_use(held.boxes, *held.first, held.reads, buffer.memory_class, value_bytes, needed);
  }
}

double PartsProver::bytes_of_value(const Buffer& buffer) const {
  // As it is sent, which may be without the copy of another precision that a reader makes.
  return std::min(
      buffer.bytes_per_image * static_cast<double>(maps_.images()) / maps_.tensor(buffer.layer).volume(),
      tensor_bytes_.of_value(static_cast<LayerIndex>(buffer.layer)));
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
  const Box whole = maps_.tensor(layer);
  const double bytes = buffer.bytes_per_image * static_cast<double>(maps_.images()) / whole.volume();
  for (const BufferUse& made : uses) {
    if (!made.makes || made.is_dropped) continue;  // what a pass that drops it has made is made again
    add_until_last_use({made.box}, made.position, uses, buffer.memory_class, bytes, needed);
  }
}

void PartsProver::add_images(const Buffer& buffer, std::uint32_t layer, const std::vector<BufferUse>& uses,
                             std::vector<NeededBytes>& needed) const {
  const std::vector<LayerIndex>& inputs = graph_.model.layers[layer].inputs;
  const auto input = std::find(inputs.begin(), inputs.end(), image_input);
  if (input == inputs.end()) return;
  const auto k = static_cast<std::size_t>(input - inputs.begin());
  const auto read_by = [&](const Box& work) { return maps_.read(layer, k, work); };
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
      positions.of.emplace(std::tuple{t, means->operation, means->micro_batch,
                                      means->is_dropped ? std::optional(means->pass) : std::nullopt},
                           position);
      const Operation& operation = graph_.operations[means->operation];
      if (operation.phase == Phase::update) continue;
      const bool is_dropped = means->is_dropped || (operation.phase == Phase::forward && !operation.again &&
                                                    runs_again_[operation.layer]);
      const Box work = in_layout(means->layout, device.endpoint, maps_.work(operation.layer));
      for (const std::uint32_t b : buffers_of_[means->operation]) {
        const OpId born = graph_.buffers[b].born;
        const bool makes = means->operation == born;
        for (UsedElements& used : elements_used(graph_.buffers[b], operation, work))
          if (!used.box.empty())
            uses[{b, means->micro_batch}].push_back(
                {position, means->pass, is_dropped, makes, std::move(used.box), std::move(used.of_view)});
      }
    }
  return uses;
}

std::vector<PartsProver::UsedElements> PartsProver::elements_used(const Buffer& buffer,
                                                                  const Operation& operation,
                                                                  const Box& work) const {
  std::vector<UsedElements> used;
  if (operation.part == OperationPart::gradient_sum) return used;
  const bool is_tensor = buffer.role == BufferRole::output || buffer.role == BufferRole::output_gradient;
  const std::uint32_t layer = is_tensor ? buffer.layer : graph_.operations[buffer.born].layer;
  if (operation.layer == layer || operation.part == OperationPart::loss) {
    used.push_back({work});
    if (buffer.role != BufferRole::image) used.back().box[Box::inputs] = all_of(1);
  } else if (buffer.role == BufferRole::output) {
    add_read(operation.layer, work, buffer.layer, {}, used);
  } else if (buffer.role == BufferRole::output_gradient) {
    Box elements = work;
    elements[Box::inputs] = all_of(1);
    add_handed_on(operation.layer, elements, buffer.layer, used);
  }
  return used;
}

void PartsProver::add_handed_on(std::uint32_t layer, const Box& elements, std::uint32_t from,
                                std::vector<UsedElements>& used) const {
  for (const auto& [reader, k] : readers_[layer]) {
    if (data_gradient_[reader]) continue;
    Box of_reader = maps_.readers(reader, k, elements);
    of_reader[Box::inputs] = all_of(1);
    if (of_reader.empty()) continue;
    if (reader == from)
      used.push_back({std::move(of_reader)});
    else
      add_handed_on(reader, of_reader, from, used);
  }
}

void PartsProver::add_read(std::uint32_t layer, const Box& work, std::uint32_t of,
                           const std::optional<OfView>& of_view, std::vector<UsedElements>& used) const {
  const std::vector<LayerIndex>& inputs = graph_.model.layers[layer].inputs;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k] == image_input) continue;
    const auto input = static_cast<std::uint32_t>(inputs[k]);
    Box read = maps_.read(layer, k, work);
    if (input == of)
      used.push_back({std::move(read), of_view});
    else if (is_view_of(input, of))
      add_read(input, read, of, of_view ? of_view : OfView{input, read}, used);
    else if (is_in_place_[input])
      add_read(input, read, of, of_view, used);
  }
}

bool PartsProver::has_come(const Device& device, const Value& value) const {
  return plan_.roles[device.role].program[value.task].kind != Task::Kind::compute;
}

std::size_t PartsProver::there_from(const Device& device, const Positions& positions,
                                    const Value& value) const {
  const std::vector<std::uint32_t>& begins = positions.begins;
  if (has_come(device, value))
    return static_cast<std::size_t>(
        std::lower_bound(begins.begin(), begins.end(), order_.of(device.role).ends[value.task]) -
        begins.begin());
  const auto made = positions.of.find({value.task, value.maker, value.micro_batch, value.pass});
  return made != positions.of.end() ? made->second : positions.last.at(value.task);
}

std::optional<std::size_t> PartsProver::position_of(const Device& device, const Positions& positions,
                                                    const Value& value,
                                                    const std::vector<BufferUse>& uses) const {
  const std::size_t from = there_from(device, positions, value);
  if (!has_come(device, value)) return from;
  std::optional<std::size_t> first;
  for (const BufferUse& use : uses)
    if (use.position >= from && overlap(use.box, value.box))
      first = std::min(first.value_or(use.position), use.position);
  return first;
}

}  // namespace parts
}  // namespace convoy::prove
