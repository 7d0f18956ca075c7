// SPDX-License-Identifier: MIT
#include "sim/prove/prove_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/layer_operations.h"
#include "models/tensor_bytes.h"

namespace convoy::inline prove {
namespace {

using Content = std::uint32_t;  ///< index into Contents

/// What results consist of: a forward operation's of itself, a gradient of all operations whose gradients
/// have been added up in it.
class Contents {
 public:
  explicit Contents(const TrainingGraph& graph)
      : of_graph_(graph.operations.size()), adds_parts_(graph.operations.size(), false) {
    for (OpId op = 0; op < graph.operations.size(); ++op) {
      const Operation& operation = graph.operations[op];
      std::optional<std::vector<OpId>> parts;
      if (operation.part == OperationPart::gradient_sum && operation.inputs.size() == 2)
        parts = joined(of(of_graph_[operation.inputs[0]]), of(of_graph_[operation.inputs[1]]));
      adds_parts_[op] = parts.has_value();
      of_graph_[op] = id(parts ? std::move(*parts) : std::vector<OpId>{op});
    }
  }

  /// Whether the operation adds up two parts of a gradient, which may come in another order. (Where a layer
  /// reads a tensor twice, the graph adds a gradient to itself: that is an operation as any other.)
  bool adds_parts(OpId op) const { return adds_parts_[op]; }

  const std::vector<OpId>& of(Content content) const { return parts_[content]; }
  /// Of what the graph's operation makes.
  Content of_graph(OpId op) const { return of_graph_[op]; }
  Content id(std::vector<OpId> parts) {
    const auto [it, fresh] = ids_.try_emplace(std::move(parts), static_cast<Content>(parts_.size()));
    if (fresh) parts_.push_back(it->first);
    return it->second;
  }
  /// Nothing where the two have a part in common, which would be added twice.
  static std::optional<std::vector<OpId>> joined(const std::vector<OpId>& a, const std::vector<OpId>& b) {
    std::vector<OpId> both;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    if (both.size() != a.size() + b.size()) return std::nullopt;
    return both;
  }

 private:
  std::vector<Content> of_graph_;
  std::vector<bool> adds_parts_;
  std::map<std::vector<OpId>, Content> ids_;
  std::vector<std::vector<OpId>> parts_;
};

/// A result of a micro-batch on the members of a role.
struct Made {
  OpId operation;
  Content content;
  ImageRange images;
  std::uint32_t from;                   ///< the first place at which an operation can read it
  std::optional<std::uint32_t> pass{};  ///< the only one in which it can be read
  /// Of a gradient that has come by a message: the layer of whose output it is.
  std::optional<std::uint32_t> received_for{};
};

bool same_images(const ImageRange& a, const ImageRange& b) {
  const double tolerance = 1e-9 * (1 + std::abs(a.first) + a.count);
  return std::abs(a.first - b.first) <= tolerance && std::abs(a.count - b.count) <= tolerance;
}

std::string text_of(const ImageRange& images, std::uint32_t lane) {
  const double first = images.first + lane * images.count;
  return images.count == 1 ? fmt::format("image {}", first)
                           : fmt::format("images {} to {}", first, first + images.count - 1);
}

class ResultProver {
 public:
  ResultProver(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
               const HappensBefore& order, RoundRules& rounds)
      : plan_(plan),
        meaning_(*plan.meaning),
        graph_(graph),
        tensor_bytes_(graph),
        machine_(machine),
        order_(order),
        rounds_(rounds),
        contents_(graph),
        made_(plan.roles.size()),
        carried_(plan.communications.size()),
        summands_(graph.model.layers.size()),
        has_(graph) {
    for (const Role& role : plan.roles) {
      std::vector<bool>& runs = is_here_.emplace_back(graph.model.layers.size(), false);
      for (const Task& task : role.program)
        for (const PlanOp& op : task.ops)
          if (const OpMeaning* means = meaning_in_graph(meaning_, op))
            runs[graph.operations[means->operation].layer] = true;
      std::map<std::uint32_t, std::uint32_t>& ends = pass_ends_.emplace_back();
      for (TaskId t = 0; t < role.program.size(); ++t)
        for (const PlanOp& op : role.program[t].ops)
          if (const OpMeaning* means = meaning_in_graph(meaning_, op); means && means->is_dropped)
            ends[means->pass] = order.of(is_here_.size() - 1).begins[t] + 1;
    }
    for (OpId op = 0; op < graph.operations.size(); ++op) {
      if (!contents_.adds_parts(op)) continue;
      const std::uint32_t layer = graph.operations[op].layer;
      for (const OpId input : graph.operations[op].inputs)
        if (!contents_.adds_parts(input) || graph.operations[input].layer != layer)
          summands_[layer].push_back(contents_.of_graph(input));
    }
  }

