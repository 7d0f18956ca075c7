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

/// The same candidate with what it is compared by.
std::optional<Standing> best_standing(std::vector<Standing> all);

/// Those of which no other is as quick and cheaper, or as cheap and quicker, by more than a tie; quickest
/// first, each costs less than the one before it. The first is the quickest, of those that tie the cheapest;
/// each next one is the same of what costs less than the one before. Of equals the one that best_of takes.
std::vector<Standing> front_of(std::vector<Standing> all);

/// Whether a candidate that takes at least `time_s` and `cost_usd` can neither be on the front nor change it.
bool cannot_reach(const std::vector<Standing>& front, double time_s, double cost_usd);

/// Whether a candidate that is nowhere below `bound` is not preferred to `known` where the two tie in what is
/// asked for, whatever else there is: it takes at least as long (rounding aside), and loses the rest of the tie.
bool loses_ties(const Standing& bound, const Standing& known);

/// Whether a candidate that is nowhere below `bound` can neither be the best nor change which one is.
/// @param least value of those of which `best` is the best
bool cannot_lead(const Standing& bound, const Standing& best, double least);

/// Whether a candidate that is nowhere below `bound` can neither be on the front nor change it: as
/// cannot_reach(), or it ties with one on the front and loses the tie.
bool cannot_join(const std::vector<Standing>& front, const Standing& bound);

/// Whether cannot_join() holds whatever else becomes known: one on the front is quicker and cheaper by far more than a
/// tie. What takes its place on a later front ties with it at the worst, in time as in cost.
bool can_never_join(const std::vector<Standing>& front, const Standing& bound);

}  // namespace convoy::search
