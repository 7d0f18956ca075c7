// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "sim/collectives/collectives.h"
#include "sim/collectives/nccl_tuning.h"
#include "sim/collectives/table.h"
#include "tests/support/hand.h"

using namespace convoy;

namespace {

std::vector<EndpointId> first_ranks(std::size_t n) {
  std::vector<EndpointId> result(n);
  std::iota(result.begin(), result.end(), 0u);
  return result;
}

/// What every rank sends and gets of S, over all rounds.
struct Volumes {
  std::vector<double> sent, got;
};

Volumes volumes(const Pattern& pattern) {
  Volumes result{std::vector<double>(pattern.groups[0].size(), 0.0),
                 std::vector<double>(pattern.groups[0].size(), 0.0)};
  for (const Round& round : pattern.rounds)
    for (std::size_t k = 0; k < round.pairs.size(); ++k) {
      result.sent[round.pairs[k].first] += round.repeat * round.fraction(k);
      result.got[round.pairs[k].second] += round.repeat * round.fraction(k);
    }
  return result;
}

/// Sums and hands out every chunk along the rounds as if each pair carried, each time that it is sent over,
/// the next chunk of half of the data: a rank may send up what it has from all its children only, and down
/// what is complete.
struct TreeRun {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> times;  ///< rounds, by pair
  std::uint32_t rounds = 0;
};

TreeRun run_of(const Pattern& pattern) {
  TreeRun result;
  for (const Round& round : pattern.rounds)
    for (std::uint32_t i = 0; i < round.repeat; ++i, ++result.rounds)
      for (const auto& pair : round.pairs) result.times[pair].push_back(result.rounds);
  return result;
}

}  // namespace

TEST_CASE("the table's rows stand where their names say") {
  const std::vector<CollectiveAlgorithm>& table = collective_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    CHECK(static_cast<std::size_t>(table[i].id) == i);
    CHECK(all_reduce_algorithm_names()[i] == table[i].name);
    CHECK((table[i].half != nullptr) ==
          why_no_scatter(table[i].id, first_ranks(8), hand::star(8, 1e9, 1e-6)).empty());
  }
}

TEST_CASE("every row sums: each rank gets what it lacks, and halves carry half of it") {
  for (const std::size_t n : {2u, 3u, 4u, 7u, 8u, 16u, 21u}) {
    const Machine machine = hand::star(static_cast<std::uint32_t>(n), 1e9, 1e-6);
    for (const CollectiveAlgorithm& row : collective_table()) {
      CAPTURE(n);
      CAPTURE(row.name);
      const Volumes whole = volumes(all_reduce_pattern(row.id, first_ranks(n), machine, 1e6));
      const double all = std::accumulate(whole.got.begin(), whole.got.end(), 0.0);
      CHECK(all == doctest::Approx(2.0 * (static_cast<double>(n) - 1)).epsilon(1e-9));
      if (!why_no_scatter(row.id, first_ranks(n), machine).empty()) continue;
      for (const auto half : {reduce_scatter_pattern, all_gather_pattern})
        for (const double got : volumes(half(row.id, first_ranks(n), machine, 1e6, RingOrder::mesh)).got)
          CHECK(got == doctest::Approx((static_cast<double>(n) - 1) / static_cast<double>(n)).epsilon(1e-9));
    }
  }
}

TEST_CASE("double binary trees: nobody sends more than twice the data, and chunks follow one another") {
  for (std::uint32_t n = 2; n <= 40; ++n) {
    CAPTURE(n);
    const Machine machine = hand::star(n, 1e9, 1e-6);
    const double bytes = 1e6;
    const Pattern pattern = double_binary_tree_all_reduce(first_ranks(n), machine, bytes);
    const Volumes each = volumes(pattern);
    for (std::uint32_t r = 0; r < n; ++r) {
      CHECK(each.sent[r] <= 2 + 1e-9);
      CHECK(each.got[r] <= 2 + 1e-9);
    }
    // Two trees of depth no more than log2 n rounded up, and one more for the node above them.
    const TreeRun run = run_of(pattern);
    const double levels = std::ceil(std::log2(n)) + (n > 2 ? 1 : 0);
    const auto chunks = static_cast<std::uint32_t>(std::lround(0.5 / pattern.rounds[0].fraction(0)));
    CHECK(run.rounds >= chunks + 1);
    CHECK(run.rounds <= chunks + 2 * levels - 1);
    // Either way of an edge carries all chunks, of each tree that has it, without a break.
    for (const auto& [pair, times] : run.times) {
      CHECK(times.size() % chunks == 0);
      CHECK(run.times.count({pair.second, pair.first}) == 1);
      if (times.size() == chunks) CHECK(times.back() - times.front() == chunks - 1);
    }
    // Up: whoever hears from a rank first goes on after it. Down: the other way round. So of an edge that
    // only one tree has, one way comes before the other, the later one by 2 (depth of the edge) - 1 rounds.
    for (const auto& [pair, times] : run.times) {
      const auto& back = run.times.at({pair.second, pair.first});
      if (times.size() == chunks && back.size() == chunks) {
        const auto apart = static_cast<int>(back.front()) - static_cast<int>(times.front());
        CHECK(std::abs(apart) % 2 == 1);
      }
    }
    // Its estimate is the closed form's: (k + 2 L - 1) (alpha + 2 S / (k B)) at most, k steps of it at least.
    const double step_s = 1e-6 + 2 * bytes / (chunks * 1e9);
    CHECK(estimate_s(pattern, machine, bytes) <= (chunks + 2 * levels - 1) * step_s * (1 + 1e-9));
    if (n > 4) CHECK(estimate_s(pattern, machine, bytes) >= 2 * bytes / 1e9 * 0.75);
  }
}