  void prove() {
    order_.for_each(machine_, [&](std::uint32_t role, TaskId task) { visit(role, task); });
  }

 private:
  /// Of a micro-batch: what there is by what it consists of.
  using MicroBatch = std::unordered_map<Content, std::vector<Made>>;

  void visit(std::uint32_t r, TaskId t) {
    const Task& task = plan_.roles[r].program[t];
    if (task.kind == Task::Kind::compute) {
      for (const PlanOp& op : task.ops) compute(r, t, op);
      return;
    }
    const Communication& comm = plan_.communications[task.comm];
    if (comm.meaning == no_meaning) throw NotCovered(fmt::format("what '{}' carries is not said", comm.name));
    const CommMeaning& carries = meaning_.communications[comm.meaning];
    if (carries.kind != CommMeaning::Kind::results) return;
    if (task.kind == Task::Kind::send) send(r, t, carries);
    if (task.kind == Task::Kind::receive) receive(r, t, carries);
  }

  std::string at(std::uint32_t r, TaskId t) const { return name_of(plan_.roles[r], t, machine_); }
  std::uint32_t lane(std::uint32_t r) const { return meaning_.lanes[plan_.roles[r].members.front()]; }

  /// What it says that it does: of an update a share, however large.
  static bool does_work_of(const PlanOp& op, const Operation& operation) {
    Work work = operation.work;
    if (operation.phase == Phase::update) {
      work.flops_per_image = op.work.flops_per_image, work.flops_fixed = op.work.flops_fixed;
      work.bytes_per_image = op.work.bytes_per_image, work.bytes_fixed = op.work.bytes_fixed;
    }
    return op.work == work;
  }

  /// "what conv1.forward makes of images 0 to 31"
  std::string text_of_result(std::uint32_t r, OpId op, const ImageRange& images) const {
    const Operation& operation = graph_.operations[op];
    return fmt::format("what {} makes of {}", operation.name, text_of(images, lane(r)));
  }

  void compute(std::uint32_t r, TaskId t, const PlanOp& op) {
    if (op.meaning == no_meaning) {
      if (op.operation != PlanOp::of_plan)
        throw NotCovered(fmt::format("what '{}' reads is not said", op.name));
      return;
    }
    const OpMeaning* meaning = meaning_in_graph(meaning_, op);
    if (!meaning) return;
    const OpMeaning& means = *meaning;
    const Operation& operation = graph_.operations[means.operation];
    if ((op.operation != PlanOp::of_plan && op.operation != means.operation) || !does_work_of(op, operation))
      throw Refuted(fmt::format("{}: {} does other work than {}", at(r, t), op.name, operation.name));
    if (operation.phase == Phase::update) return;
    if (std::abs(op.images - means.images.count) > 1e-9 * (1 + op.images))
      throw Refuted(fmt::format("{}: {} runs on {} images of {}", at(r, t), op.name, op.images,
                                text_of(means.images, lane(r))));
    const bool sums = contents_.adds_parts(means.operation);
    const Content content = sums ? sum(r, t, means) : contents_.of_graph(means.operation);
    if (!sums)
      for (const OpId input : operation.inputs) read(r, t, means, input);
    Made made{means.operation, content, means.images, order_.of(r).begins[t]};
    if (means.is_dropped) made.pass = means.pass;
    for (const Made& other : made_[r][means.micro_batch][content])
      if (!other.pass && other.operation == means.operation && !means.is_dropped)
        throw Refuted(
            fmt::format("{}: {} runs a second time, with nothing dropped in between", at(r, t), op.name));
    made_[r][means.micro_batch][content].push_back(made);
  }

  bool is_there(const Made& made, std::uint32_t place, const OpMeaning& reader) const {
    return made.from <= place && (!made.pass || *made.pass == reader.pass) &&
           same_images(made.images, reader.images);
  }

