// SPDX-License-Identifier: MIT
#include "topologies/interiors/nvswitch.h"

#include <fmt/format.h>

#include "topologies/cable_list.h"
#include "topologies/interiors/pcie.h"

namespace convoy {
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
      graph.cables.push_back(
          {d, crossbar, port_Bps_, latency_s_ / 2, nvlink_way_cost, fmt::format("gpu{}.nvswitch", d)});
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

}  // namespace

std::shared_ptr<const Interior> read_nvswitch_interior(YamlMap& map, std::uint32_t devices) {
  const double efficiency = read_payload_share(map);
  const double port_Bps = efficiency * map.quantity("bandwidth", Dimension::bandwidth, true);
  const double latency_s = map.quantity_or("latency", Dimension::time, 0);
  return std::make_shared<NvswitchInterior>(port_Bps, latency_s, read_optional_pcie(map, devices));
}

}  // namespace convoy
