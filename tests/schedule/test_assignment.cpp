// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "sim/schedule/assignment.h"

using namespace convoy;

namespace {

double cost_of(const std::vector<std::vector<Choice>>& choices, const std::vector<std::size_t>& chosen) {
  double sum = 0;
  for (std::size_t j = 0; j < choices.size(); ++j) sum += choices[j][chosen[j]].cost;
  return sum;
}

bool fits(const std::vector<std::vector<Choice>>& choices, const std::vector<std::size_t>& chosen,
          const std::vector<GpuPool>& pools) {
  std::vector<std::uint32_t> used(pools.size(), 0);
  for (std::size_t j = 0; j < choices.size(); ++j)
    used[choices[j][chosen[j]].allocation.kind] += choices[j][chosen[j]].allocation.gpus;
  for (std::size_t kind = 0; kind < pools.size(); ++kind)
    if (used[kind] > pools[kind].gpus) return false;
  return true;
}

/// By all combinations.
double least_cost(const std::vector<std::vector<Choice>>& choices, const std::vector<GpuPool>& pools) {
  std::vector<std::size_t> chosen(choices.size(), 0);
  double least = 1e99;
  while (true) {
    if (fits(choices, chosen, pools)) least = std::min(least, cost_of(choices, chosen));
    std::size_t j = 0;
    while (j < chosen.size() && ++chosen[j] == choices[j].size()) chosen[j++] = 0;
    if (j == chosen.size()) return least;
  }
}

}  // namespace

TEST_CASE("assignment: never overdraws a pool, and is within a tenth of the least cost, mostly at it") {
  std::mt19937 random(17);
  const auto number = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  int at_least_cost = 0;
  constexpr int trials = 400;
  double worst = 1;
  for (int trial = 0; trial < trials; ++trial) {
    const auto count = static_cast<std::size_t>(number(1, 6));
    const std::vector<GpuPool> pools{{static_cast<std::uint32_t>(number(1, 9))},
                                     {static_cast<std::uint32_t>(number(1, 9))}};
    std::vector<std::vector<Choice>> choices(count);
    for (auto& of : choices) {
      of.push_back({{}, 1.1});
      for (std::uint32_t kind = 0; kind < 2; ++kind) {
        const double speed = number(0.5, 4), shared = number(0.5, 1);
        for (std::uint32_t w = 1; w <= 8; w *= 2)
          of.push_back({{kind, w}, 1 / std::sqrt(1 + speed * std::pow(w, shared))});
      }
    }
    const std::vector<std::size_t> chosen = assign(choices, pools);
    REQUIRE(fits(choices, chosen, pools));
    const double least = least_cost(choices, pools), ours = cost_of(choices, chosen);
    worst = std::max(worst, ours / least);
    at_least_cost += ours <= least * (1 + 1e-9) ? 1 : 0;
  }
  CAPTURE(worst);
  CHECK(worst <= 1.1);
  CHECK(at_least_cost >= trials * 3 / 4);
}
