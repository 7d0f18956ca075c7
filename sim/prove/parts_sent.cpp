// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/prove/parts_prover.h"

namespace convoy::inline prove {
namespace parts {

template <class Visit>
void PartsProver::for_each_pair(CommId comm, Visit visit) const {
  const std::uint32_t pattern = plan_.communications[comm].pattern;
  for (const std::vector<EndpointId>* group : followed_groups(pattern))
    for (const Round& round : plan_.patterns[pattern].rounds)
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        visit((*group)[from], (*group)[to], fraction);
      });
}

Phase PartsProver::phase_of(const CommMeaning::Result& result) const {
  return graph_.operations[result.operation].phase;
}

bool PartsProver::of_parameters(const CommMeaning::Result& result) const {
  return result.operation != no_meaning &&
         (phase_of(result) == Phase::weight_gradient || phase_of(result) == Phase::update);
}

Box PartsProver::whole(const CommMeaning::Result& result) const {
  if (result.operation == no_meaning && !is_image_view(result.layer)) return maps_.image_tensor();
  return of_parameters(result) ? maps_.work(result.layer) : maps_.tensor(result.layer);
}

Box PartsProver::sent(const CommMeaning::Result& result, EndpointId from, EndpointId to) const {
  return intersection(in_layout(result.from, from, whole(result)), in_layout(result.to, to, whole(result)));
}

void PartsProver::find_sent_parts(const Role& role, CommId comm) {
  const std::uint32_t means = plan_.communications[comm].meaning;
  if (means == no_meaning || meaning_.communications[means].kind != Kind::parts) return;
  const CommMeaning& carries = meaning_.communications[means];
  for_each_pair(comm, [&](EndpointId from, EndpointId to, double) {
    if (std::find(role.members.begin(), role.members.end(), from) == role.members.end()) return;
    for (const CommMeaning::Result& result : carries.results)
      if (result.operation != no_meaning && phase_of(result) == Phase::data_gradient)
        devices_[from].sent_parts[{carries.micro_batch, result.layer}].push_back(sent(result, from, to));
  });
}

double PartsProver::bytes_of(const CommMeaning& carries, EndpointId from, EndpointId to) const {
  const double element = element_bytes(graph_.options.precision);
  double bytes = 0;
  std::set<OpId> counted;
  for (const CommMeaning::Result& result : carries.results) {
    const bool is_whole = result.from == no_meaning && result.to == no_meaning;
    if (is_whole && result.operation != no_meaning && phase_of(result) != Phase::update) {
      if (counted.insert(result.operation).second) bytes += made_bytes_[result.operation];
      continue;
    }
    const Box box = sent(result, from, to);
    if (result.operation == no_meaning && !is_image_view(result.layer)) {
      bytes += box.volume() * tensor_bytes_.of_value(image_input);
      continue;
    }
    if (!of_parameters(result)) {
      bytes += box.volume() * tensor_bytes_.of_value(static_cast<LayerIndex>(result.layer));
      continue;
    }
    const double share = parameter_part(result.layer, box).volume() / maps_.work(result.layer).volume();
    for (const ParameterTensor& tensor : graph_.model.layers[result.layer].parameters)
      if (is_whole || tensor.role == ParameterRole::weight)
        bytes += share * element * static_cast<double>(tensor.elements);
  }
  return bytes;
}

void PartsProver::check_message(CommId comm, const CommMeaning& carries) {
  carried_[comm].emplace();
  const Communication& of = plan_.communications[comm];
  std::set<std::pair<EndpointId, EndpointId>> pairs;
  std::set<std::uint32_t> senders, receivers;
  std::set<EndpointId> sending, receiving;
  for (const auto& [role, kind] : users_[comm])
    if (!(kind == Task::Kind::send ? senders : receivers).insert(role).second)
      throw Refuted(fmt::format("{}: does '{}' twice", name_of(plan_.roles[role], machine_), of.name));
  for_each_pair(comm, [&](EndpointId from, EndpointId to, double fraction) {
    sending.insert(from), receiving.insert(to);
    const double bytes = bytes_of(carries, from, to);
    if (!pairs.insert({from, to}).second)
      throw Refuted(fmt::format("{} sends {} '{}' twice", machine_.endpoint_name(from),
                                machine_.endpoint_name(to), of.name));
    if (std::abs(fraction * of.bytes - bytes) > 1e-9 * (1 + bytes))
      throw Refuted(fmt::format("{} sends {} {} bytes of '{}', and what it has for it are {}",
                                machine_.endpoint_name(from), machine_.endpoint_name(to), fraction * of.bytes,
                                of.name, bytes));
    if (!senders.contains(devices_[from].role) || !receivers.contains(devices_[to].role))
      throw Refuted(fmt::format("'{}' from {} to {}: a task that sends or receives it is missing", of.name,
                                machine_.endpoint_name(from), machine_.endpoint_name(to)));
  });
  for (const auto& [roles, who] : {std::pair{&senders, &sending}, {&receivers, &receiving}})
    for (const std::uint32_t role : *roles)
      for (const EndpointId e : followed_[role])
        if (!who->contains(e))
          throw Refuted(fmt::format("{}: '{}' has no message for it", machine_.endpoint_name(e), of.name));
}

void PartsProver::send(const Device& device, TaskId t, CommId comm, const CommMeaning& carries) {
  for_each_pair(comm, [&](EndpointId from, EndpointId to, double) {
    if (from != device.endpoint) return;
    std::vector<std::vector<Value>>& results = carried_[comm]->of[{from, to}];
    for (const CommMeaning::Result& result : carries.results)
      results.push_back(taken(device, t, carries, result, sent(result, from, to)));
  });
}

