// SPDX-License-Identifier: MIT
#include "topologies/fabrics/fat_tree.h"

#include <fmt/format.h>

namespace convoy::inline topologies {
namespace {

constexpr std::int64_t max_ports = 65'536;
constexpr std::uint64_t max_switch_cables = 2'000'000;

struct FatTreeShape {
  std::uint32_t hosts_per_leaf = 0;
  std::uint32_t spines = 0;           ///< that each leaf has a cable to; of a pod, with three levels
  std::uint32_t leaves_per_pod = 0;   ///< 0: two levels
  std::uint32_t cores_per_spine = 0;  ///< that each spine has a cable to
  std::uint64_t max_leaves = 0;       ///< 0: as many as there are hosts for
  double leaf_cable_Bps = 0, core_cable_Bps = 0;
  double hop_latency_s = 0;  ///< of each cable between switches
};

class FatTreeRoutes final : public FabricRoutes {
 public:
  FatTreeRoutes(const FatTreeShape& shape, std::span<const FabricHost> hosts, LinkTable& links)
      : shape_(shape), nics_per_host_(hosts.front().nic.count), nics_(hosts, links) {
    const auto leaves =
        static_cast<std::uint32_t>((hosts.size() + shape.hosts_per_leaf - 1) / shape.hosts_per_leaf);
    first_leaf_cable_ = static_cast<LinkId>(links.links().size());
    for (std::uint32_t l = 0; l < leaves; ++l)
      for (std::uint32_t s = 0; s < shape.spines; ++s)
        links.add_cable("leaf" + std::to_string(l) + ".spine" + std::to_string(s), shape.leaf_cable_Bps,
                        shape.hop_latency_s);
    first_core_cable_ = static_cast<LinkId>(links.links().size());
    if (shape.leaves_per_pod == 0) return;
    const std::uint32_t pods = (leaves + shape.leaves_per_pod - 1) / shape.leaves_per_pod;
    for (std::uint32_t p = 0; p < pods; ++p)
      for (std::uint32_t s = 0; s < shape.spines; ++s)
        for (std::uint32_t c = 0; c < shape.cores_per_spine; ++c)
          links.add_cable(
              "pod" + std::to_string(p) + ".spine" + std::to_string(s) + ".core" + std::to_string(c),
              shape.core_cable_Bps, shape.hop_latency_s);
  }

  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    links.push_back(nics_.up(from));
    const std::uint32_t from_leaf = from.host / shape_.hosts_per_leaf,
                        to_leaf = to.host / shape_.hosts_per_leaf;
    if (from_leaf != to_leaf) {
      // D-mod-k: the destination's number, digit by digit in the mixed radix of the tree's widths, is the way
      // up.
      const std::uint32_t number = to.host * nics_per_host_ + to.nic;
      const std::uint32_t spine = number % shape_.spines;
      links.push_back(leaf_cable(from_leaf, spine));
      if (shape_.leaves_per_pod > 0 && from_leaf / shape_.leaves_per_pod != to_leaf / shape_.leaves_per_pod) {
        const std::uint32_t core = number / shape_.spines % shape_.cores_per_spine;
        links.push_back(core_cable(from_leaf / shape_.leaves_per_pod, spine, core));
        links.push_back(core_cable(to_leaf / shape_.leaves_per_pod, spine, core) + 1);
      }
      links.push_back(leaf_cable(to_leaf, spine) + 1);
    }
    links.push_back(nics_.down(to));
  }

 private:
  LinkId leaf_cable(std::uint32_t leaf, std::uint32_t spine) const {
    return first_leaf_cable_ + 2 * (leaf * shape_.spines + spine);
  }
  LinkId core_cable(std::uint32_t pod, std::uint32_t spine, std::uint32_t core) const {
    return first_core_cable_ + 2 * ((pod * shape_.spines + spine) * shape_.cores_per_spine + core);
  }

  FatTreeShape shape_;
  std::uint32_t nics_per_host_;
  NicLinks nics_;
  LinkId first_leaf_cable_ = 0, first_core_cable_ = 0;
};

class FatTreeFabric final : public Fabric {
 public:
  FatTreeFabric(const YamlMap& map, const NicSpec& nic, const FatTreeShape& shape)
      : Fabric(map, nic), shape_(shape) {}

  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    const std::uint64_t leaves = (hosts.size() + shape_.hosts_per_leaf - 1) / shape_.hosts_per_leaf;
    if (shape_.max_leaves > 0 && leaves > shape_.max_leaves)
      fail(fmt::format("{} hosts need {} leaf switches of {} hosts, but this radix has {}", hosts.size(),
                       leaves, shape_.hosts_per_leaf, shape_.max_leaves));
    const std::uint64_t pods = shape_.leaves_per_pod > 0 ? leaves / shape_.leaves_per_pod + 1 : 0;
    if (const std::uint64_t cables = leaves * shape_.spines + pods * shape_.spines * shape_.cores_per_spine;
        cables > max_switch_cables)
      fail(fmt::format("{} cables between switches; at most {} are allowed", cables, max_switch_cables));
    return std::make_unique<FatTreeRoutes>(shape_, hosts, links);
  }

