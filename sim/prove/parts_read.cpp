// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/prove/parts_prover.h"

namespace convoy::inline prove {
namespace parts {

bool PartsProver::is_before(const Device& device, TaskId made, TaskId t) const {
  const std::vector<Task>& program = plan_.roles[device.role].program;
  const RoleOrder& order = order_.of(device.role);
  const bool computed = program[made].kind == Task::Kind::compute;
  if (program[t].kind == Task::Kind::compute)
    return computed ? order.begins[made] <= order.begins[t] : order.ends[made] <= order.begins[t];
  if (computed) return order.begins[made] < order.begins[t];
  if (order.ends[made] < order.begins[t]) return true;
  // A message may wait for another one, with nothing computed in between.
  const auto [it, fresh] = precedes_.try_emplace({device.role, made, t}, false);
  if (fresh) it->second = made < t && order.precedes(made, t);
  return it->second;
}

void PartsProver::find_output(const Device& device, TaskId t, const OpMeaning& reader, OpId maker,
                              std::uint32_t layer, std::vector<Box>& wanted) const {
  const auto found = device.outputs.find({reader.micro_batch, layer});
  if (found == device.outputs.end()) return;
  for (const Value& value : found->second)
    if (value.maker == maker && value.terms.empty() && is_before(device, value.task, t) &&
        is_kept(device, t, reader, value))
      subtract(wanted, value.box);
}

bool PartsProver::is_kept(const Device& device, TaskId t, const OpMeaning& reader, const Value& value) const {
  if (!value.pass) return true;
  if (plan_.roles[device.role].program[t].kind == Task::Kind::compute) return *value.pass == reader.pass;
  return order_.of(device.role).begins[t] <= pass_ends_[device.role].at(*value.pass);
}

bool PartsProver::read_output(const Device& device, TaskId t, const OpMeaning& reader, OpId maker,
                              LayerIndex tensor, std::vector<Box> wanted) const {
  if (tensor == image_input) return false;
  const auto layer = static_cast<std::uint32_t>(tensor);
  const Operation& made = graph_.operations[maker];
  const bool is_view = made.layer != layer;
  if (is_view && !is_view_of(layer, made.layer)) return false;
  std::erase_if(wanted, [](const Box& box) { return box.empty(); });
  find_output(device, t, reader, maker, layer, wanted);
  if (wanted.empty()) return true;
  if (!is_view)
    throw Refuted(fmt::format("{}: {} needs {} of {}, and it is not there", at(device, t),
                              graph_.operations[reader.operation].name, made.name,
                              of_layer(layer, wanted.front())));
  const std::vector<LayerIndex>& inputs = graph_.model.layers[layer].inputs;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    std::vector<Box> of_input;
    for (const Box& box : wanted) of_input.push_back(maps_.read(layer, k, box));
    read_output(device, t, reader, maker, inputs[k], std::move(of_input));
  }
  return true;
}

bool PartsProver::is_view_of(std::uint32_t layer, std::uint32_t of) const {
  if (layer == of) return true;
  if (has_.forward[layer]) return false;
  return std::any_of(graph_.model.layers[layer].inputs.begin(), graph_.model.layers[layer].inputs.end(),
                     [&](LayerIndex input) {
                       return input != image_input && is_view_of(static_cast<std::uint32_t>(input), of);
                     });
}

void PartsProver::read_images(const Device& device, TaskId t, const OpMeaning& reader,
                              std::vector<Box> wanted) const {
  if (!has_images(device, t, reader.micro_batch, std::move(wanted)))
    throw Refuted(fmt::format("{}: {} needs images, and they are not there", at(device, t),
                              graph_.operations[reader.operation].name));
}

void PartsProver::find_gradients(const Device& device, const Device::Outputs& among, TaskId t,
                                 std::int64_t micro_batch, std::uint32_t layer, std::vector<Value>& found,
                                 bool complete) const {
  if (const auto own = among.find({micro_batch, layer}); own != among.end())
    for (const Value& value : own->second)
      if (is_before(device, value.task, t)) found.push_back(value);
  find_handed_on(device, among, t, micro_batch, layer, found, complete);
}

void PartsProver::find_handed_on(const Device& device, const Device::Outputs& among, TaskId t,
                                 std::int64_t micro_batch, std::uint32_t layer, std::vector<Value>& found,
                                 bool complete) const {
  for (const auto& [reader, k] : readers_[layer]) {
    if (data_gradient_[reader]) continue;
    std::vector<Value> of_reader;
    find_gradients(device, among, t, micro_batch, reader, of_reader, complete);
    if (complete) of_reader = complete_gradients(device, micro_batch, reader, of_reader);
    for (Value& value : of_reader) {
      value.box = maps_.handed_on(reader, k, value.box);
      if (value.box.empty()) continue;
      for (Term& term : value.terms) term.way = ways_.longer(term.way, {reader, k});
      std::sort(value.terms.begin(), value.terms.end());
      found.push_back(std::move(value));
    }
  }
}

std::vector<Value> PartsProver::complete_gradients(const Device& device, std::int64_t micro_batch,
                                                   std::uint32_t layer,
                                                   const std::vector<Value>& values) const {
  std::vector<Value> complete;
  std::vector<Box> left{maps_.tensor(layer)};
  if (const auto sent = device.sent_parts.find({micro_batch, layer}); sent != device.sent_parts.end())
    for (const Box& box : sent->second) subtract(left, box);
  for (const Value& value : values) {
    std::vector<Box> whole{value.box};
    for (const auto& [maker, work] : terms_of(layer, value.box)) {
      if (!cover_error(value.terms, maker, work)) continue;
      for (const Box& wrong : not_once(value.terms, maker, work))
        subtract(whole, elements_of({maker.first, wrong, maker.second}, layer));
    }
    for (const Box& box : whole) {
      for (const Box& other : left)
        if (overlap(other, box)) {
          complete.push_back(value);
          complete.back().box = intersection(other, box);
        }
      subtract(left, box);
    }
  }
  return complete;
}

std::vector<Box> PartsProver::not_once(const Terms& terms, const Maker& maker, const Box& wanted) {
  std::vector<Box> missing{wanted}, twice, parts;
  for (const Term& term : terms) {
    if (term.operation != maker.first || term.way != maker.second || !overlap(term.work, wanted)) continue;
    const Box part = intersection(term.work, wanted);
    for (const Box& other : parts)
      if (overlap(other, part)) twice.push_back(intersection(other, part));
    parts.push_back(part);
    subtract(missing, part);
  }
  missing.insert(missing.end(), twice.begin(), twice.end());
  return missing;
}

bool PartsProver::is_sum(OpId op) const {
  return op == no_meaning || graph_.operations[op].part == OperationPart::gradient_sum;
}

void PartsProver::keep_only(OpId op, std::vector<Value>& values) {
  if (op == no_meaning) return;
  std::erase_if(values, [&](const Value& value) {
    return std::any_of(value.terms.begin(), value.terms.end(),
                       [&](const Term& term) { return term.operation != op; });
  });
}

std::vector<Value> PartsProver::best_gradients(const Device& device, TaskId t, std::int64_t micro_batch,
                                               std::uint32_t layer, std::vector<Box> wanted,
                                               OpId only) const {
  std::vector<Value> found, best;
  const bool of_sum = only != no_meaning && is_sum(only);
  // A layer that hands its gradient on has added up all parts of it first.
  find_gradients(device, device.gradients, t, micro_batch, layer, found, of_sum || adds_all_);
  if (!of_sum) keep_only(only, found);
  std::stable_sort(found.begin(), found.end(),
                   [](const Value& a, const Value& b) { return a.terms.size() > b.terms.size(); });
  for (const Value& value : found) {
    for (const Box& box : wanted)
      if (overlap(box, value.box)) {
        best.push_back(value);
        best.back().box = intersection(box, value.box);
      }
    subtract(wanted, value.box);
  }
  return best;
}

std::optional<std::string> PartsProver::cover_error(const Terms& terms, const Maker& maker,
                                                    const Box& wanted) {
  std::vector<Box> parts;
  double volume = 0;
  for (const Term& term : terms) {
    if (term.operation != maker.first || term.way != maker.second || !overlap(term.work, wanted)) continue;
    parts.push_back(intersection(term.work, wanted));
    volume += parts.back().volume();
  }
  if (any_overlap(parts)) return "is added twice";
  if (volume < wanted.volume() * (1 - 1e-12)) return "is missing";
  return std::nullopt;
}

void PartsProver::read_gradient(const Device& device, TaskId t, const OpMeaning& reader, std::uint32_t layer,
                                const Box& wanted) const {
  if (terms_of(layer, wanted).empty()) return;
  const std::map<Maker, Box>& all =
      terms_of(layer, maps_.tensor(layer));  // some make nothing for what is wanted
  const auto refuse = [&](const std::string& what) {
    throw Refuted(fmt::format("{}: {} needs the gradient of {}: {}", at(device, t),
                              graph_.operations[reader.operation].name, of_layer(layer, wanted), what));
  };
  std::vector<Box> missing{wanted};
  for (const Value& value : best_gradients(device, t, reader.micro_batch, layer, {wanted})) {
    subtract(missing, value.box);
    for (const auto& [maker, work] : terms_of(layer, value.box))
      if (const std::optional<std::string> error = cover_error(value.terms, maker, work))
        refuse(fmt::format("of its sum, what {} makes {}", graph_.operations[maker.first].name, *error));
    for (const Term& term : value.terms)
      if (!all.contains({term.operation, term.way}))
        refuse(fmt::format("{} is no part of it", graph_.operations[term.operation].name));
  }
  for (const Box& box : missing) {  // what nothing reads has no gradient
    if (!terms_of(layer, box).empty())
      refuse(fmt::format("nothing there makes that of {}", of_layer(layer, box)));
  }
}

void PartsProver::read_all(const Device& device, TaskId t, const OpMeaning& means, const Operation& operation,
                           const Box& work) const {
  const std::vector<LayerIndex>& inputs = graph_.model.layers[operation.layer].inputs;
  if (operation.part == OperationPart::gradient_sum) return;  // write
  Box own = work;
  own[Box::inputs] = all_of(1);
  for (const OpId input : operation.inputs) {
    const Operation& read = graph_.operations[input];
    if (read.phase != Phase::forward) continue;
    bool found = false;
    if (read.layer == operation.layer || operation.part == OperationPart::loss)
      found = read_output(device, t, means, input, static_cast<LayerIndex>(operation.layer), {own});
    for (std::size_t k = 0; k < inputs.size() && operation.part == OperationPart::layer; ++k)
      if (inputs[k] != image_input)
        found =
            read_output(device, t, means, input, inputs[k], {maps_.read(operation.layer, k, work)}) || found;
    if (!found) throw NotCovered(fmt::format("what {} reads of {}", operation.name, read.name));
  }
  if (operation.part != OperationPart::layer) return;
  if (reads_images_[means.operation])
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (reads_images(inputs[k]) &&
          !read_view(device, t, means, inputs[k], maps_.read(operation.layer, k, work)))
        read_images(device, t, means, {images_read(operation.layer, k, work)});
  if (operation.phase != Phase::forward) read_gradient(device, t, means, operation.layer, own);
  if (operation.phase != Phase::weight_gradient) read_parameters(device, t, means, operation.layer, work);
}

bool PartsProver::has_images(const Device& device, TaskId t, std::int64_t micro_batch,
                             std::vector<Box> wanted) const {
  if (is_hybrid_) return true;
  if (device.endpoint < meaning_.has_images.size() && meaning_.has_images[device.endpoint]) return true;
  for (const Value& value : device.images)
    if (value.micro_batch == micro_batch && is_before(device, value.task, t)) subtract(wanted, value.box);
  return std::all_of(wanted.begin(), wanted.end(), [](const Box& box) { return box.empty(); });
}

bool PartsProver::is_image_view(std::uint32_t layer) const {
  return !meaning_.image_views.empty() && reads_images(static_cast<LayerIndex>(layer));
}

bool PartsProver::has_view(const Device& device, TaskId t, std::int64_t micro_batch, std::uint32_t layer,
                           std::vector<Box> wanted) const {
  if (meaning_.has_images[device.endpoint]) return true;
  for (const ImageView& view : meaning_.image_views)
    if (view.layer == layer) subtract(wanted, in_layout(view.layout, device.endpoint, maps_.tensor(layer)));
  if (const auto come = device.views.find({micro_batch, layer}); come != device.views.end())
    for (const Value& value : come->second)
      if (is_before(device, value.task, t)) subtract(wanted, value.box);
  std::erase_if(wanted, [](const Box& box) { return box.empty(); });
  const LayerIndex input = graph_.model.layers[layer].inputs.front();
  if (wanted.empty() || input == image_input) return wanted.empty();
  for (Box& box : wanted) box = maps_.read(layer, 0, box);
  return has_view(device, t, micro_batch, static_cast<std::uint32_t>(input), std::move(wanted));
}

bool PartsProver::read_view(const Device& device, TaskId t, const OpMeaning& reader, LayerIndex input,
                            const Box& wanted) const {
  if (input == image_input || !is_image_view(static_cast<std::uint32_t>(input))) return false;
  if (!has_view(device, t, reader.micro_batch, static_cast<std::uint32_t>(input), {wanted}))
    throw Refuted(fmt::format("{}: {} needs {}, and not all of it is there", at(device, t),
                              graph_.operations[reader.operation].name,
                              of_layer(static_cast<std::uint32_t>(input), wanted)));
  return true;
}

bool PartsProver::reads_images(LayerIndex input) const {
  return has_.source_of(graph_.model, input) == image_input;
}

Box PartsProver::images_read(std::uint32_t layer, std::size_t k, const Box& work) const {
  const Box read = maps_.read(layer, k, work);
  const LayerIndex input = graph_.model.layers[layer].inputs[k];
  return input == image_input ? read : images_read(static_cast<std::uint32_t>(input), 0, read);
}

void PartsProver::read_parameters(const Device& device, TaskId t, const OpMeaning& means, std::uint32_t layer,
                                  const Box& work) const {
  if (!graph_.model.layers[layer].trains()) return;
  const std::uint32_t use = layer;
  layer = graph_.model.parameter_owner(layer);
  const RoleOrder& order = order_.of(device.role);
  std::vector<Box> wanted{work};
  if (const auto own = device.updates.find(layer); own != device.updates.end()) {
    const auto& [update, box] = own->second;
    subtract(wanted, parameter_part(use, box));
    const bool computes = plan_.roles[device.role].program[t].kind == Task::Kind::compute;
    if (computes ? device.updated.contains(layer) : order.begins[t] > order.begins[update])
      throw Refuted(fmt::format("{}: {} comes after the update of {}, of whose old version it is",
                                at(device, t), graph_.operations[means.operation].name,
                                graph_.model.layers[layer].name));
  }
  if (const auto come = device.parameters.find(layer); come != device.parameters.end())
    for (const Value& value : come->second)
      if (value.micro_batch == means.micro_batch && is_before(device, value.task, t))
        subtract(wanted, parameter_part(use, value.box));
  if (!wanted.empty())
    throw Refuted(fmt::format("{}: {} needs parameters of {}, and they are not there", at(device, t),
                              graph_.operations[means.operation].name, of_layer(layer, wanted.front())));
}

Box PartsProver::parameter_part(std::uint32_t layer, const Box& box) const {
  Box part = maps_.work(layer);
  part[Box::channels] = box[Box::channels], part[Box::inputs] = box[Box::inputs];
  return part;
}

}  // namespace parts
}  // namespace convoy::prove
