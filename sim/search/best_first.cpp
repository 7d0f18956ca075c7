// SPDX-License-Identifier: MIT
#include "sim/search/best_first.h"

#include <algorithm>
#include <tuple>

namespace convoy::inline search {
namespace {

constexpr std::size_t largest_group = 1024;

/// The candidates that come next, in their order, as many as are asked for: those that are all planned, or all not.
std::vector<std::size_t> next_of(const SearchSpace& space, std::size_t most) {
  struct Next {
    Rank bound;
    bool open;
    std::size_t candidate;
    auto operator<=>(const Next&) const = default;
  };
  std::vector<Next> order;
  for (const Hope& hope : space.hopes())
    order.push_back({hope.bound, !space.is_planned(hope.candidate), hope.candidate});
  if (most < order.size()) {
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(order.begin(), end, order.end());
    order.erase(end, order.end());
  }
  std::sort(order.begin(), order.end());
  std::vector<std::size_t> next;
  for (const Next& each : order) {
    if (each.open != order.front().open) break;
    next.push_back(each.candidate);
  }
  return next;
}

/// Simulates candidates and records those that the search comes to. @returns how many
std::int64_t simulate_ahead(SearchSpace& space, const std::vector<std::size_t>& ahead) {
  const std::vector<SearchSpace::Record> records = space.simulate(ahead);
  records.front()();
  std::int64_t count = 1;
  for (std::size_t i = 1; i < ahead.size(); ++i) {
    const std::vector<std::size_t> next = next_of(space, 1);
    if (next.empty() || next.front() != ahead[i]) continue;
    records[i]();
    ++count;
  }
  return count;
}

}  // namespace

std::int64_t best_first(SearchSpace& space, const BestFirstOptions& options) {
  std::int64_t simulated = 0;
  std::size_t group = options.first_group;
  for (;;) {
    options.progress();
    if (options.budget && simulated >= *options.budget) return simulated;
    std::vector<std::size_t> next = next_of(space, std::max(group, options.at_once));
    if (next.empty()) return simulated;
    if (!space.is_planned(next.front())) {
      if (next.size() > group) next.resize(group);
      group = std::min(2 * group, largest_group);
      space.plan(next);
      continue;
    }
    std::size_t most = options.at_once;
    if (options.budget) most = std::min(most, static_cast<std::size_t>(*options.budget - simulated));
    if (next.size() > most) next.resize(most);
    simulated += simulate_ahead(space, next);
    if (options.grows_anew) group = options.first_group;
  }
}

}  // namespace convoy::search
