// SPDX-License-Identifier: MIT
#include "topologies/interiors/nvidia_smi.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/named_file.h"
#include "topologies/interiors/rate_keys.h"
#include "topologies/interiors/topo_matrix.h"

namespace convoy::inline topologies {
namespace {

/// More NVLinks than any GPU has ports for (B200 has 18): what the table then shows is an NVSwitch.
constexpr std::uint32_t most_nvlink_ports = 18;

struct ImportedRates {
  double nvlink_Bps = 0, nvlink_latency_s = 0;  ///< of one link
  double pcie_Bps = 0, pcie_latency_s = 0, uplink_Bps = 0, hop_latency_s = 0, socket_link_Bps = 0;
};

/// Places in groups that are joined at some nearness.
class Groups {
 public:
  explicit Groups(std::size_t places) : parent_(places) { std::iota(parent_.begin(), parent_.end(), 0u); }
  std::uint32_t of(std::uint32_t place) {
    while (parent_[place] != place) place = parent_[place] = parent_[parent_[place]];
    return place;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[std::max(of(a), of(b))] = std::min(of(a), of(b)); }

 private:
  std::vector<std::uint32_t> parent_;
};

/// Groups at a nearness: places that see each other through it or something nearer.
Groups groups_at(const TopoMatrix& topo, PcieNearness nearness) {
  Groups groups(topo.places());
  for (std::uint32_t a = 0; a < topo.places(); ++a)
    for (std::uint32_t b = 0; b < a; ++b) {
      const bool by_affinity = nearness == PcieNearness::node && a < topo.gpus &&
                               !topo.cpu_affinity[a].empty() && topo.cpu_affinity[a] == topo.cpu_affinity[b];
      if (topo.nearness[a][b] <= nearness || by_affinity) groups.join(a, b);
    }
  return groups;
}

class NvidiaSmiInterior final : public Interior {
 public:
  NvidiaSmiInterior(TopoMatrix topo, const ImportedRates& rates) : topo_(std::move(topo)), rates_(rates) {}

  /// Sockets of the server, as the table tells them apart.
  std::size_t sockets() const {
    Groups nodes = groups_at(topo_, PcieNearness::node);
    std::size_t count = 0;
    for (std::uint32_t p = 0; p < topo_.places(); ++p) count += nodes.of(p) == p;
    return count;
  }

  bool has_nvswitch() const {
    for (std::uint32_t a = 0; a < topo_.gpus; ++a) {
      const std::uint32_t ports = std::accumulate(topo_.nvlinks[a].begin(), topo_.nvlinks[a].end(), 0u);
      if (ports <= most_nvlink_ports || topo_.gpus < 3) return false;
    }
    return true;
  }

  bool has_nvlinks() const {
    return std::any_of(topo_.nvlinks.begin(), topo_.nvlinks.end(), [](const auto& row) {
      return std::any_of(row.begin(), row.end(), [](std::uint32_t links) { return links > 0; });
    });
  }

  InteriorGraph graph(std::uint32_t devices, std::uint32_t nics) const override {
    InteriorGraph graph;
    for (std::uint32_t d = 0; d < devices; ++d) graph.devices_at.push_back(graph.add_vertex(false));
    add_nvlinks(graph, devices);
    add_pcie(graph, devices, nics);
    return graph;
  }

  std::string text() const override {
    std::string text = fmt::format("{} GPUs and {} NICs of a topology matrix, PCIe {}", topo_.gpus,
                                   topo_.nics, format_bandwidth(rates_.pcie_Bps));
    if (has_nvlinks())
      text += fmt::format(", {} of {} a link", has_nvswitch() ? "NVSwitch with NVLinks" : "NVLinks",
                          format_bandwidth(rates_.nvlink_Bps));
    return text;
  }

 private:
  void add_nvlinks(InteriorGraph& graph, std::uint32_t devices) const {
    if (has_nvswitch()) {
      const std::uint32_t crossbar = graph.add_vertex(true);
      for (std::uint32_t d = 0; d < devices; ++d) {
        const std::uint32_t links = *std::max_element(topo_.nvlinks[d].begin(), topo_.nvlinks[d].end());
        graph.cables.push_back({d, crossbar, links * rates_.nvlink_Bps, rates_.nvlink_latency_s / 2,
                                nvlink_way_cost, LinkKind::nvlink, fmt::format("gpu{}.nvswitch", d)});
      }
      return;
    }
    for (std::uint32_t b = 0; b < devices; ++b)
      for (std::uint32_t a = 0; a < b; ++a)
        if (topo_.nvlinks[a][b] > 0)
          graph.cables.push_back({a, b, topo_.nvlinks[a][b] * rates_.nvlink_Bps, rates_.nvlink_latency_s,
                                  nvlink_way_cost, LinkKind::nvlink,
                                  fmt::format("gpu{}-gpu{}.nvlink", a, b)});
  }

