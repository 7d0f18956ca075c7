// SPDX-License-Identifier: MIT
#include "topologies/fabrics/switch.h"

namespace convoy::inline topologies {
namespace {

class SwitchRoutes final : public FabricRoutes {
 public:
  SwitchRoutes(std::span<const FabricHost> hosts, LinkTable& links) : nics_(hosts, links) {}
  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    links.push_back(nics_.up(from));
    links.push_back(nics_.down(to));
  }
  bool append_halves(FabricPort port, std::vector<LinkId>& out, std::vector<LinkId>& in) const override {
    out.push_back(nics_.up(port));
    in.push_back(nics_.down(port));
    return true;
  }

 private:
  NicLinks nics_;
};

class SwitchFabric final : public Fabric {
 public:
  using Fabric::Fabric;
  bool mixes() const override { return true; }
  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    return std::make_unique<SwitchRoutes>(hosts, links);
  }
  std::string text() const override { return "switch, " + nic_text(nic()); }
};

}  // namespace

std::shared_ptr<const Fabric> read_switch_fabric(YamlMap& map) {
  return std::make_shared<SwitchFabric>(map, read_nic(map));
}

}  // namespace convoy::topologies
