// SPDX-License-Identifier: MIT
#include "strategies/hypergraph/node_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "models/frozen.h"
#include "models/memory_rules.h"
#include "models/tensor_bytes.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline strategies {
namespace {

/// What one part has of a layer's output and another one reads.
struct NodeMessage {
  std::uint32_t owner, reader;  ///< parts
  double bytes;                 ///< of a micro-batch
};

/// A layer's output forward, or its gradient backward.
struct NodeExchange {
  std::uint32_t layer;
  bool forward;
  auto operator<=>(const NodeExchange&) const = default;
};

/// What a part does at one layer.
struct NodeStep {
  std::uint32_t layer;
  bool forward;
  std::vector<PlanOp> ops;
  std::vector<NodeExchange> receives;                ///< before it
  std::vector<NodeExchange> sends;                   ///< after it
  std::map<std::uint32_t, std::size_t> sent_sums{};  ///< by layer: the last of ops that adds up what is sent
};

class Slicer {
 public:
  Slicer(const TrainingGraph& graph, const NodeHypergraph& nodes, const Parts& parts, std::uint32_t count,
         double images, std::uint32_t micro_batches, bool meaning)
      : graph_(graph),
        tensor_bytes_(graph),
        layers_(nodes.layers),
        parts_(parts),
        count_(count),
        images_(images) {
    work_.images = images;
    work_.micro_batches = micro_batches;
    share_.assign(layers_.size(), std::vector<double>(count, 0.0));
    reads_ = share_;
    local_.assign(layers_.size(), std::vector<char>(count, 0));
    for (std::uint32_t i = 0; i < layers_.size(); ++i) measure(i);
    find_messages();
    if (meaning && !has_view_of_image()) begin_meaning();
  }

  PlacedWork build() {
    std::vector<std::vector<NodeStep>> steps;
    for (std::uint32_t p = 0; p < count_; ++p) steps.push_back(steps_of(p));
    for (std::uint32_t j = 0; j < layers_.size(); ++j)
      if (!messages_[j].empty()) add_messages(j, steps[messages_[j].front().owner]);
    for (std::uint32_t p = 0; p < count_; ++p) {
      PlacedDevice& device = work_.devices.emplace_back();
      device.name = fmt::format("part {}", p);
      device.members = {p};
      device.tensors = tensors_of(p, steps[p]);
      for (NodeStep& step : steps[p]) device.steps.push_back(placed(std::move(step)));
      add_update(p, device);
    }
    return std::move(work_);
  }

 private:
  std::uint32_t part_of_block(const NodeBlock& block) const { return parts_[block.vertex]; }

  // Meaning. What of the image the nodes of a view of it are, the steps do not say.

  bool has_view_of_image() const {
    return std::any_of(layers_.begin(), layers_.end(),
                       [](const NodeLayer& node) { return node.reads_image && !node.forward; });
  }

  void begin_meaning() {
    work_.meaning = std::make_shared<Meaning>();
    work_.meaning->has_images.assign(count_, true);
    for (std::uint32_t i = 0; i < layers_.size(); ++i) {
      work_.meaning->layouts.push_back(nodes_where(i, [&](std::uint32_t block, std::uint32_t p) {
        return part_of_block(layers_[i].blocks[block]) == p;
      }));
      work_.meaning->layouts.push_back(nodes_where(i, [&](std::uint32_t block, std::uint32_t p) {
        const NodeBlock& of = layers_[i].blocks[block];
        return part_of_block(of) != p && std::any_of(of.readers.begin(), of.readers.end(),
                                                     [&](std::uint32_t v) { return parts_[v] == p; });
      }));
    }
  }
  static std::uint32_t owned(std::uint32_t i) { return 2 * i; }     ///< layouts
  static std::uint32_t read(std::uint32_t i) { return 2 * i + 1; }  ///< by p's nodes, and others'

  template <class Has>
  PartLayout nodes_where(std::uint32_t i, Has has) const {
    PartLayout layout(count_);
    for (std::uint32_t p = 0; p < count_; ++p) {
      std::vector<IndexRange>& channels = layout[p].channels.emplace();
      for (std::uint32_t b = 0; b < layers_[i].blocks.size(); ++b) {
        const NodeBlock& block = layers_[i].blocks[b];
        if (!has(b, p)) continue;
        if (!channels.empty() && channels.back().end == block.begin)
          channels.back().end = block.end;
        else
          channels.push_back({block.begin, block.end});
      }
    }
    return layout;
  }

