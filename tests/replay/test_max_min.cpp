// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "sim/replay/max_min.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

/// Flows that come and go over random routes, with every rate held against water filling from nothing.
class Trial {
 public:
  explicit Trial(unsigned seed) : random_(seed), capacity_Bps_(2 + random_() % 30) {
    for (double& capacity : capacity_Bps_) capacity = random_() % 2 ? 1e9 : std::pow(10.0, 8 + 2.0 * part());
    rates_.emplace(capacity_Bps_);
    const bool star = random_() % 2;  // all over link 0
    for (std::size_t i = 1 + random_() % 40; i > 0; --i) {
      std::vector<std::uint32_t> links(capacity_Bps_.size());
      for (std::uint32_t l = 0; l < links.size(); ++l) links[l] = l;
      std::shuffle(links.begin() + star, links.end(), random_);
      links.resize(std::min<std::size_t>(links.size(), star ? 2 : 1 + random_() % 3));
      std::vector<LinkUse>& route = routes_.emplace_back();
      for (const std::uint32_t l : links)
        route.push_back({l, star ? 1 : 1 + static_cast<std::uint32_t>(random_() % 2)});
      limits_Bps_.push_back(random_() % 8 ? no_limit : 1e8 * part());
      names_.push_back(rates_->add_route(route, limits_Bps_.back()));
    }
  }

  void go_on(bool with_starts) {
    for (unsigned i = with_starts ? static_cast<unsigned>(random_() % 3) : 0; i > 0; --i) {
      const std::size_t route = random_() % routes_.size();
      const double bytes = std::pow(10.0, 5 + 3.0 * part());
      rates_->start(names_[route], bytes, static_cast<std::uint32_t>(flows_.size()), now_s_);
      flows_.push_back({route, bytes, true});
    }
    if (random_() % 20 == 0) {
      const auto link = static_cast<std::uint32_t>(random_() % capacity_Bps_.size());
      capacity_Bps_[link] *= 0.5 + part();
      rates_->set_bandwidth(link, capacity_Bps_[link], now_s_);
    }
    const double next_s = rates_->next_end_s(now_s_);
    const std::vector<double> expected_Bps = water_filling_Bps();
    double expected_s = no_limit;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      if (!flows_[f].alive) continue;
      CAPTURE(f);
      REQUIRE(rates_->rate_Bps(names_[flows_[f].route]) == approx(expected_Bps[f]).epsilon(1e-9));
      expected_s = std::min(expected_s, now_s_ + flows_[f].left_bytes / expected_Bps[f]);
    }
    REQUIRE(std::isinf(next_s) == std::isinf(expected_s));
    if (std::isinf(next_s)) return;
    REQUIRE(next_s == approx(expected_s).epsilon(1e-9));
    for (std::size_t f = 0; f < flows_.size(); ++f)
      flows_[f].left_bytes -= expected_Bps[f] * (next_s - now_s_);
    now_s_ = next_s;
    std::vector<std::uint32_t> ended;
    rates_->take_ended(now_s_, 1e-12, ended);
    REQUIRE(!ended.empty());
    for (const std::uint32_t f : ended) flows_[f].alive = false;
  }

 private:
  struct TrialFlow {
    std::size_t route;
    double left_bytes;
    bool alive;
  };
  double part() { return std::uniform_real_distribution(0.0, 1.0)(random_); }

  /// Raise all rates together; flows on a full link, and those at their limit, keep theirs.
  std::vector<double> water_filling_Bps() const {
    std::vector<double> left = capacity_Bps_, rate(flows_.size(), 0.0);
    std::vector<bool> rising;
    for (const TrialFlow& flow : flows_) rising.push_back(flow.alive);
    while (std::find(rising.begin(), rising.end(), true) != rising.end()) {
      std::vector<double> weight(left.size(), 0.0);
      double step = no_limit;
      for (std::size_t f = 0; f < flows_.size(); ++f) {
        if (!rising[f]) continue;
        step = std::min(step, limits_Bps_[flows_[f].route] - rate[f]);
        for (const LinkUse& use : routes_[flows_[f].route]) weight[use.link] += use.multiplicity;
      }
      for (std::size_t l = 0; l < left.size(); ++l)
        if (weight[l] > 0) step = std::min(step, left[l] / weight[l]);
      std::vector<bool> full(left.size());
      for (std::size_t l = 0; l < left.size(); ++l) {
        full[l] = weight[l] > 0 && left[l] / weight[l] <= step * (1 + 1e-12);
        left[l] -= step * weight[l];
      }
      for (std::size_t f = 0; f < flows_.size(); ++f) {
        if (!rising[f]) continue;
        rate[f] += step;
        const std::size_t route = flows_[f].route;
        rising[f] = rate[f] < limits_Bps_[route] * (1 - 1e-12) &&
                    std::none_of(routes_[route].begin(), routes_[route].end(),
                                 [&](const LinkUse& use) { return full[use.link]; });
      }
    }
    return rate;
  }

  std::mt19937 random_;
  std::vector<double> capacity_Bps_;
  std::vector<std::vector<LinkUse>> routes_;
  std::vector<double> limits_Bps_;
  std::vector<std::uint32_t> names_;
  std::vector<TrialFlow> flows_;
  std::optional<MaxMin> rates_;
  double now_s_ = 0;
};

}  // namespace

