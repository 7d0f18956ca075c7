// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "sim/base/yaml_node.h"
#include "sim/collectives/collectives.h"
#include "sim/collectives/nccl_pattern.h"
#include "sim/collectives/nccl_tuning.h"
#include "sim/collectives/table.h"
#include "tests/support/approx.h"
#include "tests/support/hand.h"
#include "topologies/cluster.h"

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
      CHECK(all == approx(2.0 * (static_cast<double>(n) - 1)).epsilon(1e-9));
      if (!why_no_scatter(row.id, first_ranks(n), machine).empty()) continue;
      for (const auto half : {reduce_scatter_pattern, all_gather_pattern})
        for (const double got : volumes(half(row.id, first_ranks(n), machine, 1e6, RingOrder::mesh)).got)
          CHECK(got == approx((static_cast<double>(n) - 1) / static_cast<double>(n)).epsilon(1e-9));
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

TEST_CASE("double binary trees of unequal hosts have the chunks that the deeper of the two wants") {
  int unequal = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<std::uint32_t> sizes;
    for (std::size_t hosts = 2 + random() % 5; hosts > 0; --hosts)
      sizes.push_back(static_cast<std::uint32_t>(1 + random() % 4));
    // Devices on one switch, some of them in one host: all ways take as long.
    const std::uint32_t n = std::accumulate(sizes.begin(), sizes.end(), 0u);
    if (n < 3) continue;
    Machine machine = hand::star(n, 1e9, 1e-6);
    machine.hosts.resize(sizes.size());
    for (std::uint32_t h = 0, first = 0; h < sizes.size(); first += sizes[h++]) {
      machine.hosts[h] = {fmt::format("h{}", h), 0, first, sizes[h]};
      for (std::uint32_t d = first; d < first + sizes[h]; ++d) machine.devices[d].host = h;
    }
    constexpr double bytes = 1e5;
    const Pattern pattern =
        double_binary_tree_all_reduce(first_ranks(n), machine, bytes, RingOrder::in_order);
    const auto chunks = static_cast<int>(std::lround(0.5 / pattern.rounds[0].fraction(0)));
    const int around = static_cast<int>(run_of(pattern).rounds) - chunks;  // 2 L - 1 of the deepest
    const auto time_s = [&](int k) { return (k + around) * (1e-6 + 2 * bytes / (k * 1e9)); };
    int best = 1;
    for (int k = 2; k <= 64; ++k)
      if (time_s(k) < time_s(best)) best = k;
    CHECK(std::abs(chunks - best) <= 1);
    unequal += *std::min_element(sizes.begin(), sizes.end()) != *std::max_element(sizes.begin(), sizes.end());
  }
  CHECK(unequal > 30);
}

namespace {

/// Hosts of devices with NVLink to a switch, and NICs of 25 GB/s, over NCCL's verbs.
Machine nccl_hosts(int hosts, int devices, int nics, const std::string& device = "a100-sxm4-40gb",
                   const std::string& protocol = "rdma") {
  const std::string cluster = fmt::format(
      "{{name: lab, nodes: [{{name: n, count: {}, server: box}}], fabric: {{kind: switch, bandwidth: 25GB/s, "
      "latency: 14us, nics: {}, protocol: {}}}, servers: {{box: {{devices: [{{device: {}, count: {}}}], "
      "interconnect: {{kind: nvswitch, bandwidth: 240GB/s, latency: 3.4us}}}}}}}}",
      hosts, nics, protocol, device, devices);
  const ClusterSpec spec = read_cluster(parse_yaml(cluster, "c"));
  return build_machine(spec, 0,
                       protocol == "rdma" ? transport_over("nccl", Protocol::rdma) : ideal_transport());
}

double time_s(AllReduceAlgorithm algorithm, const Machine& machine, double bytes) {
  const Pattern pattern = all_reduce_pattern(algorithm, first_ranks(machine.devices.size()), machine, bytes);
  return estimate_s(pattern, machine, bytes);
}

/// Of one device each, whose steps in a ring take 14 us.
NcclSituation four_hosts(double bus_bandwidth_Bps) {
  NcclSituation situation;
  situation.ranks = situation.hosts = 4;
  situation.bus_bandwidth_Bps = bus_bandwidth_Bps;
  situation.ring[static_cast<std::size_t>(NcclWire::net)] = {4, 14e-6};
  situation.between_s = 14e-6;
  return situation;
}

}  // namespace

