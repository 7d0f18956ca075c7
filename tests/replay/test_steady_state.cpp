// SPDX-License-Identifier: MIT
// How long a service is measured: until the mean step is known, and no longer than may be afforded.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "sim/replay/steady_state.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

struct Measured {
  int steps = 0;
  double step_s = 0;
};

/// One client computes 10 ms a step and then waits for `least_s` to `most_s`.
Measured measured(double least_s, double most_s) {
  Service service;
  service.clients = {{0, 1.0, 0.0, 0}};
  service.exchanges.resize(1);
  service.drifts = true;
  Folding folding;
  folding.endpoint_class = {0};
  folding.endpoints = {0};
  SteadyState state(service, folding, true);
  DeviceClock clock;
  std::mt19937 random(1);
  Measured result;
  double now_s = 0;
  while (!state.is_over() && result.steps < 100'000) {
    state.step_begins(0, now_s, clock, 0);
    clock.compute_begins(now_s);
    now_s += 10e-3;
    clock.compute_ends(now_s);
    now_s += std::uniform_real_distribution<double>(least_s, most_s)(random);
    state.step_ends(0, now_s, clock, 0);
    ++result.steps;
  }
  result.step_s = state.step_time_s(1);
  return result;
}

/// A client whose steps take as long as `step_s` says of their numbers, and bring so many updates each.
struct Paced {
  std::function<double(int step, double stretch)> step_s;
  std::uint64_t updates = 1;
  int steps = 0;
  double begins_s = 0;
  DeviceClock clock = {};
};

/// Runs clients, step by step as they end, until their measurement is over. Returns when.
double measure(SteadyState& state, std::vector<Paced>& clients) {
  const auto begin = [&](std::uint32_t c, double now_s) {
    state.step_begins(c, now_s, clients[c].clock,
                      static_cast<std::uint64_t>(clients[c].steps) * clients[c].updates);
    clients[c].begins_s = now_s;
  };
  const auto end_s = [&](const Paced& client) {
    const auto c = static_cast<std::uint32_t>(&client - clients.data());
    return client.begins_s + client.step_s(client.steps, state.next_stretch(c));
  };
  for (std::uint32_t c = 0; c < clients.size(); ++c) begin(c, 0);
  while (true) {
    const auto next = std::min_element(clients.begin(), clients.end(),
                                       [&](const Paced& a, const Paced& b) { return end_s(a) < end_s(b); });
    const double now_s = end_s(*next);
    const auto c = static_cast<std::uint32_t>(next - clients.begin());
    next->clock.compute_begins(next->begins_s);
    next->clock.compute_ends(now_s);
    ++next->steps;
    state.step_ends(c, now_s, next->clock, static_cast<std::uint64_t>(next->steps) * next->updates);
    if (state.is_over() || next->steps == 200'000) return now_s;
    begin(c, now_s);
  }
}

Folding folding_of(std::size_t clients) {
  Folding folding;
  for (std::uint32_t c = 0; c < clients; ++c) {
    folding.endpoint_class.push_back(c);
    folding.endpoints.push_back(c);
  }
  return folding;
}

Service service_of(std::size_t clients, std::size_t exchanges) {
  Service service;
  for (EndpointId c = 0; c < clients; ++c) service.clients.push_back({c, 1.0, 1e-3 * c, 0});
  service.exchanges.resize(exchanges);
  return service;
}

}  // namespace

TEST_CASE("a measurement of fixed steps ends when the slowest client has done eight whole ones") {
  const Service service = service_of(2, 1);
  const Folding folding = folding_of(2);
  SteadyState state(service, folding, true);
  std::vector<Paced> clients{{[](int, double) { return 1e-3; }}, {[](int, double) { return 3.1e-3; }}};
  // The slow one has done its four steps to warm up at 12.4 ms and eight more at 37.2 ms. The fast one's
  // first whole step begins at 13 ms, and it has done 24 of them when it is over.
  CHECK(measure(state, clients) == approx(37.2e-3));
  CHECK(clients[1].steps == 4 + 8);
  CHECK(state.client(0).begin_s == approx(13e-3));
  CHECK(state.client(0).steps == 24);
  CHECK(state.step_time_s(2) == approx(2 / (1 / 1e-3 + 1 / 3.1e-3)));
}

