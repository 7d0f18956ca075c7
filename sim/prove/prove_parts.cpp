// SPDX-License-Identifier: MIT
#include "sim/prove/prove_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/prove/layer_maps.h"

namespace convoy::inline prove {
namespace {

using Act = OpMeaning::Act;
using Kind = CommMeaning::Kind;

/// A part of an operation of the graph: the terms that it adds to a sum.
struct Term {
  OpId operation;
  Box work;
  auto operator<=>(const Term&) const = default;
};
using Terms = std::vector<Term>;  ///< ascending, each once

/// Elements of a tensor on a device. Each is the sum of those terms that make something for it.
struct Value {
  OpId maker;
  Box box;
  Terms terms;
  TaskId task;
  std::int64_t micro_batch = 0;
};

/// What is on a device.
struct Device {
  std::uint32_t role = 0;
  EndpointId endpoint = 0;
  using Outputs = std::map<std::pair<std::int64_t, std::uint32_t>, std::vector<Value>>;
  Outputs outputs, gradients;  ///< by micro-batch and layer of whose output's shape they are
  Outputs parts;               ///< of gradients that have come and are not added up
  std::map<std::pair<std::int64_t, std::uint32_t>, std::vector<Box>>
      sent_parts;                                                               ///< of gradients, at any time
  std::map<std::uint32_t, std::vector<Value>> parameter_gradients, parameters;  ///< by layer
  std::vector<Value> images;
  std::map<std::uint32_t, std::pair<TaskId, Box>> updates;  ///< by layer
  std::set<std::uint32_t> updated;                          ///< layers, by what has been visited
  std::set<std::pair<std::int64_t, Term>> done;
};

class PartsProver {
 public:
  PartsProver(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
              const HappensBefore& order)
      : plan_(plan),
        meaning_(*plan.meaning),
        graph_(graph),
        machine_(machine),
        order_(order),
        maps_(graph, images_of_micro_batch()),
        made_bytes_(graph.operations.size(), 0),
        readers_(graph.model.layers.size()),
        data_gradient_(graph.model.layers.size()),
        loss_gradient_(graph.model.layers.size()),
        weight_gradient_(graph.model.layers.size()),
        devices_(machine.endpoint_count()),
        users_(plan.communications.size()),
        carried_(plan.communications.size()) {
    if (plan.endless()) throw NotCovered("parts of layers in a pipeline that is never flushed");
    read_graph();
    for (std::uint32_t r = 0; r < plan.roles.size(); ++r) {
      for (const EndpointId e : plan.roles[r].members) devices_[e].role = r, devices_[e].endpoint = e;
      for (TaskId t = 0; t < plan.roles[r].program.size(); ++t) {
        const Task& task = plan.roles[r].program[t];
        if (task.kind != Task::Kind::compute) users_[task.comm].emplace_back(r, task.kind);
        if (task.kind == Task::Kind::send) find_sent_parts(plan.roles[r], task.comm);
        for (const PlanOp& op : task.ops) find_update(r, t, op);
      }
    }
  }

  void prove() {
    order_.for_each(machine_, [&](std::uint32_t r, TaskId t) { visit(r, t); });
    check_updates();
  }

 private:
  using Slot = std::pair<std::uint32_t, std::size_t>;  ///< a layer, and which of its inputs

  // What the graph says.

  /// All micro-batches have equally many.
  std::int64_t images_of_micro_batch() {
    double images = 0;
    for (const OpMeaning& means : meaning_.operations) {
      if (means.act == Act::compute && means.operation != no_meaning) {
        if (graph_.operations[means.operation].phase == Phase::update) continue;
        if (images != 0 && means.images.count != images)
          throw NotCovered("micro-batches of different sizes, in parts");
        images = means.images.count;
        if (means.images.first != static_cast<double>(means.micro_batch) * images)
          throw Refuted(fmt::format("{} works on images from {} on, and its micro-batch {} begins elsewhere",
                                    graph_.operations[means.operation].name, means.images.first,
                                    means.micro_batch));
        micro_batches_ = std::max(micro_batches_, means.micro_batch + 1);
      }
    }
    if (images < 1 || images != std::floor(images)) throw NotCovered("parts of an image");
    if (std::abs(images * static_cast<double>(micro_batches_) - plan_.images) > 1e-9 * plan_.images)
      throw Refuted(fmt::format("{} micro-batches of {} images are worked on, and the batch has {}",
                                micro_batches_, images, plan_.images));
    return static_cast<std::int64_t>(images);
  }

