// SPDX-License-Identifier: MIT
#include "strategies/hypergraph/node_memory.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "models/memory_rules.h"

namespace convoy::inline strategies {
namespace {

using Tensors = std::vector<LiveTensor<MemoryDelta>>;

/// Where a part's program has what.
struct Places {
  std::vector<std::size_t> operations;  ///< of the graph; Lifetime::nowhere: not in this part
  std::vector<std::uint32_t> layer_of;  ///< by operation that is here
  std::map<std::pair<std::uint32_t, bool>, Lifetime>
      steps;  ///< by layer and direction: first and last operation
  /// Of gradients that are sent back, by layer: the operation that adds up the last of them, where there are
  /// several, and the last one before they leave.
  std::map<std::uint32_t, std::size_t> sums_before, returns;

  Places(const TrainingGraph& graph, const std::vector<NodeStep>& program)
      : operations(graph.operations.size(), Lifetime::nowhere), layer_of(graph.operations.size()) {
    std::size_t count = 0;
    for (const NodeStep& step : program) {
      const std::size_t begin = count;
      count += step.ops.size();
      steps[{step.layer, step.forward}] = {begin, count - 1};
      for (std::size_t k = 0; k < step.ops.size(); ++k) {
        if (step.ops[k].operation == PlanOp::of_plan) continue;
        layer_of[step.ops[k].operation] = step.layer;
        operations[step.ops[k].operation] = begin + k;
      }
      for (const auto& [layer, k] : step.sent_sums) sums_before[layer] = begin + k;
      for (const NodeExchange& sent : step.sends)
        if (!sent.forward) returns[sent.layer] = count - 1;
    }
  }
};

/// Gradients of outputs, block by block: each element is in memory from the first operation that makes it, or from
/// when it has come, until it is added to another one, sent back, or read by the last operation that uses it.
class GradientsOfPart {
 public:
  GradientsOfPart(const NodeShares& shares, std::uint32_t p, const Places& places)
      : shares_(shares), layers_(shares.layers()), p_(p), places_(places), there_(layers_.size()) {
    for (std::size_t j = 0; j < layers_.size(); ++j) there_[j].resize(layers_[j].blocks.size());
    for (const Buffer& buffer : shares.graph().buffers)
      if (buffer.role == BufferRole::output_gradient) born_.insert({buffer.born, buffer.layer});
  }

  Tensors tensors() {
    for (auto j = static_cast<std::uint32_t>(layers_.size()); j-- > 0;)
      if (layers_[j].gradient) go_back(j);
    // Those of one layer that one operation makes and the same one frees are one tensor.
    std::map<std::tuple<std::uint32_t, std::size_t, std::size_t>, double> bytes;
    for (const Storage& storage : storages_)
      if (storage.life.is_used())
        bytes[{storage.layer, storage.life.first, storage.life.last}] += storage.bytes;
    Tensors result;
    for (const auto& [of, size] : bytes)
      result.push_back({{MemoryClass::activations, size}, {std::get<1>(of), std::get<2>(of)}});
    return result;
  }

 private:
  struct Storage {
    std::uint32_t layer;
    double bytes;
    Lifetime life;
  };
  /// A gradient of a block, or a part of it. Those of layers that hand theirs on lie in their readers' storages, which
  /// nothing may be added to; zeros lie nowhere.
  struct Gradient {
    std::vector<std::size_t> storages;
    bool is_own = false;
    std::uint32_t reader = 0;
  };

  void go_back(std::uint32_t j) {
    const NodeLayer& node = layers_[j];
    const bool is_loss = j >= shares_.graph().model.layers.size();
    std::vector<Gradient> totals(node.blocks.size());
    for (std::uint32_t b = 0; b < node.blocks.size() && !is_loss; ++b) {
      totals[b] = total_of(j, b);
      const bool own = shares_.owns(p_, node.blocks[b]);
      if (!own && places_.returns.contains(j)) use(totals[b], places_.returns.at(j));
      for (const OpId op : node.backward)
        if (own && !shares_.is_sum(op)) use(totals[b], places_.operations[op]);
    }
    if (shares_.share(j, p_) == 0) return;
    const auto makes = std::find_if(node.backward.begin(), node.backward.end(), [&](OpId op) {
      return !shares_.is_sum(op) && shares_.graph().operations[op].phase == Phase::data_gradient;
    });
    for (const NodeLayer::Input& input : node.inputs) {
      if (!layers_[input.layer].gradient) continue;
      if (makes != node.backward.end() && born_.contains({*makes, layers_[input.layer].model_layer}))
        make(j, input, places_.operations[*makes]);
      else
        hand_on(j, input, totals, makes != node.backward.end());
      add_zeros(j, input);
    }
  }

  /// The data gradient of layer i.
  void make(std::uint32_t i, const NodeLayer::Input& input, std::size_t position) {
    const std::vector<char> reads = shares_.blocks_read(i, input, p_);
    for (std::uint32_t r = 0; r < reads.size(); ++r)
      if (reads[r]) there_[input.layer][r].push_back({{stored(input.layer, r, position)}, true, i});
  }

  /// @param overwritten the input's gradient takes the place of the output's
  void hand_on(std::uint32_t i, const NodeLayer::Input& input, const std::vector<Gradient>& totals,
               bool overwritten) {
    std::map<std::uint32_t, Gradient> handed;
    for (std::uint32_t b = 0; b < totals.size(); ++b) {
      if (!shares_.owns(p_, layers_[i].blocks[b])) continue;
      for (std::uint32_t r = input.reads[b].first; r < input.reads[b].second; ++r) {
        Gradient& gradient = handed.try_emplace(r, Gradient{{}, overwritten, i}).first->second;
        gradient.storages.insert(gradient.storages.end(), totals[b].storages.begin(),
                                 totals[b].storages.end());
      }
    }
    for (auto& [r, gradient] : handed) there_[input.layer][r].push_back(std::move(gradient));
  }