TEST_CASE("NCCL's ring and trees by hand: 4 hosts of 1, 100 bytes, LL") {
  NcclSituation situation = four_hosts(1e12);
  // 6 steps of 2.7 us and 1.5 times the bytes at 0.45 x 20.4 GB/s; trees: 0.2 us more at first, 2 x 2 levels of 5.0 us
  // and of 100 bytes at 10.2 GB/s, and the bytes at 20.4 GB/s.
  CHECK(nccl_ring_s(situation, 100, false) == approx(16.2e-6 + 150 / 9.18e9).epsilon(1e-9));
  CHECK(nccl_ring_s(situation, 100, true) == approx(8.1e-6 + 75 / 9.18e9).epsilon(1e-9));
  CHECK(nccl_tree_s(situation, 100) == approx(20.244e-6).epsilon(1e-4));
  // A way of 5 ms saves no more than one of 14 us.
  situation.ring[static_cast<std::size_t>(NcclWire::net)].latency_s = 5e-3;
  CHECK(nccl_ring_s(situation, 100, true) == approx(3 * (5e-3 - 11.3e-6)).epsilon(1e-6));
  // Over wires alone nothing is saved, and nothing added.
  situation.ideal = true;
  CHECK(nccl_ring_s(situation, 1e6, true) == approx(3 * 5e-3 + 0.75 * 1e6 / 1e12).epsilon(1e-9));
}

TEST_CASE("NCCL's trees inside hosts of PCIe by hand: 2 hosts of 3, 100 bytes, LL") {
  // Up and down again: two steps of a chain over PCIe and one between the hosts. A step of LL in a tree takes 1.0 us
  // where Simple in a ring takes 5.7, and 5.0 where that takes 14 (baseLatencies and hwLatencies of tuning.cc).
  NcclSituation situation;
  situation.ranks = 6;
  situation.hosts = 2;
  situation.bus_bandwidth_Bps = 1e12;
  situation.chain[static_cast<std::size_t>(NcclWire::pcie)] = {2, 5.7e-6};
  situation.between_s = 14e-6;
  const double bytes_s = 2 * 100 / (22.5e9 / 2) + 100 / 22.5e9;  // a piece a level, and the whole
  CHECK(nccl_tree_s(situation, 100) == approx(0.2e-6 + 2 * (2 * 1.0e-6 + 5.0e-6) + bytes_s).epsilon(1e-3));
}

TEST_CASE("a message of NCCL waits for its receiver if it is larger than what goes at once [law]") {
  // 4 hosts of 1: 6 steps of a ring and 4 of a tree between hosts, and 3 of half a ring. 8 KiB go at once, of LL
  // with as many bytes of flags; a ring's message is a fourth of all.
  NcclSituation situation = four_hosts(25e9);
  NcclSituation waiting = situation;
  waiting.handshake_s = 1e-6;
  const auto waits_us = [&](auto time_s) { return 1e6 * (time_s(waiting) - time_s(situation)); };
  for (const double bytes : {1e3, 4.0 * 4096, 4.0 * 4096 + 1, 1e8}) {
    CAPTURE(bytes);
    const bool waits = bytes > 4.0 * 4096;
    CHECK(waits_us([&](const NcclSituation& s) { return nccl_ring_s(s, bytes, false); }) ==
          approx(waits ? 6 : 0).epsilon(1e-6));
    CHECK(waits_us([&](const NcclSituation& s) { return nccl_ring_s(s, bytes, true); }) ==
          approx(waits ? 3 : 0).epsilon(1e-6));
  }
  for (const double bytes : {4096.0, 4097.0, 1e8}) {
    CAPTURE(bytes);
    CHECK(waits_us([&](const NcclSituation& s) { return nccl_tree_s(s, bytes); }) ==
          approx(bytes > 4096 ? 4 : 0).epsilon(1e-6));
  }
}

