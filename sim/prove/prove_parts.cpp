// SPDX-License-Identifier: MIT
#include "sim/prove/prove_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sim/prove/parts_prover.h"
#include "sim/prove/prove_gradients.h"

namespace convoy::inline prove {
namespace parts {

PartsProver::PartsProver(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                         const HappensBefore& order, RoundRules& rounds)
    : plan_(plan),
      meaning_(*plan.meaning),
      graph_(graph),
      tensor_bytes_(graph),
      machine_(machine),
      order_(order),
      is_hybrid_(!is_placed(*plan.meaning)),
      maps_(graph, images_of_micro_batch()),
      made_bytes_(graph.operations.size(), 0),
      readers_(graph.model.layers.size()),
      data_gradient_(graph.model.layers.size()),
      loss_gradient_(graph.model.layers.size()),
      weight_gradient_(graph.model.layers.size()),
      is_in_place_(graph.model.layers.size(), false),
      runs_again_(graph.model.layers.size(), false),
      has_(graph),
      reads_images_(graph.operations.size(), false),
      buffers_of_(graph.operations.size()),
      devices_(machine.endpoint_count()),
      users_(plan.communications.size()),
      carried_(plan.communications.size()),
      rounds_(rounds),
      brought_(plan.communications.size()) {
  if (plan.endless()) throw NotCovered("parts of layers in a pipeline that is never flushed");
  read_graph();
  for (const OpMeaning& means : meaning_.operations)
    adds_all_ = adds_all_ || (means.act == Act::add && means.operation == no_meaning);
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r)
    for (const EndpointId e : plan.roles[r].members) devices_[e].role = r, devices_[e].endpoint = e;
  find_lanes();
  for (std::uint32_t r = 0; r < plan.roles.size(); ++r) {
    std::map<std::uint32_t, std::uint32_t>& ends = pass_ends_.emplace_back();
    const std::vector<std::uint32_t>& begins = order.of(r).begins;
    std::set<std::uint32_t> of_graph;  // where operations of the graph begin
    for (TaskId t = 0; t < plan.roles[r].program.size(); ++t) {
      const Task& task = plan.roles[r].program[t];
      if (task.kind != Task::Kind::compute) users_[task.comm].emplace_back(r, task.kind);
      if (task.kind == Task::Kind::send) find_sent_parts(plan.roles[r], task.comm);
      if (task.kind == Task::Kind::collective) task_of_[{r, task.comm}] = t;
      for (const PlanOp& op : task.ops) {
        find_update(r, t, op);
        const OpMeaning* means = meaning_in_graph(meaning_, op);
        if (!means) continue;
        of_graph.insert(begins[t]);
        if (means->is_dropped) ends[means->pass] = begins[t];
      }
    }
    // Buffers may be taken before the next operation of the graph, with which another pass begins.
    for (auto& [pass, end] : ends) {
      const auto next = of_graph.upper_bound(end);
      end = next != of_graph.end() ? *next : std::numeric_limits<std::uint32_t>::max();
    }
  }
}

void PartsProver::prove() {
  order_.for_each(machine_, [&](std::uint32_t r, TaskId t) { visit(r, t); });
  check_updates();
  check_memory();
}

std::int64_t PartsProver::images_of_micro_batch() {
  double images = 0;
  if (!meaning_.lanes.empty())
    lane_count_ = 1 + *std::max_element(meaning_.lanes.begin(), meaning_.lanes.end());
  for (const OpMeaning& means : meaning_.operations) {
    const bool of_graph = means.operation != no_meaning;
    if (means.act != Act::add && (means.act != Act::compute || !of_graph)) continue;
    if (of_graph && graph_.operations[means.operation].phase == Phase::update) continue;
    if (images != 0 && means.images.count != images)
      throw NotCovered("micro-batches of different sizes, in parts");
    images = means.images.count;
    if (means.images.first != static_cast<double>(means.micro_batch) * lane_count_ * images)
      throw Refuted(fmt::format("{} works on images from {} on, and its micro-batch {} begins elsewhere",
                                of_graph ? graph_.operations[means.operation].name : "a sum of gradients",
                                means.images.first, means.micro_batch));
    micro_batches_ = std::max(micro_batches_, means.micro_batch + 1);
  }
  if (images < 1 || images != std::floor(images)) throw NotCovered("parts of an image");
  if (std::abs(images * static_cast<double>(micro_batches_) * lane_count_ - plan_.images) >
      1e-9 * plan_.images)
    throw Refuted(fmt::format(
        "{} micro-batches of {} images are worked on{}, and the batch has {}", micro_batches_, images,
        lane_count_ > 1 ? fmt::format(" by each of {} replicas", lane_count_) : "", plan_.images));
  return static_cast<std::int64_t>(images);
}

void PartsProver::read_graph() {
  for (std::uint32_t i = 0; i < graph_.model.layers.size(); ++i) {
    const std::vector<LayerIndex>& inputs = graph_.model.layers[i].inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (inputs[k] != image_input) readers_[static_cast<std::size_t>(inputs[k])].emplace_back(i, k);
  }
  for (OpId id = 0; id < graph_.operations.size(); ++id) {
    const Operation& op = graph_.operations[id];
    if (op.phase == Phase::weight_gradient) weight_gradient_[op.layer] = id;
    if (op.phase == Phase::forward && op.part == OperationPart::layer) is_in_place_[op.layer] = true;
    if (op.again) runs_again_[op.layer] = true;
    if (op.phase != Phase::data_gradient) continue;
    if (op.part == OperationPart::layer) data_gradient_[op.layer] = id;
    if (op.part == OperationPart::loss) loss_gradient_[op.layer] = id;
  }
  for (const Buffer& buffer : graph_.buffers)
    if (buffer.role == BufferRole::output)
      is_in_place_[buffer.layer] = false;
    else if (buffer.role == BufferRole::image)
      for (const OpId op : buffer.uses) reads_images_[op] = true;
  // As much as an operation makes: its output, gradients, masks, indices.
  for (std::uint32_t b = 0; b < graph_.buffers.size(); ++b)
    if (const BufferRole role = graph_.buffers[b].role;
        role != BufferRole::parameter_gradient && graph_.buffers[b].memory_class == MemoryClass::activations)
      for (const OpId op : graph_.buffers[b].uses) buffers_of_[op].push_back(b);
  const double element = element_bytes(graph_.options.precision);
  const auto images = static_cast<double>(maps_.images());
  std::vector<double> buffers(made_bytes_.size(), 0);
  for (const Buffer& buffer : graph_.buffers)
    if (buffer.role != BufferRole::image && buffer.memory_class == MemoryClass::activations)
      buffers[buffer.born] += buffer.bytes_per_image * images + static_cast<double>(buffer.bytes_fixed);
  for (OpId id = 0; id < made_bytes_.size(); ++id) {
    const Operation& op = graph_.operations[id];
    const double tensor = images * tensor_bytes_(static_cast<LayerIndex>(op.layer));
    double& bytes = made_bytes_[id];
    if (op.phase == Phase::forward && op.part == OperationPart::layer) bytes = tensor;
    for (const Parameter& parameter : graph_.parameters)
      if (parameter.gradient == id) bytes += element * static_cast<double>(parameter.elements);
    bytes = std::max(bytes, buffers[id]);
    if (bytes == 0 && op.phase == Phase::data_gradient) bytes = tensor;
  }
}

const std::map<Maker, Box>& PartsProver::terms_of(std::uint32_t layer, const Box& elements) const {
  if (const auto known = terms_.find({layer, elements}); known != terms_.end()) return known->second;
  std::map<Maker, Box> terms;
  if (!elements.empty() && loss_gradient_[layer]) terms[{*loss_gradient_[layer], 0}] = elements;
  for (const Slot& reader : readers_[layer]) {
    if (elements.empty()) break;
    const auto& [read_by, k] = reader;
    const Box read = maps_.readers(read_by, k, elements);
    if (read.empty()) continue;
    if (data_gradient_[read_by])
      terms[{*data_gradient_[read_by], ways_.longer(0, reader)}] = read;
    else
      for (const auto& [maker, work] : terms_of(read_by, read))
        terms[{maker.first, ways_.longer(maker.second, reader)}] = work;
  }
  return terms_.try_emplace({layer, elements}, std::move(terms)).first->second;
}

std::string PartsProver::at(const Device& device, TaskId t) const {
  return fmt::format("{}, task '{}'", machine_.endpoint_name(device.endpoint),
                     plan_.roles[device.role].program[t].name);
}

std::string PartsProver::of_layer(std::uint32_t layer, const Box& box) const {
  const std::string part = text_of(box, maps_.tensor(layer));
  return graph_.model.layers[layer].name + (part.empty() ? "" : " (" + part + ")");
}

Box PartsProver::in_layout(std::uint32_t layout, EndpointId e, const Box& whole) const {
  if (layout == no_meaning) return whole;
  const PartLayout& of = meaning_.layouts.at(layout);
  return in_region(of.size() == 1 ? of.front() : of.at(meaning_.positions[e]), whole);
}

void PartsProver::visit(std::uint32_t r, TaskId t) {
  const Task& task = plan_.roles[r].program[t];
  if (task.kind == Task::Kind::compute) {
    for (const EndpointId e : followed_[r])
      for (const PlanOp& op : task.ops) compute(devices_[e], t, op);
    return;
  }
  const Communication& comm = plan_.communications[task.comm];
  if (comm.meaning == no_meaning) throw NotCovered(fmt::format("what '{}' carries is not said", comm.name));
  const CommMeaning& carries = meaning_.communications[comm.meaning];
  const bool of_results = carries.kind == Kind::results || carries.kind == Kind::parts;
  if (task.kind == Task::Kind::collective && is_hybrid_ && of_results) {
    exchange(r, t, carries);
    return;
  }
  if (task.kind == Task::Kind::collective && has_replicas(meaning_)) {
    const bool takes_gradients =
        carries.kind == Kind::sum || carries.kind == Kind::scatter || carries.kind == Kind::gather_gradients;
    if (takes_gradients) check_bucket_is_complete(r, t, carries.bucket);
    return;  // all else of sums: prove_gradients
  }
  if (task.kind == Task::Kind::collective || !of_results)
    throw NotCovered(fmt::format("'{}' is a collective among devices with parts of layers", comm.name));
  if (task.kind == Task::Kind::send) {
    if (!carried_[task.comm]) check_message(task.comm, carries);
    for (const EndpointId e : followed_[r]) send(devices_[e], t, task.comm, carries);
  } else {
    for (const EndpointId e : followed_[r]) receive(devices_[e], t, task.comm, carries);
  }
}

void PartsProver::find_update(std::uint32_t r, TaskId t, const PlanOp& op) {
  const OpMeaning* means = meaning_in_graph(meaning_, op);
  if (!means) return;
  const Operation& operation = graph_.operations[means->operation];
  if (operation.phase != Phase::update) return;
  for (const EndpointId e : followed_[r]) {
    const Box whole = maps_.work(operation.layer), box = in_layout(means->layout, e, whole);
    if (!devices_[e].updates.try_emplace(operation.layer, t, box).second)
      throw Refuted(fmt::format("{}: {} is updated twice", at(devices_[e], t),
                                graph_.model.layers[operation.layer].name));
  }
}

void PartsProver::compute(Device& device, TaskId t, const PlanOp& op) {
  if (op.meaning == no_meaning) {
    if (op.operation != PlanOp::of_plan)
      throw NotCovered(fmt::format("what '{}' reads is not said", op.name));
    return;
  }
  const OpMeaning& means = meaning_.operations[op.meaning];
  if (means.act == Act::add && is_of_parameters(means.operation)) {
    take_in_gradients(device, t, means);
    return;
  }
  if (means.act == Act::add) {
    const Box box = in_layout(means.layout, device.endpoint, maps_.tensor(means.layer));
    if (const auto images = static_cast<double>(count(box[Box::images])); op.images != images)
      throw Refuted(fmt::format("{}: {} adds up gradients of {} images, and its part has {}", at(device, t),
                                op.name, op.images, images));
    add_parts(device, t, means);
    return;
  }
  if (means.act == Act::fill || means.act == Act::compress) check_bucket_is_complete(device, t, means.bucket);
  if (means.act != Act::compute || means.operation == no_meaning) return;
  const Operation& operation = graph_.operations[means.operation];
  const Box whole = maps_.work(operation.layer);
  const Box work = in_layout(means.layout, device.endpoint, whole);
  check_work(device, t, op, operation, work.volume() / whole.volume());
  if (work.empty()) return;
  if (operation.phase == Phase::update) {
    if (!has_replicas(meaning_)) check_gradient(device, operation.layer, t, work);
    device.updated.insert(operation.layer);
    return;
  }
  check_once(device, t, op, means, work);
  read_all(device, t, means, operation, work);
  write(device, t, means, operation, work);
}

void PartsProver::check_once(Device& device, TaskId t, const PlanOp& op, const OpMeaning& means,
                             const Box& work) {
  std::vector<Box>& done = device.done[{means.micro_batch, means.operation}];
  for (const Box& other : done)
    if (overlap(other, work)) throw Refuted(fmt::format("{}: {} runs a second time", at(device, t), op.name));
  if (!means.is_dropped) done.push_back(work);
}

void PartsProver::check_work(const Device& device, TaskId t, const PlanOp& op, const Operation& operation,
                             double share) const {
  if (is_hybrid_ || (has_replicas(meaning_) && operation.phase == Phase::update)) {
    check_share(device, t, op, operation, share);
    return;
  }
  const Work& whole = operation.work;
  const double images = operation.phase == Phase::update ? 1 : static_cast<double>(maps_.images());
  const double wanted = share * (whole.flops_per_image * images + whole.flops_fixed);
  const double does = op.work.flops_per_image * op.images + op.work.flops_fixed;
  const bool alike = share == 0 || (op.work.kind == whole.kind && op.work.phase == whole.phase);
  const bool other = share == 1 && op.work != whole;
  if ((op.operation != PlanOp::of_plan && &graph_.operations[op.operation] != &operation) || !alike ||
      other || std::abs(op.images - images) > 1e-9 * images || std::abs(does - wanted) > 1e-9 * (1 + wanted))
    throw Refuted(
        fmt::format("{}: {} does other work than this part of {}", at(device, t), op.name, operation.name));
}

}  // namespace parts

bool is_placed(const Meaning& meaning) { return !meaning.has_images.empty(); }

bool has_replicas(const Meaning& meaning) {
  return !meaning.positions.empty() &&
         (!is_placed(meaning) || std::any_of(meaning.lanes.begin(), meaning.lanes.end(),
                                             [](std::uint32_t lane) { return lane > 0; }));
}

void prove_parts(const Plan& plan, const StrategyReport& report, const TrainingGraph& graph,
                 const Machine& machine, const HappensBefore& order) {
  RoundRules rounds(plan, machine);
  parts::PartsProver parts(plan, graph, machine, order, rounds);
  parts.prove();
  if (has_replicas(*plan.meaning)) prove_gradients(plan, report, graph, machine, order, rounds, &parts);
}

}  // namespace convoy::prove
