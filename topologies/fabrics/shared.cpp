// SPDX-License-Identifier: MIT
#include "topologies/fabrics/shared.h"

namespace convoy::inline topologies {
namespace {

class SharedRoutes final : public FabricRoutes {
 public:
  explicit SharedRoutes(LinkId medium) : medium_(medium) {}
  void append(FabricPort, FabricPort, std::vector<LinkId>& links) const override { links.push_back(medium_); }
  bool append_halves(FabricPort, std::vector<LinkId>& out, std::vector<LinkId>&) const override {
    out.push_back(medium_);
    return true;
  }

 private:
  LinkId medium_;
};

class SharedFabric final : public Fabric {
 public:
  using Fabric::Fabric;
  bool has_nics() const override { return false; }
  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost>, LinkTable& links) const override {
    return std::make_unique<SharedRoutes>(
        links.add_medium("medium", nic().bandwidth_Bps, nic().latency_s + nic().message_overhead_s));
  }
  std::string text() const override { return "shared medium, " + nic_text(nic()); }
};

}  // namespace

std::shared_ptr<const Fabric> read_shared_fabric(YamlMap& map) {
  return std::make_shared<SharedFabric>(map, read_cable(map));
}

}  // namespace convoy::topologies