  void read_graph() {
    for (std::uint32_t i = 0; i < graph_.model.layers.size(); ++i) {
      const std::vector<LayerIndex>& inputs = graph_.model.layers[i].inputs;
      for (std::size_t k = 0; k < inputs.size(); ++k)
        if (inputs[k] != image_input) readers_[static_cast<std::size_t>(inputs[k])].emplace_back(i, k);
    }
    for (OpId id = 0; id < graph_.operations.size(); ++id) {
      const Operation& op = graph_.operations[id];
      if (op.phase == Phase::weight_gradient) weight_gradient_[op.layer] = id;
      if (op.phase != Phase::data_gradient) continue;
      if (op.part == OperationPart::layer) data_gradient_[op.layer] = id;
      if (op.part == OperationPart::loss) loss_gradient_[op.layer] = id;
    }
    // As much as an operation makes: its output, gradients, masks, indices.
    const double element = element_bytes(graph_.options.precision);
    const auto images = static_cast<double>(maps_.images());
    std::vector<double> buffers(made_bytes_.size(), 0);
    for (const Buffer& buffer : graph_.buffers)
      if (buffer.role != BufferRole::image && buffer.memory_class == MemoryClass::activations)
        buffers[buffer.born] += buffer.bytes_per_image * images + static_cast<double>(buffer.bytes_fixed);
    for (OpId id = 0; id < made_bytes_.size(); ++id) {
      const Operation& op = graph_.operations[id];
      const double tensor =
          element * images * static_cast<double>(elements(graph_.model.layers[op.layer].output));
      double& bytes = made_bytes_[id];
      if (op.phase == Phase::forward && op.part == OperationPart::layer) bytes = tensor;
      for (const Parameter& parameter : graph_.parameters)
        if (parameter.gradient == id) bytes += element * static_cast<double>(parameter.elements);
      bytes = std::max(bytes, buffers[id]);
      if (bytes == 0 && op.phase == Phase::data_gradient) bytes = tensor;
    }
  }

  /// The terms that the gradient of some elements of a layer's output is the sum of.
  void add_terms(std::uint32_t layer, const Box& elements, std::map<OpId, Box>& terms) const {
    if (elements.empty()) return;
    if (loss_gradient_[layer]) add_term(*loss_gradient_[layer], elements, terms);
    for (const auto& [reader, k] : readers_[layer]) {
      const Box read = maps_.readers(reader, k, elements);
      if (read.empty()) continue;
      if (data_gradient_[reader])
        add_term(*data_gradient_[reader], read, terms);
      else
        add_terms(reader, read, terms);
    }
  }
  void add_term(OpId op, const Box& work, std::map<OpId, Box>& terms) const {
    if (!terms.try_emplace(op, work).second)
      throw NotCovered(fmt::format("{} reads a tensor in two ways", graph_.operations[op].name));
  }

  // Text.

  std::string at(const Device& device, TaskId t) const {
    return fmt::format("{}, task '{}'", machine_.endpoint_name(device.endpoint),
                       plan_.roles[device.role].program[t].name);
  }
  std::string of_layer(std::uint32_t layer, const Box& box) const {
    const std::string part = text_of(box, maps_.tensor(layer));
    return graph_.model.layers[layer].name + (part.empty() ? "" : " (" + part + ")");
  }

  // Order.

  bool is_before(const Device& device, TaskId made, TaskId t) const {
    const std::vector<Task>& program = plan_.roles[device.role].program;
    const RoleOrder& order = order_.of(device.role);
    const bool computed = program[made].kind == Task::Kind::compute;
    if (program[t].kind == Task::Kind::compute)
      return computed ? order.begins[made] <= order.begins[t] : order.ends[made] <= order.begins[t];
    return computed ? order.begins[made] < order.begins[t] : order.ends[made] < order.begins[t];
  }

  // What is there.

  /// Takes away of `wanted` what is there and complete of a layer's output.
  void find_output(const Device& device, TaskId t, std::int64_t micro_batch, OpId maker, std::uint32_t layer,
                   std::vector<Box>& wanted) const {
    const auto found = device.outputs.find({micro_batch, layer});
    if (found == device.outputs.end()) return;
    for (const Value& value : found->second)
      if (value.maker == maker && is_before(device, value.task, t)) subtract(wanted, value.box);
  }

