// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "sim/collectives/collectives.h"
#include "sim/collectives/table.h"
#include "tests/support/approx.h"
#include "tests/support/hand.h"

using namespace convoy;

namespace {

/// Hosts with so many devices each, and no links between them.
Machine hosts_of(const std::vector<std::uint32_t>& device_counts) {
  Machine machine = hand::devices(0);
  for (std::uint32_t h = 0; h < device_counts.size(); ++h) {
    machine.hosts.push_back(
        {fmt::format("h{}", h), 0, static_cast<std::uint32_t>(machine.devices.size()), device_counts[h]});
    for (std::uint32_t d = 0; d < device_counts[h]; ++d)
      machine.devices.push_back({fmt::format("h{}.gpu{}", h, d), 0, h, 1.0});
  }
  machine.router = std::make_shared<hand::TableRouter>();
  return machine;
}

std::vector<EndpointId> ranks(std::size_t n) {
  std::vector<EndpointId> result(n);
  std::iota(result.begin(), result.end(), 0u);
  return result;
}

/// "0>1 1>0 x2 /4": pairs, repetitions, and one over the fraction.
std::string text(const Pattern& pattern) {
  std::string result;
  for (const Round& round : pattern.rounds) {
    if (!result.empty()) result += " | ";
    for (const auto& [from, to] : round.pairs) result += fmt::format("{}>{} ", from, to);
    result += fmt::format("x{} /{:.6g}", round.repeat, 1 / round.fraction(0));
  }
  return result;
}

/// What a message of the algorithm carries: element indices, and whether the receiver adds them to his own or
/// takes them for his own.
struct Carried {
  std::vector<std::size_t> elements;
  bool add;
};
/// @param round of the pattern, repetition of the round, and pair of the round
using Rule = std::function<Carried(std::size_t round, std::size_t repetition, std::size_t pair)>;

/// Executes a pattern message by message: count[rank][element][contributor] is how often a contribution is in
/// what the rank holds. Ends with every contribution once everywhere.
void check_all_reduce(const Pattern& pattern, std::size_t elements, const Rule& rule) {
  const std::size_t n = pattern.groups.at(0).size();
  using Contributions = std::vector<int>;
  std::vector<std::vector<Contributions>> held(n, std::vector<Contributions>(elements, Contributions(n, 0)));
  for (std::size_t r = 0; r < n; ++r)
    for (Contributions& element : held[r]) element[r] = 1;
  for (std::size_t i = 0; i < pattern.rounds.size(); ++i) {
    const Round& round = pattern.rounds[i];
    for (std::size_t repetition = 0; repetition < round.repeat; ++repetition) {
      const auto before = held;  // messages of a round carry what was there when it began
      for (std::size_t k = 0; k < round.pairs.size(); ++k) {
        const auto [from, to] = round.pairs[k];
        const Carried carried = rule(i, repetition, k);
        CHECK(static_cast<double>(carried.elements.size()) / static_cast<double>(elements) ==
              approx(round.fraction(k)).epsilon(1e-12));
        for (const std::size_t e : carried.elements)
          for (std::size_t c = 0; c < n; ++c)
            held[to][e][c] = before[from][e][c] + (carried.add ? held[to][e][c] : 0);
      }
    }
  }
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t e = 0; e < elements; ++e) {
      CAPTURE(r);
      CAPTURE(e);
      CHECK(held[r][e] == Contributions(n, 1));
    }
}

std::vector<std::size_t> everything(std::size_t elements) {
  std::vector<std::size_t> result(elements);
  std::iota(result.begin(), result.end(), std::size_t{0});
  return result;
}

std::size_t modulo(std::size_t a, std::size_t minus, std::size_t n) {
  return (a + n * (1 + minus / n) - minus) % n;
}

/// The part that member i of a ring of n sends in step s: in reduce-scatter the one it has just added to,
/// beginning with its own; in all-gather the one it has just got, beginning with the one that it has
/// completed.
std::size_t reduce_part(std::size_t i, std::size_t s, std::size_t n) { return modulo(i, s, n); }
std::size_t gather_part(std::size_t i, std::size_t s, std::size_t n) { return modulo(i + 1, s, n); }

double volume(const Pattern& pattern) {
  double sum = 0;
  for (const Round& round : pattern.rounds)
    for (std::size_t k = 0; k < round.pairs.size(); ++k) sum += round.repeat * round.fraction(k);
  return sum;
}

}  // namespace