TEST_CASE("double binary trees have as many chunks as take the least time by the closed form, up to 64") {
  int inside = 0;
  for (const std::uint32_t n : {2u, 4u, 9u, 32u})
    for (const double bytes : {0.0, 1e2, 1e3, 1e4, 1e5, 1e8}) {
      CAPTURE(n);
      CAPTURE(bytes);
      const Pattern pattern = double_binary_tree_all_reduce(first_ranks(n), hand::star(n, 1e9, 1e-6), bytes);
      const auto chunks = static_cast<int>(std::lround(0.5 / pattern.rounds[0].fraction(0)));
      const int around = static_cast<int>(run_of(pattern).rounds) - chunks;  // 2 L - 1
      const auto time_s = [&](int k) { return (k + around) * (1e-6 + 2 * bytes / (k * 1e9)); };
      int best = 1;
      for (int k = 2; k <= 64; ++k)
        if (time_s(k) < time_s(best)) best = k;
      CHECK(std::abs(chunks - best) <= 1);
      inside += 1 < best && best < 64 ? 1 : 0;
    }
  CHECK(inside >= 8);
}

TEST_CASE("NCCL's choice: rings inside a host and for large sums, trees for small ones over many hosts") {
  const auto tree = [](std::uint32_t ranks, std::uint32_t hosts, double bytes) {
    const NcclSituation situation{ranks, hosts, true, 10e9};
    return nccl_tree_s(situation, bytes) < nccl_ring_s(situation, bytes);
  };
  for (const double bytes : {1e3, 1e6, 1e9}) CHECK_FALSE(tree(8, 1, bytes));
  CHECK(tree(1024, 128, 1e5));
  CHECK(tree(1024, 128, 1e7));
  CHECK_FALSE(tree(16, 2, 1e9));
  // By hand, 4 hosts of 1, 100 bytes, LL: ring 6.6 + 6 x 2.7 us, tree 6.8 + 2 x 2 x 5.0 us.
  CHECK(nccl_ring_s({4, 4, false, 1e12}, 100) == doctest::Approx(22.8e-6).epsilon(1e-3));
  CHECK(nccl_tree_s({4, 4, false, 1e12}, 100) == doctest::Approx(26.8e-6).epsilon(1e-3));
  // The larger the sum, the longer, whatever is chosen; more ranks never make the expected time shorter.
  for (const std::uint32_t hosts : {2u, 8u, 64u})
    for (double bytes = 1e3; bytes < 1e9; bytes *= 10) {
      CAPTURE(hosts);
      CAPTURE(bytes);
      CHECK(nccl_ring_s({hosts, hosts, false, 1e10}, bytes) <=
            nccl_ring_s({hosts, hosts, false, 1e10}, bytes * 10));
      CHECK(nccl_ring_s({hosts, hosts, false, 1e10}, bytes) <=
            nccl_ring_s({2 * hosts, 2 * hosts, false, 1e10}, bytes) * (1 + 1e-9));
    }
}

TEST_CASE("algorithm nccl is one of the two that NCCL has, for every size") {
  const Machine machine = hand::star(64, 1e9, 10e-6);
  const auto rounds = [&](AllReduceAlgorithm algorithm, double bytes) {
    std::string text;
    for (const Round& round : all_reduce_pattern(algorithm, first_ranks(64), machine, bytes).rounds)
      text += fmt::format("{} {} {};", round.pairs.size(), round.repeat, round.fraction(0));
    return text;
  };
  int trees = 0, rings = 0;
  for (double bytes = 100; bytes < 1e10; bytes *= 4) {
    const std::string chosen = rounds(AllReduceAlgorithm::nccl, bytes);
    const bool ring = chosen == rounds(AllReduceAlgorithm::ring, bytes),
               tree = chosen == rounds(AllReduceAlgorithm::double_binary_tree, bytes);
    CHECK((ring || tree));
    rings += ring ? 1 : 0, trees += tree ? 1 : 0;
  }
  CHECK(rings > 0);
  CHECK(trees > 0);
}