  /// @throws Refuted unless what `maker` makes of these elements of a tensor is there; the tensor may be a
  /// view of it
  /// @return whether the tensor is of `maker`
  bool read_output(const Device& device, TaskId t, const OpMeaning& reader, OpId maker, LayerIndex tensor,
                   std::vector<Box> wanted) const {
    if (tensor == image_input) return false;
    const auto layer = static_cast<std::uint32_t>(tensor);
    const Operation& made = graph_.operations[maker];
    const bool is_view = made.layer != layer;
    if (is_view && !is_view_of(layer, made.layer)) return false;
    std::erase_if(wanted, [](const Box& box) { return box.empty(); });
    find_output(device, t, reader.micro_batch, maker, layer, wanted);
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
  bool is_view_of(std::uint32_t layer, std::uint32_t of) const {
    if (layer == of) return true;
    for (const Operation& op : graph_.operations)
      if (op.layer == layer && op.phase == Phase::forward && op.part == OperationPart::layer) return false;
    return std::any_of(graph_.model.layers[layer].inputs.begin(), graph_.model.layers[layer].inputs.end(),
                       [&](LayerIndex input) {
                         return input != image_input && is_view_of(static_cast<std::uint32_t>(input), of);
                       });
  }

  void read_images(const Device& device, TaskId t, const OpMeaning& reader, std::vector<Box> wanted) const {
    if (has_images(device)) return;
    for (const Value& value : device.images)
      if (value.micro_batch == reader.micro_batch && is_before(device, value.task, t))
        subtract(wanted, value.box);
    std::erase_if(wanted, [](const Box& box) { return box.empty(); });
    if (!wanted.empty())
      throw Refuted(fmt::format("{}: {} needs images, and they are not there", at(device, t),
                                graph_.operations[reader.operation].name));
  }

  /// Gradients of a layer's output, also those that a layer which reads it hands on.
  /// @param complete what is handed on is only what is added up already
  void find_gradients(const Device& device, const Device::Outputs& among, TaskId t, std::int64_t micro_batch,
                      std::uint32_t layer, std::vector<Value>& found, bool complete = false) const {
    if (const auto own = among.find({micro_batch, layer}); own != among.end())
      for (const Value& value : own->second)
        if (is_before(device, value.task, t)) found.push_back(value);
    find_handed_on(device, among, t, micro_batch, layer, found, complete);
  }
  void find_handed_on(const Device& device, const Device::Outputs& among, TaskId t, std::int64_t micro_batch,
                      std::uint32_t layer, std::vector<Value>& found, bool complete) const {
    for (const auto& [reader, k] : readers_[layer]) {
      if (data_gradient_[reader]) continue;
      std::vector<Value> of_reader;
      find_gradients(device, among, t, micro_batch, reader, of_reader, complete);
      if (complete) of_reader = complete_gradients(device, micro_batch, reader, of_reader);
      for (Value& value : of_reader) {
        value.box = maps_.handed_on(reader, k, value.box);
        if (!value.box.empty()) found.push_back(std::move(value));
      }
    }
  }

  /// What has all terms that the graph has for it, each element once, without what the device sends to another
  /// one that adds it up.
  std::vector<Value> complete_gradients(const Device& device, std::int64_t micro_batch, std::uint32_t layer,
                                        const std::vector<Value>& values) const {
    std::vector<Value> complete;
    std::vector<Box> left{maps_.tensor(layer)};
    if (const auto sent = device.sent_parts.find({micro_batch, layer}); sent != device.sent_parts.end())
      for (const Box& box : sent->second) subtract(left, box);
    const auto keep = [&](const Value& value, const Box& box) {
      if (box.empty() || !is_complete(layer, box, value.terms)) return false;
      std::vector<Box> fresh;
      for (const Box& other : left)
        if (overlap(other, box)) fresh.push_back(intersection(other, box));
      subtract(left, box);
      for (const Box& part : fresh) {
        complete.push_back(value);
        complete.back().box = part;
      }
      return true;
    };
    for (const Value& value : values) {
      if (keep(value, value.box)) continue;
      for (const IndexRange& range : value.box[Box::channels])
        for (std::int64_t c = range.begin; c < range.end; ++c) {
          Box channel = value.box;
          channel[Box::channels] = {{c, c + 1}};
          keep(value, channel);
        }
    }
    return complete;
  }
  bool is_complete(std::uint32_t layer, const Box& box, const Terms& terms) const {
    std::map<OpId, Box> all;
    add_terms(layer, box, all);
    return std::none_of(all.begin(), all.end(),
                        [&](const auto& term) { return cover_error(terms, term.first, term.second); });
  }

  bool is_sum(OpId op) const {
    return op == no_meaning || graph_.operations[op].part == OperationPart::gradient_sum;
  }

  static void keep_only(OpId op, std::vector<Value>& values) {
    if (op == no_meaning) return;
    std::erase_if(values, [&](const Value& value) {
      return std::any_of(value.terms.begin(), value.terms.end(),
                         [&](const Term& term) { return term.operation != op; });
    });
  }

  /// Those of `wanted` of which most is added up, in parts without elements in common.
  /// @param only of terms of this operation, if any is given; a sum: of all, and what is handed on is complete
  std::vector<Value> best_gradients(const Device& device, TaskId t, std::int64_t micro_batch,
                                    std::uint32_t layer, std::vector<Box> wanted,
                                    OpId only = no_meaning) const {
    std::vector<Value> found, best;
    const bool of_sum = only != no_meaning && is_sum(only);
    find_gradients(device, device.gradients, t, micro_batch, layer, found, of_sum);
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

  /// Whether the parts of an operation cover a part of its work, each element once. What lies outside of it
  /// makes nothing for the elements in question.
  static std::optional<std::string> cover_error(const Terms& terms, OpId op, const Box& wanted) {
    std::vector<Box> parts;
    double volume = 0;
    for (const Term& term : terms) {
      if (term.operation != op || !overlap(term.work, wanted)) continue;
      parts.push_back(intersection(term.work, wanted));
      for (std::size_t i = 0; i + 1 < parts.size(); ++i)
        if (overlap(parts[i], parts.back())) return "is added twice";
      volume += parts.back().volume();
    }
    if (volume < wanted.volume() * (1 - 1e-12)) return "is missing";
    return std::nullopt;
  }

  void read_gradient(const Device& device, TaskId t, const OpMeaning& reader, std::uint32_t layer,
                     const Box& wanted) const {
    std::map<OpId, Box> all;
    add_terms(layer, wanted, all);
    if (all.empty()) return;
    const auto refuse = [&](const std::string& what) {
      throw Refuted(fmt::format("{}: {} needs the gradient of {}: {}", at(device, t),
                                graph_.operations[reader.operation].name, of_layer(layer, wanted), what));
    };
    std::vector<Box> missing{wanted};
    for (const Value& value : best_gradients(device, t, reader.micro_batch, layer, {wanted})) {
      subtract(missing, value.box);
      std::map<OpId, Box> terms;
      add_terms(layer, value.box, terms);
      for (const auto& [op, work] : terms)
        if (const std::optional<std::string> error = cover_error(value.terms, op, work))
          refuse(fmt::format("of its sum, what {} makes {}", graph_.operations[op].name, *error));
      for (const Term& term : value.terms)
        if (!all.contains(term.operation))
          refuse(fmt::format("{} is no part of it", graph_.operations[term.operation].name));
    }
    for (const Box& box : missing) {  // what nothing reads has no gradient
      std::map<OpId, Box> terms;
      add_terms(layer, box, terms);
      if (!terms.empty()) refuse(fmt::format("nothing there makes that of {}", of_layer(layer, box)));
    }
  }

  // Visits.

  Box resolved(const Region& region, Box whole) const {
    const auto cut = [&](Box::Axis axis, const IndexRanges& indices) {
      if (indices) whole[axis] = intersection(whole[axis], *indices);
    };
    cut(Box::images, region.images), cut(Box::channels, region.channels), cut(Box::rows, region.rows);
    cut(Box::columns, region.columns), cut(Box::inputs, region.inputs);
    return whole;
  }
  Box in_layout(std::uint32_t layout, EndpointId e, const Box& whole) const {
    if (layout == no_meaning) return whole;
    const PartLayout& of = meaning_.layouts.at(layout);
    return resolved(of.size() == 1 ? of.front() : of.at(meaning_.positions[e]), whole);
  }

  void visit(std::uint32_t r, TaskId t) {
    const Task& task = plan_.roles[r].program[t];
    if (task.kind == Task::Kind::compute) {
      for (const EndpointId e : plan_.roles[r].members)
        for (const PlanOp& op : task.ops) compute(devices_[e], t, op);
      return;
    }
    const Communication& comm = plan_.communications[task.comm];
    if (comm.meaning == no_meaning) throw NotCovered(fmt::format("what '{}' carries is not said", comm.name));
    const CommMeaning& carries = meaning_.communications[comm.meaning];
    if (task.kind == Task::Kind::collective || (carries.kind != Kind::results && carries.kind != Kind::parts))
      throw NotCovered(fmt::format("'{}' is a collective among devices with parts of layers", comm.name));
    if (task.kind == Task::Kind::send) {
      if (!carried_[task.comm]) check_message(task.comm, carries);
      for (const EndpointId e : plan_.roles[r].members) send(devices_[e], t, task.comm, carries);
    } else {
      for (const EndpointId e : plan_.roles[r].members) receive(devices_[e], t, task.comm, carries);
    }
  }

  void find_sent_parts(const Role& role, CommId comm) {
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

  void find_update(std::uint32_t r, TaskId t, const PlanOp& op) {
    const OpMeaning* means = meaning_in_graph(meaning_, op);
    if (!means) return;
    const Operation& operation = graph_.operations[means->operation];
    if (operation.phase != Phase::update) return;
    for (const EndpointId e : plan_.roles[r].members) {
      const Box whole = maps_.work(operation.layer), box = in_layout(means->layout, e, whole);
      if (!devices_[e].updates.try_emplace(operation.layer, t, box).second)
        throw Refuted(fmt::format("{}: {} is updated twice", at(devices_[e], t),
                                  graph_.model.layers[operation.layer].name));
    }
  }

  void compute(Device& device, TaskId t, const PlanOp& op) {
    if (op.meaning == no_meaning) {
      if (op.operation != PlanOp::of_plan)
        throw NotCovered(fmt::format("what '{}' reads is not said", op.name));
      return;
    }
    const OpMeaning& means = meaning_.operations[op.meaning];
    if (means.act == Act::add) {
      add_parts(device, t, means);
      return;
    }
    if (means.act != Act::compute || means.operation == no_meaning) return;
    const Operation& operation = graph_.operations[means.operation];
    const Box whole = maps_.work(operation.layer);
    const Box work = in_layout(means.layout, device.endpoint, whole);
    check_work(device, t, op, operation, work.volume() / whole.volume());
    if (work.empty()) return;
    if (operation.phase == Phase::update) {
      check_gradient(device, operation.layer, t, work);
      device.updated.insert(operation.layer);
      return;
    }
    const Term term{means.operation, work};
    for (const auto& [micro_batch, other] : device.done)
      if (micro_batch == means.micro_batch && other.operation == term.operation && overlap(other.work, work))
        throw Refuted(fmt::format("{}: {} runs a second time", at(device, t), op.name));
    device.done.insert({means.micro_batch, term});
    read_all(device, t, means, operation, work);
    write(device, t, means, operation, work);
  }

  /// The part of the graph's operation that it says.
  void check_work(const Device& device, TaskId t, const PlanOp& op, const Operation& operation,
                  double share) const {
    const Work& whole = operation.work;
    const double images = operation.phase == Phase::update ? 1 : static_cast<double>(maps_.images());
    const double wanted = share * (whole.flops_per_image * images + whole.flops_fixed);
    const double does = op.work.flops_per_image * op.images + op.work.flops_fixed;
    const bool alike = share == 0 || (op.work.kind == whole.kind && op.work.phase == whole.phase);
    const bool other = share == 1 && op.work != whole;
    if ((op.operation != PlanOp::of_plan && &graph_.operations[op.operation] != &operation) || !alike ||
        other || std::abs(op.images - images) > 1e-9 * images ||
        std::abs(does - wanted) > 1e-9 * (1 + wanted))
      throw Refuted(
          fmt::format("{}: {} does other work than this part of {}", at(device, t), op.name, operation.name));
  }

  void read_all(const Device& device, TaskId t, const OpMeaning& means, const Operation& operation,
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
          found = read_output(device, t, means, input, inputs[k], {maps_.read(operation.layer, k, work)}) ||
                  found;
      if (!found) throw NotCovered(fmt::format("what {} reads of {}", operation.name, read.name));
    }
    if (operation.part != OperationPart::layer) return;
    if (operation.phase != Phase::data_gradient)
      for (std::size_t k = 0; k < inputs.size(); ++k)
        if (reads_images(inputs[k])) read_images(device, t, means, {images_read(operation.layer, k, work)});
    if (operation.phase != Phase::forward) read_gradient(device, t, means, operation.layer, own);
    if (operation.phase != Phase::weight_gradient) read_parameters(device, t, means, operation.layer, work);
  }
  bool has_images(const Device& device) const {
    return device.endpoint < meaning_.has_images.size() && meaning_.has_images[device.endpoint];
  }
  /// Images, or a view of them.
  bool reads_images(LayerIndex input) const {
    if (input == image_input) return true;
    const auto layer = static_cast<std::uint32_t>(input);
    const auto is_forward = [&](const Operation& op) {
      return op.layer == layer && op.phase == Phase::forward && op.part == OperationPart::layer;
    };
    return std::none_of(graph_.operations.begin(), graph_.operations.end(), is_forward) &&
           reads_images(graph_.model.layers[layer].inputs.front());
  }
  Box images_read(std::uint32_t layer, std::size_t k, const Box& work) const {
    const Box read = maps_.read(layer, k, work);
    const LayerIndex input = graph_.model.layers[layer].inputs[k];
    return input == image_input ? read : images_read(static_cast<std::uint32_t>(input), 0, read);
  }

  void read_parameters(const Device& device, TaskId t, const OpMeaning& means, std::uint32_t layer,
                       const Box& work) const {
    if (graph_.model.layers[layer].parameters.empty()) return;
    const RoleOrder& order = order_.of(device.role);
    std::vector<Box> wanted{work};
    if (const auto own = device.updates.find(layer); own != device.updates.end()) {
      const auto& [update, box] = own->second;
      subtract(wanted, parameter_part(layer, box));
      const bool computes = plan_.roles[device.role].program[t].kind == Task::Kind::compute;
      if (computes ? device.updated.contains(layer) : order.begins[t] > order.begins[update])
        throw Refuted(fmt::format("{}: {} comes after the update of {}, of whose old version it is",
                                  at(device, t), graph_.operations[means.operation].name,
                                  graph_.model.layers[layer].name));
    }
    if (const auto come = device.parameters.find(layer); come != device.parameters.end())
      for (const Value& value : come->second)
        if (value.micro_batch == means.micro_batch && is_before(device, value.task, t))
          subtract(wanted, parameter_part(layer, value.box));
    if (!wanted.empty())
      throw Refuted(fmt::format("{}: {} needs parameters of {}, and they are not there", at(device, t),
                                graph_.operations[means.operation].name, of_layer(layer, wanted.front())));
  }
  /// All work that has the same parameters.
  Box parameter_part(std::uint32_t layer, const Box& box) const {
    Box part = maps_.work(layer);
    part[Box::channels] = box[Box::channels], part[Box::inputs] = box[Box::inputs];
    return part;
  }

  void write(Device& device, TaskId t, const OpMeaning& means, const Operation& operation, const Box& work) {
    const std::int64_t m = means.micro_batch;
    Value value{means.operation, work, {{means.operation, work}}, t, m};
    value.box[Box::inputs] = all_of(1);
    if (operation.phase == Phase::weight_gradient) {
      device.parameter_gradients[operation.layer].push_back(std::move(value));
    } else if (operation.phase == Phase::forward) {
      if (work[Box::inputs] != maps_.work(operation.layer)[Box::inputs])
        throw NotCovered(fmt::format("partial sums of {}", operation.name));
      device.outputs[{m, operation.layer}].push_back(std::move(value));
    } else if (operation.part == OperationPart::gradient_sum) {
      sum(device, t, means, operation, value.box);
    } else if (operation.part == OperationPart::loss) {
      device.gradients[{m, operation.layer}].push_back(std::move(value));
    } else {
      const std::vector<LayerIndex>& inputs = graph_.model.layers[operation.layer].inputs;
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (inputs[k] == image_input) continue;
        value.box = maps_.read(operation.layer, k, work);
        const Box all = maps_.work(operation.layer), input = whole_input(operation.layer, k);
        // What a stride skips is zero.
        if (work[Box::rows] == all[Box::rows]) value.box[Box::rows] = input[Box::rows];
        if (work[Box::columns] == all[Box::columns]) value.box[Box::columns] = input[Box::columns];
        device.gradients[{m, static_cast<std::uint32_t>(inputs[k])}].push_back(value);
      }
    }
  }

  Box whole_input(std::uint32_t layer, std::size_t k) const {
    const LayerIndex input = graph_.model.layers[layer].inputs[k];
    return input == image_input ? maps_.image_tensor() : maps_.tensor(static_cast<std::size_t>(input));
  }

  static std::optional<Terms> joined(const Terms& a, const Terms& b) {
    Terms both;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    if (both.size() != a.size() + b.size()) return std::nullopt;
    return both;
  }

  /// Of these elements, all for which one of its terms makes anything.
  bool has_all(const Value& value, std::uint32_t layer, const Box& box) const {
    for (const Term& term : value.terms) {
      std::vector<Box> missing{intersection(elements_of(term, layer), box)};
      subtract(missing, value.box);
      std::erase_if(missing, [](const Box& b) { return b.empty(); });
      if (!missing.empty()) return false;
    }
    return true;
  }

  /// An addition of two parts of a gradient, those that give most.
  void sum(Device& device, TaskId t, const OpMeaning& means, const Operation& operation, const Box& box) {
    std::vector<Value> there;
    find_gradients(device, device.gradients, t, means.micro_batch, operation.layer, there);
    std::erase_if(there, [&](const Value& value) { return !has_all(value, operation.layer, box); });
    std::optional<Terms> best;
    for (std::size_t i = 0; i < there.size(); ++i)
      for (std::size_t j = i + 1; j < there.size(); ++j)
        if (std::optional<Terms> both = joined(there[i].terms, there[j].terms))
          if ((!best || both->size() > best->size()) &&
              std::none_of(there.begin(), there.end(), [&](const Value& v) { return v.terms == *both; }))
            best = std::move(both);
    if (!best)
      throw Refuted(fmt::format("{}: {} has nothing to add up: a part of the gradient of {} is missing",
                                at(device, t), operation.name, of_layer(operation.layer, box)));
    device.gradients[{means.micro_batch, operation.layer}].push_back(
        {means.operation, box, std::move(*best), t, means.micro_batch});
  }

  /// All parts that have come of these elements, and all that was made of them here, each term once, whatever
  /// elements it is for.
  void add_all(Device& device, TaskId t, const OpMeaning& means) {
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
        device.gradients[of].push_back({no_meaning, region, std::move(terms), t, means.micro_batch});
  }

  /// All parts of an operation that have come of these elements, and what is there of them, each term once.
  void add_parts(Device& device, TaskId t, const OpMeaning& means) {
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
            throw Refuted(fmt::format("{}: what {} makes for the gradient of {} is added twice",
                                      at(device, t), graph_.operations[term.operation].name,
                                      of_layer(means.layer, has)));
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
    device.gradients[{means.micro_batch, means.layer}].push_back(
        {means.operation, box, std::move(terms), t, means.micro_batch});
  }
  /// Of a layer's output, those for whose gradient a term makes anything.
  Box elements_of(const Term& term, std::uint32_t layer) const {
    const Operation& operation = graph_.operations[term.operation];
    Box none = maps_.tensor(layer);
    none[Box::images] = {};
    return elements_of(operation, term.work, layer).value_or(none);
  }
  std::optional<Box> elements_of(const Operation& operation, const Box& work, std::uint32_t layer) const {
    if (operation.part == OperationPart::loss && operation.layer == layer) return work;
    for (const auto& [reader, k] : readers_[layer]) {
      if (reader == operation.layer && operation.part == OperationPart::layer)
        return maps_.read(reader, k, work);
      if (data_gradient_[reader]) continue;
      if (const std::optional<Box> through = elements_of(operation, work, reader))
        return maps_.read(reader, k, *through);
    }
    return std::nullopt;
  }

  // Parameters.

  void check_gradient(const Device& device, std::uint32_t layer, TaskId t, const Box& box) const {
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
      if (const std::optional<std::string> error = cover_error(terms, *op, parameter_part(layer, box)))
        throw Refuted(fmt::format("{}: of the gradient of {} of micro-batch {}, a part {}", at(device, t),
                                  graph_.model.layers[layer].name, m, *error));
    }
  }

