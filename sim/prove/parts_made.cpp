// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/prove/parts_prover.h"

namespace convoy::inline prove {
namespace parts {

void PartsProver::write(Device& device, TaskId t, const OpMeaning& means, const Operation& operation,
                        const Box& work) {
  const std::int64_t m = means.micro_batch;
  Value value{means.operation, work, {{means.operation, work}}, t, m};
  value.box[Box::inputs] = all_of(1);
  if (operation.phase == Phase::weight_gradient) {
    keep(device.parameter_gradients[operation.layer], std::move(value));
  } else if (operation.phase == Phase::forward) {
    const bool is_whole = operation.part != OperationPart::layer ||
                          work[Box::inputs] == maps_.work(operation.layer)[Box::inputs];
    if (!is_whole && !is_hybrid_) throw NotCovered(fmt::format("partial sums of {}", operation.name));
    if (is_whole) value.terms.clear();
    if (means.is_dropped) value.pass = means.pass;
    keep(device.outputs[{m, operation.layer}], std::move(value));
  } else if (operation.part == OperationPart::gradient_sum) {
    sum(device, t, means, operation, value.box);
  } else if (operation.part == OperationPart::loss) {
    keep(device.gradients[{m, operation.layer}], std::move(value));
  } else {
    const std::vector<LayerIndex>& inputs = graph_.model.layers[operation.layer].inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k] == image_input) continue;
      value.box = maps_.read(operation.layer, k, work);
      const Box all = maps_.work(operation.layer), input = whole_input(operation.layer, k);
      // What a stride skips is zero.
      if (work[Box::rows] == all[Box::rows]) value.box[Box::rows] = input[Box::rows];
      if (work[Box::columns] == all[Box::columns]) value.box[Box::columns] = input[Box::columns];
      const auto input_layer = static_cast<std::uint32_t>(inputs[k]);
      Value of_input = value;
      of_input.terms.front().way = ways_.longer(0, {operation.layer, k});
      if (std::holds_alternative<Custom>(graph_.model.layers[operation.layer].kind))
        add_to_read(device, t, operation, input_layer, of_input);
      keep(device.gradients[{m, input_layer}], std::move(of_input));
    }
  }
}

void PartsProver::keep(std::vector<Value>& among, Value value) {
  value.number = ++made_;
  among.push_back(std::move(value));
}

void PartsProver::add_to_read(const Device& device, TaskId t, const Operation& operation, std::uint32_t input,
                              Value& value) const {
  const auto there = device.gradients.find({value.micro_batch, input});
  if (there == device.gradients.end()) return;
  const Value* newest = nullptr;
  for (const Value& other : there->second)
    if (is_before(device, other.task, t) && has_all(other, input, value.box) &&
        std::find(operation.inputs.begin(), operation.inputs.end(), other.maker) != operation.inputs.end() &&
        (!newest || other.number > newest->number))
      newest = &other;
  if (!newest) return;
  std::optional<Terms> both = joined(value.terms, newest->terms);
  if (!both)
    throw Refuted(fmt::format("{}: a part of the gradient of {} is added twice", at(device, t),
                              of_layer(input, value.box)));
  value.terms = std::move(*both);
}

Box PartsProver::whole_input(std::uint32_t layer, std::size_t k) const {
  const LayerIndex input = graph_.model.layers[layer].inputs[k];
  return input == image_input ? maps_.image_tensor() : maps_.tensor(static_cast<std::size_t>(input));
}

std::optional<Terms> PartsProver::joined(const Terms& a, const Terms& b) {
  Terms both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  if (both.size() != a.size() + b.size()) return std::nullopt;
  return both;
}

bool PartsProver::has_all(const Value& value, std::uint32_t layer, const Box& box) const {
  for (const Term& term : value.terms) {
    std::vector<Box> missing{intersection(elements_of(term, layer), box)};
    subtract(missing, value.box);
    std::erase_if(missing, [](const Box& b) { return b.empty(); });
    if (!missing.empty()) return false;
  }
  return true;
}

