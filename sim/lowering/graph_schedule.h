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

/// Images that go through the layers together: all of them, or one part if the layers after the batch-split
/// ones process them in several parts.
struct ImagePart {
  Shards images;  ///< which device has which of them, in layers that are split by images
  Shards loss;    ///< which device computes the loss of which of them, if outputs are split by channels
  double total() const { return static_cast<double>(images.size); }
};

/// The images of a pass, all on the only device of a group.
Shards any_images();

/// What one group of devices does in a step, in the order of its compute streams, without times. The devices
/// of a group differ only in their shares.
struct GraphSchedule {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  static constexpr OpId no_op = none;

  /// An operation of the graph on one part of the images; no_op: the beginning of a stage's pass, with what
  /// other stages have sent.
  struct Step {
    OpId op;
    std::uint32_t stage;
    bool backward;  ///< of the stage's backward pass
    std::uint32_t part;
    std::optional<Sharding> sharding;       ///< of a loss or a sum of gradients; otherwise that of the layer
    std::vector<std::uint32_t> waits = {};  ///< exchanges that have to be complete before it
    bool again = false;                     ///< whether its stage recomputes it
  };

  /// A change of a tensor's sharding, or an exchange of its halos.
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
    std::vector<std::uint32_t> sources;  ///< copies that stay in memory until it is complete
    bool awaited = false;                ///< whether a step waits for it
    bool sent = false;                   ///< whether its tensor is sent to another stage
    bool is_needed() const { return awaited || sent; }
  };

  /// A tensor that each device of a stage sends, in the sharding that it has there, to the device with the
  /// same position of another stage at the end of its pass.
  struct Transfer {
    std::uint32_t from, to;
    bool backward;  ///< a gradient, from a reader's stage to the producer's
    double bytes_per_image;
    Sharding sharding;
    std::vector<std::uint32_t> waits;  ///< exchanges that bring it
    CommMeaning::Result result;        ///< what it is
  };

  /// A buffer on each device. The positions of its lifetime count steps and their ends: 2 s is step s, and 2
  /// s + 1 is its end, when buffers for the exchanges that begin then are allocated.
  struct Copy {
    MemoryClass memory_class;
    double bytes_per_image;  ///< of the whole tensor
    double bytes_fixed;
    Sharding sharding;
    std::uint32_t part;
    std::uint32_t parameters_of = none;  ///< the layer of whose parameters a device needs only its own share
    Lifetime life = {};
  };

  std::vector<ImagePart> parts;  ///< the first is all images
  std::vector<Step> steps;
  std::vector<Exchange> exchanges;
  std::vector<Copy> copies;
  std::vector<Transfer> transfers;

  /// Images of a part; nothing: as many as a pass has (any_images).
  std::optional<double> images(std::uint32_t part) const;
  /// The bytes of a copy on one device of a group. If the images are given, the bytes of all of them are in
  /// `bytes_fixed`.
  StageMemory memory(const Copy& copy, std::size_t device) const;
};

/// The layers after the batch-split ones, which process the images part by part.
struct TailParts {
  std::vector<bool> is_tail;  ///< by layer
  std::vector<ImagePart> parts;
};

/// The schedule of a training graph under layer shardings. If a layer needs a tensor in another sharding than
/// its producer makes, the tensor is converted once for all layers that need the same sharding. Gradients
/// from several readers that have the same sharding are added up before they are converted. An exchange
/// begins as soon as its tensor has been made, and the steps that need the result wait for it. With `tail`,
/// its layers run once for each part of the images, forward and backward, between the forward and the
/// backward pass of the other layers; the tensors of part j are exchanged while part j - 1 computes. If the
/// layers are on several stages, each of which is a group of devices of its own, a tensor that another stage
/// reads is sent there once, in the sharding that it has (partial sums are added up first), and its gradient
/// comes back as a sum over the readers on that stage. Every stage then has a forward and a backward pass.
/// What the graph recomputes is run again before the backward pass of its segment, with the exchanges of the
/// segment's inputs and of the tensors in it.
/// @param stages of each layer; not together with `tail`; empty: all layers are on one stage
/// @param recomputes stages keep only what they receive from each other, and run their forward pass again
/// before the backward pass, with its exchanges
/// @pre without `tail`, `stages` and `recomputes` where the graph recomputes
/// @param shardings and graph must outlive the schedule
GraphSchedule schedule_graph(const TrainingGraph& graph, const std::vector<LayerSharding>& shardings,
                             const Shards& images, const std::optional<TailParts>& tail,
                             const std::vector<std::uint32_t>& stages = {}, bool recomputes = false);

}  // namespace convoy::lowering
