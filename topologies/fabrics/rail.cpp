// SPDX-License-Identifier: MIT
#include "topologies/fabrics/rail.h"

#include <fmt/format.h>

namespace convoy::inline topologies {
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

struct RailDraft {
  NicSpec nic;
  std::uint32_t hosts_per_group = 0;
  std::optional<std::uint32_t> spines;
  double oversubscription = 1, hop_latency_s = 0;
};

const Keys<RailDraft>& rail_table() {
  using D = RailDraft;
  static const Keys<D> keys = [] {
    Keys<D> table = keys_of_part<D>(nic_keys(), &D::nic);
    append_keys(
        table,
        Keys<D>{optional_integer_key<D>("hosts_per_group", "", 1, max_rail_ports,
                                        "whose equal NICs share a leaf", &D::hosts_per_group)
                    .required(),
                optional_integer_key<D>("spines", "as hosts_per_group", 1, max_rail_ports,
                                        "that each leaf has a cable to", &D::spines),
                number_key<D>("oversubscription", 1e-3, 1e6,
                              "bandwidth of a leaf's hosts over that of its cables up", &D::oversubscription),
                optional_quantity_key<D>("hop_latency", "0s", Dimension::time, false,
                                         "of each cable between switches", &D::hop_latency_s)});
    return table;
  }();
  return keys;
}

}  // namespace

std::vector<KeyText> rail_keys() { return texts_of(rail_table()); }

std::shared_ptr<const Fabric> read_rail_fabric(YamlMap& map) {
  RailDraft draft;
  read_keys(rail_table(), map, draft);
  RailShape shape;
  shape.hosts_per_group = draft.hosts_per_group;
  shape.spines = draft.spines.value_or(shape.hosts_per_group);
  shape.leaf_cable_Bps =
      shape.hosts_per_group * draft.nic.bandwidth_Bps / (shape.spines * draft.oversubscription);
  shape.hop_latency_s = draft.hop_latency_s;
  return std::make_shared<RailFabric>(map, draft.nic, shape);
}

}  // namespace convoy::topologies