  std::string text() const override {
    return fmt::format("fat tree of {} levels, {} hosts a leaf, {} spines, {}",
                       shape_.leaves_per_pod > 0 ? 3 : 2, shape_.hosts_per_leaf, shape_.spines,
                       nic_text(nic()));
  }

 private:
  FatTreeShape shape_;
};

/// A fat tree while it is read.
struct FatTreeDraft {
  NicSpec nic;
  bool three_levels = false;
  std::optional<std::uint32_t> radix, spines, cores_per_spine;
  std::uint32_t hosts_per_leaf = 0, leaves_per_pod = 0;
  double oversubscription = 1, core_oversubscription = 1;
  double hop_latency_s = 0;
};

void read_radix(YamlMap& map, FatTreeDraft& draft) {
  if (!map.find("radix")) return;
  const auto radix = static_cast<std::uint32_t>(map.integer("radix", 2, max_ports));
  if (radix % 2 != 0)
    map.fail("radix", fmt::format("{} is odd: half of a switch's ports go up, half down", radix));
  if (radix / 2 % draft.nic.count != 0)
    map.fail("radix", fmt::format("a leaf's {} ports down do not divide among hosts with {} NICs", radix / 2,
                                  draft.nic.count));
  draft.radix = radix;
}

const Keys<FatTreeDraft>& fat_tree_table() {
  using D = FatTreeDraft;
  static const Keys<D> keys = [] {
    const auto no_radix = [](const D& draft) { return !draft.radix; };
    const auto three_levels = [](const D& draft) { return draft.three_levels; };
    Keys<D> table = keys_of_part<D>(nic_keys(), &D::nic);
    append_keys(
        table,
        Keys<D>{
            choice_key<D>("levels", {"2", "3"}, "leaves and spines, or pods of these under cores",
                          &D::three_levels),
            custom_key<D>("radix", "none", forms::whole(2, max_ports).said("an even number, 2 to 65536"),
                          "ports of every switch, half of them up; else hosts_per_leaf", &read_radix),
            optional_integer_key<D>("hosts_per_leaf", "", 1, max_ports, "below a leaf switch",
                                    &D::hosts_per_leaf)
                .required()
                .only("no radix", no_radix),
            optional_integer_key<D>("spines", "hosts_per_leaf x nics", 1, max_ports,
                                    "that each leaf has a cable to", &D::spines)
                .only("no radix", no_radix),
            optional_integer_key<D>("leaves_per_pod", "", 1, max_ports, "of a pod", &D::leaves_per_pod)
                .required()
                .only("no radix", no_radix)
                .only("levels: 3", three_levels),
            optional_integer_key<D>("cores_per_spine", "as leaves_per_pod", 1, max_ports,
                                    "that each spine has a cable to", &D::cores_per_spine)
                .only("no radix", no_radix)
                .only("levels: 3", three_levels),
            number_key<D>("oversubscription", 1e-3, 1e6,
                          "bandwidth of a leaf's hosts over that of its cables up", &D::oversubscription),
            number_key<D>("core_oversubscription", 1e-3, 1e6, "the same of a pod", &D::core_oversubscription)
                .only("levels: 3", three_levels),
            optional_quantity_key<D>("hop_latency", "0s", Dimension::time, false,
                                     "of each cable between switches", &D::hop_latency_s)});
    return table;
  }();
  return keys;
}

FatTreeShape shape_of(const FatTreeDraft& draft) {
  FatTreeShape shape;
  if (draft.radix) {
    // Equal switches with half of their ports down and half up (Al-Fares, Loukissas, Vahdat: A scalable,
    // commodity data center network architecture, SIGCOMM 2008); the top level has all of its ports down.
    const std::uint32_t radix = *draft.radix;
    shape.hosts_per_leaf = radix / 2 / draft.nic.count;
    shape.spines = radix / 2;
    if (draft.three_levels) shape.leaves_per_pod = shape.cores_per_spine = radix / 2;
    shape.max_leaves = draft.three_levels ? std::uint64_t{radix} * radix / 2 : radix;
  } else {
    shape.hosts_per_leaf = draft.hosts_per_leaf;
    shape.spines = draft.spines.value_or(shape.hosts_per_leaf * draft.nic.count);
    if (draft.three_levels) {
      shape.leaves_per_pod = draft.leaves_per_pod;
      shape.cores_per_spine = draft.cores_per_spine.value_or(shape.leaves_per_pod);
    }
  }
  shape.leaf_cable_Bps = shape.hosts_per_leaf * draft.nic.count * draft.nic.bandwidth_Bps /
                         (shape.spines * draft.oversubscription);
  if (draft.three_levels)
    shape.core_cable_Bps =
        shape.leaves_per_pod * shape.leaf_cable_Bps / (shape.cores_per_spine * draft.core_oversubscription);
  shape.hop_latency_s = draft.hop_latency_s;
  return shape;
}

}  // namespace

std::vector<KeyText> fat_tree_keys() { return texts_of(fat_tree_table()); }

std::shared_ptr<const Fabric> read_fat_tree_fabric(YamlMap& map) {
  FatTreeDraft draft;
  read_keys(fat_tree_table(), map, draft);
  return std::make_shared<FatTreeFabric>(map, draft.nic, shape_of(draft));
}

}  // namespace convoy::topologies