  void mean(PlanOp& op, std::uint32_t i, OpId id) {
    OpMeaning meaning;
    meaning.operation = id;
    if (i < graph_.model.layers.size()) meaning.layout = owned(i);
    work_.mean(op, meaning);
  }

  /// A kernel that adds up gradients of layer i's nodes: those in this layout, all that is there and has come.
  void mean_sum(PlanOp& op, std::uint32_t i, std::uint32_t layout) {
    OpMeaning meaning;
    meaning.act = OpMeaning::Act::add;
    meaning.layer = layers_[i].model_layer;
    meaning.layout = layout;
    work_.mean(op, meaning);
  }

  bool is_sum(OpId id) const { return graph_.operations[id].part == OperationPart::gradient_sum; }
  std::vector<OpId> sums_of(std::uint32_t i) const {
    std::vector<OpId> sums;
    for (const OpId id : layers_[i].backward)
      if (is_sum(id)) sums.push_back(id);
    return sums;
  }

  /// The operation that makes the gradient of layer j's output: of its reader, or of who reads a reader that
  /// hands gradients on; with several readers, the last sum.
  OpId gradient_made_for(std::uint32_t j) const {
    if (const std::vector<OpId> sums = sums_of(j); !sums.empty()) return sums.back();
    for (std::uint32_t i = j + 1; i < layers_.size(); ++i)
      for (const NodeLayer::Input& input : layers_[i].inputs) {
        if (input.layer != j) continue;
        for (const OpId id : layers_[i].backward)
          if (const Operation& op = graph_.operations[id]; op.phase == Phase::data_gradient && !is_sum(id))
            return id;
        return gradient_made_for(i);
      }
    return no_meaning;
  }

  CommMeaning meaning_of(std::uint32_t j, bool forward) const {
    CommMeaning meaning;
    if (!work_.meaning) return meaning;
    std::uint32_t made = layers_[j].model_layer;  // of a view: what it is a view of
    const auto forward_of = [&](std::uint32_t layer) { return layers_[layer].forward; };
    while (!forward_of(made)) made = static_cast<std::uint32_t>(graph_.model.layers[made].inputs.front());
    OpId operation = *forward_of(made);
    if (!forward) operation = gradient_made_for(j);
    meaning.kind = forward ? CommMeaning::Kind::results : CommMeaning::Kind::parts;
    if (operation == no_meaning) return meaning;
    meaning.results = {
        {operation, layers_[j].model_layer, forward ? owned(j) : read(j), forward ? read(j) : owned(j)}};
    return meaning;
  }

  /// Shares of layer i by part: of its nodes, and of what the layer reads of its inputs.
  void measure(std::uint32_t i) {
    const NodeLayer& node = layers_[i];
    std::vector<std::int64_t> own(count_, 0);
    for (const NodeBlock& block : node.blocks) own[part_of_block(block)] += block.end - block.begin;
    double all_bytes = node.reads_image ? image_bytes() : 0;
    for (const NodeLayer::Input& input : node.inputs)
      all_bytes += layers_[input.layer].bytes * read_share(i, input);
    for (std::uint32_t p = 0; p < count_; ++p) {
      if (own[p] == 0) continue;
      share_[i][p] = static_cast<double>(own[p]) / static_cast<double>(node.channels);
      double bytes = node.reads_image ? image_bytes() : 0;
      for (const NodeLayer::Input& input : node.inputs)
        bytes += layers_[input.layer].bytes * read_share(i, input, p);
      reads_[i][p] = all_bytes > 0 ? bytes / all_bytes : 1;
    }
  }

  double image_bytes() const { return tensor_bytes_(image_input); }