TEST_CASE("a ring's rounds by hand") {
  CHECK(text(ring_all_reduce(ranks(1), hosts_of({1}))) == "");
  CHECK(text(ring_all_reduce(ranks(2), hosts_of({1, 1}))) == "0>1 1>0 x2 /2");
  CHECK(text(ring_all_reduce(ranks(4), hosts_of({1, 1, 1, 1}))) == "0>1 1>2 2>3 3>0 x6 /4");
  // Hosts in the order of their first rank, ranks of a host one after the other.
  CHECK(text(ring_all_reduce({0, 2, 1, 3}, hosts_of({2, 2}))) == "0>2 2>1 1>3 3>0 x6 /4");
}

TEST_CASE("a tree's rounds by hand") {
  CHECK(text(tree_all_reduce(ranks(1))) == "");
  CHECK(text(tree_all_reduce(ranks(2))) == "1>0 x1 /1 | 0>1 x1 /1");
  CHECK(text(tree_all_reduce(ranks(3))) == "1>0 x1 /1 | 2>0 x1 /1 | 0>2 x1 /1 | 0>1 x1 /1");
  CHECK(text(tree_all_reduce(ranks(5))) ==
        "1>0 3>2 x1 /1 | 2>0 x1 /1 | 4>0 x1 /1 | 0>4 x1 /1 | 0>2 x1 /1 | 0>1 2>3 x1 /1");
  CHECK(text(tree_all_reduce(ranks(8))) ==
        "1>0 3>2 5>4 7>6 x1 /1 | 2>0 6>4 x1 /1 | 4>0 x1 /1 | 0>4 x1 /1 | 0>2 4>6 x1 /1 | 0>1 2>3 4>5 6>7 x1 "
        "/1");
}

TEST_CASE("halving and doubling by hand") {
  CHECK(text(halving_doubling_all_reduce(ranks(1))) == "");
  CHECK(text(halving_doubling_all_reduce(ranks(2))) == "0>1 1>0 x1 /2 | 1>0 0>1 x1 /2");
  CHECK(text(halving_doubling_all_reduce(ranks(3))) ==
        "1>0 x1 /1 | 0>2 2>0 x1 /2 | 2>0 0>2 x1 /2 | 0>1 x1 /1");
  CHECK(text(halving_doubling_all_reduce(ranks(4))) ==
        "0>2 1>3 2>0 3>1 x1 /2 | 0>1 1>0 2>3 3>2 x1 /4 | 1>0 0>1 3>2 2>3 x1 /4 | 2>0 3>1 0>2 1>3 x1 /2");
  CHECK(text(halving_doubling_all_reduce(ranks(6))) ==
        "1>0 3>2 x1 /1 | 0>4 2>5 4>0 5>2 x1 /2 | 0>2 2>0 4>5 5>4 x1 /4 | 2>0 0>2 5>4 4>5 x1 /4 | "
        "4>0 5>2 0>4 2>5 x1 /2 | 0>1 2>3 x1 /1");
}

TEST_CASE("hierarchical by hand") {
  const Machine equal = hosts_of({2, 2, 2});
  CHECK(text(hierarchical_all_reduce(ranks(6), equal)) ==
        "0>1 1>0 2>3 3>2 4>5 5>4 x1 /2 | 0>2 2>4 4>0 1>3 3>5 5>1 x4 /6 | 0>1 1>0 2>3 3>2 4>5 5>4 x1 /2");
  // Unequal hosts: to a leader in each, ring of the leaders, and back.
  CHECK(text(hierarchical_all_reduce(ranks(6), hosts_of({1, 3, 2}))) ==
        "2>1 5>4 x1 /1 | 3>1 x1 /1 | 0>1 1>4 4>0 x4 /3 | 1>3 x1 /1 | 1>2 4>5 x1 /1");
  // One host, or one device a host: a ring.
  CHECK(text(hierarchical_all_reduce(ranks(3), hosts_of({3}))) == "0>1 1>2 2>0 x4 /3");
  CHECK(text(hierarchical_all_reduce(ranks(3), hosts_of({1, 1, 1}))) == "0>1 1>2 2>0 x4 /3");
}

