// SPDX-License-Identifier: MIT
#include "topologies/fabrics/full_mesh.h"

#include <fmt/format.h>

#include <utility>

namespace convoy::inline topologies {
namespace {

/// The number of cables grows with the square of the hosts: 523,776 at this limit.
constexpr std::size_t max_mesh_hosts = 1024;

class FullMeshRoutes final : public FabricRoutes {
 public:
  FullMeshRoutes(std::span<const FabricHost> hosts, const NicSpec& cable, LinkTable& links)
      : size_(hosts.size()),
        first_(static_cast<LinkId>(links.links().size())),
        stacks_(add_cables(hosts, cable, links)) {}

  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    stacks_.append_up(from.host, links);
    links.push_back(from.host < to.host ? cable(from.host, to.host) : cable(to.host, from.host) + 1);
    stacks_.append_down(to.host, links);
  }

 private:
  /// Upward link of the cable between hosts a < b: the cables of host 0 to all later ones, then those of host
  /// 1, ...
  LinkId cable(std::size_t a, std::size_t b) const {
    return first_ + static_cast<LinkId>(2 * (a * size_ - a * (a + 1) / 2 + (b - a - 1)));
  }

  StackLinks add_cables(std::span<const FabricHost> hosts, const NicSpec& spec, LinkTable& links) const {
    links.reserve(links.links().size() + hosts.size() * (hosts.size() - 1));
    for (std::size_t a = 0; a < hosts.size(); ++a)
      for (std::size_t b = a + 1; b < hosts.size(); ++b)
        links.add_cable(hosts[a].name + '-' + hosts[b].name, spec.bandwidth_Bps, spec.latency_s);
    const std::vector<double> capacity_Bps(size_, static_cast<double>(size_ - 1) * spec.bandwidth_Bps);
    return StackLinks(hosts, capacity_Bps, spec.message_overhead_s, links);
  }

  std::size_t size_;
  LinkId first_;
  StackLinks stacks_;
};

class FullMeshFabric final : public Fabric {
 public:
  using Fabric::Fabric;
  bool has_nics() const override { return false; }
  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    if (hosts.size() > max_mesh_hosts)
      fail(fmt::format("a full mesh of {} hosts; at most {} are allowed (its cables grow with their square)",
                       hosts.size(), max_mesh_hosts));
    return std::make_unique<FullMeshRoutes>(hosts, nic(), links);
  }
  std::string text() const override { return "full mesh, " + nic_text(nic()); }
};

}  // namespace

std::shared_ptr<const Fabric> read_full_mesh_fabric(YamlMap& map) {
  return std::make_shared<FullMeshFabric>(map, read_cable(map));
}

}  // namespace convoy::topologies