TEST_CASE("a measurement of clients that push each other apart ends when their steps have become equal") {
  Service service = service_of(3, 1);
  service.drifts = true;
  service.warm_up_steps = 16;
  const Folding folding = folding_of(3);
  const auto steps_of = [&](const Service& of, const std::function<double(int, double)>& step_s,
                            bool undisturbed = true) {
    SteadyState state(of, folding, undisturbed);
    std::vector<Paced> clients(3, {step_s});
    measure(state, clients);
    CHECK(state.is_over());
    return std::pair{clients.back().steps, state.step_time_s(3)};
  };
  // 3 ms, and 0.75 ms less for every step before: the fifth and sixth are equal, and the seventh is measured.
  const auto settles = [](int step, double) { return 1e-3 * std::max(0, 4 - step) * 0.75 + 3e-3; };
  const auto [steps, step_s] = steps_of(service, settles);
  CHECK(steps == 7);
  CHECK(step_s == approx(3e-3));
  // To within a hundredth of a percent: 0.1 % by which the first step is too long, halved with each.
  const auto [halving_steps, halving_s] =
      steps_of(service, [](int step, double) { return 1e-3 * (1 + 1e-3 * std::ldexp(1, -step)); });
  CHECK(halving_steps == 6);
  CHECK(halving_s == approx(1e-3).epsilon(1e-4));
  // Not with what else changes steps: images, disturbances, chance.
  CHECK(steps_of(service, settles, false).first == 16 + 64);
  service.step_jitter = 1e-9;
  CHECK(steps_of(service, settles).first == 16 + 64);
  service.step_jitter = 0;
  // Clients of unequal steps do not keep the phases at which they meet.
  SteadyState state(service, folding, true);
  std::vector<Paced> clients;
  for (const double own_s : {1e-3, 1e-3, 1.0002e-3})
    clients.push_back({[own_s](int, double) { return own_s; }});
  measure(state, clients);
  CHECK(clients.back().steps == 16 + 64);
}

TEST_CASE("a measurement goes on if the steps after those that were equal are not") {
  Service service = service_of(1, 1);
  service.drifts = true;
  const Folding folding = folding_of(1);
  SteadyState state(service, folding, true);
  // Two of 1 ms, then 1 and 3 ms in turn.
  std::vector<Paced> clients{{[](int step, double) { return step > 1 && step % 2 == 0 ? 3e-3 : 1e-3; }}};
  measure(state, clients);
  CHECK(clients[0].steps > 2 + 8);
  CHECK(state.step_time_s(1) == approx(2e-3).epsilon(0.02));
}

TEST_CASE("a random measurement ends when all clients are known, and not with the first of them") {
  Service service = service_of(2, 1);
  service.compute_spread = 0.25;
  const Folding folding = folding_of(2);
  SteadyState state(service, folding, true);
  std::vector<Paced> clients{{[](int, double stretch) { return 1e-3 * stretch; }},
                             {[](int, double stretch) { return 5e-3 * stretch; }}};
  // What they compute is all they do: known at the first look, when the slow one has done 8 x 8 steps.
  measure(state, clients);
  CHECK(clients[1].steps == 4 + 64);
  CHECK(clients[0].steps > 4.5 * clients[1].steps);
  CHECK(state.step_time_s(2) == approx(2 / (1 / 1e-3 + 1 / 5e-3)).epsilon(1e-9));
}

TEST_CASE("one of several measurements is as long as it is told, and each draws times of its own") {
  Service service = service_of(1, 1);
  service.step_jitter = 0.1;
  const Folding folding = folding_of(1);
  std::vector<double> draws;
  for (const std::uint64_t number : {0, 1, 2})
    for (const std::uint32_t longer : {1, 4}) {
      SteadyState state(service, folding, true, {number, longer});
      if (longer == 1) draws.insert(draws.end(), {state.next_stretch(0), state.phase(0)});
      // Every step is 1 ms longer than the one before: it never comes to a mean.
      std::vector<Paced> clients{{[](int step, double) { return 1e-3 * (1 + step); }}};
      measure(state, clients);
      CHECK(clients[0].steps == static_cast<int>(longer) * (4 + 8 * 8));
    }
  std::sort(draws.begin(), draws.end());
  CHECK(std::adjacent_find(draws.begin(), draws.end()) == draws.end());
  // A change of when clients begin changes no draw.
  const auto draw = [&](double start_s) {
    service.clients[0].start_s = start_s;
    return SteadyState(service, folding, true).next_stretch(0);
  };
  CHECK(draw(0.25) == draw(0.25 * (1 + 1e-12)));
}

TEST_CASE("a measurement that never comes to a mean ends after 2^16 messages") {
  const struct {
    std::size_t clients, exchanges;
    int steps;
  } cases[] = {{1, 1, 65536}, {1, 256, 256}, {2, 256, 128}, {1, 1024, 64}};
  for (const auto& it : cases) {
    CAPTURE(it.clients);
    CAPTURE(it.exchanges);
    for (const bool quorum : {false, true}) {
      CAPTURE(quorum);
      Service service = service_of(it.clients, it.exchanges);
      service.drifts = !quorum;
      service.step_jitter = quorum ? 0.1 : 0;
      service.quorum = quorum ? 1 : 0;
      const Folding folding = folding_of(it.clients);
      SteadyState state(service, folding, true);
      // Every step is 1 ms longer than the one before.
      std::vector<Paced> clients(it.clients, {[](int step, double) { return 1e-3 * (1 + step); }});
      measure(state, clients);
      CHECK(clients.back().steps == 4 + it.steps);
    }
  }
}

