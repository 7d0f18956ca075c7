// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/replay/engine.h"

using namespace convoy;

namespace {

constexpr double clock_resolution_s = 1e-12;  ///< SimGrid's surf/precision as the engine sets it

struct TestFlow {
  double start_s;
  double bytes;
  std::vector<std::uint32_t> links;
  std::uint32_t copies = 1;  ///< equal flows that this one stands for
};

/// When each flow ends according to the engine.
std::vector<double> engine_ends_s(const std::vector<double>& capacity_Bps, const std::vector<TestFlow>& flows,
                                  NetworkModel model = NetworkModel::convoy) {
  double largest = 1;
  for (const TestFlow& flow : flows) largest = std::max(largest, flow.bytes);
  Engine engine(capacity_Bps, largest, Contention::shared, model);
  std::vector<double> ends_s(flows.size(), -1);
  for (std::uint32_t f = 0; f < flows.size(); ++f) {
    std::vector<LinkUse> route;
    for (const std::uint32_t link : flows[f].links) route.push_back({link, flows[f].copies});
    const std::uint32_t way = engine.add_route(route);
    const auto start = [&engine, &ends_s, bytes = flows[f].bytes, f, way] {
      engine.start_flow(bytes, way) = [&engine, &ends_s, f] { ends_s[f] = engine.now_s(); };
    };
    if (flows[f].start_s == 0)
      start();
    else
      engine.after(flows[f].start_s) = start;
  }
  engine.run();
  return ends_s;
}

/// Max-min fair rates by water filling (Bertsekas & Gallager, Data Networks, 1992, section 6.5.2): raise all
/// rates together; flows on a link that is full keep theirs.
std::vector<double> water_filling_Bps(const std::vector<double>& capacity_Bps,
                                      const std::vector<TestFlow>& flows, const std::vector<bool>& active) {
  std::vector<double> rate(flows.size(), 0.0), left = capacity_Bps;
  std::vector<bool> rising = active;
  while (std::find(rising.begin(), rising.end(), true) != rising.end()) {
    double step = std::numeric_limits<double>::infinity();
    std::size_t full = 0;
    std::vector<double> crossing(left.size(), 0.0);
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (rising[f])
        for (const std::uint32_t link : flows[f].links) crossing[link] += flows[f].copies;
    for (std::size_t l = 0; l < left.size(); ++l)
      if (crossing[l] > 0 && left[l] / crossing[l] < step) step = left[l] / crossing[l], full = l;
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (rising[f]) rate[f] += step;
    for (std::size_t l = 0; l < left.size(); ++l) left[l] -= step * crossing[l];
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (std::find(flows[f].links.begin(), flows[f].links.end(), full) != flows[f].links.end())
        rising[f] = false;
  }
  return rate;
}

/// When each flow ends, by water filling between one start or end and the next.
std::vector<double> expected_ends_s(const std::vector<double>& capacity_Bps,
                                    const std::vector<TestFlow>& flows) {
  std::vector<double> left, ends_s(flows.size(), -1);
  for (const TestFlow& flow : flows) left.push_back(flow.bytes);
  for (double now_s = 0;;) {
    std::vector<bool> active(flows.size());
    double next_s = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < flows.size(); ++f) {
      active[f] = ends_s[f] < 0 && flows[f].start_s <= now_s;
      if (ends_s[f] < 0 && flows[f].start_s > now_s) next_s = std::min(next_s, flows[f].start_s);
    }
    const std::vector<double> rate = water_filling_Bps(capacity_Bps, flows, active);
    std::size_t first = flows.size();
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (active[f] && now_s + left[f] / rate[f] < next_s) next_s = now_s + left[f] / rate[f], first = f;
    if (std::isinf(next_s)) return ends_s;
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (active[f]) left[f] -= rate[f] * (next_s - now_s);
    now_s = next_s;
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (active[f] && (f == first || left[f] <= 1e-12 * flows[f].bytes)) ends_s[f] = now_s;
  }
}

bool same_instant(double a_s, double b_s) {
  return std::abs(a_s - b_s) <= 1e-9 * std::max(a_s, b_s) + clock_resolution_s;
}

void check_same(const std::vector<double>& times_s, const std::vector<double>& expected_s) {
  REQUIRE(times_s.size() == expected_s.size());
  for (std::size_t f = 0; f < times_s.size(); ++f) {
    CAPTURE(f);
    CAPTURE(times_s[f]);
    CAPTURE(expected_s[f]);
    CAPTURE(times_s[f] - expected_s[f]);
    CHECK(same_instant(times_s[f], expected_s[f]));
  }
}