std::vector<Value> PartsProver::taken(const Device& device, TaskId t, const CommMeaning& carries,
                                      const CommMeaning::Result& result, const Box& box) const {
  OpMeaning reader;
  reader.operation = result.operation, reader.micro_batch = carries.micro_batch;
  const std::int64_t m = carries.micro_batch;
  if (box.empty()) return {};
  if (carries.kind == Kind::results && result.operation != no_meaning &&
      phase_of(result) == Phase::data_gradient && is_hybrid_)
    return held(device, t, carries, result, box);
  if (result.operation == no_meaning) {
    if (is_image_view(result.layer) ? !has_view(device, t, m, result.layer, {box})
                                    : !has_images(device, t, m, {box}))
      throw Refuted(fmt::format("{}: sends images that it does not have", at(device, t)));
    return {{no_meaning, box, {}, t, m}};
  }
  const Value value{result.operation, box, {}, t, m};
  switch (phase_of(result)) {
    case Phase::forward:
      if (!read_output(device, t, reader, result.operation, static_cast<LayerIndex>(result.layer), {box}))
        throw Refuted(fmt::format("{}: what it sends of {} is no view of {}", at(device, t),
                                  graph_.model.layers[result.layer].name,
                                  graph_.operations[result.operation].name));
      return {value};
    case Phase::update:
      read_parameters(device, t, reader, result.layer, parameter_part(result.layer, box));
      return {value};
    case Phase::weight_gradient:
      return sent_parameter_gradients(device, t, result, box, m);
    case Phase::data_gradient:
      return sent_gradients(device, t, carries, result, box);
  }
  return {};
}

std::vector<Value> PartsProver::sent_parameter_gradients(const Device& device, TaskId t,
                                                         const CommMeaning::Result& result, const Box& box,
                                                         std::int64_t m) const {
  std::vector<Value> values;
  const auto found = device.parameter_gradients.find(result.layer);
  if (found != device.parameter_gradients.end())
    for (const Value& value : found->second) {
      if (value.micro_batch != m || !is_before(device, value.task, t)) continue;
      Value& part = values.emplace_back(value);
      std::erase_if(part.terms, [&](const Term& term) { return !overlap(term.work, box); });
      for (Term& term : part.terms) term.work = intersection(term.work, parameter_part(result.layer, box));
    }
  if (values.empty())
    throw Refuted(
        fmt::format("{}: does not wait for {}", at(device, t), graph_.operations[result.operation].name));
  return values;
}

std::vector<Value> PartsProver::sent_gradients(const Device& device, TaskId t, const CommMeaning& carries,
                                               const CommMeaning::Result& result, const Box& box) const {
  std::vector<Value> values =
      best_gradients(device, t, carries.micro_batch, result.layer, {box}, result.operation);
  if (carries.kind == Kind::results) {
    std::vector<Value> found;
    find_gradients(device, device.gradients, t, carries.micro_batch, result.layer, found);
    // Where it makes nothing for an element, zero is sent.
    std::erase_if(found, [&](const Value& value) {
      return value.maker != result.operation || !has_all(value, result.layer, box);
    });
    values.clear();  // the newest; several where the operation reads the tensor in several ways
    for (auto value = found.rbegin(); value != found.rend(); ++value)
      if (std::all_of(values.begin(), values.end(),
                      [&](const Value& other) { return joined(other.terms, value->terms).has_value(); })) {
        values.push_back(*value);
        values.back().box = box;
      }
  }
  // A part of a gradient may have nothing for these elements.
  std::vector<Value> others;
  if (carries.kind == Kind::parts)
    find_gradients(device, device.gradients, t, carries.micro_batch, result.layer, others);
  if (values.empty() && others.empty() && !terms_of(result.layer, box).empty())
    throw Refuted(
        fmt::format("{}: does not wait for the gradient of {}", at(device, t), of_layer(result.layer, box)));
  return values;
}

void PartsProver::receive(Device& device, TaskId t, CommId comm, const CommMeaning& carries) {
  if (!carried_[comm]) throw Refuted(fmt::format("{}: nobody sends it", at(device, t)));
  for (const auto& [pair, results] : carried_[comm]->of) {
    if (pair.second != device.endpoint) continue;
    for (std::size_t i = 0; i < results.size(); ++i)
      for (Value value : results[i]) {
        value.task = t;
        put(device, carries, carries.results[i], std::move(value));
      }
  }
}

void PartsProver::put(Device& device, const CommMeaning& carries, const CommMeaning::Result& result,
                      Value value) {
  const std::pair<std::int64_t, std::uint32_t> of{carries.micro_batch, result.layer};
  if (result.operation == no_meaning) {
    (is_image_view(result.layer) ? device.views[of] : device.images).push_back(std::move(value));
    return;
  }
  switch (phase_of(result)) {
    case Phase::forward:
      keep(device.outputs[of], std::move(value));
      return;
    case Phase::update:
      device.parameters[result.layer].push_back(std::move(value));
      return;
    case Phase::weight_gradient:
      // Of one micro-batch it is the gradient; of several, they are added up.
      keep(micro_batches_ > 1 ? device.come_gradients[of] : device.parameter_gradients[result.layer],
           std::move(value));
      return;
    case Phase::data_gradient:
      keep((carries.kind == Kind::parts && !is_hybrid_ ? device.parts : device.gradients)[of],
           std::move(value));
      return;
  }
}

}  // namespace parts
}  // namespace convoy::prove
