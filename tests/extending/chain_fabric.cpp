// SPDX-License-Identifier: MIT
#include "tests/extending/chain_fabric.h"

namespace convoy {
namespace {

class ChainRoutes final : public FabricRoutes {
 public:
  ChainRoutes(std::span<const FabricHost> hosts, const NicSpec& cable, LinkTable& links)
      : first_(static_cast<LinkId>(links.links().size())) {
    for (std::size_t h = 1; h < hosts.size(); ++h)
      links.add_cable(hosts[h - 1].name + '-' + hosts[h].name, cable.bandwidth_Bps, cable.latency_s);
  }

  /// Cable h joins hosts h and h + 1; its two directions are links first + 2 h, onward, and the next one,
  /// back.
  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    for (std::uint32_t h = from.host; h < to.host; ++h) links.push_back(first_ + 2 * h);
    for (std::uint32_t h = from.host; h > to.host; --h) links.push_back(first_ + 2 * (h - 1) + 1);
  }

 private:
  LinkId first_;
};

class ChainFabric final : public Fabric {
 public:
  using Fabric::Fabric;
  bool has_nics() const override { return false; }
  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    return std::make_unique<ChainRoutes>(hosts, nic(), links);
  }
  std::string text() const override { return "chain, " + nic_text(nic()); }
};

}  // namespace

std::shared_ptr<const Fabric> read_chain_fabric(YamlMap& map) {
  return std::make_shared<ChainFabric>(map, read_cable(map));
}

}  // namespace convoy
