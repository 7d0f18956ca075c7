// SPDX-License-Identifier: MIT
// The search itself, on random spaces that nothing is simulated for: laws against brute force.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "sim/search/best_first.h"
#include "sim/search/standing.h"

using namespace convoy;

namespace {

/// What a candidate comes to: its bounds before and after it is planned, and its simulation.
struct Drawn {
  Rank prior, planned, rank;
  bool fits = true, fails = false;
};

std::vector<Drawn> random_candidates(std::mt19937& random) {
  std::uniform_real_distribution<double> share(0, 1);
  std::vector<Drawn> all(1 + random() % 60);
  const bool tight = random() % 2;  // bounds that are near what simulations come to
  const auto bound_of = [&](double value, bool near) {
    return value * (random() % 3 && !near ? share(random) : 1);
  };
  for (Drawn& each : all) {
    each.rank = {static_cast<double>(1 + random() % 20), static_cast<double>(1 + random() % 5)};
    each.planned = {bound_of(each.rank.value, tight), bound_of(each.rank.time_s, tight)};
    each.prior = {bound_of(each.planned.value, false), bound_of(each.planned.time_s, false)};
    each.fits = random() % 8 != 0;
    each.fails = random() % 8 == 0;
  }
  return all;
}

/// The least of drawn candidates, asked as `auto` asks it.
class DrawnSpace : public SearchSpace {
 public:
  DrawnSpace(const std::vector<Drawn>& drawn, std::size_t at_once, std::optional<std::int64_t> budget = {})
      : drawn_(drawn), states_(drawn.size()) {
    simulated = best_first(*this, {at_once, budget, [] {}});
  }

  std::vector<Hope> hopes() const override {
    std::vector<Hope> hopes;
    for (std::size_t c = 0; c < drawn_.size(); ++c)
      if (states_[c] < too_large && !cannot_beat(bound(c), least)) hopes.push_back({bound(c), c});
    return hopes;
  }
  bool is_planned(std::size_t c) const override { return states_[c] == planned; }
  void plan(const std::vector<std::size_t>& candidates) override {
    const std::vector<State> before = states_;
    for (const std::size_t c : candidates) {
      REQUIRE(states_[c] == open);
      // Not while a plan that was known when the group began is as good.
      for (std::size_t other = 0; other < drawn_.size(); ++other)
        if (before[other] == planned) CHECK(drawn_[c].prior < drawn_[other].planned);
      // Nor before another one that may be better.
      for (std::size_t other = 0; other < drawn_.size(); ++other)
        if (before[other] == open &&
            std::find(candidates.begin(), candidates.end(), other) == candidates.end())
          CHECK(drawn_[c].prior <= drawn_[other].prior);
      states_[c] = drawn_[c].fits ? planned : too_large;
      steps.push_back(fmt::format("plan {}", c));
    }
  }
  std::vector<Record> simulate(const std::vector<std::size_t>& candidates) override {
    std::vector<Record> records;
    given += static_cast<std::int64_t>(candidates.size());
    for (const std::size_t c : candidates) {
      REQUIRE(states_[c] == planned);
      records.push_back([this, c] {
        // No other candidate may be better than this one at their bounds.
        for (std::size_t other = 0; other < drawn_.size(); ++other)
          if (states_[other] < too_large) CHECK(bound(c) <= bound(other));
        states_[c] = done;
        if (!drawn_[c].fails) least = std::min(least, drawn_[c].rank);
        steps.push_back(fmt::format("simulate {}", c));
      });
    }
    return records;
  }

  static constexpr double infinite = 1e300;
  Rank least{infinite, 0};
  std::int64_t simulated = 0, given = 0;  ///< simulations that count, and all
  std::vector<std::string> steps;

 private:
  enum State { open, planned, too_large, done };
  Rank bound(std::size_t c) const { return states_[c] == planned ? drawn_[c].planned : drawn_[c].prior; }
  const std::vector<Drawn>& drawn_;
  std::vector<State> states_;
};

std::int64_t count_of(const std::vector<std::string>& steps, const std::string& what) {
  return std::count_if(steps.begin(), steps.end(), [&](const auto& step) { return step.starts_with(what); });
}

}  // namespace

TEST_CASE("search: finds the least of random spaces, with no more simulations than any search needs") {
  const unsigned first = 1;
  for (unsigned seed = first; seed < first + 400; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::vector<Drawn> drawn = random_candidates(random);
    const DrawnSpace space(drawn, 1);
    Rank least{DrawnSpace::infinite, 0};
    for (const Drawn& each : drawn)
      if (each.fits && !each.fails) least = std::min(least, each.rank);
    CHECK((space.least == least));
    CHECK(space.simulated == count_of(space.steps, "simulate"));
    CHECK(space.simulated == space.given);
    // A search that trusts nothing but bounds has to simulate each candidate whose plan may be better than
    // the least, and to plan each whose cost table may; one that ties with the least may be passed over.
    std::int64_t must = 0, may = 0, must_plan = 0;
    for (const Drawn& each : drawn) {
      must += each.fits && each.planned.value < least.value * (1 - 1e-5);
      may += each.fits && each.planned.value <= least.value * (1 + 1e-5);
      must_plan += each.prior.value < least.value * (1 - 1e-5);
    }
    CHECK(space.simulated >= must);
    CHECK(space.simulated <= may);
    CHECK(count_of(space.steps, "plan") >= must_plan);
  }
}

