// SPDX-License-Identifier: MIT
#include "sim/search/standing.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "sim/base/ties.h"
#include "sim/search/rank.h"

namespace convoy::inline search {
namespace {

/// By more than the last digits, in which sums of the same terms differ.
bool no_less(double figure, double other) {
  constexpr double last_digits = 1e-12;
  return figure >= other || figure >= other - last_digits * std::abs(other);  // infinite ones too
}

/// Of candidates that tie in what is asked for. @pre not empty
const Standing& first_of_equals(std::vector<Standing>& equals) {
  keep_least(equals, [](const Standing& each) { return static_cast<int>(each.doubtful); });
  keep_least(equals, &Standing::time_s);
  keep_least(equals, &Standing::hosts);
  keep_least(equals, &Standing::global_batch);
  keep_least(equals, &Standing::candidate);
  return equals.front();
}

}  // namespace

std::optional<Standing> best_standing(std::vector<Standing> all) {
  if (all.empty()) return std::nullopt;
  keep_least(all, &Standing::value);
  return first_of_equals(all);
}

std::optional<std::size_t> best_of(std::vector<Standing> all) {
  const std::optional<Standing> best = best_standing(std::move(all));
  return best ? std::optional(best->candidate) : std::nullopt;
}

std::vector<Standing> front_of(std::vector<Standing> all) {
  std::vector<Standing> front;
  while (!all.empty()) {
    std::vector<Standing> next = all;
    keep_least(next, &Standing::time_s);
    keep_least(next, &Standing::cost_usd);
    front.push_back(first_of_equals(next));
    const double cost_usd = front.back().cost_usd;
    std::erase_if(all, [&](const Standing& each) { return ties_with_best(cost_usd, each.cost_usd); });
  }
  return front;
}

bool cannot_reach(const std::vector<Standing>& front, double time_s, double cost_usd) {
  return std::any_of(front.begin(), front.end(), [&](const Standing& on) {
    const bool too_slow = !ties_with_best(time_s, on.time_s) && ties_with_best(on.cost_usd, cost_usd);
    const bool too_dear = on.time_s <= time_s && !ties_with_best(cost_usd, on.cost_usd);
    return too_slow || too_dear;
  });
}

bool loses_ties(const Standing& bound, const Standing& known) {
  if (bound.doubtful != known.doubtful) return bound.doubtful;
  return no_less(bound.time_s, known.time_s) &&
         std::tie(known.hosts, known.global_batch, known.candidate) <
             std::tie(bound.hosts, bound.global_batch, bound.candidate);
}

bool cannot_lead(const Standing& bound, const Standing& best, double least) {
  return !ties_with_best(bound.value, least) || (no_less(bound.value, least) && loses_ties(bound, best));
}

bool cannot_join(const std::vector<Standing>& front, const Standing& bound) {
  return cannot_reach(front, bound.time_s, bound.cost_usd) ||
         std::any_of(front.begin(), front.end(), [&](const Standing& on) {
           return no_less(bound.time_s, on.time_s) && no_less(bound.cost_usd, on.cost_usd) &&
                  loses_ties(bound, on);
         });
}

bool can_never_join(const std::vector<Standing>& front, const Standing& bound) {
  return std::any_of(front.begin(), front.end(), [&](const Standing& on) {
    return at_least(bound.time_s) > on.time_s && at_least(bound.cost_usd) > on.cost_usd;
  });
}

}  // namespace convoy::search
