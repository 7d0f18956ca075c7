// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace convoy::inline search {

/// What a candidate is compared with others by.
struct Standing {
  double value = 0;  ///< of the objective
  double time_s = 0, cost_usd = 0;
  bool doubtful = false;
  std::int64_t hosts = 0, global_batch = 0;
  std::size_t candidate = 0;  ///< its place in CandidateSpace, which is an order of what candidates are
};

/// The candidate with the least value; of those that tie with it (sim/base/ties.h) one without a doubt where
/// there is one, of these one that takes the least time, then of the fewest machines, of the smallest global
/// batch, and the first of the space. It does not depend on the order of `all`. Nothing where `all` is empty.
std::optional<std::size_t> best_of(std::vector<Standing> all);

/// Those of which no other is as quick and cheaper, or as cheap and quicker, by more than a tie; quickest
/// first, each costs less than the one before it. The first is the quickest, of those that tie the cheapest;
/// each next one is the same of what costs less than the one before. Of equals the one that best_of takes.
std::vector<Standing> front_of(std::vector<Standing> all);

/// Whether a candidate that takes at least `time_s` and `cost_usd` can neither be on the front nor change it.
bool cannot_reach(const std::vector<Standing>& front, double time_s, double cost_usd);

}  // namespace convoy::search
