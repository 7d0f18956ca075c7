// SPDX-License-Identifier: MIT
// Which of candidates is the choice, and which are the front, where figures tie: laws on random sets.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>

#include "sim/base/ties.h"
#include "sim/search/standing.h"

using namespace convoy;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Few levels apart by far more than a tie, each figure off its level by rounding: nearly all figures tie
/// with some other, and none is near the edge of a tie.
std::vector<Standing> random_standings(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<double>(random() % n); };
  const auto figure = [&](unsigned levels) {
    const double level = 1 + below(levels);
    return level * (1 + (below(7) - 3) * 1e-13);
  };
  std::vector<Standing> all;
  const std::size_t count = 1 + random() % 12;
  for (std::size_t c = 0; c < count; ++c) {
    Standing one;
    one.value = figure(4);
    one.time_s = figure(5);
    one.cost_usd = random() % 10 == 0 ? infinite : random() % 10 == 0 ? 0 : figure(5);
    one.doubtful = random() % 2;
    one.hosts = 1 + random() % 3;
    one.global_batch = 32 << random() % 3;
    one.candidate = c;
    all.push_back(one);
  }
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

/// By more than a tie. Levels are whole numbers.
bool better(double a, double b) { return std::isinf(b) ? !std::isinf(a) : a < b - 0.5; }

/// Whether the choice should be `a` rather than `b`: what is asked for, then doubt, time, machines, batch,
/// place.
bool goes_before(const Standing& a, const Standing& b, bool by_value) {
  if (by_value && better(a.value, b.value)) return true;
  if (by_value && better(b.value, a.value)) return false;
  if (a.doubtful != b.doubtful) return b.doubtful;
  if (better(a.time_s, b.time_s)) return true;
  if (better(b.time_s, a.time_s)) return false;
  return std::tuple(a.hosts, a.global_batch, a.candidate) < std::tuple(b.hosts, b.global_batch, b.candidate);
}

std::vector<std::size_t> candidates(const std::vector<Standing>& standings) {
  std::vector<std::size_t> found;
  for (const Standing& one : standings) found.push_back(one.candidate);
  return found;
}

}  // namespace

TEST_CASE("standing: the best is the one that goes before all others, by comparing all pairs") {
  std::size_t ties = 0;
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::vector<Standing> all = random_standings(random);
    const Standing* first = &all.front();
    for (const Standing& one : all)
      if (goes_before(one, *first, true)) first = &one;
    CHECK(best_of(all) == first->candidate);
    ties += std::count_if(all.begin(), all.end(), [&](const Standing& one) {
      return one.value != first->value && !better(first->value, one.value);
    });
  }
  CHECK(ties > 500);
  CHECK_FALSE(best_of({}));
}

TEST_CASE("standing: of the front none is bettered, and every candidate is met by one of the front") {
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::vector<Standing> all = random_standings(random);
    const std::vector<Standing> front = front_of(all);
    for (const Standing& one : all) {
      bool met = false;
      for (const Standing& on : front) {
        met = met || (!better(one.time_s, on.time_s) && !better(one.cost_usd, on.cost_usd));
        const bool as_good = !better(on.time_s, one.time_s) && !better(on.cost_usd, one.cost_usd);
        const bool more_so = better(one.time_s, on.time_s) || better(one.cost_usd, on.cost_usd);
        CHECK_FALSE((as_good && more_so));
        if (as_good && !more_so && one.candidate != on.candidate) CHECK(goes_before(on, one, false));
      }
      CHECK(met);
    }
    for (std::size_t i = 1; i < front.size(); ++i) {
      CHECK(better(front[i - 1].time_s, front[i].time_s));
      CHECK(better(front[i].cost_usd, front[i - 1].cost_usd));
    }
  }
}

