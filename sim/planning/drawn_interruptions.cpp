// SPDX-License-Identifier: MIT
#include "sim/planning/drawn_interruptions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "sim/run/dice.h"

namespace convoy::inline planning {
namespace {

constexpr std::size_t draws = 2000;
/// The number of more interruptions than this, and the sum of what they take, are nearly normal.
constexpr double most_drawn = 100;

/// How many a Poisson process of unit rate has until `mean`, and the sum of so many exponentials with mean 1.
std::pair<double, double> interruptions_drawn(double mean, SeededDice& dice) {
  if (mean > most_drawn) {
    const double many = std::max(0.0, mean + std::sqrt(mean) * dice.normal());
    return {many, std::max(0.0, many + std::sqrt(many) * dice.normal())};
  }
  double count = 0, taken = 0;
  for (double at = dice.exponential(1); at < mean; at += dice.exponential(1)) {
    ++count;
    taken += dice.exponential(1);
  }
  return {count, taken};
}

std::pair<double, double> four_of_five(std::array<double, draws>& values) {
  std::sort(values.begin(), values.end());
  return {values[draws / 10], values[draws - 1 - draws / 10]};
}

}  // namespace

DrawnInterruptions draw_interruptions(const ExpectedInterruptions& expected) {
  DrawnInterruptions drawn;
  if (expected.events <= 0 || expected.time_s <= 0) return drawn;
  constexpr std::uint64_t seed = 1;
  SeededDice dice(seed);
  std::array<double, draws> events{}, factors{};
  for (std::size_t i = 0; i < draws; ++i) {
    const double rate = expected.least_rate + (expected.most_rate - expected.least_rate) * dice.uniform();
    const auto [count, taken] = interruptions_drawn(expected.events * rate, dice);
    events[i] = count;
    factors[i] = 1 + (taken / expected.events - 1) * expected.lost_s / expected.time_s;
  }
  drawn.events = four_of_five(events);
  drawn.time_factors = four_of_five(factors);
  return drawn;
}

}  // namespace convoy::planning