TEST_CASE("halves of a ring between hosts: NCCL takes LL while it expects more of it than of Simple [law]") {
  // 3 steps of 2.7 us and of 14 us, and 1.8 us more at first. Of 25 GB/s NCCL expects LL to have half, so that it is better
  // up to a size, and LL gets 45 % of that half.
  const NcclSituation situation = four_hosts(25e9);
  const double last_bytes = (3 * 11.3e-6 + 1.8e-6) * 25e9 / 0.75;
  for (const double share : {0.1, 0.5, 0.999}) {
    const double bytes = share * last_bytes;
    CHECK(nccl_ring_s(situation, bytes, true) == approx(3 * 2.7e-6 + 0.75 * bytes / 5.625e9).epsilon(1e-9));
  }
  for (const double share : {1.001, 2.0, 100.0}) {
    const double bytes = share * last_bytes;
    CHECK(nccl_ring_s(situation, bytes, true) ==
          approx(1.8e-6 + 3 * 14e-6 + 0.75 * bytes / 25e9).epsilon(1e-9));
  }
  // So the time falls where NCCL turns to Simple. All-reduces turn to it where it is faster.
  CHECK(nccl_ring_s(situation, 1.001 * last_bytes, true) < nccl_ring_s(situation, 0.999 * last_bytes, true));
  double before_s = 0;
  for (double bytes = 1e3; bytes < 1e9; bytes *= 1.1) {
    const double time_s = nccl_ring_s(situation, bytes, false);
    CHECK(time_s > before_s);
    before_s = time_s;
  }
}

TEST_CASE("a network whose library allows Simple alone has no LL, in rings and trees") {
  NcclSituation situation = four_hosts(25e9);
  situation.simple_only = true;
  CHECK(nccl_ring_s(situation, 100, false) == approx(1.8e-6 + 6 * 14e-6 + 150 / 25e9).epsilon(1e-9));
  // 1.8 us at first, 2 x 2 levels of 14 us, and of 100 bytes at 12.5 GB/s; the bytes at 0.92 of that.
  CHECK(nccl_tree_s(situation, 100) ==
        approx(1.8e-6 + 4 * 14e-6 + 4 * 100 / 12.5e9 + 100 / 11.5e9).epsilon(1e-9));
}

