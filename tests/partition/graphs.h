// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "strategies/partition/dag.h"

namespace convoy::graphs {

/// A graph as lists, to be changed before it is one.
struct Lists {
  std::vector<Dag::Node> nodes;
  std::vector<std::pair<NodeId, NodeId>> edges;
  NodeId add(double time_us, double output_bytes, double memory_bytes = 0,
             const std::vector<NodeId>& parents = {}) {
    nodes.push_back({time_us, output_bytes, memory_bytes});
    const auto v = static_cast<NodeId>(nodes.size() - 1);
    for (const NodeId u : parents)
      if (std::find(edges.begin(), edges.end(), std::pair{u, v}) == edges.end()) edges.emplace_back(u, v);
    return v;
  }
  Dag dag() const { return Dag(nodes, edges); }
};

/// Any graph: every node reads up to three earlier ones; some times, outputs and memories are 0; ids are
/// shuffled, so that they are in no topological order. Figures are small whole numbers, so that there are
/// ties.
inline Lists any(unsigned seed, NodeId size) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned bound) { return static_cast<unsigned>(random() % bound); };
  std::vector<NodeId> id(size);
  for (NodeId v = 0; v < size; ++v) id[v] = v;
  std::shuffle(id.begin(), id.end(), random);
  Lists lists;
  lists.nodes.resize(size);
  for (NodeId v = 0; v < size; ++v) {
    lists.nodes[id[v]] = {static_cast<double>(below(20)), 1e5 * below(40),
                          below(5) == 0 ? 1e6 * below(9) : 0.0};
    for (unsigned parent = below(4); v > 0 && parent > 0; --parent) {
      const std::pair edge{id[below(v)], id[v]};
      if (std::find(lists.edges.begin(), lists.edges.end(), edge) == lists.edges.end())
        lists.edges.push_back(edge);
    }
  }
  return lists;
}

/// Layers of `width` nodes, each of which reads three of the layer before; log-normal times and outputs with
/// messages about as long as operations.
inline Lists layered(unsigned seed, NodeId layers, NodeId width) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> time(3.4, 1), bytes(14.3, 1);
  Lists lists;
  for (NodeId layer = 0; layer < layers; ++layer)
    for (NodeId i = 0; i < width; ++i) {
      std::vector<NodeId> parents;
      for (int p = 0; layer > 0 && p < 3; ++p)
        parents.push_back((layer - 1) * width + static_cast<NodeId>(random() % width));
      lists.add(time(random), bytes(random), 0, parents);
    }
  return lists;
}

/// A training step: `depth` blocks of three branches of layers with parameters, joined; backward mirrored,
/// each layer with data gradient, weight gradient and update.
inline Lists training(unsigned seed, NodeId depth, double activation_bytes, double parameter_bytes) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> time(4, 0.5);
  struct Layer {
    NodeId forward, variable;
    std::vector<NodeId> inputs;
  };
  Lists lists;
  std::vector<Layer> layers;
  const auto forward = [&](const std::vector<NodeId>& inputs, bool parameters) {
    Layer layer{0, 0, inputs};
    if (parameters) layer.variable = lists.add(1, parameter_bytes, 3 * parameter_bytes);
    layer.forward = lists.add(time(random), activation_bytes, 0, inputs);
    if (parameters) lists.edges.emplace_back(layer.variable, layer.forward);
    layers.push_back(layer);
    return layer.forward;
  };
  NodeId x = lists.add(1, activation_bytes);
  const NodeId images = x;
  for (NodeId block = 0; block < depth; ++block) {
    std::vector<NodeId> ends;
    for (int branch = 0; branch < 3; ++branch) ends.push_back(forward({forward({x}, true)}, true));
    x = forward(ends, false);
  }
  std::vector<NodeId> gradient(lists.nodes.size(), 0);  // of each forward node's output, once there is one
  gradient[x] = lists.add(1, activation_bytes, 0, {x});
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const NodeId incoming = gradient[layer->forward];
    std::vector<NodeId> reads{incoming};
    reads.insert(reads.end(), layer->inputs.begin(), layer->inputs.end());
    if (layer->variable != 0) {
      const NodeId weight = lists.add(time(random), parameter_bytes, 0, reads);
      lists.add(5, 0, 0, {weight, layer->variable});
      const NodeId input = layer->inputs[0];
      if (input == images) continue;
      std::vector<NodeId> with_weights = reads;
      with_weights.push_back(layer->variable);
      const NodeId data = lists.add(2 * time(random), activation_bytes, 0, with_weights);
      gradient[input] =
          gradient[input] == 0 ? data : lists.add(5, activation_bytes, 0, {gradient[input], data});
    } else {
      for (const NodeId input : layer->inputs) gradient[input] = incoming;
    }
  }
  return lists;
}

}  // namespace convoy::graphs