TEST_CASE(
    "standing: neither the order of candidates nor one more that is equal to the last digit changes "
    "anything") {
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<Standing> all = random_standings(random);
    const std::optional<std::size_t> best = best_of(all);
    const std::vector<std::size_t> front = candidates(front_of(all));
    std::shuffle(all.begin(), all.end(), random);
    CHECK(best_of(all) == best);
    CHECK(candidates(front_of(all)) == front);
    Standing twin = all[random() % all.size()];
    for (double* figure : {&twin.value, &twin.time_s, &twin.cost_usd})
      *figure *= random() % 2 ? 1 - 1e-15 : 1 + 1e-15;
    twin.candidate = all.size();
    all.push_back(twin);
    CHECK(best_of(all) == best);
    CHECK(candidates(front_of(all)) == front);
  }
}

TEST_CASE("standing: whoever cannot lead or join, by a bound that may be what it comes to, changes nothing") {
  std::size_t no_leader = 0, by_the_tie = 0, not_joined = 0, by_a_lost_tie = 0;
  for (unsigned seed = 1; seed <= 8000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<Standing> all = random_standings(random);
    if (all.size() < 2) continue;
    const Standing one = all.back();
    all.pop_back();
    Standing bound = one;  // sometimes below what it comes to, never above it by more than the last digits
    for (double* figure : {&bound.value, &bound.time_s, &bound.cost_usd})
      if (std::isfinite(*figure))
        *figure *= random() % 3 ? 1 + 2e-13 : 1 - 0.3 * static_cast<double>(random() % 3);
    const Standing best = *best_standing(all);
    double least = infinite;
    for (const Standing& each : all) least = std::min(least, each.value);
    const std::vector<Standing> front = front_of(all);
    std::vector<Standing> with = all;
    with.push_back(one);
    if (cannot_lead(bound, best, least)) {
      ++no_leader, by_the_tie += ties_with_best(bound.value, least);
      CHECK(best_of(with) == best.candidate);
    }
    if (cannot_join(front, bound)) {
      ++not_joined, by_a_lost_tie += !cannot_reach(front, bound.time_s, bound.cost_usd);
      CHECK(candidates(front_of(with)) == candidates(front));
    }
  }
  CHECK(no_leader > 2000);
  CHECK(by_the_tie > 200);
  CHECK(not_joined > 2000);
  CHECK(by_a_lost_tie > 40);
}

TEST_CASE(
    "standing: whoever cannot reach the front of the others changes nothing of it, however little is "
    "between") {
  std::size_t out = 0;
  for (unsigned seed = 1; seed <= 4000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<Standing> all = random_standings(random);
    // Some at the edge of a tie.
    for (Standing& one : all)
      for (double* figure : {&one.time_s, &one.cost_usd})
        *figure *= 1 + (static_cast<double>(random() % 9) - 4) * tie_tolerance / 2;
    const Standing one = all.back();
    all.pop_back();
    const std::vector<Standing> front = front_of(all);
    if (!cannot_reach(front, one.time_s, one.cost_usd)) continue;
    ++out;
    all.push_back(one);
    CHECK(candidates(front_of(all)) == candidates(front));
  }
  CHECK(out > 500);
}

TEST_CASE(
    "standing: whoever can never join a front does not join that of any others, however little is between") {
  std::size_t out = 0, displaced = 0;
  for (unsigned seed = 1; seed <= 4000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<Standing> all = random_standings(random);
    if (all.size() < 3) continue;
    for (Standing& each : all)
      for (double* figure : {&each.time_s, &each.cost_usd})
        *figure *= 1 + (static_cast<double>(random() % 9) - 4) * tie_tolerance / 2;
    const Standing bound = all.back();
    all.pop_back();
    std::vector<Standing> known(all.begin(),
                                all.begin() + static_cast<std::ptrdiff_t>(1 + random() % (all.size() - 1)));
    const std::vector<Standing> front = front_of(known);
    if (!can_never_join(front, bound)) continue;
    ++out;
    for (std::size_t i = known.size(); i < all.size(); ++i) {
      known.push_back(all[i]);
      CHECK(cannot_join(front_of(known), bound));
    }
    displaced += candidates(front_of(known)) != candidates(front);
  }
  CHECK(out > 500);
  CHECK(displaced > 100);
}