TEST_CASE("search: takes the same steps however many candidates are simulated at once, up to its budget") {
  std::int64_t ahead = 0, cut_short = 0;
  for (unsigned seed = 1001; seed < 1201; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::vector<Drawn> drawn = random_candidates(random);
    const DrawnSpace one(drawn, 1);
    for (const std::size_t at_once : {1, 2, 5, 64}) {
      CAPTURE(at_once);
      const DrawnSpace many(drawn, at_once);
      CHECK(many.steps == one.steps);
      ahead += many.given - many.simulated;
      const std::int64_t budget = 1 + seed % 5;
      CAPTURE(budget);
      const DrawnSpace limited(drawn, at_once, budget);
      CHECK(limited.simulated == std::min(budget, one.simulated));
      REQUIRE(limited.steps.size() <= one.steps.size());
      CHECK(std::equal(limited.steps.begin(), limited.steps.end(), one.steps.begin()));
      cut_short += limited.steps.size() < one.steps.size();
    }
  }
  CHECK(ahead > 0);  // simulations that the search did not come to
  CHECK(cut_short > 100);
}

namespace {

/// Two figures of a candidate, of which both are wanted small.
struct TwoFigures {
  double time_s = 0, cost_usd = 0, share = 1;  ///< share: its bound's of both
};

/// The front of time and cost, asked as plans ask it.
class FrontSpace : public SearchSpace {
 public:
  FrontSpace(const std::vector<TwoFigures>& drawn, std::size_t at_once) : drawn_(drawn) {
    best_first(*this, {at_once, {}, [] {}});
  }
  std::vector<Hope> hopes() const override {
    const std::vector<Standing> front = front_of(known);
    std::vector<Hope> hopes;
    for (std::size_t c = 0; c < drawn_.size(); ++c) {
      const double time_s = drawn_[c].time_s * drawn_[c].share, cost = drawn_[c].cost_usd * drawn_[c].share;
      if (!simulated.contains(c) && !cannot_reach(front, time_s, cost))
        hopes.push_back({{time_s * cost, time_s}, c});
    }
    return hopes;
  }
  bool is_planned(std::size_t) const override { return true; }
  void plan(const std::vector<std::size_t>&) override { FAIL("all are planned"); }
  std::vector<Record> simulate(const std::vector<std::size_t>& candidates) override {
    std::vector<Record> records;
    for (const std::size_t c : candidates)
      records.push_back([this, c] {
        simulated.insert(c);
        order.push_back(c);
        known.push_back(standing_of(c));
      });
    return records;
  }
  Standing standing_of(std::size_t c) const {
    return {.time_s = drawn_[c].time_s, .cost_usd = drawn_[c].cost_usd, .candidate = c};
  }
  std::set<std::size_t> simulated;
  std::vector<std::size_t> order;
  std::vector<Standing> known;

 private:
  const std::vector<TwoFigures>& drawn_;
};

}  // namespace

TEST_CASE("search: finds the front of random spaces, and simulates only what it cannot rule out") {
  std::size_t all = 0, simulated = 0;
  for (unsigned seed = 2001; seed < 2201; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> drawn_share(0.5, 1), figure(1, 10);
    std::vector<TwoFigures> drawn(1 + random() % 40);
    for (TwoFigures& each : drawn) each = {figure(random), figure(random), drawn_share(random)};
    const FrontSpace space(drawn, 1);
    std::vector<Standing> everything;
    for (std::size_t c = 0; c < drawn.size(); ++c) everything.push_back(space.standing_of(c));
    const std::vector<Standing> front = front_of(everything), found = front_of(space.known);
    REQUIRE(found.size() == front.size());
    for (std::size_t i = 0; i < front.size(); ++i) CHECK(found[i].candidate == front[i].candidate);
    // Whoever knows the front need not simulate what it rules out at its bound; neither does the search.
    for (std::size_t c = 0; c < drawn.size(); ++c) {
      const double time_s = drawn[c].time_s * drawn[c].share, cost = drawn[c].cost_usd * drawn[c].share;
      CHECK(space.simulated.contains(c) == !cannot_reach(front, time_s, cost));
    }
    CHECK(FrontSpace(drawn, 7).order == space.order);
    all += drawn.size(), simulated += space.simulated.size();
  }
  CHECK(simulated < all / 2);
}
