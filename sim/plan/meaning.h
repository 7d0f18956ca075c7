// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "models/training_graph.h"

namespace convoy::inline plans {

/// What a plan's operations and messages do, in terms of the training graph. A plan has it where that was
/// asked for (StrategyInput::meaning): PlanOp::meaning and Communication::meaning are indices into it. No
/// replay reads it.

inline constexpr std::uint32_t no_meaning = std::numeric_limits<std::uint32_t>::max();

/// Images of the global batch: those from `first + lane * count` on, `count` of them, where lane is that of
/// the endpoint (Meaning::lanes), which the members of a role differ by.
struct ImageRange {
  double first = 0, count = 0;
  bool operator==(const ImageRange&) const = default;
};

/// IndexRanges begin ... end - 1 of an axis.
struct IndexRange {
  std::int64_t begin = 0, end = 0;
  auto operator<=>(const IndexRange&) const = default;
};
/// Ascending, with gaps between them. Nothing: all that the axis has.
using IndexRanges = std::optional<std::vector<IndexRange>>;

/// A part of a layer's output, of its gradient, or of what an operation of the layer does: which elements of
/// the output it makes, or works backward from.
struct Region {
  IndexRanges images{};  ///< of the micro-batch, whose first is 0
  IndexRanges channels{}, rows{}, columns{};
  /// Of an operation in which channels mix: the channels of the input that it works with. What is made of
  /// some of them is a part of a sum.
  IndexRanges inputs{};
  bool operator==(const Region&) const = default;
};
/// What devices have of a tensor, or do of an operation, by their position (Meaning::positions).
using PartLayout = std::vector<Region>;

struct OpMeaning {
  enum class Act : std::uint8_t {
    compute,     ///< the graph's `operation` on the images
    fill,        ///< copies the bucket's gradients to where they are sent from
    empty,       ///< copies them back
    compress,    ///< makes what is sent of the bucket's gradients
    decompress,  ///< makes gradients of what has come
    serve,       ///< on a server: adds up the bucket's gradients that have come and updates its parameters
    collect,     ///< on a host: adds up the bucket's gradients that have come from its devices
    add,     ///< adds the parts that have come to those there, of the gradient of `layer`'s output, or where
             ///< `operation` makes that of its parameters, what has come of the micro-batch to that
    factor,  ///< of low_rank: makes the second factors of the sum of the first ones
    mean,    ///< makes the mean of the bucket's parameters of what has come of them
    slow,    ///< moves the bucket's parameters on by the slow momentum of their means
  };
  static constexpr std::size_t act_count = static_cast<std::size_t>(Act::slow) + 1;
  Act act = Act::compute;
  OpId operation = no_meaning;
  std::int64_t micro_batch = 0;
  ImageRange images{};
  std::uint32_t pass = 0;  ///< of the device's program, counted from 0
  /// Its result goes when its pass is over (the stage runs it again for the backward pass).
  bool is_dropped = false;
  std::uint32_t bucket = no_meaning;   ///< of the other acts
  std::uint32_t forgets = no_meaning;  ///< the bucket whose gathered parameters go after it
  std::uint32_t layer = no_meaning;    ///< of `add`
  std::uint32_t layout = no_meaning;   ///< index into Meaning::layouts; else all of it
};

/// Gradients, or parameters, that go as one message.
struct BucketMeaning {
  std::vector<std::size_t> parameters;  ///< indices into TrainingGraph::parameters
  /// What each member of its group has only its share of: 1 the optimizer's states, 2 the sums of gradients,
  /// too, 3 the parameters, too.
  int zero = 0;
  double element_bytes = 0;  ///< as sent; 0: it is not said (the largest gradients alone)
  /// Of its gradients, how many are sent: the rest stays for the next step. 0: all, in a few bits each.
  double kept_share = 1;
  /// How gradients are made smaller (sim/lowering/compression.h).
  enum class Coding : std::uint8_t { none, half, largest, levels, signs, votes, low_rank };
  Coding coding = Coding::none;
  std::int64_t detail = 0;   ///< bits of `levels`, rank of `low_rank`
  double slow_momentum = 0;  ///< of parameters that are averaged (OpMeaning::Act::slow)
};

struct CommMeaning {
  enum class Kind : std::uint8_t {
    results,            ///< of operations, from each sender to its receiver
    sum,                ///< of the members' gradients, to all of them
    scatter,            ///< the same, to each member its share
    gather_parameters,  ///< each member's share, to all
    gather_gradients,   ///< each member's gradients, to all, who add them up
    push,               ///< gradients, from each sender to the servers of its bucket, who add them up
    pull,               ///< parameters, from the servers of its bucket to each receiver
    collect,            ///< gradients, to one of each node who adds them up and pushes the sum
    hand_out,           ///< parameters, from those who have collected gradients to those who sent them
    parts,              ///< results of which the receiver has parts, too, and adds them to these (Act::add)
    sum_factors,        ///< of the members' second factors (Act::factor), to all of them
    average,            ///< of the members' parameters, to all of them
    exchange,           ///< parameters, from each sender to its receivers
    agree,              ///< that the bucket's gradients are complete, of which it carries nothing
  };
  /// What `operation` has made: the output of a layer or its gradient (as far as the sender has summed it),
  /// the gradients of a layer's parameters, or, where it is an update, the parameters as they are before it;
  /// no_meaning: images, or the layer's output, where it is an ImageView. Where layouts are given, position i
  /// sends j what it has by `from` and j is to have by `to`; else all of it.
  struct Result {
    OpId operation;
    std::uint32_t layer;              ///< whose output's size it has
    std::uint32_t from = no_meaning;  ///< index into Meaning::layouts
    std::uint32_t to = no_meaning;
    bool operator==(const Result&) const = default;
  };
  Kind kind = Kind::results;
  std::vector<Result> results{};
  std::int64_t micro_batch = 0;
  ImageRange images{};
  std::uint32_t bucket = no_meaning;  ///< of the other kinds
  /// Of `exchange`: so many members, one after the other, have the same parameters. The first of them sends
  /// and receives, and passes the sum of what it gets on to the others.
  std::uint32_t together = 1;
  /// Of `pull`: its senders first update the parameters with the gradients that they have.
  bool updates = false;
};

/// A layer that computes nothing and reads the image, of whose output devices have parts: without any message,
/// as they read the image.
struct ImageView {
  std::uint32_t layer;
  std::uint32_t layout;  ///< index into Meaning::layouts
};

struct Meaning {
  std::vector<OpMeaning> operations;
  std::vector<CommMeaning> communications;
  std::vector<BucketMeaning> buckets;
  std::vector<std::uint32_t> lanes;  ///< by endpoint
  /// By endpoint, where parameters are averaged: of how many images a step the mean gradient is that it
  /// updates its parameters with. Empty: of the global batch.
  std::vector<double> own_images{};
  // Where several devices work on the same images between them.
  std::vector<PartLayout> layouts{};
  std::vector<std::uint32_t> positions{};  ///< by endpoint: in its group; empty: each device has whole layers
  /// By endpoint: whole images are read there; else they come by a message, or parts of them are read.
  std::vector<bool> has_images{};
  std::vector<ImageView> image_views{};
};

}  // namespace convoy::plans
