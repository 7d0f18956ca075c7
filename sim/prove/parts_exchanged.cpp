// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/prove/parts_prover.h"

namespace convoy::inline prove {
namespace parts {

void PartsProver::exchange(std::uint32_t r, TaskId t, const CommMeaning& carries) {
  const CommId comm = plan_.roles[r].program[t].comm;
  if (!brought_[comm]) brought_[comm] = brought_by(comm, carries);
  for (const EndpointId e : followed_[r]) {
    const auto found = brought_[comm]->find(e);
    if (found == brought_[comm]->end()) continue;
    for (auto& [result, value] : found->second) {
      value.task = t;
      put(devices_[e], carries, carries.results[result], std::move(value));
    }
    found->second.clear();
  }
}

PartsProver::Brought PartsProver::brought_by(CommId comm, const CommMeaning& carries) {
  check_members(comm);
  Brought brought;
  for (const std::vector<EndpointId>* group : followed_groups(plan_.communications[comm].pattern))
    for (std::size_t i = 0; i < carries.results.size(); ++i) {
      const CommMeaning::Result& result = carries.results[i];
      if (result.operation == no_meaning || of_parameters(result))
        throw NotCovered(fmt::format("'{}' is a collective of something else than results of layers",
                                     plan_.communications[comm].name));
      check_rounds(comm, result, carries.kind, *group);
      const Box all = whole(result);
      std::vector<Value> values;
      for (const EndpointId e : *group) {
        const TaskId own = task_of_.at({devices_[e].role, comm});
        for (Value& value : held(devices_[e], own, carries, result, in_layout(result.from, e, all)))
          values.push_back(std::move(value));
      }
      const bool is_copy = !is_halo(result, *group);
      std::optional<Box> before;  // many members are to have the same
      std::vector<Value> of_box;
      for (const EndpointId e : *group) {
        const Box box = in_layout(result.to, e, all);
        if (box.empty()) continue;
        if (before != box)
          of_box = merged(devices_[e], task_of_.at({devices_[e].role, comm}), carries, result, values, box);
        before = box;
        for (const Value& value : of_box) {
          brought[e].emplace_back(i, value);
          brought[e].back().second.is_copy = is_copy;
        }
      }
    }
  return brought;
}

void PartsProver::check_members(CommId comm) const {
  const Communication& of = plan_.communications[comm];
  std::set<std::uint32_t> roles;
  for (const auto& [role, kind] : users_[comm])
    if (kind != Task::Kind::collective || !roles.insert(role).second)
      throw Refuted(fmt::format("{}: does '{}' twice", name_of(plan_.roles[role], machine_), of.name));
  std::set<EndpointId> members;
  for (const std::vector<EndpointId>* group : followed_groups(of.pattern))
    for (const EndpointId e : *group) {
      members.insert(e);
      if (!roles.contains(devices_[e].role))
        throw Refuted(fmt::format("{}: no task takes part in '{}'", machine_.endpoint_name(e), of.name));
    }
  for (const std::uint32_t role : roles)
    for (const EndpointId e : followed_[role])
      if (!members.contains(e))
        throw Refuted(fmt::format("{}: '{}' has no message for it", machine_.endpoint_name(e), of.name));
}

void PartsProver::check_rounds(CommId comm, const CommMeaning::Result& result, Kind kind,
                               const std::vector<EndpointId>& group) const {
  const Communication& of = plan_.communications[comm];
  const Box all = whole(result);
  std::vector<Box> from, to;
  for (const EndpointId e : group) {
    from.push_back(in_layout(result.from, e, all));
    to.push_back(in_layout(result.to, e, all));
  }
  const double value_bytes = tensor_bytes_.of_value(static_cast<LayerIndex>(result.layer));
  const std::string error = direct_error(of, from, to, value_bytes, group);
  if (error.empty()) return;
  const auto all_same = [](const std::vector<Box>& boxes) {
    return std::all_of(boxes.begin(), boxes.end(), [&](const Box& box) { return box == boxes.front(); });
  };
  // Around a ring, or otherwise through others: all have the sum, each has its share of it, or all have all shares.
  const bool adds = kind == Kind::parts;
  if (!all_same(adds ? from : to)) throw Refuted(error);
  const double volume = (adds ? from : to).front().volume();
  if (std::abs(of.bytes - volume * value_bytes) > 1e-9 * (1 + of.bytes))
    throw Refuted(
        fmt::format("'{}' carries {} bytes, and its tensor has {}", of.name, of.bytes, volume * value_bytes));
  if (adds && all_same(to)) {
    rounds_.check_shares(comm, Kind::sum, {});
    return;
  }
  std::vector<double> shares;
  for (const Box& box : adds ? to : from) shares.push_back(box.volume() / volume);
  rounds_.check_shares(comm, adds ? Kind::scatter : Kind::gather_parameters, shares);
}

std::string PartsProver::direct_error(const Communication& of, const std::vector<Box>& from,
                                      const std::vector<Box>& to, double value_bytes,
                                      const std::vector<EndpointId>& group) const {
  const std::vector<Round>& rounds = plan_.patterns[of.pattern].rounds;
  if (rounds.size() != 1 || rounds.front().repeat != 1)
    return fmt::format("'{}' has several rounds, and what it brings is not the same for all", of.name);
  const auto bytes = [&](std::size_t i, std::size_t j) {
    return intersection(from[i], to[j]).volume() * value_bytes;
  };
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  std::string error;
  rounds.front().for_each_message([&](std::uint32_t i, std::uint32_t j, double fraction) {
    const double wanted = bytes(i, j), sent = fraction * of.bytes;
    if (!known.insert({i, j}).second)
      error = fmt::format("{} sends {} '{}' twice", machine_.endpoint_name(group[i]),
                          machine_.endpoint_name(group[j]), of.name);
    else if (std::abs(sent - wanted) > 1e-9 * (1 + wanted))
      error = fmt::format("{} sends {} {} bytes of '{}', and what it has for it are {}",
                          machine_.endpoint_name(group[i]), machine_.endpoint_name(group[j]), sent, of.name,
                          wanted);
  });
  for (std::uint32_t i = 0; i < group.size() && error.empty(); ++i)
    for (std::uint32_t j = 0; j < group.size(); ++j)
      if (i != j && !known.contains({i, j}) && bytes(i, j) > 0)
        error = fmt::format("{} sends {} nothing of '{}', and what it has for it are {} bytes",
                            machine_.endpoint_name(group[i]), machine_.endpoint_name(group[j]), of.name,
                            bytes(i, j));
  return error;
}

std::vector<Value> PartsProver::held(const Device& device, TaskId t, const CommMeaning& carries,
                                     const CommMeaning::Result& result, const Box& box) const {
  if (box.empty()) return {};
  OpMeaning reader;
  reader.operation = result.operation, reader.micro_batch = carries.micro_batch;
  std::vector<Value> values;
  if (phase_of(result) == Phase::forward) {
    if (carries.kind == Kind::results) {
      if (!read_output(device, t, reader, result.operation, static_cast<LayerIndex>(result.layer), {box}))
        throw Refuted(fmt::format("{}: what it sends of {} is no view of {}", at(device, t),
                                  graph_.model.layers[result.layer].name,
                                  graph_.operations[result.operation].name));
      return {{result.operation, box, {}, t, carries.micro_batch, 0, pass_of(device, t, reader)}};
    }
    if (const auto own = device.outputs.find({carries.micro_batch, result.layer});
        own != device.outputs.end())
      for (const Value& value : own->second)
        if (!value.terms.empty() && is_before(device, value.task, t) && is_kept(device, t, reader, value))
          values.push_back(value);
  } else {
    find_gradients(device, device.gradients, t, carries.micro_batch, result.layer, values);
  }
  std::erase_if(values, [&](const Value& value) { return value.maker != result.operation; });
  values = newest(std::move(values), box);
  if (values.empty() && (phase_of(result) == Phase::forward || !terms_of(result.layer, box).empty()))
    throw Refuted(fmt::format("{}: does not wait for what {} makes of {}", at(device, t),
                              graph_.operations[result.operation].name, of_layer(result.layer, box)));
  return values;
}

bool PartsProver::is_halo(const CommMeaning::Result& result, const std::vector<EndpointId>& group) const {
  if (result.to == no_meaning || !meaning_.layouts[result.to].front().rows) return false;
  const Box all = whole(result);
  return std::all_of(group.begin(), group.end(), [&](EndpointId e) {
    const Box own = in_layout(result.from, e, all);
    return own.empty() || intersection(own, in_layout(result.to, e, all)) == own;
  });
}

std::vector<Value> PartsProver::newest(std::vector<Value> values, const Box& box) {
  std::sort(values.begin(), values.end(), [](const Value& a, const Value& b) { return a.number > b.number; });
  std::vector<Value> found;
  std::vector<Box> left{box};
  for (const Value& value : values) {
    for (const Box& part : left)
      if (overlap(part, value.box)) {
        found.push_back(value);
        found.back().box = intersection(part, value.box);
      }
    subtract(left, value.box);
  }
  return found;
}

std::optional<std::uint32_t> PartsProver::pass_of(const Device& device, TaskId t,
                                                  const OpMeaning& reader) const {
  const Value* newest = nullptr;
  if (const auto own = device.outputs.find({reader.micro_batch, graph_.operations[reader.operation].layer});
      own != device.outputs.end())
    for (const Value& value : own->second)
      if (value.maker == reader.operation && is_before(device, value.task, t) &&
          is_kept(device, t, reader, value) && (!newest || value.number > newest->number))
        newest = &value;
  return newest ? newest->pass : std::nullopt;
}

std::vector<Value> PartsProver::merged(const Device& device, TaskId t, const CommMeaning& carries,
                                       const CommMeaning::Result& result, const std::vector<Value>& values,
                                       const Box& box) const {
  const bool adds = carries.kind == Kind::parts;
  std::map<Term, std::vector<Box>> by_term;  // the elements that have it
  std::vector<Box> left{box};
  std::vector<Value> apart;
  std::optional<std::uint32_t> pass;
  for (const Value& value : values) {
    if (!overlap(value.box, box)) continue;
    pass = value.pass;
    std::vector<Box> brought;
    if (adds) {
      brought = {intersection(value.box, box)};
    } else {  // what several members have is taken from one of them
      for (const Box& part : left)
        if (overlap(part, value.box)) brought.push_back(intersection(part, value.box));
    }
    subtract(left, value.box);
    for (const Box& part : brought) {
      apart.push_back(value);
      apart.back().box = part;
      for (const Term& term : value.terms) {
        std::vector<Box>& all = by_term[term];
        if (adds && std::any_of(all.begin(), all.end(), [&](const Box& b) { return overlap(b, part); }) &&
            overlap(part, elements_of(term, result)))
          throw Refuted(fmt::format("{}: what {} makes of {} is added twice", at(device, t),
                                    graph_.operations[term.operation].name, of_layer(result.layer, part)));
        all.push_back(part);
      }
    }
  }
  Value sum{result.operation, box, {}, t, carries.micro_batch, 0, pass};
  for (const auto& [term, boxes] : by_term) {
    const Box elements = intersection(elements_of(term, result), box);
    if (elements.empty()) continue;
    std::vector<Box> missing{elements};
    for (const Box& has : boxes) subtract(missing, has);
    std::erase_if(missing, [](const Box& b) { return b.empty(); });
    if (!missing.empty() && !adds) return apart;
    if (!missing.empty())
      throw Refuted(fmt::format("{}: what {} makes of {} has not come", at(device, t),
                                graph_.operations[term.operation].name,
                                of_layer(result.layer, missing.front())));
    sum.terms.push_back(term);
  }
  if (phase_of(result) != Phase::forward) return {sum};
  if (!left.empty() || (adds && sum.terms.empty())) return apart;
  Box work = box;
  work[Box::inputs] = maps_.work(result.layer)[Box::inputs];
  if (adds && !cover_error(sum.terms, {result.operation, 0}, work)) sum.terms.clear();
  return {sum};
}

Box PartsProver::elements_of(const Term& term, const CommMeaning::Result& result) const {
  const auto [it, fresh] = elements_.try_emplace({term, result.layer});
  if (!fresh) return it->second;
  Box elements = term.work;
  elements[Box::inputs] = all_of(1);
  if (phase_of(result) == Phase::data_gradient) elements = elements_of(term, result.layer);
  return it->second = std::move(elements);
}

}  // namespace parts
}  // namespace convoy::prove
