// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "sim/lowering/push_messages.h"

using namespace convoy;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// One tensor a layer; backward completes the last first.
TrainingGraph tensors_of(const std::vector<std::int64_t>& elements) {
  TrainingGraph graph;
  for (std::size_t i = 0; i < elements.size(); ++i)
    graph.parameters.push_back({"p", 0, elements[i], 0, static_cast<OpId>(100 - i), 0});
  return graph;
}

struct Sent {
  double bytes;
  OpId ready;
  std::uint32_t server;
  bool operator==(const Sent&) const = default;
};

std::vector<Sent> messages(const TrainingGraph& graph, ServerSharding sharding, std::uint32_t servers,
                           bool one_by_one, double bucket_bytes = infinite) {
  std::vector<Sent> result;
  for (const PushMessage& m : shard(graph, sharding, servers, one_by_one, bucket_bytes))
    result.push_back({m.bytes, m.ready, m.server});
  return result;
}

}  // namespace

TEST_CASE("tensors go to the server with the fewest bytes so far, in the model's order") {
  // Loads (elements): 5 -> s0 (5, 0, 0); 3 -> s1; 4 -> s2 (5, 3, 4); 2 -> s1 (5, 5, 4); 7 -> s2 (5, 5, 11);
  // 1 -> s0. Messages in the order of completion, the last tensor first.
  CHECK(messages(tensors_of({5, 3, 4, 2, 7, 1}), ServerSharding::tensor, 3, true) ==
        std::vector<Sent>{{4, 95, 0}, {28, 96, 2}, {8, 97, 1}, {16, 98, 2}, {12, 99, 1}, {20, 100, 0}});
}

TEST_CASE("all at once, each server gets one message, complete when its last tensor is") {
  CHECK(messages(tensors_of({5, 3, 4, 2, 7, 1}), ServerSharding::tensor, 3, false) ==
        std::vector<Sent>{{24, 100, 0}, {20, 99, 1}, {44, 98, 2}});
}

TEST_CASE("servers beyond the tensors get nothing") {
  CHECK(messages(tensors_of({5, 3}), ServerSharding::tensor, 4, false) ==
        std::vector<Sent>{{20, 100, 0}, {12, 99, 1}});
  CHECK(messages(tensors_of({}), ServerSharding::tensor, 4, true).empty());
  CHECK(messages(tensors_of({}), ServerSharding::even, 4, true).empty());
}

TEST_CASE("even shards are buckets for every server") {
  const TrainingGraph graph = tensors_of({5, 3, 4, 2, 7, 1});
  CHECK(messages(graph, ServerSharding::even, 3, true) ==
        std::vector<Sent>{{88, 100, PushMessage::every_server}});
  // Completed in order, bytes: 4, 28, 8, 16, 12, 20; closing at 30 or more: 32, 36, 20.
  CHECK(messages(graph, ServerSharding::even, 3, true, 30) ==
        std::vector<Sent>{{32, 96, PushMessage::every_server},
                          {36, 99, PushMessage::every_server},
                          {20, 100, PushMessage::every_server}});
}

TEST_CASE("all bytes go somewhere, and the hottest server has no more than greedy placement allows") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<std::int64_t> elements(1 + random() % 30);
    for (std::int64_t& n : elements) n = 1 + static_cast<std::int64_t>(random() % 1000);
    const auto servers = 1 + static_cast<std::uint32_t>(random() % 8);
    std::int64_t total = 0, largest = 0;
    for (const std::int64_t n : elements) total += n, largest = std::max(largest, n);
    std::vector<double> load(servers, 0), load_at_once(servers, 0);
    for (const Sent& m : messages(tensors_of(elements), ServerSharding::tensor, servers, true))
      load[m.server] += m.bytes;
    for (const Sent& m : messages(tensors_of(elements), ServerSharding::tensor, servers, false))
      load_at_once[m.server] += m.bytes;
    CHECK(load == load_at_once);
    double sum = 0;
    for (const double bytes : load) sum += bytes;
    CHECK(sum == 4.0 * static_cast<double>(total));
    // List scheduling (Graham 1966): the last tensor on the hottest server found it at most at the mean of
    // the rest.
    const double bound = static_cast<double>(total - largest) / servers + static_cast<double>(largest);
    CHECK(*std::max_element(load.begin(), load.end()) <= 4.0 * bound * (1 + 1e-12));
  }
}
