// SPDX-License-Identifier: MIT
#include "topologies/interiors/pcie.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/key_parts.h"
#include "topologies/interiors/rate_keys.h"

namespace convoy::inline topologies {
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

/// A tree while it is read.
struct PcieDraft {
  std::uint32_t devices = 0;
  double efficiency = 1, bandwidth_Bps = 0, latency_s = 0;
  PcieTree tree;
};

/// Refuses a key that says something of what another key has not named.
void refuse_without(bool there, YamlMap& map, std::string_view key, std::string_view needed) {
  if (!there && map.find(key)) map.fail(key, fmt::format("needs {}", needed));
}
constexpr std::string_view needed_switches =
    "`switches`: the devices of each PCIe switch, such as [[0, 1], [2, 3]]";
constexpr std::string_view needed_sockets = "`sockets`: the switches of each, such as [[0], [1]]";

void read_uplink(YamlMap& map, PcieDraft& draft) {
  const bool there = !draft.tree.switches.empty();
  refuse_without(there, map, "uplink", needed_switches);
  if (there)
    draft.tree.uplink_Bps = map.find("uplink")
                                ? draft.efficiency * map.quantity("uplink", Dimension::bandwidth, true)
                                : draft.bandwidth_Bps;
}

void read_sockets(YamlMap& map, PcieDraft& draft) {
  refuse_without(!draft.tree.switches.empty(), map, "sockets", needed_switches);
  if (map.find("sockets"))
    draft.tree.sockets =
        read_grouping(map, "sockets", static_cast<std::uint32_t>(draft.tree.switches.size()), "switches");
}

void read_socket_link(YamlMap& map, PcieDraft& draft) {
  refuse_without(!draft.tree.switches.empty(), map, "socket_link", needed_switches);
  refuse_without(!draft.tree.sockets.empty(), map, "socket_link", needed_sockets);
  if (!draft.tree.sockets.empty())
    draft.tree.socket_link_Bps = map.quantity("socket_link", Dimension::bandwidth, true);
}

/// Groups of whole numbers.
ValueForm grouping_form(std::string what) {
  return forms::list(forms::list(forms::whole(0, YamlMap::max_integer), "a list"), std::move(what), 1);
}

const Keys<PcieDraft>& pcie_table() {
  using D = PcieDraft;
  static const Keys<D> keys = [] {
    Keys<D> table = rate_keys<D>("of a device's lanes");
    append_keys(
        table,
        Keys<D>{
            list_key<D>("switches", "none", grouping_form("a list such as [[0, 1], [2, 3]]"),
                        "devices of each PCIe switch",
                        [](YamlMap& map, D& draft) {
                          if (map.find("switches"))
                            draft.tree.switches = read_grouping(map, "switches", draft.devices, "devices");
                        }),
            custom_key<D>("uplink", "as bandwidth", forms::quantity(Dimension::bandwidth, true),
                          "with switches, of each", &read_uplink),
            custom_key<D>("hop_latency", "0s", forms::quantity(Dimension::time),
                          "with switches, of an uplink or socket link",
                          [](YamlMap& map, D& draft) {
                            refuse_without(!draft.tree.switches.empty(), map, "hop_latency", needed_switches);
                            draft.tree.hop_latency_s = map.quantity_or("hop_latency", Dimension::time, 0);
                          }),
            list_key<D>("sockets", "one of all", grouping_form("a list such as [[0], [1]]"),
                        "with switches, those of each socket", &read_sockets),
            custom_key<D>("socket_link", "", forms::quantity(Dimension::bandwidth, true),
                          "with sockets, as payload can use it; required there", &read_socket_link)});
    return table;
  }();
  return keys;
}

PcieTree tree_of(PcieDraft draft) {
  draft.tree.bandwidth_Bps = draft.bandwidth_Bps;
  draft.tree.latency_s = draft.latency_s;
  return std::move(draft.tree);
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
                            LinkKind::pcie, fmt::format("gpu{}.pcie", d)});

  std::vector<std::uint32_t> uplink_to(switches.size(), socket_at[0]);
  for (std::size_t s = 0; s < sockets.size(); ++s)
    for (const std::uint32_t pcie_switch : sockets[s]) uplink_to[pcie_switch] = socket_at[s];
  for (std::size_t s = 0; s < switches.size(); ++s)
    graph.cables.push_back({switch_at[s], uplink_to[s], uplink_Bps, hop_latency_s, pcie_way_cost,
                            LinkKind::pcie, fmt::format("pcie{}.uplink", s)});
  for (std::size_t s = 0; s + 1 < socket_count; ++s)
    graph.cables.push_back({socket_at[s], socket_at[s + 1], socket_link_Bps, hop_latency_s, pcie_way_cost,
                            LinkKind::pcie, fmt::format("socket{}-{}", s, s + 1)});

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

std::vector<KeyText> pcie_keys() { return texts_of(pcie_table()); }

std::optional<PcieTree> read_optional_pcie(YamlMap& map, std::uint32_t devices) {
  if (!map.find("pcie")) return std::nullopt;
  PcieDraft draft{.devices = devices, .tree = {}};
  read_part(pcie_table(), map.map("pcie"), draft);
  return tree_of(std::move(draft));
}

void add_host_side(InteriorGraph& graph, const std::optional<PcieTree>& pcie, std::uint32_t nics) {
  if (pcie) return pcie->add_to(graph, nics);
  graph.memory_at = graph.add_vertex(true);
  graph.nics_at.assign(nics, graph.memory_at);
  for (const std::uint32_t device : graph.devices_at)
    graph.cables.push_back({device, graph.memory_at, std::numeric_limits<double>::infinity(), 0,
                            pcie_way_cost, LinkKind::pcie, ""});
}

std::shared_ptr<const Interior> read_pcie_interior(YamlMap& map, std::uint32_t devices) {
  PcieDraft draft{.devices = devices, .tree = {}};
  read_keys(pcie_table(), map, draft);
  return std::make_shared<PcieInterior>(tree_of(std::move(draft)));
}

}  // namespace convoy::topologies
