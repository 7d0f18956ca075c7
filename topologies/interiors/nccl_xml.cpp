// SPDX-License-Identifier: MIT
#include "topologies/interiors/nccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/named_file.h"
#include "sim/base/quantity.h"
#include "topologies/cable_list.h"
#include "topologies/xml_file.h"

namespace convoy::inline topologies {
namespace {

/// Usable bandwidth of one NVLink by compute capability: NCCL 5067397c, src/graph/topo.h.
double nvlink_of_sm(double sm) { return sm >= 90 ? 20.6e9 : sm >= 70 ? 20.0e9 : 18.0e9; }

/// "16.0 GT/s PCIe" and 16 lanes -> 31.5 GB/s. Encoding: 8 of 10 bits up to 5 GT/s, 128 of 130 from 8 GT/s.
double pcie_Bps(const XmlElement& pci) {
  const std::string& speed = pci.text("link_speed");
  const std::optional<double> rate = parse_number(speed.substr(0, speed.find(' ')));
  const double width = pci.number("link_width");
  if (!rate || *rate <= 0 || speed.find("GT/s") == std::string::npos)
    pci.fail(fmt::format("link_speed: expected a rate such as '16.0 GT/s PCIe', found '{}'", speed));
  if (width < 1 || width > 32) pci.fail(fmt::format("link_width: {} lanes; 1 to 32 are allowed", width));
  return *rate * 1e9 * width / 8 * (*rate < 8 ? 0.8 : 128.0 / 130.0);
}

struct FoundGpu {
  double dev = 0, sm = 0;
  std::uint32_t parent = 0;  ///< vertex of the plan: switches and sockets from 0
  double lanes_Bps = 0;
  std::string bus_id;
  struct Nvlink {
    std::string target;
    double count = 0;
    bool to_switch = false;
  };
  std::vector<Nvlink> nvlinks;
};

struct FoundNic {
  double dev = 0;
  std::uint32_t parent = 0;
};

struct FoundSwitch {
  std::uint32_t parent = 0;
  double uplink_Bps = 0;  ///< 0: a socket
};

/// What the file says, in its own order until sort().
struct NcclSystem {
  std::vector<FoundSwitch> places;  ///< sockets and switches
  std::vector<std::uint32_t> sockets;
  std::vector<FoundGpu> gpus;
  std::vector<FoundNic> nics;

  void read_cpu(const XmlElement& cpu) {
    const auto at = static_cast<std::uint32_t>(places.size());
    places.push_back({});
    sockets.push_back(at);
    for (const XmlElement& child : cpu.children) read_below(child, at);
  }

  void read_below(const XmlElement& element, std::uint32_t at) {
    if (element.name == "nic") {
      for (const XmlElement& net : element.children)
        if (net.name == "net") nics.push_back({net.number("dev"), at});
      return;
    }
    if (element.name != "pci") return;
    const bool holds_pci = std::any_of(element.children.begin(), element.children.end(),
                                       [](const XmlElement& child) { return child.name == "pci"; });
    std::uint32_t inner = at;
    if (holds_pci) {
      inner = static_cast<std::uint32_t>(places.size());
      places.push_back({at, pcie_Bps(element)});
    }
    for (const XmlElement& child : element.children) {
      if (child.name == "gpu")
        read_gpu(element, child, inner);
      else
        read_below(child, inner);
    }
  }

  void read_gpu(const XmlElement& pci, const XmlElement& gpu, std::uint32_t at) {
    FoundGpu found;
    found.dev = gpu.number("dev");
    found.sm = gpu.number("sm");
    found.parent = at;
    found.lanes_Bps = pcie_Bps(pci);
    found.bus_id = pci.text("busid");
    for (const XmlElement& link : gpu.children)
      if (link.name == "nvlink")
        found.nvlinks.push_back(
            {link.text("target"), link.number("count"), link.text_or("tclass", "") == "0x068000"});
    gpus.push_back(std::move(found));
  }
};

struct NcclRates {
  std::optional<double> nvlink_Bps;
  double efficiency = 1, nvlink_latency_s = 0, latency_s = 0, hop_latency_s = 0, socket_link_Bps = 0;
};

class NcclInterior final : public Interior {
 public:
  NcclInterior(NcclSystem system, const NcclRates& rates) : system_(std::move(system)), rates_(rates) {}

  InteriorGraph graph(std::uint32_t devices, std::uint32_t nics) const override {
    InteriorGraph graph;
    for (std::uint32_t d = 0; d < devices; ++d) graph.devices_at.push_back(graph.add_vertex(false));
    const std::uint32_t first = devices;
    for (std::size_t p = 0; p < system_.places.size(); ++p) graph.add_vertex(true);
    std::uint32_t number = 0;
    for (std::uint32_t p = 0; p < system_.places.size(); ++p)
      if (const FoundSwitch& place = system_.places[p]; place.uplink_Bps > 0)
        graph.cables.push_back({first + p, first + place.parent, rates_.efficiency * place.uplink_Bps,
                                rates_.hop_latency_s, pcie_way_cost, LinkKind::pcie,
                                fmt::format("pcie{}.uplink", number++)});
    for (std::size_t s = 0; s + 1 < system_.sockets.size(); ++s)
      graph.cables.push_back({first + system_.sockets[s], first + system_.sockets[s + 1],
                              rates_.socket_link_Bps, rates_.hop_latency_s, pcie_way_cost, LinkKind::pcie,
                              fmt::format("socket{}-{}", s, s + 1)});
    for (std::uint32_t d = 0; d < devices; ++d)
      graph.cables.push_back({d, first + system_.gpus[d].parent,
                              rates_.efficiency * system_.gpus[d].lanes_Bps, rates_.latency_s / 2,
                              pcie_way_cost, LinkKind::pcie, fmt::format("gpu{}.pcie", d)});
    add_nvlinks(graph, devices);
    graph.memory_at = first + system_.sockets[0];
    for (std::uint32_t n = 0; n < nics; ++n)
      graph.nics_at.push_back(system_.nics.empty() ? graph.memory_at
                                                   : first + system_.nics[n % system_.nics.size()].parent);
    return graph;
  }