  void read(std::uint32_t r, TaskId t, const OpMeaning& reader, OpId input) {
    if (graph_.operations[input].phase == Phase::weight_gradient &&
        graph_.operations[reader.operation].phase != Phase::weight_gradient)
      return;  // prove_gradients.h; of shared parameters, one gradient is added to another
    const std::uint32_t place = order_.of(r).begins[t];
    const std::vector<Made>& all = made_[r][reader.micro_batch][contents_.of_graph(input)];
    if (std::any_of(all.begin(), all.end(), [&](const Made& made) { return is_there(made, place, reader); }))
      return;
    const std::string wanted = text_of_result(r, input, reader.images);
    const std::string& operation = graph_.operations[reader.operation].name;
    for (const Made& made : all) {
      if (made.from > place)
        throw Refuted(fmt::format("{}: {} does not wait for {}", at(r, t), operation, wanted));
      if (!same_images(made.images, reader.images))
        throw Refuted(fmt::format("{}: {} needs {}, and there is that of {}", at(r, t), operation, wanted,
                                  text_of(made.images, lane(r))));
      throw Refuted(fmt::format("{}: {} needs {}, which is no longer there", at(r, t), operation, wanted));
    }
    throw Refuted(fmt::format("{}: {} needs {}: nothing there makes it, and no message brings it{}", at(r, t),
                              operation, wanted, partial_text(r, reader, input)));
  }

  /// What of a sum is missing.
  std::string partial_text(std::uint32_t r, const OpMeaning& reader, OpId input) {
    const std::vector<OpId>& wanted = contents_.of(contents_.of_graph(input));
    if (wanted.size() < 2) return "";
    std::string missing;
    for (const OpId part : wanted) {
      bool found = false;
      for (const auto& [content, all] : made_[r][reader.micro_batch])
        found = found || (!all.empty() && std::binary_search(contents_.of(content).begin(),
                                                             contents_.of(content).end(), part));
      if (!found) missing += (missing.empty() ? "" : ", ") + graph_.operations[part].name;
    }
    return missing.empty() ? "" : "; of its sum there is nothing of " + missing;
  }

  /// An addition of two parts of a gradient, those that give most. Which two it adds does not matter, as long
  /// as none is added twice.
  Content sum(std::uint32_t r, TaskId t, const OpMeaning& means) {
    const std::uint32_t place = order_.of(r).begins[t];
    const std::uint32_t layer = graph_.operations[means.operation].layer;
    MicroBatch& there = made_[r][means.micro_batch];
    std::vector<Content> parts;
    for (const auto& [content, all] : there)
      if (is_partial_sum(layer, contents_.of(content)) &&
          std::any_of(all.begin(), all.end(), [&](const Made& made) {
            return is_there(made, place, means) && goes_into(made, layer, r);
          }))
        parts.push_back(content);
    std::vector<OpId> best;
    for (const Content a : parts)
      for (const Content b : parts) {
        if (a >= b) continue;
        std::optional<std::vector<OpId>> both = Contents::joined(contents_.of(a), contents_.of(b));
        if (!both || both->size() < best.size() || (both->size() == best.size() && *both >= best)) continue;
        if (std::find(parts.begin(), parts.end(), contents_.id(*both)) != parts.end()) continue;
        best = std::move(*both);
      }
    if (best.empty())
      throw Refuted(fmt::format("{}: {} has nothing to add up of {}: a part of the gradient is missing",
                                at(r, t), graph_.operations[means.operation].name,
                                text_of(means.images, lane(r))));
    return contents_.id(std::move(best));
  }

  /// Whether it consists of some of the summands of a layer's gradient, and of nothing else.
  bool is_partial_sum(std::uint32_t layer, const std::vector<OpId>& content) const {
    std::size_t parts = 0;
    for (const Content summand : summands_[layer]) {
      const std::vector<OpId>& of = contents_.of(summand);
      if (std::includes(content.begin(), content.end(), of.begin(), of.end())) parts += of.size();
    }
    return parts == content.size();
  }