TEST_CASE("trees of sums in switches by hand: 4 hosts of 8 of Hopper, pieces by NCCL's rule") {
  NcclSituation situation;
  situation.ranks = 32;
  situation.hosts = 4;
  situation.generation = 2;
  situation.switch_sums = true;
  situation.bus_bandwidth_Bps = 400e9;
  situation.inside_bandwidth_Bps = 370e9;
  situation.between_s = 14e-6;
  // 16 channels of 8 parts each. Pieces of all of them: 64 KiB each at most between four hosts or more; where
  // the network has 512 KiB, 128 KiB below 512 MiB, 256 below 2 GiB.
  constexpr double MiB = 1024.0 * 1024;
  const auto by_hand_s = [&](double bytes, double piece_bytes) {
    return 91e-6 + 4 * 14e-6 + 4 * piece_bytes / 200e9 + bytes / (0.73 * 200e9);
  };
  CHECK(nccl_switch_tree_s(situation, 64 * MiB) == approx(by_hand_s(64 * MiB, 8 * MiB)).epsilon(1e-9));
  CHECK(nccl_switch_tree_s(situation, 1 * MiB) == approx(by_hand_s(1 * MiB, 1 * MiB)).epsilon(1e-9));
  situation.tree_chunk_bytes = 512 * 1024;
  CHECK(nccl_switch_tree_s(situation, 63 * MiB) == approx(by_hand_s(63 * MiB, 8 * MiB)).epsilon(1e-9));
  CHECK(nccl_switch_tree_s(situation, 64 * MiB) == approx(by_hand_s(64 * MiB, 16 * MiB)).epsilon(1e-9));
  CHECK(nccl_switch_tree_s(situation, 512 * MiB) == approx(by_hand_s(512 * MiB, 32 * MiB)).epsilon(1e-9));
  CHECK(nccl_switch_tree_s(situation, 2048 * MiB) == approx(by_hand_s(2048 * MiB, 64 * MiB)).epsilon(1e-9));
  // Two hosts: every value goes there and back once, and the switches are what limits: 1 + 1/8 of the bytes.
  situation.hosts = 2;
  situation.ranks = 16;
  const double once_s = nccl_switch_tree_s(situation, 4096 * MiB),
               twice_s = nccl_switch_tree_s(situation, 8192 * MiB);
  CHECK(twice_s - once_s ==
        approx(4096 * MiB / std::min(0.73 * 400e9, 370e9 * 1.03 * 0.85 / 1.125)).epsilon(1e-9));
}

TEST_CASE("NCCL inside a host: LL's flags take half of the links, and large sums have more of them [law]") {
  for (const std::uint32_t n : {2u, 4u, 8u})
    for (const std::size_t generation : {0u, 1u, 2u, 3u})
      for (const bool half : {false, true}) {
        CAPTURE(n);
        CAPTURE(generation);
        CAPTURE(half);
        NcclSituation situation;
        situation.ranks = n;
        situation.bus_bandwidth_Bps = 200e9;
        situation.ring[static_cast<std::size_t>(NcclWire::nvlink)] = {static_cast<double>(n), 3.4e-6};
        situation.generation = generation;
        // Bytes of a second, from how much longer more of them take.
        const auto bandwidth_Bps = [&](double bytes) {
          const double steps = (half ? 1 : 2) * (n - 1.0) / n;
          return steps * bytes /
                 (nccl_ring_s(situation, 2 * bytes, half) - nccl_ring_s(situation, bytes, half));
        };
        // LL sends a flag of four bytes with every four of data (NCCL's device/prims_ll.h).
        CHECK(bandwidth_Bps(1e3) <= situation.bus_bandwidth_Bps / 2);
        CHECK(bandwidth_Bps(1e3) < 0.9 * bandwidth_Bps(1e10));
        // Between them LL128 is best, which sends eight bytes of flags with every 120 of data.
        double most_Bps = 0;
        for (double bytes = 1e3; bytes < 1e10; bytes *= 2) {
          const double rate_Bps = bandwidth_Bps(bytes);
          const bool of_ll128 = rate_Bps > 1.2 * bandwidth_Bps(1e3) && rate_Bps < 0.9 * bandwidth_Bps(1e10);
          if (of_ll128) most_Bps = std::max(most_Bps, rate_Bps);
        }
        CHECK(most_Bps > 0);
        CHECK(most_Bps <= situation.bus_bandwidth_Bps * 120 / 128);
      }
}

TEST_CASE("two devices get 80 % of their links to a switch, and all of the cables between them") {
  const auto large_s = [](const std::string& name) {
    const Machine machine =
        build_machine(read_cluster(parse_yaml("{server: " + name + ", nodes: 1, devices_per_node: 2}", "c")),
                      0, transport_over("nccl", Protocol::rdma));
    const double bytes = 1e10;
    return (time_s(AllReduceAlgorithm::nccl, machine, 2 * bytes) -
            time_s(AllReduceAlgorithm::nccl, machine, bytes)) /
           bytes;
  };
  // Of 12 links of 20 GB/s to switches, and of 4 between two of Perlmutter's GPUs, 89 % (Ampere).
  CHECK(large_s("aws-p4de.24xlarge") == approx(1 / (0.8 * 0.89 * 240e9)).epsilon(1e-6));
  CHECK(large_s("perlmutter") == approx(1 / (0.89 * 80e9)).epsilon(1e-6));
}