TEST_CASE("a measurement of updates ends when the mean between them is known to 0.2 %") {
  Service service = service_of(1, 1);
  service.quorum = 1;
  service.step_jitter = 0.05;
  const Folding folding = folding_of(1);
  for (const std::uint64_t updates : {1, 3}) {
    SteadyState state(service, folding, true);
    std::vector<Paced> clients{{[](int, double stretch) { return 20e-3 * stretch; }, updates}};
    measure(state, clients);
    // 2.45 standard errors of 5 % are 0.2 % after some 3,700 steps; looks are at 1024, 2048, ... of them.
    CHECK(clients[0].steps >= 4 + 512);
    CHECK(clients[0].steps <= 4 + 16'384);
    CHECK(state.step_time_s(1) == approx(20e-3 / static_cast<double>(updates)).epsilon(0.004));
  }
  // Without jitter nothing is uncertain: eight steps.
  service.step_jitter = 0;
  SteadyState state(service, folding, true);
  std::vector<Paced> clients{{[](int, double stretch) { return 20e-3 * stretch; }, 3}};
  measure(state, clients);
  CHECK(clients[0].steps == 4 + 8);
  CHECK(state.step_time_s(1) == approx(20e-3 / 3));
}

TEST_CASE("normal draws of step_jitter: mean, deviation and shares within one and two deviations") {
  Service service = service_of(2, 1);
  service.quorum = 2;
  service.step_jitter = 0.1;
  service.clients[1] = {1, 1.0, 0, 0, 1};
  service.clients[0].start_s = 0;
  const Folding folding = folding_of(2);
  SteadyState state(service, folding, true);
  DeviceClock clock;
  constexpr int draws = 20'000;
  double sum = 0, squares = 0, product = 0;
  int within_one = 0, within_two = 0;
  for (int i = 0; i < draws; ++i) {
    const double z = (state.next_stretch(0) - 1) / 0.1, other = (state.next_stretch(1) - 1) / 0.1;
    sum += z, squares += z * z, product += z * other;
    within_one += std::abs(z) < 1, within_two += std::abs(z) < 2;
    state.step_ends(0, i, clock, 0);
    state.step_ends(1, i, clock, 0);
  }
  CHECK(std::abs(sum / draws) < 0.03);
  CHECK(std::abs(squares / draws - 1) < 0.04);
  CHECK(std::abs(product / draws) < 0.03);  // sequences of their own
  CHECK(std::abs(within_one / static_cast<double>(draws) - 0.6827) < 0.015);
  CHECK(std::abs(within_two / static_cast<double>(draws) - 0.9545) < 0.008);
}

TEST_CASE("a measurement is over once the mean is known to 1 %, and not before") {
  // Waits alone are uncertain: what the client computes is known. 8 blocks of 8 steps follow 4 of warm-up.
  const Measured sure = measured(0.9e-3, 1.1e-3);
  CHECK(sure.steps == 4 + 64);
  CHECK(sure.step_s == approx(11e-3).epsilon(1e-3));
  // 0 to 20 ms: a standard deviation of 5.8 of 20 ms. 1 % is 2.45 of them over sqrt(n): n of about 5,000
  // steps; looks are at 64, 128, 256, ... of them.
  const Measured unsure = measured(0, 20e-3);
  CHECK(unsure.steps >= 4 + 1024);
  CHECK(unsure.steps <= 4 + 16'384);
  CHECK(unsure.step_s == approx(20e-3).epsilon(0.015));
}

TEST_CASE("a client that does a hundred steps in one of another's does not make a measurement longer") {
  // The slow one counts for ten times as many images as the quick one, and its mean is known to 1 % after
  // (2.447 x 0.577 / 0.01)^2 = 20,000 steps: two million of the quick one's.
  std::mt19937 random(1);
  std::uniform_real_distribution<double> any(0, 200e-6);
  std::vector<double> slow_s(10'000);
  for (double& step_s : slow_s) step_s = any(random);
  Service service = service_of(2, 1);
  service.clients[1].images = 1000;
  service.compute_spread = 0.25;
  const Folding folding = folding_of(2);
  SteadyState state(service, folding, true);
  std::vector<Paced> clients{{[](int, double stretch) { return 1e-6 * stretch; }},
                             {[&](int step, double) { return slow_s[static_cast<std::size_t>(step)]; }}};
  measure(state, clients);
  CHECK(state.is_over());
  CHECK(clients[0].steps > 50 * clients[1].steps);
  CHECK(clients[0].steps + clients[1].steps <= 1 << 16);  // messages
}