TEST_CASE("a ring gives every rank every contribution once") {
  for (std::size_t n = 2; n <= 17; ++n) {
    CAPTURE(n);
    check_all_reduce(
        ring_all_reduce(ranks(n), hosts_of(std::vector<std::uint32_t>(n, 1))), n,
        [&](std::size_t, std::size_t step, std::size_t i) {
          const bool add = step < n - 1;
          return Carried{{add ? reduce_part(i, step, n) : gather_part(i, step - (n - 1), n)}, add};
        });
  }
}

TEST_CASE("a tree gives every rank every contribution once") {
  for (std::size_t n = 2; n <= 17; ++n) {
    CAPTURE(n);
    const Pattern pattern = tree_all_reduce(ranks(n));
    CHECK(pattern.rounds.size() == 2 * std::bit_width(n - 1));  // 2 ceil(log2 n)
    check_all_reduce(pattern, 1, [&](std::size_t round, std::size_t, std::size_t) {
      return Carried{{0}, round < pattern.rounds.size() / 2};
    });
  }
}

TEST_CASE("halving and doubling gives every rank every contribution once") {
  for (std::size_t n = 2; n <= 17; ++n) {
    CAPTURE(n);
    const std::size_t power = std::bit_floor(n), extra = n - power, log2 = std::bit_width(power) - 1;
    const Pattern pattern = halving_doubling_all_reduce(ranks(n));
    // Ranks among the power of two: the even ones of the first 2 extra, then the rest.
    const auto active = [&](std::size_t rank) { return rank < 2 * extra ? rank / 2 : rank - extra; };
    check_all_reduce(pattern, power, [&](std::size_t round, std::size_t, std::size_t pair) {
      const bool add = round < pattern.rounds.size() / 2;
      const std::size_t step = add ? round : pattern.rounds.size() - 1 - round;
      if (extra > 0 && step == 0) return Carried{everything(power), add};
      const std::size_t distance = power >> (step + (extra > 0 ? 0 : 1));
      CHECK(distance >= 1);
      CHECK(step - (extra > 0 ? 1 : 0) < log2);
      // Halving: the parts that the partner goes on with; doubling: all that the sender has completed. Either
      // way those whose number agrees with his in the bits from `distance` up.
      const auto [from, to] = pattern.rounds[round].pairs[pair];
      const std::size_t whose = active(add ? to : from);
      Carried carried{{}, add};
      for (std::size_t part = 0; part < power; ++part)
        if (part / distance == whose / distance) carried.elements.push_back(part);
      return carried;
    });
  }
}

TEST_CASE("hierarchical gives every rank every contribution once on equal hosts") {
  for (std::uint32_t hosts = 2; hosts <= 5; ++hosts) {
    for (std::uint32_t g = 2; g <= 5; ++g) {
      CAPTURE(hosts);
      CAPTURE(g);
      const Pattern pattern =
          hierarchical_all_reduce(ranks(hosts * g), hosts_of(std::vector<std::uint32_t>(hosts, g)));
      REQUIRE(pattern.rounds.size() == 3);
      // Element (part, block): g parts inside a host, each in as many blocks as there are hosts.
      const auto whole_part = [&](std::size_t part) {
        std::vector<std::size_t> elements;
        for (std::size_t block = 0; block < hosts; ++block) elements.push_back(part * hosts + block);
        return elements;
      };
      check_all_reduce(pattern, g * hosts, [&](std::size_t round, std::size_t step, std::size_t pair) {
        if (round == 0) return Carried{whole_part(reduce_part(pair % g, step, g)), true};
        if (round == 2) return Carried{whole_part(gather_part(pair % g, step, g)), false};
        const std::size_t local = pair / hosts, host = pair % hosts;
        const std::size_t part = (local + 1) % g;  // what this local rank completed inside its host
        const bool add = step < hosts - 1;
        const std::size_t block =
            add ? reduce_part(host, step, hosts) : gather_part(host, step - (hosts - 1), hosts);
        return Carried{{part * hosts + block}, add};
      });
    }
  }
}

