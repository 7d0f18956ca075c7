// SPDX-License-Identifier: MIT
#include "strategies/partition/layered_nets.h"

#include <algorithm>
#include <unordered_map>

namespace convoy::inline partition {
namespace {

/// Naming a layer saves nothing below this number of vertices.
constexpr std::size_t least_named = 3;

void list_members(LayeredNets& nets) {
  nets.members.resize(nets.layer.empty() ? 0 : *std::max_element(nets.layer.begin(), nets.layer.end()) + 1);
  for (std::uint32_t v = 0; v < nets.layer.size(); ++v) nets.members[nets.layer[v]].push_back(v);
}

struct NetHash {
  std::size_t operator()(const LayeredNets::Net& net) const {
    std::size_t hash = net.pins.size();
    const auto mix = [&](std::uint32_t value) {
      hash ^= value + std::size_t{0x9e3779b97f4a7c15u} + (hash << 6) + (hash >> 2);
    };
    for (const std::uint32_t pin : net.pins) mix(pin);
    for (const std::uint32_t layer : net.layers) mix(layer);
    return hash;
  }
};
struct SamePins {
  bool operator()(const LayeredNets::Net& a, const LayeredNets::Net& b) const {
    return a.pins == b.pins && a.layers == b.layers;
  }
};

}  // namespace

LayeredNets shorten(const LayeredHypergraph& graph) {
  LayeredNets result{graph.weight, graph.layer, {}, {}};
  list_members(result);
  result.nets.reserve(graph.nets.size());
  std::vector<std::size_t> found(result.members.size(), 0);
  for (const Hypergraph::Net& net : graph.nets) {
    for (const std::uint32_t pin : net.pins) ++found[graph.layer[pin]];
    LayeredNets::Net& shorter = result.nets.emplace_back(LayeredNets::Net{net.cost, {}, {}});
    const auto named = [&](std::uint32_t layer) {
      return found[layer] >= least_named && found[layer] == result.members[layer].size();
    };
    for (const std::uint32_t pin : net.pins) {
      const std::uint32_t layer = graph.layer[pin];
      if (!named(layer))
        shorter.pins.push_back(pin);
      else if (pin == result.members[layer].front())
        shorter.layers.push_back(layer);
    }
    for (const std::uint32_t pin : net.pins) found[graph.layer[pin]] = 0;
    std::sort(shorter.pins.begin(), shorter.pins.end());
    std::sort(shorter.layers.begin(), shorter.layers.end());
  }
  return result;
}

LayeredNets coarsen(const LayeredNets& nets, const std::vector<std::uint32_t>& group, std::uint32_t count) {
  LayeredNets result;
  result.weight.resize(count, 0.0);
  result.layer.resize(count);
  for (std::uint32_t v = 0; v < group.size(); ++v) {
    result.weight[group[v]] += nets.weight[v];
    result.layer[group[v]] = nets.layer[v];
  }
  list_members(result);
  std::unordered_map<LayeredNets::Net, std::size_t, NetHash, SamePins> known(nets.nets.size());
  for (const LayeredNets::Net& net : nets.nets) {
    LayeredNets::Net coarse{net.cost, {}, net.layers};
    for (const std::uint32_t pin : net.pins) coarse.pins.push_back(group[pin]);
    std::sort(coarse.pins.begin(), coarse.pins.end());
    coarse.pins.erase(std::unique(coarse.pins.begin(), coarse.pins.end()), coarse.pins.end());
    std::size_t pins = coarse.pins.size();
    for (const std::uint32_t layer : net.layers) pins += result.members[layer].size();
    if (pins < 2) continue;
    const auto [it, fresh] = known.try_emplace(coarse, result.nets.size());
    if (fresh)
      result.nets.push_back(std::move(coarse));
    else
      result.nets[it->second].cost += net.cost;
  }
  return result;
}

double connectivity(const LayeredNets& nets, const Placement& parts, Part count) {
  std::vector<char> in_layer(nets.members.size() * count, 0);
  for (std::uint32_t v = 0; v < parts.size(); ++v) in_layer[nets.layer[v] * count + parts[v]] = 1;
  std::vector<std::uint32_t> seen(count, 0);
  std::uint32_t stamp = 0;
  double sum = 0;
  for (const LayeredNets::Net& net : nets.nets) {
    std::uint32_t found = 0;
    ++stamp;
    const auto see = [&](Part part) {
      if (seen[part] != stamp) seen[part] = stamp, ++found;
    };
    for (const std::uint32_t pin : net.pins) see(parts[pin]);
    for (const std::uint32_t layer : net.layers)
      for (Part part = 0; part < count; ++part)
        if (in_layer[layer * count + part]) see(part);
    if (found > 0) sum += net.cost * (found - 1.0);
  }
  return sum;
}

}  // namespace convoy::partition