  /// Share of an input's channels that part p's blocks of layer i read, or all of its blocks.
  double read_share(std::uint32_t i, const NodeLayer::Input& input, std::optional<std::uint32_t> p = {}) {
    const NodeLayer& from = layers_[input.layer];
    std::vector<char> read(from.blocks.size(), 0);
    for (std::size_t b = 0; b < layers_[i].blocks.size(); ++b) {
      if (p && part_of_block(layers_[i].blocks[b]) != *p) continue;
      for (std::uint32_t r = input.reads[b].first; r < input.reads[b].second; ++r) {
        read[r] = 1;
        if (p && part_of_block(from.blocks[r]) == *p) local_[input.layer][*p] = 1;
      }
    }
    std::int64_t channels = 0;
    for (std::size_t r = 0; r < read.size(); ++r)
      if (read[r]) channels += from.blocks[r].end - from.blocks[r].begin;
    return static_cast<double>(channels) / static_cast<double>(from.channels);
  }

  void find_messages() {
    std::vector<char> reads(count_);
    for (const NodeLayer& node : layers_) {
      std::map<std::pair<std::uint32_t, std::uint32_t>, double> bytes;
      for (const NodeBlock& block : node.blocks) {
        std::fill(reads.begin(), reads.end(), 0);
        for (const std::uint32_t reader : block.readers) reads[parts_[reader]] = 1;
        for (std::uint32_t reader = 0; reader < reads.size(); ++reader)
          if (reads[reader] && reader != part_of_block(block))
            bytes[{part_of_block(block), reader}] += node.bytes * node.share(block);
      }
      std::vector<NodeMessage>& messages = messages_.emplace_back();
      for (const auto& [pair, size] : bytes) messages.push_back({pair.first, pair.second, size * images_});
    }
  }

  /// Forward, and where a part sends gradients back, backward.
  /// @param steps of a part that has some of layer j's output
  void add_messages(std::uint32_t j, const std::vector<NodeStep>& steps) {
    const bool gradient = std::any_of(steps.begin(), steps.end(), [&](const NodeStep& step) {
      return !step.forward && step.layer == j && !step.receives.empty();
    });
    for (const bool forward : {true, false}) {
      if (!forward && !gradient) continue;
      message_[{j, forward}] = static_cast<std::uint32_t>(work_.messages.size());
      PlacedMessage& message = work_.messages.emplace_back();
      message.name = fmt::format("{} of {}", forward ? "output" : "gradient", name_of(j));
      for (const NodeMessage& part : messages_[j])
        message.parts.push_back(
            {forward ? part.owner : part.reader, forward ? part.reader : part.owner, part.bytes});
      message.meaning = meaning_of(j, forward);
    }
  }

  PlacedStep placed(NodeStep step) const {
    // Losses come after the model's layers.
    const std::string what = step.layer < graph_.model.layers.size() ? name_of(step.layer) : "loss";
    PlacedStep result{fmt::format("{} {}", step.forward ? "forward" : "backward", what),
                      step.forward,
                      false,
                      {},
                      std::move(step.ops),
                      {}};
    for (const NodeExchange& exchange : step.receives) result.receives.push_back(message_.at(exchange));
    for (const NodeExchange& exchange : step.sends) result.sends.push_back(message_.at(exchange));
    return result;
  }

  /// Bytes of a micro-batch that part p gets of others' outputs of layer j (or sends, or gets back).
  template <class Which>
  double message_bytes(std::uint32_t j, Which which) const {
    double bytes = 0;
    for (const NodeMessage& message : messages_[j])
      if (which(message)) bytes += message.bytes;
    return bytes;
  }
  double owned_bytes(std::uint32_t j, std::uint32_t p) const {
    return message_bytes(j, [p](const NodeMessage& m) { return m.owner == p; });
  }
  double foreign_bytes(std::uint32_t j, std::uint32_t p) const {
    return message_bytes(j, [p](const NodeMessage& m) { return m.reader == p; });
  }

  /// Layers in p that read others' blocks of layer j, in order.
  std::vector<std::uint32_t> foreign_readers(std::uint32_t j, std::uint32_t p) const {
    std::vector<std::uint32_t> readers;
    for (std::uint32_t i = j + 1; i < layers_.size(); ++i)
      for (const NodeLayer::Input& input : layers_[i].inputs)
        if (input.layer == j && reads_foreign(i, input, p)) readers.push_back(i);
    return readers;
  }
  bool reads_foreign(std::uint32_t i, const NodeLayer::Input& input, std::uint32_t p) const {
    for (std::size_t b = 0; b < layers_[i].blocks.size(); ++b)
      if (part_of_block(layers_[i].blocks[b]) == p)
        for (std::uint32_t r = input.reads[b].first; r < input.reads[b].second; ++r)
          if (part_of_block(layers_[input.layer].blocks[r]) != p) return true;
    return false;
  }

