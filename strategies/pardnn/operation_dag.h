// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "strategies/partition/dag.h"
#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// A training step as a partitioner sees it. Nodes are the operations of the training graph, then a variable
/// for each layer with parameters (no time; its output is the weights, its memory weights, gradients and
/// optimizer state), then the batch of images where operations read it, then the end of each data gradient that
/// reads parameters.
///
/// An update overwrites what the layer's other operations read, so it comes after them. Forward operations are
/// inputs of its inputs; the data gradient is not. An edge from it would carry its output, so a node without
/// time and output stands between them, on the data gradient's device.
struct OperationDag {
  enum class Content : std::uint8_t { operation, variable, images, end_of_reading };
  struct Node {
    Content content;
    std::uint32_t index;  ///< of the operation, or of the layer (variable, end of reading)
    std::string name;
    MemoryClass output_class;
  };
  std::vector<Node> nodes;
  Dag dag;
};

/// What reads parameters that are not trained is where they are: they are never sent.
/// @param images of the batch
/// @param devices the times are the means of theirs, with what they wait for their hosts (operation_prices_s)
/// Outputs are whole tensors: a forward operation's result (with its masks and indices), the gradients of all
/// inputs of a data gradient's layer, the parameters of a weight gradient.
OperationDag operation_dag(const StrategyInput& input, double images, std::uint32_t devices);

/// Weights, gradients and optimizer state of one of a model's layers, by class.
StateBytes layer_resident_bytes(const TrainingGraph& graph, std::uint32_t layer);

/// What a message between two of the first `devices` devices costs: means over the ways from the first to
/// each other one.
PartLink part_link(const Machine& machine, std::uint32_t devices);

}  // namespace convoy::strategies