/// Links of 0.1 to 10 GB/s and flows of 1 MB to 1 GB, each over 1 to 4 of the links.
std::pair<std::vector<double>, std::vector<TestFlow>> random_network(std::mt19937& random, bool staggered) {
  const auto pick = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  std::vector<double> capacity_Bps(1 + random() % 8);
  for (double& capacity : capacity_Bps) capacity = std::pow(10.0, pick(8, 10));
  std::vector<TestFlow> flows(1 + random() % 16);
  for (TestFlow& flow : flows) {
    flow.bytes = std::pow(10.0, pick(6, 9));
    flow.start_s = staggered && random() % 4 > 0 ? std::pow(10.0, pick(-6, -1)) : 0;
    std::vector<std::uint32_t> links(capacity_Bps.size());
    for (std::uint32_t l = 0; l < links.size(); ++l) links[l] = l;
    std::shuffle(links.begin(), links.end(), random);
    links.resize(std::min<std::size_t>(links.size(), 1 + random() % 4));
    flow.links = links;
  }
  return {capacity_Bps, flows};
}

}  // namespace

TEST_CASE("two flows share a link equally, and the longer one has it alone after that") {
  // 1 GB/s each until the 1 GB flow ends at 1 s; the other has 2 GB left and 2 GB/s: 2 s.
  check_same(engine_ends_s({2e9}, {{0, 1e9, {0}}, {0, 3e9, {0}}}), {1.0, 2.0});
}

TEST_CASE("three flows on two links: what the short link denies one, the others get") {
  // Link 0: 3 GB/s for flows a, b; link 1: 10 GB/s for b, c. a = b = 1.5, c = 8.5 GB/s. c (17 GB) and a (3
  // GB) end at 2 s; b has 6 - 3 = 3 GB left and link 0 alone, 3 GB/s: 3 s.
  check_same(engine_ends_s({3e9, 10e9}, {{0, 3e9, {0}}, {0, 6e9, {0, 1}}, {0, 17e9, {1}}}), {2.0, 3.0, 2.0});
}

TEST_CASE("a flow over several links has the rate of the narrowest, and leaves the rest to others") {
  // a is held to 1 GB/s by link 0; b gets 9 of link 1's 10 GB/s: 9 GB in 1 s. a's 2 GB take 2 s.
  check_same(engine_ends_s({1e9, 10e9}, {{0, 2e9, {0, 1}}, {0, 9e9, {1}}}), {2.0, 1.0});
}

TEST_CASE("both directions of a cable are independent links") {
  check_same(engine_ends_s({1e9, 1e9}, {{0, 1e9, {0}}, {0, 1e9, {1}}}), {1.0, 1.0});
}

TEST_CASE("a flow that starts later shares from then on") {
  // Alone for 1 s: 1 of 2 GB. Then half of 1 GB/s each: the first ends at 3 s, having left 1 of 2 GB of the
  // second, which then has the link alone: 4 s.
  check_same(engine_ends_s({1e9}, {{0, 2e9, {0}}, {1, 2e9, {0}}}), {3.0, 4.0});
}

TEST_CASE("a flow that crosses a link twice uses it twice") {
  check_same(engine_ends_s({1e9}, {{0, 1e9, {0}, 2}}), {2.0});
}

TEST_CASE("rates of random static flows are those of water filling") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto [capacity_Bps, flows] = random_network(random, false);
    // The first to end shows its rate undisturbed: bytes / time.
    const std::vector<double> ends_s = engine_ends_s(capacity_Bps, flows);
    const std::vector<double> rates =
        water_filling_Bps(capacity_Bps, flows, std::vector<bool>(flows.size(), true));
    const auto first =
        static_cast<std::size_t>(std::min_element(ends_s.begin(), ends_s.end()) - ends_s.begin());
    CHECK(same_instant(ends_s[first], flows[first].bytes / rates[first]));
    check_same(ends_s, expected_ends_s(capacity_Bps, flows));
  }
}

TEST_CASE("ends of random flows that start at different times are those of water filling") {
  for (unsigned seed = 101; seed <= 160; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto [capacity_Bps, flows] = random_network(random, true);
    const std::vector<double> expected_s = expected_ends_s(capacity_Bps, flows);
    check_same(engine_ends_s(capacity_Bps, flows), expected_s);
    check_same(engine_ends_s(capacity_Bps, flows, NetworkModel::simgrid), expected_s);
  }
}

TEST_CASE("a flow that stands for m equal ones does what m real ones do, to itself and to others") {
  for (unsigned seed = 201; seed <= 240; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto [capacity_Bps, folded] = random_network(random, true);
    std::vector<TestFlow> whole;
    std::vector<std::size_t> stands_for;
    for (std::size_t f = 0; f < folded.size(); ++f) {
      folded[f].copies = 1 + static_cast<std::uint32_t>(random() % 5);
      TestFlow one = folded[f];
      one.copies = 1;
      for (std::uint32_t i = 0; i < folded[f].copies; ++i) whole.push_back(one), stands_for.push_back(f);
    }
    const std::vector<double> folded_s = engine_ends_s(capacity_Bps, folded);
    const std::vector<double> whole_s = engine_ends_s(capacity_Bps, whole);
    check_same(folded_s, expected_ends_s(capacity_Bps, folded));
    for (std::size_t w = 0; w < whole.size(); ++w) CHECK(same_instant(whole_s[w], folded_s[stands_for[w]]));
  }
}