void PartsProver::sum(Device& device, TaskId t, const OpMeaning& means, const Operation& operation,
                      const Box& box) {
  std::vector<Value> there;
  find_gradients(device, device.gradients, t, means.micro_batch, operation.layer, there);
  // A part of the images may have been summed before, and a summand have nothing for these channels.
  std::erase_if(there, [&](const Value& value) {
    return intersection(value.box[Box::images], box[Box::images]).empty();
  });
  std::erase_if(there, [&](const Value& value) { return !has_all(value, operation.layer, box); });
  // What the graph adds up here, where it is there as it was made; parts that were added up first have no one maker.
  const auto is_summand = [&](const Value& value) {
    return std::find(operation.inputs.begin(), operation.inputs.end(), value.maker) != operation.inputs.end();
  };
  std::optional<Terms> best;
  std::pair<int, std::size_t> of_best;  // summands of the graph, and terms
  for (std::size_t i = 0; i < there.size(); ++i)
    for (std::size_t j = i + 1; j < there.size(); ++j) {
      std::optional<Terms> both = joined(there[i].terms, there[j].terms);
      if (!both || std::any_of(there.begin(), there.end(), [&](const Value& v) { return v.terms == *both; }))
        continue;
      const std::pair of_both{is_summand(there[i]) + is_summand(there[j]), both->size()};
      if (!best || of_both > of_best) best = std::move(both), of_best = of_both;
    }
  // All other summands have nothing for these channels: what reads the sum asks whether the one that is there has all.
  if (!best && there.size() == 1) return;
  if (!best)
    throw Refuted(fmt::format("{}: {} has nothing to add up: a part of the gradient of {} is missing",
                              at(device, t), operation.name, of_layer(operation.layer, box)));
  keep(device.gradients[{means.micro_batch, operation.layer}],
       {means.operation, box, std::move(*best), t, means.micro_batch});
}

void PartsProver::add_all(Device& device, TaskId t, const OpMeaning& means) {
  const Box box = in_layout(means.layout, device.endpoint, maps_.tensor(means.layer));
  const std::pair<std::int64_t, std::uint32_t> of{means.micro_batch, means.layer};
  std::vector<Value> parts;
  if (const auto come = device.parts.find(of); come != device.parts.end())
    for (const Value& value : come->second)
      if (is_before(device, value.task, t)) parts.push_back(value);
  if (const auto own = device.gradients.find(of); own != device.gradients.end())
    for (const Value& value : own->second)
      if (is_before(device, value.task, t) && !is_sum(value.maker)) parts.push_back(value);
  find_handed_on(device, device.gradients, t, means.micro_batch, means.layer, parts, true);
  // Elements with the same terms.
  std::vector<std::pair<Box, Terms>> regions{{box, {}}};
  for (const Value& part : parts) {
    std::vector<std::pair<Box, Terms>> next;
    for (auto& [region, terms] : regions) {
      if (!overlap(region, part.box)) {
        next.emplace_back(region, std::move(terms));
        continue;
      }
      for (const Box& rest : difference(region, part.box)) next.emplace_back(rest, terms);
      const std::optional<Terms> both = joined(terms, part.terms);
      if (!both)
        throw Refuted(fmt::format("{}: a part of the gradient of {} is added twice", at(device, t),
                                  of_layer(means.layer, intersection(region, part.box))));
      next.emplace_back(intersection(region, part.box), std::move(*both));
    }
    regions = std::move(next);
  }
  for (auto& [region, terms] : regions)
    if (!region.empty() && !terms.empty())
      keep(device.gradients[of], {no_meaning, region, std::move(terms), t, means.micro_batch});
}

void PartsProver::add_parts(Device& device, TaskId t, const OpMeaning& means) {
  if (means.operation == no_meaning) return add_all(device, t, means);
  const Box box = in_layout(means.layout, device.endpoint, maps_.tensor(means.layer));
  std::vector<Value> parts;
  find_gradients(device, device.parts, t, means.micro_batch, means.layer, parts);
  for (Value& own : best_gradients(device, t, means.micro_batch, means.layer, {box}, means.operation))
    parts.push_back(std::move(own));
  keep_only(means.operation, parts);
  if (parts.empty())
    throw Refuted(fmt::format("{}: there is nothing to add up of the gradient of {}", at(device, t),
                              of_layer(means.layer, box)));
  // By term: the elements that have it.
  std::map<Term, std::vector<Box>> by_term;
  for (const Value& part : parts)
    for (const Term& term : part.terms) {
      const Box has = intersection(part.box, box);
      if (has.empty()) continue;
      std::vector<Box>& all = by_term[term];
      for (const Box& other : all)
        if (overlap(other, has))
          throw Refuted(fmt::format("{}: what {} makes for the gradient of {} is added twice", at(device, t),
                                    graph_.operations[term.operation].name, of_layer(means.layer, has)));
      all.push_back(has);
    }
  Terms terms;
  for (const auto& [term, boxes] : by_term) {
    std::vector<Box> missing{intersection(elements_of(term, means.layer), box)};
    for (const Box& has : boxes) subtract(missing, has);
    std::erase_if(missing, [](const Box& b) { return b.empty(); });
    if (!missing.empty())
      throw Refuted(fmt::format("{}: what {} makes for the gradient of {} has not come", at(device, t),
                                graph_.operations[term.operation].name,
                                of_layer(means.layer, missing.front())));
    terms.push_back(term);
  }
  keep(device.gradients[{means.micro_batch, means.layer}],
       {means.operation, box, std::move(terms), t, means.micro_batch});
}