TEST_CASE("hierarchical gives every rank every contribution once on unequal hosts") {
  for (const std::vector<std::uint32_t>& counts : std::vector<std::vector<std::uint32_t>>{
           {1, 2}, {3, 1, 2}, {4, 8}, {5, 1, 1, 3}, {2, 2, 2, 1}, {7, 8, 6}}) {
    const std::size_t n = std::accumulate(counts.begin(), counts.end(), std::size_t{0}),
                      leaders = counts.size();
    CAPTURE(n);
    const Pattern pattern = hierarchical_all_reduce(ranks(n), hosts_of(counts));
    const std::size_t middle = pattern.rounds.size() / 2;
    REQUIRE(pattern.rounds.size() % 2 == 1);
    CHECK(pattern.rounds[middle].repeat == 2 * (leaders - 1));
    check_all_reduce(pattern, leaders, [&](std::size_t round, std::size_t step, std::size_t i) {
      if (round != middle) return Carried{everything(leaders), round < middle};
      const bool add = step < leaders - 1;
      return Carried{{add ? reduce_part(i, step, leaders) : gather_part(i, step - (leaders - 1), leaders)},
                     add};
    });
  }
}

TEST_CASE("volumes are those of the literature: 2 (N-1) S in all, N S more for trees' whole messages") {
  for (std::size_t n = 2; n <= 33; ++n) {
    CAPTURE(n);
    const auto least = 2 * (static_cast<double>(n) - 1);
    const Machine machine = hosts_of(std::vector<std::uint32_t>(n, 1));
    CHECK(volume(ring_all_reduce(ranks(n), machine)) == approx(least).epsilon(1e-12));
    CHECK(volume(tree_all_reduce(ranks(n))) == least);  // every rank but the first sends once and gets once
    CHECK(volume(halving_doubling_all_reduce(ranks(n))) == approx(least).epsilon(1e-12));
  }
  // g ranks on each of n hosts: 2 n (g-1) inside, 2 (n-1) between.
  CHECK(volume(hierarchical_all_reduce(ranks(12), hosts_of({4, 4, 4}))) ==
        approx(2 * 3 * 3 + 2 * 2).epsilon(1e-12));
}

TEST_CASE("the estimate is the sum of rounds, each its greatest latency and fullest link") {
  const Machine machine = hand::star(4, 1e9, 1e-6);
  CHECK(estimate_s(ring_all_reduce(ranks(4), machine), machine, 4e6) == approx(6 * (1e-6 + 1e-3)));
  CHECK(estimate_s(tree_all_reduce(ranks(4)), machine, 4e6) == approx(4 * (1e-6 + 4e-3)));
  CHECK(estimate_s({{ranks(4)}, {{{{0, 3}, {1, 3}, {2, 3}}, {0.5, 0.25, 0.25}, 2}}}, machine, 4e6) ==
        approx(2 * (1e-6 + 4e-3)));
  CHECK(estimate_s({{ranks(4)}, {}}, machine, 4e6) == 0);
}

TEST_CASE(
    "an estimate that need not be added up to its end says whether the time is less than what is enough") {
  const Machine machine = hand::star(16, 1e9, 1e-6);
  const Pattern tree = tree_all_reduce(ranks(16));
  const double whole_s = estimate_s(tree, machine, 4e6);
  for (int eighths = 0; eighths <= 16; ++eighths) {
    const double enough_s = whole_s * eighths / 8, found_s = estimate_s(tree, machine, 4e6, enough_s);
    CHECK((found_s < enough_s) == (whole_s < enough_s));
    if (found_s < enough_s) CHECK(found_s == whole_s);
  }
}

TEST_CASE("auto takes few steps for small messages, and as few bytes as can be for large ones") {
  const Machine machine = hand::star(8, 1e9, 10e-6);
  const auto automatic = [&](double bytes) {
    return text(all_reduce_pattern(AllReduceAlgorithm::automatic, ranks(8), machine, bytes));
  };
  // Halving and doubling has the tree's 6 rounds and the ring's bytes: never worse than either for a power of
  // two.
  CHECK(automatic(1e3) == text(halving_doubling_all_reduce(ranks(8))));
  CHECK(automatic(1e9) == text(halving_doubling_all_reduce(ranks(8))));
  // Seven ranks: two messages of all bytes more, but fewer rounds than the ring's twelve.
  const auto of_seven = [&](double bytes) {
    return text(all_reduce_pattern(AllReduceAlgorithm::automatic, ranks(7), machine, bytes));
  };
  CHECK(of_seven(1) == text(halving_doubling_all_reduce(ranks(7))));
  CHECK(of_seven(1e9) == text(ring_all_reduce(ranks(7), machine)));
}