  /// Every parameter has one device that updates it.
  void check_updates() const {
    std::map<std::uint32_t, std::vector<Box>> left;
    for (const Parameter& parameter : graph_.parameters)
      left[parameter.layer] = {maps_.work(parameter.layer)};
    for (const Device& device : devices_)
      for (const auto& [layer, update] : device.updates) {
        const Box part = parameter_part(layer, update.second);
        if (part.empty()) continue;
        std::vector<Box> rest{part};
        for (const Box& box : left[layer]) subtract(rest, box);
        if (!rest.empty())
          throw Refuted(fmt::format("{}: another device updates {}, too", at(device, update.first),
                                    of_layer(layer, rest.front())));
        subtract(left[layer], part);
      }
    for (const auto& [layer, boxes] : left)
      if (!boxes.empty()) throw Refuted(fmt::format("nobody updates {}", of_layer(layer, boxes.front())));
  }

  // Messages.

  struct Carried {
    std::map<std::pair<EndpointId, EndpointId>, std::vector<std::vector<Value>>> of;  ///< by pair, result
  };

  template <class Visit>
  void for_each_pair(CommId comm, Visit visit) const {
    const Pattern& pattern = plan_.patterns[plan_.communications[comm].pattern];
    for (const std::vector<EndpointId>& group : pattern.groups)
      for (const Round& round : pattern.rounds)
        round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
          visit(group[from], group[to], fraction);
        });
  }