TEST_CASE("NCCL takes rings for large sums, trees for small ones over many hosts") {
  const auto is_tree = [](const Machine& machine, double bytes) {
    const auto ranks = first_ranks(machine.devices.size());
    const Pattern pattern = all_reduce_pattern(AllReduceAlgorithm::nccl, ranks, machine, bytes);
    return pattern.rounds[0].pairs !=
           all_gather_pattern(AllReduceAlgorithm::nccl, ranks, machine, bytes).rounds[0].pairs;
  };
  const Machine host = nccl_hosts(1, 8, 1), many = nccl_hosts(64, 4, 4);
  for (const double bytes : {1e3, 1e6, 1e9}) CHECK_FALSE(is_tree(host, bytes));
  CHECK(is_tree(many, 1e5));
  CHECK(is_tree(many, 1e7));
  CHECK_FALSE(is_tree(nccl_hosts(2, 8, 8), 1e9));
}

TEST_CASE("what NCCL takes is no worse by our own times than a ring, and never less for more bytes [law]") {
  std::mt19937 random(20261123);
  for (int i = 0; i < 40; ++i) {
    const int hosts = std::uniform_int_distribution(1, 12)(random);
    const int devices = std::uniform_int_distribution(1, 8)(random);
    const int nics = std::uniform_int_distribution(1, 8)(random);
    const bool ideal = i % 4 == 0;
    if (hosts * devices == 1) continue;
    CAPTURE(i);
    CAPTURE(hosts);
    CAPTURE(devices);
    CAPTURE(nics);
    CAPTURE(ideal);
    const Machine machine = nccl_hosts(hosts, devices, nics, i % 2 == 0 ? "a100-sxm4-40gb" : "h100-sxm5-80gb",
                                       ideal ? "ideal" : "rdma");
    double before_s = 0;
    for (double bytes = 1e3; bytes < 1e10; bytes *= 1.5) {
      CAPTURE(bytes);
      const double nccl_s = time_s(AllReduceAlgorithm::nccl, machine, bytes);
      const double ring_s = time_s(AllReduceAlgorithm::ring, machine, bytes);
      // Ours has each step wait for the slowest link; what NCCL does once before the first is not in a
      // ring's.
      if (hosts > 1 || ideal) CHECK(nccl_s <= ring_s * (1 + 1e-9) + (ideal ? 0 : 2e-6));
      CHECK(nccl_s >= before_s);
      before_s = nccl_s;
    }
  }
}

TEST_CASE(
    "NVSwitches of Hopper and later add up: (1 + 1/N) S a device, and a large sum is faster than a ring's") {
  const double bytes = 1e9;
  const auto sent = [&](const Machine& machine) {
    return volumes(all_reduce_pattern(AllReduceAlgorithm::nccl, first_ranks(8), machine, bytes)).sent[0];
  };
  CHECK(sent(nccl_hosts(1, 8, 1, "h100-sxm5-80gb")) == approx(1 + 1.0 / 8));
  CHECK(sent(nccl_hosts(1, 8, 1, "a100-sxm4-40gb")) == approx(2 * 7.0 / 8));
  CHECK(sent(nccl_hosts(1, 8, 1, "h100-sxm5-80gb", "ideal")) == approx(2 * 7.0 / 8));
  // Between hosts as well: beside that, each device exchanges its eighth with those of its number.
  const Machine two = nccl_hosts(2, 8, 8, "h100-sxm5-80gb");
  const Pattern between = all_reduce_pattern(AllReduceAlgorithm::nccl, first_ranks(16), two, bytes);
  for (const double of_rank : volumes(between).sent) CHECK(of_rank == approx(1 + 2.0 / 8));
  // 91 us, and 85 % of 1.03 x 240 GB/s.
  CHECK(time_s(AllReduceAlgorithm::nccl, nccl_hosts(1, 8, 1, "h100-sxm5-80gb"), bytes) ==
        approx(91e-6 + 1.125 * bytes / (0.85 * 1.03 * 240e9)).epsilon(1e-6));
}