  // Steps. A layer without kernels and messages in this part has none.

  std::vector<NodeStep> steps_of(std::uint32_t p) {
    const auto n = static_cast<std::uint32_t>(layers_.size());
    std::vector<std::vector<NodeExchange>> receives(n), returns(n);  // at the first reader, at the last
    for (std::uint32_t j = 0; j < n; ++j) {
      if (foreign_bytes(j, p) == 0) continue;
      const std::uint32_t first = foreign_readers(j, p).front();
      receives[first].push_back({j, true});
      if (layers_[j].gradient) returns[first].push_back({j, false});  // backward comes to it last
    }
    std::vector<NodeStep> steps;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (share_[i][p] == 0) continue;
      NodeStep step{i, true, {}, receives[i], {}};
      if (owned_bytes(i, p) > 0) step.sends.push_back({i, true});
      if (layers_[i].forward) step.ops.push_back(kernel(i, *layers_[i].forward, p));
      add(std::move(step), steps);
    }
    for (std::uint32_t i = n; i-- > 0;) {
      if (share_[i][p] == 0 || !layers_[i].gradient) continue;
      NodeStep step{i, false, {}, {}, returns[i]};
      if (owned_bytes(i, p) > 0) {
        step.receives.push_back({i, false});
        step.ops.push_back(sum_of_partials(i, p));
      }
      const std::vector<OpId> sums = sums_of(i);
      for (std::size_t k = 0; k < sums.size(); ++k) {
        if (!step.ops.empty()) work_.mean(step.ops.back(), {});  // the last one adds up all
        step.ops.push_back(sum_of_readers(i, k, p, true));
      }
      if (!step.ops.empty()) mean_sum(step.ops.back(), i, owned(i));
      for (const OpId id : layers_[i].backward)
        if (!is_sum(id)) step.ops.push_back(kernel(i, id, p));
      for (const NodeExchange& sent : step.sends) add_sums_before(sent.layer, p, step);
      add(std::move(step), steps);
    }
    return steps;
  }

  /// Where there is no kernel (views), an operation without work holds what the step receives.
  void add(NodeStep step, std::vector<NodeStep>& steps) const {
    if (step.ops.empty() && step.receives.empty() && step.sends.empty()) return;
    if (step.ops.empty()) step.ops.push_back(memory_op(name_of(step.layer) + " view", {}, {}));
    steps.push_back(std::move(step));
  }