  /// Sockets, below them PCIe switches of two levels, where the table shows them, below them GPUs and NICs.
  void add_pcie(InteriorGraph& graph, std::uint32_t devices, std::uint32_t nics) const {
    Groups pix = groups_at(topo_, PcieNearness::pix), pxb = groups_at(topo_, PcieNearness::pxb),
           node = groups_at(topo_, PcieNearness::node);
    std::vector<std::uint32_t> socket_at, socket_of(topo_.places()), top_of(topo_.places()),
        low_of(topo_.places());
    for (std::uint32_t p = 0; p < topo_.places(); ++p)
      if (node.of(p) == p) socket_of[p] = graph.add_vertex(true), socket_at.push_back(socket_of[p]);
    for (std::uint32_t p = 0; p < topo_.places(); ++p) socket_of[p] = socket_of[node.of(p)];
    add_switches(graph, pxb, "pxb", top_of, socket_of, [&](std::uint32_t p) { return pix.of(p); });
    add_switches(graph, pix, "pix", low_of, top_of, [](std::uint32_t p) { return p; });
    for (std::uint32_t d = 0; d < devices; ++d)
      graph.cables.push_back({d, low_of[d], rates_.pcie_Bps, rates_.pcie_latency_s / 2, pcie_way_cost,
                              LinkKind::pcie, fmt::format("gpu{}.pcie", d)});
    for (std::size_t s = 0; s + 1 < socket_at.size(); ++s)
      graph.cables.push_back({socket_at[s], socket_at[s + 1], rates_.socket_link_Bps, rates_.hop_latency_s,
                              pcie_way_cost, LinkKind::pcie, fmt::format("socket{}-{}", s, s + 1)});
    graph.memory_at = socket_at[0];
    for (std::uint32_t n = 0; n < nics; ++n)
      graph.nics_at.push_back(topo_.nics > 0 ? low_of[topo_.gpus + n % topo_.nics] : socket_at[0]);
  }

  /// A switch for every group of more than one part, with an uplink; places of other groups are where `above`
  /// says.
  template <class PartOf>
  void add_switches(InteriorGraph& graph, Groups& groups, const char* name, std::vector<std::uint32_t>& at,
                    const std::vector<std::uint32_t>& above, PartOf part_of) const {
    std::uint32_t number = 0;
    at = above;
    for (std::uint32_t p = 0; p < topo_.places(); ++p) {
      if (groups.of(p) != p) {
        at[p] = at[groups.of(p)];
        continue;
      }
      bool several = false;
      for (std::uint32_t q = p + 1; q < topo_.places(); ++q)
        several = several || (groups.of(q) == p && part_of(q) != part_of(p));
      if (!several) continue;
      at[p] = graph.add_vertex(true);
      graph.cables.push_back({at[p], above[p], rates_.uplink_Bps, rates_.hop_latency_s, pcie_way_cost,
                              LinkKind::pcie, fmt::format("{}{}.uplink", name, number++)});
    }
  }

  TopoMatrix topo_;
  ImportedRates rates_;
};

struct NvidiaSmiDraft {
  std::string file;
  double efficiency = 1, bandwidth_Bps = 0, latency_s = 0;
  ImportedRates rates;
};

const Keys<NvidiaSmiDraft>& nvidia_smi_table() {
  using D = NvidiaSmiDraft;
  static const Keys<D> keys = [] {
    Keys<D> table = rate_keys<D>("of PCIe lanes");
    append_keys(table,
                Keys<D>{custom_key<D>("file", "", forms::text("a file"), "beside the experiment",
                                      [](YamlMap& map, D& draft) { draft.file = named_file(map, "file"); })
                            .told_required(),
                        custom_key<D>("uplink", "as bandwidth", forms::quantity(Dimension::bandwidth, true),
                                      "of each PCIe switch",
                                      [](YamlMap& map, D& draft) {
                                        draft.rates.uplink_Bps =
                                            map.find("uplink")
                                                ? draft.efficiency *
                                                      map.quantity("uplink", Dimension::bandwidth, true)
                                                : draft.bandwidth_Bps;
                                      }),
                        optional_quantity_key<D>("hop_latency", "0s", Dimension::time, false,
                                                 "of an uplink or socket link",
                                                 [](D& d) -> double& { return d.rates.hop_latency_s; }),
                        custom_key<D>("nvlink", "none", forms::quantity(Dimension::bandwidth, true),
                                      "of one link; required where the table has any",
                                      [](YamlMap& map, D& draft) {
                                        draft.rates.nvlink_Bps =
                                            draft.efficiency *
                                            map.quantity_or("nvlink", Dimension::bandwidth, 0, true);
                                      }),
                        optional_quantity_key<D>("nvlink_latency", "0s", Dimension::time, false, "of a link",
                                                 [](D& d) -> double& { return d.rates.nvlink_latency_s; }),
                        optional_quantity_key<D>(
                            "socket_link", "none", Dimension::bandwidth, true,
                            "between sockets, as payload can use it; required where there are several",
                            [](D& d) -> double& { return d.rates.socket_link_Bps; })});
    return table;
  }();
  return keys;
}

}  // namespace

std::vector<KeyText> nvidia_smi_keys() { return texts_of(nvidia_smi_table()); }

std::shared_ptr<const Interior> read_nvidia_smi_interior(YamlMap& map, std::uint32_t devices) {
  NvidiaSmiDraft draft;
  read_keys(nvidia_smi_table(), map, draft);
  TopoMatrix topo = read_topo_matrix(draft.file);
  if (topo.gpus != devices)
    map.fail("file", fmt::format("the table has {} GPUs, the server {} devices", topo.gpus, devices));
  ImportedRates rates = draft.rates;
  rates.pcie_Bps = draft.bandwidth_Bps;
  rates.pcie_latency_s = draft.latency_s;
  auto interior = std::make_shared<NvidiaSmiInterior>(std::move(topo), rates);
  if (interior->has_nvlinks() && rates.nvlink_Bps == 0)
    map.fail("key 'nvlink' is missing: the table has NVLinks, and not how fast one is");
  if (interior->sockets() > 1 && rates.socket_link_Bps == 0)
    map.fail(fmt::format("key 'socket_link' is missing: the table has {} sockets", interior->sockets()));
  return interior;
}

}  // namespace convoy::topologies
