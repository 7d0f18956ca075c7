// SPDX-License-Identifier: MIT
#include "sim/lowering/stages.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "sim/lowering/liveness.h"

namespace convoy {
namespace {

constexpr std::string_view image_buffer = "input";  ///< what build_training_graph calls it

/// What the graph runs a second time is part of the backward pass.
bool is_forward(const Operation& op) { return op.phase == Phase::forward && !op.again; }

class Cutter {
 public:
  Cutter(const TrainingGraph& graph, const Units& units, const std::vector<std::uint32_t>& first_units,
         bool recomputes)
      : graph_(graph), units_(units), recomputes_(recomputes) {
    stage_of_unit_.resize(units.size());
    for (std::uint32_t s = 0; s < first_units.size(); ++s)
      std::fill(stage_of_unit_.begin() + first_units[s], stage_of_unit_.end(), s);
    result_.stages.resize(first_units.size());
  }

  Stages cut() {
    place_layers();
    place_operations();
    add_edges();
    add_operations();
    for (std::uint32_t s = 0; s < result_.stages.size(); ++s) add_memory(s);
    return std::move(result_);
  }

 private:
  /// Views of the image are nobody's; they run nothing.
  std::uint32_t stage_of_layer(std::uint32_t layer) const {
    const std::uint32_t unit = units_.unit_of[layer];
    return unit == Units::none ? 0 : stage_of_unit_[unit];
  }

  void place_layers() {
    for (std::uint32_t i = 0; i < graph_.model.layers.size(); ++i)
      result_.stages[stage_of_layer(i)].layers.push_back(graph_.model.layers[i].name);
    for (std::uint32_t u = 0; u < units_.size(); ++u)
      result_.stages[stage_of_unit_[u]].parameter_elements += units_.parameters[u];
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p)
      result_.stages[stage_of_layer(graph_.parameters[p].layer)].parameters.push_back(p);
  }

  /// A gradient's parts come together in the order in which backward reaches its readers, from the last one
  /// on: the parts of one other stage are added up there, everything else where the tensor was made.
  void place_operations() {
    const std::vector<Layer>& layers = graph_.model.layers;
    std::vector<std::vector<std::uint32_t>> readers(layers.size());
    for (std::uint32_t i = 0; i < layers.size(); ++i)
      for (const LayerIndex input : layers[i].inputs)
        if (input != image_input) readers[static_cast<std::size_t>(input)].push_back(i);
    std::map<std::uint32_t, std::set<std::uint32_t>> arrived;  // by layer: stages that have a part
    for (const Operation& op : graph_.operations) {
      const std::uint32_t home = stage_of_layer(op.layer);
      if (op.reader == Operation::no_reader) {
        stage_of_.push_back(home);
        continue;
      }
      std::set<std::uint32_t>& stages = arrived[op.layer];
      if (stages.empty()) stages.insert(stage_of_layer(readers[op.layer].back()));
      for (const std::uint32_t reader : readers[op.layer])
        if (reader > op.reader) stages.insert(stage_of_layer(reader));
      const std::uint32_t there = stage_of_layer(op.reader);
      stage_of_.push_back(stages.insert(there).second ? home : there);
    }
  }

  void add_edges() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, StageEdge> edges;
    for (const Units::Tensor& tensor : units_.tensors) {
      const std::uint32_t from = stage_of_unit_[tensor.producer];
      std::set<std::uint32_t> targets;
      for (const std::uint32_t reader : tensor.readers) targets.insert(stage_of_unit_[reader]);
      targets.erase(from);
      for (const std::uint32_t to : targets) {
        StageEdge& edge = edges.try_emplace({from, to}, StageEdge{from, to}).first->second;
        edge.forward_bytes += tensor.bytes_per_image;
        if (tensor.has_gradient) edge.backward_bytes += tensor.bytes_per_image;
      }
    }
    for (const auto& [ends, edge] : edges) result_.edges.push_back(edge);
  }

  void add_operations() {
    index_.resize(graph_.operations.size());
    for (OpId id = 0; id < graph_.operations.size(); ++id) {
      const Operation& op = graph_.operations[id];
      Stage& stage = result_.stages[stage_of_[id]];
      std::vector<StageOp>& list = op.phase == Phase::update ? stage.update
                                   : is_forward(op)          ? stage.forward
                                                             : stage.backward;
      index_[id] = list.size();
      list.push_back({id, op.name, op.work, {}, {}, {}});
    }
    for (std::uint32_t s = 0; s < result_.stages.size(); ++s) {
      Stage& stage = result_.stages[s];
      // A stage of additions and concatenations alone only hands gradients on, which it holds meanwhile.
      if (stage.backward.empty()) add_passing(s);
      if (!recomputes_) continue;
      stage.light_forward = stage.forward;
      stage.full_backward = stage.forward;
      for (StageOp& op : stage.full_backward) op.name += " again";
      stage.full_backward.insert(stage.full_backward.end(), stage.backward.begin(), stage.backward.end());
    }
  }