  /// Of what nobody reads.
  void add_zeros(std::uint32_t i, const NodeLayer::Input& input) {
    const std::vector<char> any = shares_.blocks_read(i, input, {});
    for (std::uint32_t r = 0; r < any.size(); ++r)
      if (!any[r] && shares_.owns(p_, layers_[input.layer].blocks[r]))
        there_[input.layer][r].push_back({{}, false, i});
  }

  /// First what has come is added to the first gradient that was made here, then the others, one by one.
  Gradient total_of(std::uint32_t j, std::uint32_t b) {
    const std::vector<Gradient>& made = there_[j][b];
    const bool own = shares_.owns(p_, layers_[j].blocks[b]);
    std::optional<Gradient> total;
    if (own)
      for (std::size_t come = shares_.readers_of(layers_[j].blocks[b]).size(); come > 0; --come) {
        const std::size_t begin = places_.steps.at({j, false}).first;
        add(total, {{stored(j, b, begin)}, true, 0}, j, b, begin);
      }
    for (std::size_t k = 0; k < made.size(); ++k) add(total, made[k], j, b, sum_at(j, k, made[k], own));
    return total.value_or(Gradient{});
  }

  /// The operation that adds a block's gradient number `k` of this part to those before it. Layers that are given by
  /// their costs add theirs themselves.
  std::size_t sum_at(std::uint32_t j, std::size_t k, const Gradient& gradient, bool own) const {
    const NodeLayer& reader = layers_[gradient.reader];
    if (std::holds_alternative<Custom>(shares_.graph().model.layers[reader.model_layer].kind) && k > 0)
      return places_.operations[reader.backward.front()];
    if (!own) return places_.sums_before.contains(j) ? places_.sums_before.at(j) : Lifetime::nowhere;
    const std::vector<OpId> sums = shares_.sums_of(j);
    if (k > 0 && !sums.empty()) return places_.operations[sums[std::min(k, sums.size()) - 1]];
    const auto step = places_.steps.find({j, false});
    return step == places_.steps.end() ? Lifetime::nowhere : step->second.first;
  }

  /// In place, where one of both lies in a storage of its own.
  void add(std::optional<Gradient>& total, const Gradient& more, std::uint32_t j, std::uint32_t b,
           std::size_t position) {
    if (!total) {
      total = more;
      return;
    }
    use(*total, position);
    use(more, position);
    if (more.is_own)
      total = more;
    else if (!total->is_own)
      total = Gradient{{stored(j, b, position)}, true, more.reader};
  }

  void use(const Gradient& gradient, std::size_t position) {
    if (position == Lifetime::nowhere) return;
    for (const std::size_t storage : gradient.storages) storages_[storage].life.use(position);
  }

  std::size_t stored(std::uint32_t j, std::uint32_t b, std::size_t position) {
    const NodeLayer& node = layers_[j];
    storages_.push_back({j, node.bytes * node.share(node.blocks[b]) * shares_.images(), {}});
    if (position != Lifetime::nowhere) storages_.back().life.use(position);
    return storages_.size() - 1;
  }

  const NodeShares& shares_;
  const std::vector<NodeLayer>& layers_;
  std::uint32_t p_;
  const Places& places_;
  std::vector<std::vector<std::vector<Gradient>>>
      there_;  ///< by layer and block: what readers make in this part
  std::set<std::pair<OpId, std::uint32_t>>
      born_;  ///< gradients with storages of their own: who makes them, of whom
  std::vector<Storage> storages_;
};

/// Copies of other parts' outputs.
void add_copies(const NodeShares& shares, std::uint32_t p, const Places& places, Tensors& tensors) {
  const TrainingGraph& graph = shares.graph();
  for (std::uint32_t j = 0; j < shares.layers().size(); ++j) {
    const double bytes = shares.foreign_bytes(j, p);
    if (bytes == 0) continue;
    Lifetime life;
    const auto use_in = [&](std::uint32_t i, bool forward) {
      const auto step = places.steps.find({i, forward});
      if (step == places.steps.end()) return;
      life.use(step->second.first);
      life.use(step->second.last);
    };
    for (const std::uint32_t i : shares.foreign_readers(j, p)) {
      use_in(i, true);
      if (i >= graph.model.layers.size()) continue;
      const MemoryRules rules =
          memory_rules(graph.model, shares.layers()[i].model_layer, graph.options.framework);
      if (rules.input_for_data || rules.input_for_weights) use_in(i, false);
    }
    tensors.push_back({{MemoryClass::activations, bytes}, life});
  }
}

}  // namespace

Tensors tensors_of_part(const NodeShares& shares, std::uint32_t p, const std::vector<NodeStep>& steps) {
  const TrainingGraph& graph = shares.graph();
  const Places places(graph, steps);
  Tensors tensors;
  for (const Buffer& buffer : graph.buffers) {
    if (buffer.role == BufferRole::output_gradient || places.operations[buffer.born] == Lifetime::nowhere)
      continue;
    const std::uint32_t i = places.layer_of[buffer.born];
    const bool is_whole = buffer.role == BufferRole::image && shares.layers()[i].reads_image;
    const double bytes = bytes_of(buffer, shares.images()) * (is_whole ? 1 : shares.share(i, p));
    if (bytes > 0) tensors.push_back({{buffer.memory_class, bytes}, lifetime_of(buffer, places.operations)});
  }
  for (LiveTensor<MemoryDelta>& gradient : GradientsOfPart(shares, p, places).tensors())
    tensors.push_back(std::move(gradient));
  add_copies(shares, p, places, tensors);
  return tensors;
}

}  // namespace convoy::strategies