  std::string text() const override {
    double links = 0;
    for (const FoundGpu& gpu : system_.gpus)
      for (const FoundGpu::Nvlink& link : gpu.nvlinks) links += link.count;
    return fmt::format("{} GPUs, {} NICs and {} PCIe switches of NCCL's topology{}", system_.gpus.size(),
                       system_.nics.size(), system_.places.size() - system_.sockets.size(),
                       links > 0 ? fmt::format(", {} NVLink ends", links) : "");
  }

 private:
  double link_Bps(const FoundGpu& gpu) const {
    return rates_.nvlink_Bps ? rates_.efficiency * *rates_.nvlink_Bps : nvlink_of_sm(gpu.sm);
  }

  void add_nvlinks(InteriorGraph& graph, std::uint32_t devices) const {
    std::map<std::string, std::uint32_t> by_bus;
    for (std::uint32_t d = 0; d < devices; ++d) by_bus.emplace(system_.gpus[d].bus_id, d);
    std::optional<std::uint32_t> crossbar;
    for (std::uint32_t d = 0; d < devices; ++d) {
      const FoundGpu& gpu = system_.gpus[d];
      double to_switch = 0;
      for (const FoundGpu::Nvlink& link : gpu.nvlinks) {
        if (link.to_switch) to_switch += link.count;
        const auto peer = by_bus.find(link.target);
        if (!link.to_switch && peer != by_bus.end() && peer->second > d)
          graph.cables.push_back({d, peer->second, link.count * link_Bps(gpu), rates_.nvlink_latency_s,
                                  nvlink_way_cost, LinkKind::nvlink,
                                  fmt::format("gpu{}-gpu{}.nvlink", d, peer->second)});
      }
      if (to_switch == 0) continue;
      if (!crossbar) crossbar = graph.add_vertex(true);
      graph.cables.push_back({d, *crossbar, to_switch * link_Bps(gpu), rates_.nvlink_latency_s / 2,
                              nvlink_way_cost, LinkKind::nvlink, fmt::format("gpu{}.nvswitch", d)});
    }
  }

  NcclSystem system_;
  NcclRates rates_;
};

NcclSystem read_nccl_system(const std::string& file) {
  const XmlElement root = load_xml(file);
  if (root.name != "system") root.fail("expected NCCL's <system>");
  NcclSystem system;
  for (const XmlElement& cpu : root.children)
    if (cpu.name == "cpu") system.read_cpu(cpu);
  if (system.sockets.empty()) root.fail("has no <cpu>");
  const auto by_dev = [](const auto& a, const auto& b) { return a.dev < b.dev; };
  std::stable_sort(system.gpus.begin(), system.gpus.end(), by_dev);
  std::stable_sort(system.nics.begin(), system.nics.end(), by_dev);
  return system;
}

struct NcclDraft {
  std::string file;
  NcclRates rates;
};

const Keys<NcclDraft>& nccl_table() {
  using D = NcclDraft;
  static const Keys<D> keys{
      custom_key<D>("file", "", forms::text("a file"), "beside the experiment",
                    [](YamlMap& map, D& draft) { draft.file = named_file(map, "file"); })
          .told_required(),
      custom_key<D>("efficiency", "100%", forms::share(true), "of the nominal bandwidth that payload can use",
                    [](YamlMap& map, D& draft) { draft.rates.efficiency = read_payload_share(map); }),
      custom_key<D>("nvlink", "as NCCL takes it for the GPU", forms::quantity(Dimension::bandwidth, true),
                    "of one link",
                    [](YamlMap& map, D& draft) {
                      if (map.find("nvlink"))
                        draft.rates.nvlink_Bps = map.quantity("nvlink", Dimension::bandwidth, true);
                    }),
      optional_quantity_key<D>("nvlink_latency", "0s", Dimension::time, false, "of a link",
                               [](D& d) -> double& { return d.rates.nvlink_latency_s; }),
      optional_quantity_key<D>("latency", "0s", Dimension::time, false, "one way between two devices",
                               [](D& d) -> double& { return d.rates.latency_s; }),
      optional_quantity_key<D>("hop_latency", "0s", Dimension::time, false, "of an uplink or socket link",
                               [](D& d) -> double& { return d.rates.hop_latency_s; }),
      optional_quantity_key<D>("socket_link", "none", Dimension::bandwidth, true,
                               "between sockets, as payload can use it; required where there are several",
                               [](D& d) -> double& { return d.rates.socket_link_Bps; })};
  return keys;
}

}  // namespace

std::vector<KeyText> nccl_keys() { return texts_of(nccl_table()); }

std::shared_ptr<const Interior> read_nccl_interior(YamlMap& map, std::uint32_t devices) {
  NcclDraft draft;
  read_keys(nccl_table(), map, draft);
  const NcclRates& rates = draft.rates;
  NcclSystem system = read_nccl_system(draft.file);
  if (system.gpus.size() != devices)
    map.fail("file", fmt::format("the file has {} GPUs, the server {} devices", system.gpus.size(), devices));
  if (system.sockets.size() > 1 && rates.socket_link_Bps == 0)
    map.fail(fmt::format("key 'socket_link' is missing: the file has {} sockets", system.sockets.size()));
  return std::make_shared<NcclInterior>(std::move(system), rates);
}

}  // namespace convoy::topologies