  void add_passing(std::uint32_t s) {
    double bytes = 0;
    for (const StageEdge& edge : result_.edges)
      if (edge.from == s) bytes += edge.backward_bytes;
    if (bytes == 0) return;
    const StageMemory memory{MemoryClass::activations, bytes, 0};
    result_.stages[s].backward.push_back({StageOp::none, "gradients handed on", {}, {memory}, {memory}, {}});
  }

  using Tensors = std::vector<LiveTensor<StageMemory>>;

  struct Uses {
    std::vector<std::size_t> positions;  ///< ascending
    bool goes_on[2] = {false, false};  ///< used elsewhere after its last use here, in forward and in backward
  };

  /// Positions count a stage's forward operations, then its backward ones.
  void add_memory(std::uint32_t s) {
    Stage& stage = result_.stages[s];
    const std::size_t turn = stage.forward.size();
    Tensors tensors, recomputed;
    for (const Buffer& buffer : graph_.buffers) {
      const Uses uses = uses_in(buffer, s, turn);
      if (uses.positions.empty()) continue;
      const StageMemory memory{buffer.memory_class, buffer.bytes_per_image,
                               static_cast<double>(buffer.bytes_fixed)};
      const bool received = stage_of_[buffer.born] != s;
      const std::size_t first = uses.positions.front(), last = uses.positions.back();
      const std::size_t pass_end = (last < turn ? turn : turn + stage.backward.size()) - 1;
      const Lifetime life{!received      ? first
                          : first < turn ? 0
                                         : turn,
                          uses.goes_on[last < turn ? 0 : 1] ? pass_end : last};
      tensors.push_back({memory, life});
      if (recomputes_)
        add_recomputed(recomputed, uses, {memory, life}, turn, received || buffer.name == image_buffer);
    }
    place_tensors(tensors, in_order<StageOp>({&stage.forward, &stage.backward}));
    if (recomputes_)
      place_tensors(recomputed, in_order<StageOp>({&stage.light_forward, &stage.full_backward}));
  }

  /// The same buffer where the stage runs its forward operations, then these again and its backward ones:
  /// what it was not given (`is_kept`) is made twice, and goes in between.
  static void add_recomputed(Tensors& tensors, const Uses& uses, const LiveTensor<StageMemory>& tensor,
                             std::size_t turn, bool is_kept) {
    const auto [begin, end] = tensor.life;
    const std::size_t last = uses.positions.back();
    const Lifetime again{turn + begin, turn + (last < turn ? last : end)};
    if (begin < turn && is_kept) {
      tensors.push_back({tensor.memory, {begin, again.last}});
      return;
    }
    if (begin < turn) {
      const auto turned = std::lower_bound(uses.positions.begin(), uses.positions.end(), turn);
      tensors.push_back({tensor.memory, {begin, uses.goes_on[0] ? turn - 1 : *std::prev(turned)}});
    }
    tensors.push_back({tensor.memory, again});
  }

  Uses uses_in(const Buffer& buffer, std::uint32_t s, std::size_t turn) const {
    Uses uses;
    for (const OpId op : buffer.uses) {
      const bool backward = !is_forward(graph_.operations[op]);
      const bool here = stage_of_[op] == s;
      if (here) uses.positions.push_back(index_[op] + (backward ? turn : 0));
      uses.goes_on[backward ? 1 : 0] = !here;
    }
    return uses;
  }

  const TrainingGraph& graph_;
  const Units& units_;
  bool recomputes_;  ///< stages have the operations of recomputation too
  std::vector<std::uint32_t> stage_of_unit_;
  std::vector<std::uint32_t> stage_of_;  ///< by operation
  std::vector<std::size_t> index_;       ///< by operation: in its list of its stage
  Stages result_;
};

/// Each buffer by itself, as the framework's allocator sees them.
std::vector<MemoryDelta> deltas(const std::vector<StageMemory>& memory, double images) {
  std::vector<MemoryDelta> result;
  result.reserve(memory.size());
  for (const StageMemory& part : memory)
    if (const double bytes = part.bytes_per_image * images + part.bytes_fixed; bytes > 0)
      result.push_back({part.memory_class, bytes});
  return result;
}

}  // namespace

Stages cut_into_stages(const TrainingGraph& graph, const Units& units,
                       const std::vector<std::uint32_t>& first_units) {
  return Cutter(graph, units, first_units, true).cut();
}

Stage whole_network(const TrainingGraph& graph) {
  return std::move(Cutter(graph, find_units(graph), {0}, false).cut().stages.front());
}

PlanOp plan_op(const StageOp& op, double images, const std::string& suffix) {
  return {op.name + suffix, op.work, op.images.value_or(images), deltas(op.allocates, images),
          deltas(op.frees, images)};
}

}  // namespace convoy