  /// Whether a gradient on the members of a role is part of that of a layer's output: itself, or as that of a
  /// layer there which hands its gradient on to its inputs as it is.
  bool goes_into(const Made& made, std::uint32_t layer, std::uint32_t r) const {
    if (made.received_for) return hands_on(*made.received_for, layer, r);
    const Operation& operation = graph_.operations[made.operation];
    if (operation.part != OperationPart::layer) return hands_on(operation.layer, layer, r);
    const std::vector<LayerIndex>& inputs = graph_.model.layers[operation.layer].inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](LayerIndex input) {
      return input != image_input && hands_on(static_cast<std::uint32_t>(input), layer, r);
    });
  }
  bool hands_on(std::uint32_t from, std::uint32_t to, std::uint32_t r) const {
    if (from == to) return true;
    if (from < to || has_.data_gradient[from] || (has_.forward[from] && !is_here_[r][from])) return false;
    const std::vector<LayerIndex>& inputs = graph_.model.layers[from].inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](LayerIndex input) {
      return input != image_input && hands_on(static_cast<std::uint32_t>(input), to, r);
    });
  }

  void send(std::uint32_t r, TaskId t, const CommMeaning& carries) {
    const CommId id = plan_.roles[r].program[t].comm;
    rounds_.check_results(id);
    const Communication& comm = plan_.communications[id];
    double bytes_per_image = 0;
    std::vector<Content> carried;
    for (const CommMeaning::Result& result : carries.results) {
      bytes_per_image += tensor_bytes_(static_cast<LayerIndex>(result.layer));
      carried.push_back(sent_result(r, t, carries, result.operation));
    }
    const double bytes = bytes_per_image * carries.images.count;
    if (std::abs(bytes - comm.bytes) > 1e-9 * (1 + bytes))
      throw Refuted(fmt::format("{}: sends {} bytes, and {} have {}", at(r, t), comm.bytes,
                                text_of(carries.images, lane(r)), bytes));
    std::optional<std::vector<Content>>& of_comm = carried_[id];
    if (of_comm && *of_comm != carried)
      throw Refuted(fmt::format("{}: sends other sums than others do with it", at(r, t)));
    of_comm = std::move(carried);
  }

  /// What of an operation there is to send; of sums of several parts, that of the most.
  /// A result that goes with its pass can be sent when the pass ends, and no later.
  Content sent_result(std::uint32_t r, TaskId t, const CommMeaning& carries, OpId operation) {
    const std::uint32_t place = order_.of(r).begins[t];
    const auto is_more = [&](const Made& a, const Made& b) {
      const std::vector<OpId>&of_a = contents_.of(a.content), &of_b = contents_.of(b.content);
      return std::tuple(of_a.size(), of_b, a.images.first) > std::tuple(of_b.size(), of_a, b.images.first);
    };
    const Made *sent = nullptr, *other = nullptr, *gone = nullptr;
    for (const auto& [content, all] : made_[r][carries.micro_batch])
      for (const Made& made : all) {
        if (made.operation != operation || made.from >= place) continue;
        const Made*& of = !same_images(made.images, carries.images)           ? other
                          : made.pass && pass_ends_[r].at(*made.pass) < place ? gone
                                                                              : sent;
        if (!of || is_more(made, *of)) of = &made;
      }
    if (sent) return sent->content;
    const std::string wanted = text_of_result(r, operation, carries.images);
    if (gone) throw Refuted(fmt::format("{}: sends {}, which is no longer there", at(r, t), wanted));
    if (other)
      throw Refuted(
          fmt::format("{}: sends {}, and has that of {}", at(r, t), wanted, text_of(other->images, lane(r))));
    throw Refuted(fmt::format("{}: does not wait for {}", at(r, t), wanted));
  }

  void receive(std::uint32_t r, TaskId t, const CommMeaning& carries) {
    const CommId id = plan_.roles[r].program[t].comm;
    if (!carried_[id]) throw Refuted(fmt::format("{}: nobody sends it", at(r, t)));
    for (std::size_t i = 0; i < carries.results.size(); ++i) {
      Made made{carries.results[i].operation, (*carried_[id])[i], carries.images, order_.of(r).ends[t]};
      made.received_for = carries.results[i].layer;
      made_[r][carries.micro_batch][made.content].push_back(made);
    }
  }

  const Plan& plan_;
  const Meaning& meaning_;
  const TrainingGraph& graph_;
  TensorBytes tensor_bytes_;
  const Machine& machine_;
  const HappensBefore& order_;
  RoundRules& rounds_;
  Contents contents_;
  std::vector<std::unordered_map<std::int64_t, MicroBatch>> made_;  ///< by role, by micro-batch
  std::vector<std::optional<std::vector<Content>>> carried_;        ///< by communication
  /// By layer: what is added up in the gradient of its output, where several layers read it.
  std::vector<std::vector<Content>> summands_;
  LayerOperations has_;
  std::vector<std::vector<bool>> is_here_;             ///< by role and layer
  /// By role and pass, of those whose results go: the place after their last operation.
  std::vector<std::map<std::uint32_t, std::uint32_t>> pass_ends_;
};

}  // namespace

void prove_results(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                   const HappensBefore& order, RoundRules& rounds) {
  ResultProver(plan, graph, machine, order, rounds).prove();
}

}  // namespace convoy::prove