TEST_CASE("a reduce-scatter and an all-gather are the halves of the all-reduce, each with half its volume") {
  const auto halves = [](AllReduceAlgorithm algorithm, std::size_t n, const Machine& machine) {
    const Pattern scatter = reduce_scatter_pattern(algorithm, ranks(n), machine, 1e6);
    const Pattern gather = all_gather_pattern(algorithm, ranks(n), machine, 1e6);
    CHECK(volume(scatter) == approx(static_cast<double>(n) - 1).epsilon(1e-12));
    CHECK(volume(gather) == approx(static_cast<double>(n) - 1).epsilon(1e-12));
    return text(scatter) + " || " + text(gather);
  };
  const auto apart = [](std::size_t n) { return hosts_of(std::vector<std::uint32_t>(n, 1)); };
  CHECK(halves(AllReduceAlgorithm::ring, 3, apart(3)) == "0>1 1>2 2>0 x2 /3 || 0>1 1>2 2>0 x2 /3");
  for (const std::size_t n : {2u, 4u, 8u, 16u}) {
    const std::string both = halves(AllReduceAlgorithm::halving_doubling, n, apart(n));
    std::string whole = text(halving_doubling_all_reduce(ranks(n)));
    // The whole has as many rounds on either side of its middle.
    std::size_t middle = 0;
    for (std::size_t round = 0; (std::size_t{1} << round) < n; ++round)
      middle = whole.find(" | ", middle + 1);
    CHECK(both == whole.replace(middle, 3, " || "));
  }
  // 2 ranks on each of 3 hosts: rings inside, 2 rings between the hosts.
  const std::string inside = "0>1 1>0 2>3 3>2 4>5 5>4 x1 /2", between = "0>2 2>4 4>0 1>3 3>5 5>1 x2 /6";
  CHECK(halves(AllReduceAlgorithm::hierarchical, 6, hosts_of({2, 2, 2})) ==
        inside + " | " + between + " || " + between + " | " + inside);
  CHECK(text(hierarchical_all_reduce(ranks(6), hosts_of({2, 2, 2}))) ==
        inside + " | 0>2 2>4 4>0 1>3 3>5 5>1 x4 /6 | " + inside);
  CHECK(halves(AllReduceAlgorithm::hierarchical, 4, apart(4)) ==
        halves(AllReduceAlgorithm::ring, 4, apart(4)));
  CHECK(reduce_scatter_pattern(AllReduceAlgorithm::ring, ranks(1), apart(1), 1).rounds.empty());
}

TEST_CASE("what cannot scatter says why, and auto chooses among what can") {
  const auto why = [](AllReduceAlgorithm algorithm, const std::vector<std::uint32_t>& hosts) {
    const Machine machine = hosts_of(hosts);
    return why_no_scatter(algorithm, ranks(machine.devices.size()), machine);
  };
  CHECK(why(AllReduceAlgorithm::ring, {1, 2, 3}).empty());
  CHECK(why(AllReduceAlgorithm::automatic, {1, 2, 3}).empty());
  CHECK(why(AllReduceAlgorithm::hierarchical, {3}).empty());
  CHECK(why(AllReduceAlgorithm::hierarchical, {2, 2}).empty());
  CHECK(
      why(AllReduceAlgorithm::hierarchical, {1, 2}) ==
      "hierarchical scatters over hosts of as many devices each, found different numbers; use ring, nccl or "
      "auto");
  CHECK(why(AllReduceAlgorithm::halving_doubling, {4, 4}).empty());
  const Machine machine = hand::star(8, 1e9, 1e-6);
  const auto chosen = [&](double bytes) {
    return text(reduce_scatter_pattern(AllReduceAlgorithm::automatic, ranks(8), machine, bytes));
  };
  // 3 latencies instead of 7 for the same bytes.
  CHECK(chosen(8) ==
        text(reduce_scatter_pattern(AllReduceAlgorithm::halving_doubling, ranks(8), machine, 8)));
  const Machine seven = hand::star(7, 1e9, 1e-6);
  CHECK(text(all_gather_pattern(AllReduceAlgorithm::automatic, ranks(7), seven, 8)) ==
        text(all_gather_pattern(AllReduceAlgorithm::ring, ranks(7), seven, 8)));
}