  /// What p's readers make of others' nodes of layer j, added up before it is sent.
  void add_sums_before(std::uint32_t j, std::uint32_t p, NodeStep& step) {
    const std::vector<OpId> sums = sums_of(j);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      PlanOp op = sum_of_readers(j, k, p, false);
      if (op.work == Work{}) break;
      op.operation = PlanOp::of_plan;
      if (k > 0) work_.mean(step.ops.back(), {});
      step.ops.push_back(std::move(op));
      step.sent_sums[j] = step.ops.size() - 1;
      mean_sum(step.ops.back(), j, read(j));
    }
  }

  /// The graph's sum `k` of gradients of layer j, which adds one to those of k + 1 readers: in part p, of those
  /// of its own nodes, or of others' nodes, of which p has so many readers. Of none there is no kernel.
  PlanOp sum_of_readers(std::uint32_t j, std::size_t k, std::uint32_t p, bool own) const {
    const std::vector<std::uint32_t> readers = readers_in(j, p);
    std::int64_t channels = 0;
    for (std::size_t b = 0; b < readers.size(); ++b) {
      const NodeBlock& block = layers_[j].blocks[b];
      if ((part_of_block(block) == p) == own && readers[b] >= k + 2) channels += block.end - block.begin;
    }
    const OpId id = sums_of(j)[k];
    const double share = static_cast<double>(channels) / static_cast<double>(layers_[j].channels);
    const Work work = channels == 0 ? Work{} : part_of(graph_.operations[id].work, 0, share, share);
    return {graph_.operations[id].name, work, images_, {}, {}, id};
  }

  /// By block of layer j: how many layers make a gradient of it in part p. Zeros, of a layer that does not read
  /// a block, are the owner's.
  std::vector<std::uint32_t> readers_in(std::uint32_t j, std::uint32_t p) const {
    std::vector<std::uint32_t> readers(layers_[j].blocks.size());
    for (std::uint32_t i = j + 1; i < layers_.size(); ++i)
      for (const NodeLayer::Input& input : layers_[i].inputs) {
        if (input.layer != j || !layers_[i].gradient) continue;
        std::vector<char> reads(readers.size()), any(readers.size());
        for (std::size_t b = 0; b < layers_[i].blocks.size(); ++b) {
          const auto [first, end] = input.reads[b];
          std::fill(any.begin() + first, any.begin() + end, 1);
          if (part_of_block(layers_[i].blocks[b]) == p)
            std::fill(reads.begin() + first, reads.begin() + end, 1);
        }
        for (std::size_t r = 0; r < readers.size(); ++r)
          readers[r] += reads[r] || (!any[r] && part_of_block(layers_[j].blocks[r]) == p) ? 1 : 0;
      }
    return readers;
  }

  /// Part p's slice of an operation of layer i. Losses read and write the layer's own nodes only.
  PlanOp kernel(std::uint32_t i, OpId id, std::uint32_t p) {
    const Operation& operation = graph_.operations[id];
    const bool loss = operation.phase == Phase::data_gradient && operation.part != OperationPart::layer;
    const double in_bytes = loss ? 0 : tensor_bytes_.of_inputs(layers_[i].model_layer);
    PlanOp op{
        operation.name, part_of(operation.work, in_bytes, share_[i][p], reads_[i][p]), images_, {}, {}, id};
    mean(op, i, id);
    return op;
  }

  /// Adds up the gradients that other parts have made of p's nodes; the first is for free where p makes none.
  PlanOp sum_of_partials(std::uint32_t i, std::uint32_t p) const {
    const double received = owned_bytes(i, p);
    const double own = local_[i][p] ? 0 : layers_[i].bytes * share_[i][p] * images_;
    const double added = std::max(0.0, received - own) / images_;
    Work work;
    work.kind = KernelKind::elementwise;
    work.phase = Phase::data_gradient;
    work.flops_per_image = added / tensor_bytes_.of_value(static_cast<LayerIndex>(layers_[i].model_layer));
    work.bytes_per_image = 3 * added;
    return {name_of(i) + ".partial_gradient_sum", work, images_, {}, {}};
  }

  const std::string& name_of(std::uint32_t i) const {
    return graph_.model.layers[layers_[i].model_layer].name;
  }

  // Memory.

  using Tensors = std::vector<LiveTensor<MemoryDelta>>;
  /// Positions of the first and the last operation of each step: by layer and direction.
  using StepPositions = std::map<std::pair<std::uint32_t, bool>, Lifetime>;

  Tensors tensors_of(std::uint32_t p, const std::vector<NodeStep>& steps) {
    std::size_t count = 0;
    std::vector<std::size_t> positions(graph_.operations.size(), Lifetime::nowhere), before_sent = positions;
    std::vector<std::uint32_t> node_of(graph_.operations.size());
    StepPositions of_step;
    Tensors tensors;
    for (const NodeStep& step : steps) {
      const std::size_t begin = count;
      count += step.ops.size();
      of_step[{step.layer, step.forward}] = {begin, count - 1};
      for (std::size_t k = 0; k < step.ops.size(); ++k) {
        if (step.ops[k].operation == PlanOp::of_plan) continue;
        node_of[step.ops[k].operation] = step.layer;
        positions[step.ops[k].operation] = begin + k;
      }
      for (const auto& [layer, k] : step.sent_sums)
        for (const OpId sum : sums_of(layer)) before_sent[sum] = begin + k;
      if (!step.forward && !step.receives.empty())  // partial gradients, while they are added
        tensors.push_back({{MemoryClass::activations, owned_bytes(step.layer, p)}, {begin, begin}});
    }
    for (const Buffer& buffer : graph_.buffers) {
      if (positions[buffer.born] == Lifetime::nowhere) continue;
      const double bytes = bytes_of(buffer, images_) * buffer_share(buffer, node_of[buffer.born], p);
      if (bytes == 0) continue;
      Lifetime life = lifetime_of(buffer, positions);
      if (const Lifetime added = lifetime_of(buffer, before_sent); added.is_used()) life.use(added.last);
      tensors.push_back({{buffer.memory_class, bytes}, life});
    }
    add_copies(p, of_step, tensors);
    return tensors;
  }

  /// Share of a buffer that part p has when it runs its share of the operation that makes it.
  double buffer_share(const Buffer& buffer, std::uint32_t i, std::uint32_t p) {
    const Operation& operation = graph_.operations[buffer.born];
    if (operation.phase == Phase::forward)
      return buffer.role == BufferRole::image && layers_[i].reads_image ? 1 : share_[i][p];
    for (const NodeLayer::Input& input : layers_[i].inputs)
      if (buffer.role == BufferRole::output_gradient && buffer.layer == layers_[input.layer].model_layer &&
          i < graph_.model.layers.size())
        return read_share(i, input, p);
    return share_[i][p];
  }

  /// Copies of other parts' outputs.
  void add_copies(std::uint32_t p, const StepPositions& of_step, Tensors& tensors) const {
    for (std::uint32_t j = 0; j < layers_.size(); ++j) {
      const double bytes = foreign_bytes(j, p);
      if (bytes == 0) continue;
      Lifetime life;
      const auto use_in = [&](std::uint32_t i, bool forward) {
        const auto step = of_step.find({i, forward});
        if (step == of_step.end()) return;
        life.use(step->second.first);
        life.use(step->second.last);
      };
      for (const std::uint32_t i : foreign_readers(j, p)) {
        use_in(i, true);
        if (i >= graph_.model.layers.size()) continue;
        const MemoryRules rules =
            memory_rules(graph_.model, layers_[i].model_layer, graph_.options.framework);
        if (rules.input_for_data || rules.input_for_weights) use_in(i, false);
      }
      tensors.push_back({{MemoryClass::activations, bytes}, life});
    }
  }

  void add_update(std::uint32_t p, PlacedDevice& device) {
    double trained = 0, frozen = 0;  // elements
    for (std::uint32_t i = 0; i < graph_.model.layers.size(); ++i) {
      const Layer& layer = graph_.model.layers[i];
      (layer.frozen ? frozen : trained) += static_cast<double>(layer.parameter_elements()) * share_[i][p];
      if (share_[i][p] == 0 || !layers_[i].update) continue;
      const OpId id = *layers_[i].update;
      const Work work = part_of(graph_.operations[id].work, 0, share_[i][p], share_[i][p]);
      mean(device.update.emplace_back(PlanOp{graph_.operations[id].name, work, 1, {}, {}, id}), i, id);
    }
    device.states = resident_bytes(trained, graph_.options);
    device.states[static_cast<std::size_t>(MemoryClass::weights)] += frozen_bytes(frozen, graph_.options);
  }

  const TrainingGraph& graph_;
  const TensorBytes tensor_bytes_;
  const std::vector<NodeLayer>& layers_;
  const Parts& parts_;
  std::uint32_t count_;
  double images_;
  std::vector<std::vector<double>> share_, reads_;  ///< by layer and part
  std::vector<std::vector<char>> local_;            ///< by layer and part: it reads its own nodes
  std::vector<std::vector<NodeMessage>> messages_;  ///< by layer, ordered by owner and reader
  std::map<NodeExchange, std::uint32_t> message_;   ///< among those of work_
  PlacedWork work_;
};

}  // namespace

PlacedWork slice_graph(const TrainingGraph& graph, const NodeHypergraph& nodes, const Parts& parts,
                       std::uint32_t count, double images, std::uint32_t micro_batches, bool meaning) {
  return Slicer(graph, nodes, parts, count, images, micro_batches, meaning).build();
}

}  // namespace convoy::strategies
