// SPDX-License-Identifier: MIT
#include "topologies/interiors/nvswitch.h"

#include <fmt/format.h>

#include "topologies/interiors/pcie.h"
#include "topologies/interiors/rate_keys.h"

namespace convoy::inline topologies {
namespace {

class NvswitchInterior final : public Interior {
 public:
  NvswitchInterior(double port_Bps, double latency_s, std::optional<PcieTree> pcie)
      : port_Bps_(port_Bps), latency_s_(latency_s), pcie_(std::move(pcie)) {}

  InteriorGraph graph(std::uint32_t devices, std::uint32_t nics) const override {
    InteriorGraph graph;
    for (std::uint32_t d = 0; d < devices; ++d) graph.devices_at.push_back(graph.add_vertex(false));
    const std::uint32_t crossbar = graph.add_vertex(true);
    for (std::uint32_t d = 0; d < devices; ++d)
      graph.cables.push_back({d, crossbar, port_Bps_, latency_s_ / 2, nvlink_way_cost, LinkKind::nvlink,
                              fmt::format("gpu{}.nvswitch", d)});
    add_host_side(graph, pcie_, nics);
    return graph;
  }

  std::string text() const override {
    return fmt::format("NVSwitch {} a device{}", format_bandwidth(port_Bps_),
                       pcie_ ? "; " + pcie_->text() : "");
  }

 private:
  double port_Bps_, latency_s_;
  std::optional<PcieTree> pcie_;
};

struct NvswitchDraft {
  std::uint32_t devices = 0;
  double efficiency = 1, bandwidth_Bps = 0, latency_s = 0;
  std::optional<PcieTree> pcie;
};

const Keys<NvswitchDraft>& nvswitch_table() {
  static const Keys<NvswitchDraft> keys = [] {
    Keys<NvswitchDraft> table = rate_keys<NvswitchDraft>("of a port");
    table.push_back(pcie_key<NvswitchDraft>());
    return table;
  }();
  return keys;
}

}  // namespace

std::vector<KeyText> nvswitch_keys() { return texts_of(nvswitch_table()); }

std::shared_ptr<const Interior> read_nvswitch_interior(YamlMap& map, std::uint32_t devices) {
  NvswitchDraft draft{.devices = devices, .pcie = {}};
  read_keys(nvswitch_table(), map, draft);
  return std::make_shared<NvswitchInterior>(draft.bandwidth_Bps, draft.latency_s, std::move(draft.pcie));
}

}  // namespace convoy::topologies
