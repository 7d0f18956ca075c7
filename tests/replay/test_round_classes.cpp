// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "sim/replay/flow_model.h"
#include "sim/replay/round_classes.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// Routes, each a list of its own.
using Routes = std::vector<std::vector<LinkUse>>;

RoundClasses classes_of(const std::vector<double>& bytes, const Routes& routes,
                        const std::vector<double>& link_bandwidth_Bps) {
  return round_classes(bytes, std::vector<std::span<const LinkUse>>(routes.begin(), routes.end()),
                       link_bandwidth_Bps);
}

/// When each of the flows ends that begin together; 0 for those that carry nothing.
std::vector<double> ends_s(const std::vector<double>& bytes, const Routes& routes,
                           const std::vector<double>& link_bandwidth_Bps) {
  FlowModel model(link_bandwidth_Bps);
  std::vector<double> result(bytes.size(), 0);
  for (std::size_t f = 0; f < bytes.size(); ++f)
    if (bytes[f] > 0)
      model.start_flow(bytes[f], model.add_route(routes[f], std::numeric_limits<double>::infinity())) =
          [&model, &result, f] { result[f] = model.now_s(); };
  while (model.advance()) continue;
  return result;
}

std::uint32_t drawn(std::mt19937& random, std::uint32_t below) {
  return static_cast<std::uint32_t>(random() % below);
}

}  // namespace

TEST_CASE("classes of a round's flows end when its flows do that are simulated one by one") {
  std::size_t folded = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::uint32_t hosts = 2 + drawn(random, 7), bandwidths = 1 + drawn(random, 2),
                        sizes = 1 + drawn(random, 3);
    std::vector<double> bandwidth_Bps, bytes, sent_bytes;  // links: out of each host, into each, and one more
    for (std::uint32_t l = 0; l < 2 * hosts + 1; ++l)
      bandwidth_Bps.push_back(1e9 * (1 + drawn(random, bandwidths)));
    for (std::uint32_t h = 0; h < hosts; ++h) sent_bytes.push_back(1e6 * drawn(random, sizes + 1));
    Routes routes;
    const bool all = drawn(random, 2) == 0;
    for (std::uint32_t from = 0; from < hosts; ++from)
      for (std::uint32_t to = 0; to < hosts; ++to) {
        if (from == to || (!all && drawn(random, 3) == 0)) continue;
        bytes.push_back(sent_bytes[from]);
        routes.push_back({{from, all ? 1 : 1 + drawn(random, 2)}, {hosts + to, 1}});
        if (!all && drawn(random, 3) == 0) routes.back().push_back({2 * hosts, 1});
      }
    const RoundClasses classes = classes_of(bytes, routes, bandwidth_Bps);
    const std::vector<double> each = ends_s(bytes, routes, bandwidth_Bps),
                              of_classes = ends_s(classes.bytes, classes.routes, classes.link_bandwidth_Bps);
    for (std::size_t f = 0; f < bytes.size(); ++f)
      CHECK(of_classes[classes.class_of[f]] == approx(each[f]).epsilon(1e-12));
    folded += classes.bytes.size() < bytes.size() ? 1 : 0;
  }
  CHECK(folded > 50);
}

TEST_CASE("flows from all to all of equal hosts are one class, and of hosts that differ each is its own") {
  constexpr std::uint32_t hosts = 6;
  Routes routes;
  for (std::uint32_t from = 0; from < hosts; ++from)
    for (std::uint32_t to = 0; to < hosts; ++to)
      if (from != to) routes.push_back({{from, 1}, {hosts + to, 1}});
  const std::vector<double> bytes(routes.size(), 1e6);
  std::vector<double> bandwidth_Bps(2 * hosts, 1e9);
  CHECK(classes_of(bytes, routes, bandwidth_Bps).bytes.size() == 1);
  for (std::uint32_t l = 0; l < 2 * hosts; ++l) bandwidth_Bps[l] += l;
  CHECK(classes_of(bytes, routes, bandwidth_Bps).bytes.size() == routes.size());
}