  Phase phase_of(const CommMeaning::Result& result) const {
    return graph_.operations[result.operation].phase;
  }
  bool of_parameters(const CommMeaning::Result& result) const {
    return result.operation != no_meaning &&
           (phase_of(result) == Phase::weight_gradient || phase_of(result) == Phase::update);
  }
  Box whole(const CommMeaning::Result& result) const {
    if (result.operation == no_meaning) return maps_.image_tensor();
    return of_parameters(result) ? maps_.work(result.layer) : maps_.tensor(result.layer);
  }
  Box sent(const CommMeaning::Result& result, EndpointId from, EndpointId to) const {
    return intersection(in_layout(result.from, from, whole(result)), in_layout(result.to, to, whole(result)));
  }

  double bytes_of(const CommMeaning& carries, EndpointId from, EndpointId to) const {
    const double element = element_bytes(graph_.options.precision);
    double bytes = 0;
    std::set<OpId> counted;
    for (const CommMeaning::Result& result : carries.results) {
      const bool is_whole = result.from == no_meaning && result.to == no_meaning;
      if (is_whole && result.operation != no_meaning && phase_of(result) != Phase::update) {
        if (counted.insert(result.operation).second) bytes += made_bytes_[result.operation];
        continue;
      }
      if (result.operation == no_meaning) {
        bytes += maps_.image_tensor().volume() * element;
        continue;
      }
      const Box box = sent(result, from, to);
      if (!of_parameters(result)) {
        bytes += box.volume() * element;
        continue;
      }
      const double share = parameter_part(result.layer, box).volume() / maps_.work(result.layer).volume();
      for (const ParameterTensor& tensor : graph_.model.layers[result.layer].parameters)
        if (is_whole || tensor.role == ParameterRole::weight)
          bytes += share * element * static_cast<double>(tensor.elements);
    }
    return bytes;
  }

