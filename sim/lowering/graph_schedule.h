// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "models/training_graph.h"
#include "sim/lowering/layer_sharding.h"
#include "sim/lowering/liveness.h"
#include "sim/lowering/stages.h"

namespace convoy::inline lowering {

/// Images that go through the layers together: all of them, or a part where the layers behind the batch-split
/// ones take them in several.
struct ImagePart {
  Shards images;  ///< who has them where layers are split by images
  Shards loss;    ///< who computes whose loss where the outputs are split by channels
  double total() const { return static_cast<double>(images.size); }
};

/// As many images as a pass has, on the one device of a group.
Shards any_images();

/// What one device group does in a step, in the order of its compute streams, without times. Devices differ
/// by their shares only.
struct GraphSchedule {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  static constexpr OpId no_op = none;

  /// An operation of the graph on one part; no_op: a stage's pass begins, with what other stages have sent.
  struct Step {
    OpId op;
    std::uint32_t stage;
    bool backward;  ///< of the stage's backward pass
    std::uint32_t part;
    std::optional<Sharding> sharding;       ///< of a loss or a sum of gradients; else the layer's
    std::vector<std::uint32_t> waits = {};  ///< exchanges that must be over before it
    bool again = false;                     ///< of a forward pass that its stage recomputes
  };

  /// A change of a tensor's sharding, or halos of it.
  struct Exchange {
    enum class Kind : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all, halo, halo_back };
    Kind kind;
    std::string tensor;   ///< "conv5", "gradient of conv5 #2"
    std::uint32_t layer;  ///< at whose input it is
    double bytes;         ///< of the whole tensor
    Sharding from, to;    ///< not of halos
    const Halo* halo;     ///< of halos
    double halo_size;     ///< positions of an image
    std::uint32_t after;  ///< the step that makes the tensor, or a later one
    std::uint32_t part;   ///< the images of the tensor
    CommMeaning::Result result;  ///< what it is
    std::size_t input = 0;       ///< of halos: which input of the layer
    std::vector<std::uint32_t> after_exchanges;
    std::vector<std::uint32_t> sources;  ///< copies that stay until it is over
    bool awaited = false;                ///< somebody needs it
    bool sent = false;                   ///< its tensor goes to another stage
    bool is_needed() const { return awaited || sent; }
  };

  /// A tensor that each device of a stage sends, as it has it, to its like of another stage when its pass is
  /// over.
  struct Transfer {
    std::uint32_t from, to;
    bool backward;  ///< a gradient, from a reader's stage to the producer's
    double bytes_per_image;
    Sharding sharding;
    std::vector<std::uint32_t> waits;  ///< exchanges that bring it
    CommMeaning::Result result;        ///< what it is
  };

  /// A buffer on each device. Positions of its lifetime count a step and what is received after it: 2 s is
  /// step s, 2 s + 1 its end, where buffers for the exchanges that begin then are allocated.
  struct Copy {
    MemoryClass memory_class;
    double bytes_per_image;  ///< of the whole tensor
    double bytes_fixed;
    Sharding sharding;
    std::uint32_t part;
    std::uint32_t parameters_of = none;  ///< the layer of whose parameters a device needs its share only
    Lifetime life = {};
  };

  std::vector<ImagePart> parts;  ///< the first is all images
  std::vector<Step> steps;
  std::vector<Exchange> exchanges;
  std::vector<Copy> copies;
  std::vector<Transfer> transfers;

  /// Images of a part; nothing: as many as a pass has (any_images).
  std::optional<double> images(std::uint32_t part) const;
  /// On a device of a group. Where images are given the bytes of all of them are `bytes_fixed`.
  StageMemory memory(const Copy& copy, std::size_t device) const;
};

/// Images of the layers behind the batch-split ones, part by part.
struct TailParts {
  std::vector<bool> is_tail;  ///< by layer
  std::vector<ImagePart> parts;
};

/// The schedule of a training graph under layer shardings. Tensors change their sharding where a layer needs
/// another than their producer makes, once for all readers of the same; gradients of several readers are
/// added up first where they lie alike. An exchange begins when its tensor is there; what needs it waits.
/// With `tail` its layers run once a part, forward and backward, between the forward and backward pass of the
/// others; the tensors of part j are exchanged while part j - 1 computes.
/// Where layers are on several stages, each a group of devices of its own, a tensor that another stage reads
/// is sent there once, as it lies (partial sums are summed first), and its gradient comes back summed over
/// that stage's readers. Every stage has a forward and a backward pass then.
/// What the graph recomputes is run again before the backward pass of its segment, with the exchanges of the
/// segment's inputs and of the tensors in it.
/// @param stages of each layer, not for `tail`; empty: all layers are on one
/// @param recomputes stages keep only what they get from each other, and run their forward pass again before
/// the backward pass, with its exchanges
/// @pre without `tail`, `stages` and `recomputes` where the graph recomputes
/// @param shardings and graph must outlive the schedule
GraphSchedule schedule_graph(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                             const Shards& images, const std::optional<TailParts>& tail,
                             const std::vector<std::uint32_t>& stages = {}, bool recomputes = false);

}  // namespace convoy::lowering