Box PartsProver::elements_of(const Term& term, std::uint32_t layer) const {
  const Operation& operation = graph_.operations[term.operation];
  if (term.way == 0 && operation.part == OperationPart::loss && operation.layer == layer) return term.work;
  const auto& [before, by] = ways_.last(term.way);
  const auto& [read_by, k] = by;
  if (term.way == 0 || graph_.model.layers[read_by].inputs[k] != static_cast<LayerIndex>(layer)) {
    Box none = maps_.tensor(layer);
    none[Box::images] = {};
    return none;
  }
  const bool is_own = before == 0 && operation.part == OperationPart::layer;
  return maps_.read(read_by, k,
                    is_own ? term.work : elements_of({term.operation, term.work, before}, read_by));
}

void PartsProver::take_in_gradients(Device& device, TaskId t, const OpMeaning& means) {
  const auto come = device.come_gradients.find({means.micro_batch, means.layer});
  std::vector<Value> taken;
  if (come != device.come_gradients.end())
    for (Value& value : come->second)
      if (is_before(device, value.task, t)) taken.push_back(std::move(value));
  if (taken.empty() || taken.size() < come->second.size())
    throw Refuted(fmt::format("{}: does not wait for the gradient of {} of micro-batch {}", at(device, t),
                              graph_.model.layers[means.layer].name, means.micro_batch));
  device.come_gradients.erase(come);
  for (Value& value : taken) {
    value.task = t;
    keep(device.parameter_gradients[means.layer], std::move(value));
  }
}

void PartsProver::check_bucket_is_complete(std::uint32_t r, TaskId t, std::uint32_t bucket) const {
  for (const EndpointId e : followed_[r]) check_bucket_is_complete(devices_[e], t, bucket);
}

void PartsProver::check_bucket_is_complete(const Device& device, TaskId t, std::uint32_t bucket) const {
  if (is_hybrid_) return;
  std::set<std::uint32_t> layers;
  for (const std::size_t p : meaning_.buckets[bucket].parameters) layers.insert(graph_.parameters[p].layer);
  for (const std::uint32_t layer : layers)
    if (const auto update = device.updates.find(layer); update != device.updates.end())
      check_gradient(device, layer, t, update->second.second);
}

void PartsProver::check_gradient(const Device& device, std::uint32_t layer, TaskId t, const Box& box) const {
  const std::optional<OpId> op = weight_gradient_[layer];
  if (!op)
    throw NotCovered(fmt::format("no operation of its own makes the gradient of the parameters of {}",
                                 graph_.model.layers[layer].name));
  const auto& all = device.parameter_gradients;
  for (std::int64_t m = 0; m < micro_batches_; ++m) {
    Terms terms;
    if (const auto found = all.find(layer); found != all.end())
      for (const Value& value : found->second)
        if (value.micro_batch == m && is_before(device, value.task, t))
          terms.insert(terms.end(), value.terms.begin(), value.terms.end());
    if (const std::optional<std::string> error = cover_error(terms, {*op, 0}, parameter_part(layer, box)))
      throw Refuted(fmt::format("{}: of the gradient of {} of micro-batch {}, a part {}", at(device, t),
                                graph_.model.layers[layer].name, m, *error));
  }
}

void PartsProver::check_updates() const {
  // Of placed work each replica for itself.
  std::map<std::uint32_t, std::vector<const Device*>> replicas;
  for (const std::vector<EndpointId>& of_role : followed_)
    for (const EndpointId e : of_role) replicas[is_hybrid_ ? 0 : meaning_.lanes[e]].push_back(&devices_[e]);
  for (const auto& [lane, devices] : replicas) check_updates_of(devices);
}

void PartsProver::check_updates_of(const std::vector<const Device*>& devices) const {
  std::map<std::uint32_t, std::vector<Box>> left;
  for (const Parameter& parameter : graph_.parameters) left[parameter.layer] = {maps_.work(parameter.layer)};
  for (const Device* device : devices)
    for (const auto& [layer, update] : device->updates) {
      const Box part = parameter_part(layer, update.second);
      if (part.empty()) continue;
      std::vector<Box> rest{part};
      for (const Box& box : left[layer]) subtract(rest, box);
      if (!rest.empty() && !is_hybrid_)
        throw Refuted(fmt::format("{}: another device updates {}, too", at(*device, update.first),
                                  of_layer(layer, rest.front())));
      subtract(left[layer], part);
    }
  for (const auto& [layer, boxes] : left)
    if (!boxes.empty()) throw Refuted(fmt::format("nobody updates {}", of_layer(layer, boxes.front())));
}

}  // namespace parts
}  // namespace convoy::prove