  /// Every pair has its bytes, and a task at both ends.
  void check_message(CommId comm, const CommMeaning& carries) {
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
                                  machine_.endpoint_name(from), machine_.endpoint_name(to),
                                  fraction * of.bytes, of.name, bytes));
      if (!senders.contains(devices_[from].role) || !receivers.contains(devices_[to].role))
        throw Refuted(fmt::format("'{}' from {} to {}: a task that sends or receives it is missing", of.name,
                                  machine_.endpoint_name(from), machine_.endpoint_name(to)));
    });
    for (const auto& [roles, who] : {std::pair{&senders, &sending}, {&receivers, &receiving}})
      for (const std::uint32_t role : *roles)
        for (const EndpointId e : plan_.roles[role].members)
          if (!who->contains(e))
            throw Refuted(fmt::format("{}: '{}' has no message for it", machine_.endpoint_name(e), of.name));
  }

  void send(const Device& device, TaskId t, CommId comm, const CommMeaning& carries) {
    for_each_pair(comm, [&](EndpointId from, EndpointId to, double) {
      if (from != device.endpoint) return;
      std::vector<std::vector<Value>>& results = carried_[comm]->of[{from, to}];
      for (const CommMeaning::Result& result : carries.results)
        results.push_back(taken(device, t, carries, result, sent(result, from, to)));
    });
  }

  std::vector<Value> taken(const Device& device, TaskId t, const CommMeaning& carries,
                           const CommMeaning::Result& result, const Box& box) const {
    OpMeaning reader;
    reader.operation = result.operation, reader.micro_batch = carries.micro_batch;
    const std::int64_t m = carries.micro_batch;
    if (box.empty()) return {};
    if (result.operation == no_meaning) {
      if (!has_images(device)) throw Refuted(fmt::format("{}: sends images, and has none", at(device, t)));
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

  std::vector<Value> sent_parameter_gradients(const Device& device, TaskId t,
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

  std::vector<Value> sent_gradients(const Device& device, TaskId t, const CommMeaning& carries,
                                    const CommMeaning::Result& result, const Box& box) const {
    std::vector<Value> values =
        best_gradients(device, t, carries.micro_batch, result.layer, {box}, result.operation);
    if (carries.kind == Kind::results) {
      std::vector<Value> found;
      find_gradients(device, device.gradients, t, carries.micro_batch, result.layer, found);
      std::erase_if(found, [&](const Value& value) {
        return value.maker != result.operation || intersection(value.box, box) != box;
      });
      values.clear();
      if (!found.empty()) values = {found.back()};
      if (!found.empty()) values.front().box = box;
    }
    // A part of a gradient may have nothing for these elements.
    std::vector<Value> others;
    if (carries.kind == Kind::parts)
      find_gradients(device, device.gradients, t, carries.micro_batch, result.layer, others);
    std::map<OpId, Box> terms;
    add_terms(result.layer, box, terms);
    if (values.empty() && others.empty() && !terms.empty())
      throw Refuted(fmt::format("{}: does not wait for the gradient of {}", at(device, t),
                                of_layer(result.layer, box)));
    return values;
  }

  void receive(Device& device, TaskId t, CommId comm, const CommMeaning& carries) {
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

  void put(Device& device, const CommMeaning& carries, const CommMeaning::Result& result, Value value) {
    const std::pair<std::int64_t, std::uint32_t> of{carries.micro_batch, result.layer};
    if (result.operation == no_meaning) {
      device.images.push_back(std::move(value));
      return;
    }
    switch (phase_of(result)) {
      case Phase::forward:
        device.outputs[of].push_back(std::move(value));
        return;
      case Phase::update:
        device.parameters[result.layer].push_back(std::move(value));
        return;
      case Phase::weight_gradient:
        device.parameter_gradients[result.layer].push_back(std::move(value));
        return;
      case Phase::data_gradient:
        (carries.kind == Kind::parts ? device.parts : device.gradients)[of].push_back(std::move(value));
        return;
    }
  }

  const Plan& plan_;
  const Meaning& meaning_;
  const TrainingGraph& graph_;
  const Machine& machine_;
  const HappensBefore& order_;
  std::int64_t micro_batches_ = 1;
  LayerMaps maps_;
  std::vector<double> made_bytes_;                                                    ///< by operation
  std::vector<std::vector<Slot>> readers_;                                            ///< by layer
  std::vector<std::optional<OpId>> data_gradient_, loss_gradient_, weight_gradient_;  ///< by layer
  std::vector<Device> devices_;                                                       ///< by endpoint
  std::vector<std::vector<std::pair<std::uint32_t, Task::Kind>>> users_;  ///< by communication: roles
  std::vector<std::optional<Carried>> carried_;                           ///< by communication
};

}  // namespace

void prove_parts(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                 const HappensBefore& order) {
  PartsProver(plan, graph, machine, order).prove();
}

}  // namespace convoy::prove