TEST_CASE("rates of flows that come and go on links that change are those of water filling") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    Trial trial(seed);
    for (int event = 0; event < 150; ++event) trial.go_on(event < 120);
  }
}

TEST_CASE("equal routes have one name, routes of different limits different ones") {
  MaxMin rates({1e9, 1e9});
  const std::vector<LinkUse> one{{0, 1}, {1, 2}}, other{{0, 1}, {1, 3}};
  const std::uint32_t name = rates.add_route(one, no_limit);
  CHECK(rates.add_route(one, no_limit) == name);
  CHECK(rates.add_route(other, no_limit) != name);
  const std::uint32_t limited = rates.add_route(one, 1e6);
  CHECK(limited != name);
  CHECK(rates.add_route(one, 1e6) == limited);
  CHECK(rates.add_route(one, 2e6) != limited);
}

TEST_CASE("flows at their limit leave the link to others") {
  // Of 10 MB/s two flows may have 1 MB/s each; the third has 8.
  MaxMin rates({10e6});
  const std::vector<LinkUse> route{{0, 1}};
  const std::uint32_t slow = rates.add_route(route, 1e6), fast = rates.add_route(route, no_limit);
  rates.start(slow, 1e6, 0, 0);
  rates.start(slow, 1e6, 1, 0);
  rates.start(fast, 4e6, 2, 0);
  CHECK(rates.next_end_s(0) == approx(0.5));
  CHECK(rates.rate_Bps(slow) == approx(1e6));
  CHECK(rates.rate_Bps(fast) == approx(8e6));
}

TEST_CASE("a flow that has its links to itself shares one of them from the moment another begins") {
  // 10 MB alone at 10 MB/s; from half of it on at 5 MB/s beside 2 MB of another, which takes 0.4 s, and then alone.
  MaxMin rates({10e6, 20e6, 20e6});
  const std::uint32_t longer = rates.add_route(std::vector<LinkUse>{{0, 1}, {1, 1}}, no_limit);
  const std::uint32_t other = rates.add_route(std::vector<LinkUse>{{2, 1}, {0, 1}}, no_limit);
  rates.start(longer, 10e6, 7, 0);
  CHECK(rates.next_end_s(0) == approx(1));
  CHECK(rates.rate_Bps(longer) == approx(10e6));
  rates.start(other, 2e6, 8, 0.5);
  CHECK(rates.next_end_s(0.5) == approx(0.9));
  CHECK(rates.rate_Bps(longer) == approx(5e6));
  std::vector<std::uint32_t> ended;
  rates.take_ended(0.9, 1e-12, ended);
  CHECK(ended == std::vector<std::uint32_t>{8});
  CHECK(rates.next_end_s(0.9) == approx(1.2));
  rates.take_ended(1.2, 1e-12, ended);
  CHECK(ended == std::vector<std::uint32_t>{8, 7});
  CHECK(std::isinf(rates.next_end_s(1.2)));
}

TEST_CASE("a link of no bandwidth stops its flows until it has some again") {
  MaxMin rates({1e6});
  const std::uint32_t route = rates.add_route(std::vector<LinkUse>{{0, 1}}, no_limit);
  rates.start(route, 2e6, 0, 0);
  CHECK(rates.next_end_s(0) == approx(2));
  rates.set_bandwidth(0, 0, 1);
  CHECK(std::isinf(rates.next_end_s(1)));
  rates.set_bandwidth(0, 0.5e6, 5);
  CHECK(rates.next_end_s(5) == approx(7));
}
