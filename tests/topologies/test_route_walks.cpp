// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <deque>
#include <functional>
#include <map>

#include "tests/topologies/machines.h"

using namespace convoy;

namespace {

/// The two ends of a cable by its port's name: up goes from the first to the second.
using Ends = std::function<std::pair<std::string, std::string>(const std::string& port)>;

struct Walk {
  std::map<std::string, std::vector<std::string>> neighbours;
  std::string wrong;     ///< the first way that is not a walk from its start to its end
  bool shortest = true;  ///< whether all have as few links as a search by breadth finds
};

std::size_t hops(const std::map<std::string, std::vector<std::string>>& neighbours, const std::string& from,
                 const std::string& to) {
  std::map<std::string, std::size_t> distance = {{from, 0}};
  std::deque<std::string> queue = {from};
  for (; !queue.empty() && !distance.contains(to); queue.pop_front())
    for (const std::string& next : neighbours.at(queue.front()))
      if (distance.emplace(next, distance.at(queue.front()) + 1).second) queue.push_back(next);
  return distance.at(to);
}

/// Walks all ways between one-device hosts of the fabric through the graph that the cables' names say.
Walk walk(int hosts, const std::string& fabric, const Ends& ends) {
  const Machine machine = machine_of(
      fmt::format("server: box\nnodes: {}\nfabric: {}\nservers: {{box: {{devices: [{{device: ideal}}]}}}}",
                  hosts, fabric));
  const auto directed = [&](const Link& link) {
    auto [tail, head] = ends(port_name(link));
    if (link.name.ends_with(".down")) std::swap(tail, head);
    return std::pair(tail, head);
  };
  Walk result;
  for (const Link& link : machine.links) {
    const auto [tail, head] = directed(link);
    result.neighbours[tail].push_back(head);
  }
  Route route;
  for (EndpointId a = 0; a < machine.devices.size(); ++a)
    for (EndpointId b = 0; b < machine.devices.size(); ++b) {
      machine.router->route(a, b, route);
      std::string at = machine.devices[a].name;
      for (const LinkId link : route.links) {
        const auto [tail, head] = directed(machine.links[link]);
        if (tail != at && result.wrong.empty())
          result.wrong = fmt::format("{} to {}: at {} comes {}", a, b, at, machine.links[link].name);
        at = head;
      }
      if (at != machine.devices[b].name && result.wrong.empty())
        result.wrong = fmt::format("{} to {} ends at {}", a, b, at);
      if (route.links.size() != hops(result.neighbours, machine.devices[a].name, machine.devices[b].name))
        result.shortest = false;
    }
  return result;
}

std::pair<std::string, std::string> split(const std::string& text, char at) {
  const std::size_t where = text.find(at);
  return {text.substr(0, where), text.substr(where + 1)};
}

int number_in(const std::string& text) { return std::stoi(text.substr(text.find_first_of("0123456789"))); }

}  // namespace

TEST_CASE("ways round rings are walks of the fewest cables") {
  for (int hosts = 2; hosts <= 9; ++hosts) {
    CAPTURE(hosts);
    const Walk ring = walk(hosts, "{kind: ring, bandwidth: 1Gbps, latency: 1us}",
                           [](const std::string& port) { return split(port, '-'); });
    CHECK(ring.wrong == "");
    CHECK(ring.shortest);
  }
}

TEST_CASE("ways through tori of all small shapes are walks of the fewest cables") {
  for (int x = 1; x <= 5; ++x)
    for (int y = 1; y <= 3; ++y)
      for (int z = 1; z <= 3; ++z) {
        CAPTURE(x);
        CAPTURE(y);
        CAPTURE(z);
        if (x * y * z == 1) continue;
        const std::array<int, 3> dims = {x, y, z};
        // "torus1-0-2.d1" joins position (1, 0, 2) to (1, 1, 2).
        const Walk torus =
            walk(x * y * z,
                 fmt::format("{{kind: torus, bandwidth: 1Gbps, latency: 1us, dims: [{}, {}, {}]}}", x, y, z),
                 [&](const std::string& port) {
                   std::array<int, 3> at{};
                   const auto [position, dim] = split(port.substr(5), '.');
                   const auto [first, rest] = split(position, '-');
                   const auto [second, third] = split(rest, '-');
                   at = {std::stoi(first), std::stoi(second), std::stoi(third)};
                   const auto name = [&] { return fmt::format("n{}", at[0] + x * (at[1] + y * at[2])); };
                   const std::string from = name();
                   const auto d = static_cast<std::size_t>(number_in(dim));
                   at[d] = (at[d] + 1) % dims[d];
                   return std::pair(from, name());
                 });
        CHECK(torus.wrong == "");
        CHECK(torus.shortest);
      }
}

TEST_CASE("ways through fat trees are walks of the fewest cables") {
  for (const int levels : {2, 3})
    for (int per_leaf = 1; per_leaf <= 3; ++per_leaf)
      for (int spines = 1; spines <= 3; ++spines) {
        CAPTURE(levels);
        CAPTURE(per_leaf);
        CAPTURE(spines);
        const int leaves_per_pod = 2;
        // "leaf3.spine1" joins leaf 3 to spine 1 (of pod 1), "pod1.spine0.core2" that to core 2 of those
        // above spine 0.
        const auto ends = [&](const std::string& port) -> std::pair<std::string, std::string> {
          const auto [first, rest] = split(port, '.');
          if (first[0] == 'n') return {first, fmt::format("leaf{}", number_in(first) / per_leaf)};
          if (first[0] == 'p') return {port.substr(0, port.rfind('.')), rest};
          if (levels == 2) return {first, rest};
          return {first, fmt::format("pod{}.{}", number_in(first) / leaves_per_pod, rest)};
        };
        const std::string fabric = fmt::format(
            "{{kind: fat_tree, bandwidth: 1Gbps, latency: 1us, levels: {}, hosts_per_leaf: {}, spines: "
            "{}{}}}",
            levels, per_leaf, spines, levels == 3 ? ", leaves_per_pod: 2, cores_per_spine: 3" : "");
        const Walk tree = walk(13, fabric, ends);
        CHECK(tree.wrong == "");
        CHECK(tree.shortest);
      }
}

TEST_CASE("ways through dragonflies are walks") {
  for (int groups = 1; groups <= 5; ++groups)
    for (int routers = 1; routers <= 4; ++routers) {
      CAPTURE(groups);
      CAPTURE(routers);
      const int hosts = 2;
      // Group g counts the others on from itself; the k-th is at router k x routers / (groups - 1).
      const auto gateway = [&](int g, int other) {
        return fmt::format("group{}.{}", g, (other - g - 1 + groups) % groups * routers / (groups - 1));
      };
      const auto ends = [&](const std::string& port) -> std::pair<std::string, std::string> {
        const auto [first, rest] = split(port, '.');
        if (first[0] == 'n') {
          const int router = number_in(first) / hosts;
          return {first, fmt::format("group{}.{}", router / routers, router % routers)};
        }
        if (const auto [a, b] = split(first, '-'); a != first)
          return {gateway(number_in(a), number_in(b)), gateway(number_in(b), number_in(a))};
        const auto [a, b] = split(rest.substr(6), '-');
        return {first + "." + a, first + "." + b};
      };
      const Walk dragonfly =
          walk(std::max(2, groups * routers * hosts),
               fmt::format(
                   "{{kind: dragonfly, bandwidth: 1Gbps, latency: 1us, groups: {}, routers: {}, hosts: {}}}",
                   groups, routers, hosts),
               ends);
      CHECK(dragonfly.wrong == "");
    }
}