TEST_CASE("estimates and NCCL's time know what a connection over TCP carries, however fast the wires are") {
  const Transport tcp = transport_over("nccl", Protocol::tcp);
  REQUIRE(tcp.pair_bandwidth_Bps() < tcp.host_bandwidth_Bps / 2);
  const Machine machine = build_machine(
      read_cluster(parse_yaml("{name: lab, nodes: [{name: n, count: 4, server: box}], fabric: {kind: switch, "
                              "bandwidth: 1000GB/s, latency: 25us, protocol: tcp}, servers: {box: {devices: "
                              "[{device: a100-sxm4-40gb, count: 1}]}}}",
                              "c")),
      0, tcp);
  const double bytes = 1e9;
  for (const AllReduceAlgorithm algorithm : {AllReduceAlgorithm::ring, AllReduceAlgorithm::nccl})
    CHECK(time_s(algorithm, machine, bytes) - time_s(algorithm, machine, 0) ==
          approx(1.5 * bytes / tcp.pair_bandwidth_Bps()).epsilon(1e-3));
}

TEST_CASE("algorithm nccl moves the bytes of one of the two that NCCL has, for every size") {
  const Machine machine = hand::star(64, 1e9, 10e-6);
  const auto sent = [&](AllReduceAlgorithm algorithm, double bytes) {
    return volumes(all_reduce_pattern(algorithm, first_ranks(64), machine, bytes)).sent;
  };
  const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (std::abs(a[i] - b[i]) > 1e-9) return false;
    return true;
  };
  int trees = 0, rings = 0;
  for (double bytes = 100; bytes < 1e10; bytes *= 4) {
    const std::vector<double> chosen = sent(AllReduceAlgorithm::nccl, bytes);
    const bool ring = same(chosen, sent(AllReduceAlgorithm::ring, bytes)),
               tree = same(chosen, sent(AllReduceAlgorithm::double_binary_tree, bytes));
    CHECK((ring || tree));
    rings += ring ? 1 : 0, trees += tree ? 1 : 0;
  }
  CHECK(rings > 0);
  CHECK(trees > 0);
}

TEST_CASE("groups that follow one pattern get that of the group that takes the longest, in any order") {
  const Machine machine = build_machine(
      read_cluster(parse_yaml("{name: lab, nodes: [{name: n, count: 2, server: dgx-a100}]}", "cluster")), 0,
      transport_over("nccl", Protocol::rdma));
  // Devices 0 to 7 are in one host, 8 to 15 in the other.
  std::vector<std::vector<EndpointId>> groups{{0, 1}, {7, 8}, {2, 3}, {9, 10}};
  std::sort(groups.begin(), groups.end());
  for (const double bytes : {1e4, 1e6, 1e8}) {
    const auto time_s = [&](const std::vector<EndpointId>& ranks) {
      return estimate_s(all_reduce_pattern(AllReduceAlgorithm::nccl, ranks, machine, bytes), machine, bytes);
    };
    do {
      const std::vector<EndpointId>& slowest =
          slowest_group(AllReduceAlgorithm::nccl, groups, machine, bytes);
      for (const std::vector<EndpointId>& group : groups) CHECK(time_s(group) <= time_s(slowest));
      CHECK(slowest == std::vector<EndpointId>{7, 8});
    } while (std::next_permutation(groups.begin(), groups.end()));
  }
  // The rounds of other algorithms do not depend on bytes: any group will do.
  CHECK(&slowest_group(AllReduceAlgorithm::ring, groups, machine, 1e6) == &groups.front());
}
