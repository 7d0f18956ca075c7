// SPDX-License-Identifier: MIT
#include "topologies/fabrics/rail.h"

#include <fmt/format.h>

namespace convoy {
namespace {

constexpr std::int64_t max_rail_ports = 65'536;
constexpr std::uint64_t max_rail_cables = 2'000'000;

struct RailShape {
  std::uint32_t hosts_per_group = 0, spines = 0;
  double leaf_cable_Bps = 0, hop_latency_s = 0;  ///< of each cable between a leaf and a spine
};

class RailRoutes final : public FabricRoutes {
 public:
  RailRoutes(const RailShape& shape, std::span<const FabricHost> hosts, LinkTable& links)
      : shape_(shape), rails_(hosts.front().nic.count), nics_(hosts, links) {
    const auto groups =
        static_cast<std::uint32_t>((hosts.size() + shape.hosts_per_group - 1) / shape.hosts_per_group);
    first_leaf_cable_ = static_cast<LinkId>(links.links().size());
    for (std::uint32_t g = 0; g < groups; ++g)
      for (std::uint32_t r = 0; r < rails_; ++r)
        for (std::uint32_t s = 0; s < shape.spines; ++s)
          links.add_cable(fmt::format("group{}.rail{}.spine{}", g, r, s), shape.leaf_cable_Bps,
                          shape.hop_latency_s);
  }

  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    links.push_back(nics_.up(from));
    const std::uint32_t from_group = from.host / shape_.hosts_per_group,
                        to_group = to.host / shape_.hosts_per_group;
    if (from_group != to_group || from.nic != to.nic) {
      // D-mod-k, destinations numbered leaf by leaf: those below a leaf are spread over all spines.
      const std::uint32_t number =
          (to_group * rails_ + to.nic) * shape_.hosts_per_group + to.host % shape_.hosts_per_group;
      const std::uint32_t spine = number % shape_.spines;
      links.push_back(leaf_cable(from_group, from.nic, spine));
      links.push_back(leaf_cable(to_group, to.nic, spine) + 1);
    }
    links.push_back(nics_.down(to));
  }

 private:
  LinkId leaf_cable(std::uint32_t group, std::uint32_t rail, std::uint32_t spine) const {
    return first_leaf_cable_ + 2 * ((group * rails_ + rail) * shape_.spines + spine);
  }

  RailShape shape_;
  std::uint32_t rails_;
  NicLinks nics_;
  LinkId first_leaf_cable_ = 0;
};

class RailFabric final : public Fabric {
 public:
  RailFabric(const YamlMap& map, const NicSpec& nic, const RailShape& shape)
      : Fabric(map, nic), shape_(shape) {}

  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    const std::uint64_t groups = (hosts.size() + shape_.hosts_per_group - 1) / shape_.hosts_per_group;
    if (const std::uint64_t cables = groups * nic().count * shape_.spines; cables > max_rail_cables)
      fail(fmt::format("{} cables between switches; at most {} are allowed", cables, max_rail_cables));
    return std::make_unique<RailRoutes>(shape_, hosts, links);
  }

  std::string text() const override {
    return fmt::format("{} rails, {} hosts a group, {} spines, {}", nic().count, shape_.hosts_per_group,
                       shape_.spines, nic_text(nic()));
  }

 private:
  RailShape shape_;
};

}  // namespace

std::shared_ptr<const Fabric> read_rail_fabric(YamlMap& map) {
  const NicSpec nic = read_nic(map);
  RailShape shape;
  shape.hosts_per_group = static_cast<std::uint32_t>(map.integer("hosts_per_group", 1, max_rail_ports));
  shape.spines =
      static_cast<std::uint32_t>(map.integer_or("spines", shape.hosts_per_group, 1, max_rail_ports));
  shape.leaf_cable_Bps = shape.hosts_per_group * nic.bandwidth_Bps /
                         (shape.spines * map.number_or("oversubscription", 1, 1e-3, 1e6));
  shape.hop_latency_s = map.quantity_or("hop_latency", Dimension::time, 0);
  return std::make_shared<RailFabric>(map, nic, shape);
}

}  // namespace convoy