TEST_CASE("timers go off in time order, at their times, and may set others") {
  Engine engine({1.0}, 1);
  std::vector<std::pair<char, double>> log;
  engine.after(2e-3) = [&] { log.emplace_back('c', engine.now_s()); };
  engine.after(1e-3) = [&] {
    log.emplace_back('b', engine.now_s());
    engine.after(5e-3) = [&] { log.emplace_back('d', engine.now_s()); };
  };
  engine.after(0) = [&] { log.emplace_back('a', engine.now_s()); };
  engine.run();
  REQUIRE(log.size() == 4);
  const double expected_s[]{0, 1e-3, 2e-3, 6e-3};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(log[i].first == "abcd"[i]);
    CHECK(same_instant(log[i].second, expected_s[i]));
  }
}

TEST_CASE("a chain of timers of no time ends, and no time passes") {
  Engine engine({1.0}, 1);
  int left = 10'000;
  std::function<void()> next = [&] {
    if (--left > 0) engine.after(0) = [&next] { next(); };
  };
  next();
  engine.run();
  CHECK(left == 0);
  CHECK(engine.now_s() == 0);
}

TEST_CASE("sizes from a byte to petabytes take bytes / bandwidth") {
  // At most 10 s each: SimGrid's clock goes on from engine to engine, and a double loses digits as it grows.
  for (const double bandwidth_Bps : {1e6, 1e9, 3e12, 1e14}) {
    for (const double bytes : {1.0, 1000.0, 1e6, 1e9, 1e12, 8e12, 9.5e12, 12e12, 15e12, 17e12, 1e15}) {
      if (bytes / bandwidth_Bps > 10) continue;
      CAPTURE(bandwidth_Bps);
      CAPTURE(bytes);
      const double end_s = engine_ends_s({bandwidth_Bps}, {{0, bytes, {0}}})[0];
      CHECK(same_instant(end_s, bytes / bandwidth_Bps));
    }
  }
}

TEST_CASE("parts of a byte count: sizes are kept to a millionth") {
  const std::vector<double> ends_s = engine_ends_s({1e3}, {{0, 1.0 / 3, {0}}, {0, 2.0 / 3, {0}}});
  CHECK(std::abs(ends_s[0] - 2.0 / 3e3) < 2e-6 / 1e3);
  CHECK(std::abs(ends_s[1] - 1e-3) < 2e-6 / 1e3);
}

TEST_CASE("engines one after the other start at zero and give the same times") {
  const std::vector<TestFlow> flows{{0, 3e6, {0}}, {1e-4, 6e6, {0, 1}}, {0, 17e6, {1}}};
  const std::vector<double> first_s = engine_ends_s({3e9, 10e9}, flows);
  for (int i = 0; i < 50; ++i) {
    // Moves SimGrid's own clock on.
    engine_ends_s({1e9}, {{0, 1e9, {0}}}, NetworkModel::simgrid);
    CHECK(engine_ends_s({3e9, 10e9}, flows) == first_s);
    check_same(engine_ends_s({3e9, 10e9}, flows, NetworkModel::simgrid), first_s);
  }
}

TEST_CASE("an engine leaves nothing behind for the next one: neither memory, nor what it failed with") {
  const std::vector<TestFlow> flows{{0, 3e6, {0}}, {1e-4, 6e6, {0, 1}}, {0, 17e6, {1}}};
  const std::vector<double> first_s = engine_ends_s({3e9, 10e9}, flows);
  const auto run_many = [&] {
    for (int i = 0; i < 1000; ++i) engine_ends_s({3e9, 10e9}, flows);
    return static_cast<double>(::mallinfo2().uordblks);
  };
  const double before = run_many();
  CHECK(run_many() - before < 1000 * 16);  // bytes; 0 under sanitizers, which have a heap of their own

  Engine failing({1e9}, 1);
  failing.after(1e-3) = [] { throw std::runtime_error("a callback's"); };
  failing.after(2e-3) = [] { FAIL("after the end"); };
  CHECK_THROWS_WITH(failing.run(), "a callback's");
  CHECK(engine_ends_s({3e9, 10e9}, flows) == first_s);
}

namespace {

/// Delays of seven lengths, 0 among them, each of which begins up to two more when it ends: which ends when.
struct Delays {
  Engine engine{{1e9}, 1};
  std::mt19937 random;
  bool as_latencies;
  int begun = 0;
  std::vector<std::pair<int, double>> ended{};

  Delays(unsigned seed, bool latencies) : random(seed), as_latencies(latencies) {
    for (int i = 0; i < 20; ++i) begin();
    engine.run();
  }
  void begin() {
    const double delay_s = 1e-5 * static_cast<double>(random() % 7);
    const auto end = [this, number = begun++] {
      ended.emplace_back(number, engine.now_s());
      for (unsigned more = random() % 3; more > 0 && begun < 2000; --more) begin();
    };
    const bool of_many = random() % 2 == 0;
    if (as_latencies && of_many)
      engine.after_latency(delay_s) = end;
    else
      engine.after(delay_s) = end;
  }
};

}  // namespace

TEST_CASE("delays of equal length end in the order and at the times, to the last bit, of any other delays") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Delays one(seed, false), other(seed, true);
    CHECK(one.ended.size() >= 20);
    CHECK(one.ended == other.ended);
  }
}
