// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/tensor_bytes.h"
#include "strategies/hypergraph/node_hypergraph.h"

namespace convoy::inline strategies {

/// What one part has of a layer's output and another one reads.
struct NodeMessage {
  std::uint32_t owner, reader;  ///< parts
  double bytes;                 ///< of a micro-batch
};

/// A partition of the nodes as its parts see it: what of each layer a part has, reads of others, and sends.
/// Layers are numbered as in NodeHypergraph::layers. It refers to the graph, the nodes and the parts.
class NodeShares {
 public:
  /// @param images of a micro-batch
  NodeShares(const TrainingGraph& graph, const NodeHypergraph& nodes, const Parts& parts, std::uint32_t count,
             double images);

  const TrainingGraph& graph() const { return graph_; }
  const std::vector<NodeLayer>& layers() const { return layers_; }
  std::uint32_t count() const { return count_; }
  double images() const { return images_; }
  const std::string& name_of(std::uint32_t i) const {
    return graph_.model.layers[layers_[i].model_layer].name;
  }

  /// Whether the block is part p's.
  bool owns(std::uint32_t p, const NodeBlock& block) const { return parts_[block.vertex] == p; }
  /// Whether nodes of part p read the block of another part.
  bool reads(std::uint32_t p, const NodeBlock& block) const;

  /// Share of layer i's nodes that part p has.
  double share(std::uint32_t i, std::uint32_t p) const { return share_[i][p]; }
  /// Share of all that layer i reads of its inputs that part p's nodes read.
  double input_share(std::uint32_t i, std::uint32_t p) const { return input_share_[i][p]; }
  /// Share of an input's channels that part p's blocks of layer i read, or all of its blocks.
  double read_share(std::uint32_t i, const NodeLayer::Input& input,
                    std::optional<std::uint32_t> p = {}) const;
  /// By block of an input: whether a block of layer i reads it, of part p or of any.
  std::vector<char> blocks_read(std::uint32_t i, const NodeLayer::Input& input,
                                std::optional<std::uint32_t> p) const;
  /// Parts other than its own that read a block, sorted.
  std::vector<std::uint32_t> readers_of(const NodeBlock& block) const;

  /// What parts send each other of layer j's output, ordered by owner and reader; as much goes back where there
  /// is a gradient.
  const std::vector<NodeMessage>& messages(std::uint32_t j) const { return messages_[j]; }
  /// Bytes of a micro-batch that part p sends of its outputs of layer j, once to each part that reads them.
  double sent_bytes(std::uint32_t j, std::uint32_t p) const;
  /// Bytes of a micro-batch that part p gets of others' outputs of layer j.
  double foreign_bytes(std::uint32_t j, std::uint32_t p) const;
  /// Layers of which part p has nodes that read others' blocks of layer j, in order.
  std::vector<std::uint32_t> foreign_readers(std::uint32_t j, std::uint32_t p) const;

  /// The graph's sums of gradients of layer i's output.
  std::vector<OpId> sums_of(std::uint32_t i) const;
  bool is_sum(OpId id) const { return graph_.operations[id].part == OperationPart::gradient_sum; }
  /// By block of layer j: how many layers make a gradient of it in part p. Zeros, of a layer that does not read
  /// a block, are the owner's.
  std::vector<std::uint32_t> gradients_in(std::uint32_t j, std::uint32_t p) const;
  /// Bytes of an image that part p adds to gradients of its nodes of layer j when others have sent theirs: the
  /// first gradient of a node is for free where p makes none itself.
  double added_bytes(std::uint32_t j, std::uint32_t p) const;

 private:
  void measure(std::uint32_t i);
  void find_messages();

  const TrainingGraph& graph_;
  const TensorBytes tensor_bytes_;
  const std::vector<NodeLayer>& layers_;
  const Parts& parts_;
  std::uint32_t count_;
  double images_;
  std::vector<std::vector<double>> share_, input_share_;  ///< by layer and part
  std::vector<std::vector<NodeMessage>> messages_;        ///< by layer
};

}  // namespace convoy::strategies
