// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
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

struct OpMeaning {
  enum class Act : std::uint8_t {
    compute,     ///< the graph's `operation` on the images
    fill,        ///< copies the bucket's gradients to where they are sent from
    empty,       ///< copies them back
    compress,    ///< makes what is sent of the bucket's gradients
    decompress,  ///< makes gradients of what has come
    serve,       ///< on a server: adds up the bucket's gradients that have come and updates its parameters
  };
  Act act = Act::compute;
  OpId operation = no_meaning;
  std::int64_t micro_batch = 0;
  ImageRange images{};
  std::uint32_t pass = 0;  ///< of the device's program, counted from 0
  /// Its result goes when its pass is over (the stage runs it again for the backward pass).
  bool is_dropped = false;
  std::uint32_t bucket = no_meaning;   ///< of the other acts
  std::uint32_t forgets = no_meaning;  ///< the bucket whose gathered parameters go after it
};

/// Gradients, or parameters, that go as one message.
struct BucketMeaning {
  std::vector<std::size_t> parameters;  ///< indices into TrainingGraph::parameters
  /// What each member of its group has only its share of: 1 the optimizer's states, 2 the sums of gradients,
  /// too, 3 the parameters, too.
  int zero = 0;
  double element_bytes = 0;  ///< as sent; 0: it is not said (the largest gradients alone)
  double kept_share = 1;     ///< of its gradients, how many are sent: the rest stays for the next step
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
  };
  /// The output of a layer or its gradient (as far as the sender has summed it): what `operation` has made.
  struct Result {
    OpId operation;
    std::uint32_t layer;  ///< whose output's size it has
    bool operator==(const Result&) const = default;
  };
  Kind kind = Kind::results;
  std::vector<Result> results{};
  std::int64_t micro_batch = 0;
  ImageRange images{};
  std::uint32_t bucket = no_meaning;  ///< of the other kinds
};

struct Meaning {
  std::vector<OpMeaning> operations;
  std::vector<CommMeaning> communications;
  std::vector<BucketMeaning> buckets;
  std::vector<std::uint32_t> lanes;  ///< by endpoint
};

}  // namespace convoy::plans
