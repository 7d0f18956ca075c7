// SPDX-License-Identifier: MIT
#include "topologies/interiors/pcie.h"

#include <fmt/format.h>

#include <algorithm>

#include "topologies/cable_list.h"

namespace convoy {
namespace {

class PcieInterior final : public Interior {
 public:
  explicit PcieInterior(PcieTree tree) : tree_(std::move(tree)) {}

  InteriorGraph graph(std::uint32_t devices, std::uint32_t nics) const override {
    InteriorGraph graph;
    for (std::uint32_t d = 0; d < devices; ++d) graph.devices_at.push_back(graph.add_vertex(false));
    tree_.add_to(graph, nics);
    return graph;
  }
  std::string text() const override { return tree_.text(); }

 private:
  PcieTree tree_;
};

/// Refuses keys that say something of what another key has not named.
void refuse_pcie_keys_without(YamlMap& map, std::initializer_list<const char*> keys, const char* needed) {
  for (const char* key : keys)
    if (map.find(key)) map.fail(key, fmt::format("needs {}", needed));
}

}  // namespace

void PcieTree::add_to(InteriorGraph& graph, std::uint32_t nics) const {
  const std::size_t socket_count = std::max<std::size_t>(1, sockets.size());
  std::vector<std::uint32_t> socket_at, switch_at;
  for (std::size_t s = 0; s < socket_count; ++s) socket_at.push_back(graph.add_vertex(true));
  for (std::size_t s = 0; s < switches.size(); ++s) switch_at.push_back(graph.add_vertex(true));

  std::vector<std::uint32_t> lanes_to(graph.devices_at.size(), socket_at[0]);
  for (std::size_t s = 0; s < switches.size(); ++s)
    for (const std::uint32_t device : switches[s])
      if (device < lanes_to.size()) lanes_to[device] = switch_at[s];
  for (std::size_t d = 0; d < lanes_to.size(); ++d)
    graph.cables.push_back({graph.devices_at[d], lanes_to[d], bandwidth_Bps, latency_s / 2, pcie_way_cost,
                            fmt::format("gpu{}.pcie", d)});

  std::vector<std::uint32_t> uplink_to(switches.size(), socket_at[0]);
  for (std::size_t s = 0; s < sockets.size(); ++s)
    for (const std::uint32_t pcie_switch : sockets[s]) uplink_to[pcie_switch] = socket_at[s];
  for (std::size_t s = 0; s < switches.size(); ++s)
    graph.cables.push_back({switch_at[s], uplink_to[s], uplink_Bps, hop_latency_s, pcie_way_cost,
                            fmt::format("pcie{}.uplink", s)});
  for (std::size_t s = 0; s + 1 < socket_count; ++s)
    graph.cables.push_back({socket_at[s], socket_at[s + 1], socket_link_Bps, hop_latency_s, pcie_way_cost,
                            fmt::format("socket{}-{}", s, s + 1)});

  graph.memory_at = socket_at[0];
  const std::vector<std::uint32_t>& places = switch_at.empty() || nics == 1 ? socket_at : switch_at;
  for (std::uint32_t n = 0; n < nics; ++n) graph.nics_at.push_back(places[n * places.size() / nics]);
}

std::string PcieTree::text() const {
  std::string text = fmt::format("PCIe {} a device", format_bandwidth(bandwidth_Bps));
  if (!switches.empty())
    text += fmt::format(", {} switches of {} uplink", switches.size(), format_bandwidth(uplink_Bps));
  if (!sockets.empty())
    text += fmt::format(", {} sockets joined by {}", sockets.size(), format_bandwidth(socket_link_Bps));
  return text;
}

std::vector<std::vector<std::uint32_t>> read_grouping(YamlMap& map, std::string_view key, std::uint32_t count,
                                                      std::string_view what) {
  const YamlNode& list = map.node(key);
  const std::string path = map.path_of(key);
  if (list.kind != YamlNode::Kind::sequence || list.items.empty())
    map.fail(key, fmt::format("expected a list of lists of {}, found {}", what, describe(list)));
  std::vector<std::vector<std::uint32_t>> groups;
  std::vector<bool> seen(count, false);
  for (std::size_t g = 0; g < list.items.size(); ++g) {
    const YamlNode& group = list.items[g];
    if (group.kind != YamlNode::Kind::sequence)
      throw InputError(
          group.pos, fmt::format("{}[{}]: expected a list of {}, found {}", path, g, what, describe(group)));
    groups.emplace_back();
    for (std::size_t i = 0; i < group.items.size(); ++i) {
      const std::string item_path = fmt::format("{}[{}][{}]", path, g, i);
      const auto index = static_cast<std::uint32_t>(
          read_integer(group.items[i], item_path, 0, static_cast<std::int64_t>(count) - 1));
      if (seen[index])
        throw InputError(group.items[i].pos, fmt::format("{}: {} is listed twice", item_path, index));
      seen[index] = true;
      groups.back().push_back(index);
    }
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end())
    map.fail(key, fmt::format("{} is not listed; each of the {} {} must be, once", missing - seen.begin(),
                              count, what));
  return groups;
}

PcieTree read_pcie_tree(YamlMap& map, std::uint32_t devices) {
  PcieTree tree;
  const double efficiency = read_payload_share(map);
  tree.bandwidth_Bps = efficiency * map.quantity("bandwidth", Dimension::bandwidth, true);
  tree.latency_s = map.quantity_or("latency", Dimension::time, 0);
  if (map.find("switches")) {
    tree.switches = read_grouping(map, "switches", devices, "devices");
    tree.uplink_Bps = map.find("uplink") ? efficiency * map.quantity("uplink", Dimension::bandwidth, true)
                                        : tree.bandwidth_Bps;
    tree.hop_latency_s = map.quantity_or("hop_latency", Dimension::time, 0);
    if (map.find("sockets")) {
      tree.sockets =
          read_grouping(map, "sockets", static_cast<std::uint32_t>(tree.switches.size()), "switches");
      tree.socket_link_Bps = map.quantity("socket_link", Dimension::bandwidth, true);
    } else {
      refuse_pcie_keys_without(map, {"socket_link"}, "`sockets`: the switches of each, such as [[0], [1]]");
    }
  } else {
    refuse_pcie_keys_without(map, {"uplink", "hop_latency", "sockets", "socket_link"},
                   "`switches`: the devices of each PCIe switch, such as [[0, 1], [2, 3]]");
  }
  return tree;
}

std::optional<PcieTree> read_optional_pcie(YamlMap& map, std::uint32_t devices) {
  if (!map.find("pcie")) return std::nullopt;
  YamlMap pcie = map.map("pcie");
  PcieTree tree = read_pcie_tree(pcie, devices);
  pcie.finish();
  return tree;
}

void add_host_side(InteriorGraph& graph, const std::optional<PcieTree>& pcie, std::uint32_t nics) {
  if (pcie) return pcie->add_to(graph, nics);
  graph.memory_at = graph.add_vertex(true);
  graph.nics_at.assign(nics, graph.memory_at);
  for (const std::uint32_t device : graph.devices_at)
    graph.cables.push_back(
        {device, graph.memory_at, std::numeric_limits<double>::infinity(), 0, pcie_way_cost, ""});
}

std::shared_ptr<const Interior> read_pcie_interior(YamlMap& map, std::uint32_t devices) {
  return std::make_shared<PcieInterior>(read_pcie_tree(map, devices));
}

}  // namespace convoy
