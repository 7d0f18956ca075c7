// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/laws/random_experiment.h"

namespace convoy::lab {

/// Three steps of a plan with a service, without chance or warm-up: in the long run who comes first of two
/// that come at one time up to rounding decides what follows.
void shorten(Plan& plan);

/// Random experiments of every strategy, each shortened. Every second machine is of exact devices; the others
/// are of the catalogue, whose hosts issue operations one by one and whose software costs time. Calls `law`
/// with `count` experiments of each row of strategy_rows().
void for_random_plans(unsigned count, const std::function<void(const Experiment&, Dice&)>& law);

/// In random order.
template <class T>
void shuffle(std::vector<T>& values, Dice& dice) {
  for (std::size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[static_cast<std::size_t>(dice.between(0, static_cast<int>(i) - 1))]);
}

/// How a replay's results follow from another one's.
struct Expected {
  double time_factor = 1, byte_factor = 1;
  std::vector<EndpointId> endpoint = {};  ///< by the other's endpoint; empty: the same
};
/// Checks times, bytes, memory and staleness of everybody, to rounding.
void check_follows(const ReplayResult& from, const ReplayResult& result, const Expected& expected = {});

/// The machine with other numbers of hosts and devices, for the same ways between the same things.
/// @param host new number of each host  @param device new number of each device; hosts keep theirs together
Machine renumbered(const Machine& machine, const std::vector<std::uint32_t>& host,
                   const std::vector<EndpointId>& device);

}  // namespace convoy::lab
