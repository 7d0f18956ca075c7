// SPDX-License-Identifier: MIT
#include "topologies/fabrics/ring.h"

namespace convoy::inline topologies {
namespace {

class RingRoutes final : public FabricRoutes {
 public:
  RingRoutes(std::span<const FabricHost> hosts, const NicSpec& cable, LinkTable& links)
      : size_(static_cast<std::uint32_t>(hosts.size())),
        first_(static_cast<LinkId>(links.links().size())),
        stacks_(add_cables(hosts, cable, links)) {}

  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    const std::uint32_t onward = (to.host + size_ - from.host) % size_, backward = size_ - onward;
    stacks_.append_up(from.host, links);
    // Two hosts have one cable, from host 0: it is the way on for host 0 and the way back for host 1.
    const bool forward = onward < backward || (onward == backward && !(size_ == 2 && from.host == 1));
    std::uint32_t at = from.host;
    if (forward)
      for (; at != to.host; at = (at + 1) % size_) links.push_back(first_ + 2 * at);
    else
      for (; at != to.host; at = (at + size_ - 1) % size_)
        links.push_back(first_ + 2 * ((at + size_ - 1) % size_) + 1);
    stacks_.append_down(to.host, links);
  }

 private:
  /// Cable h joins host h and the next one; up is the way on.
  StackLinks add_cables(std::span<const FabricHost> hosts, const NicSpec& cable, LinkTable& links) const {
    const std::uint32_t cables = size_ == 2 ? 1 : size_;
    for (std::uint32_t h = 0; h < cables; ++h)
      links.add_cable(hosts[h].name + '-' + hosts[(h + 1) % size_].name, cable.bandwidth_Bps,
                      cable.latency_s);
    const std::vector<double> capacity_Bps(size_, 2 * cable.bandwidth_Bps);
    return StackLinks(hosts, capacity_Bps, cable.message_overhead_s, links);
  }

  std::uint32_t size_;
  LinkId first_;
  StackLinks stacks_;
};

class RingFabric final : public Fabric {
 public:
  using Fabric::Fabric;
  bool has_nics() const override { return false; }
  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    return std::make_unique<RingRoutes>(hosts, nic(), links);
  }
  std::string text() const override { return "ring, " + nic_text(nic()); }
};

}  // namespace

std::shared_ptr<const Fabric> read_ring_fabric(YamlMap& map) {
  return std::make_shared<RingFabric>(map, read_cable(map));
}

}  // namespace convoy::topologies
