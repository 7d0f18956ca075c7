// SPDX-License-Identifier: MIT
#include "topologies/fabrics/dragonfly.h"

#include <fmt/format.h>

namespace convoy::inline topologies {
namespace {

constexpr std::int64_t max_count = 4096;
constexpr std::uint64_t max_router_cables = 2'000'000;

struct DragonflyShape {
  std::uint32_t groups = 0, routers = 0, hosts = 0;  ///< routers of a group, hosts of a router
  double local_Bps = 0, local_latency_s = 0;         ///< of the cables inside a group
  double global_Bps = 0, global_latency_s = 0;       ///< of the cables between groups
};

class DragonflyRoutes final : public FabricRoutes {
 public:
  DragonflyRoutes(const DragonflyShape& shape, std::span<const FabricHost> hosts, LinkTable& links)
      : shape_(shape), nics_(hosts, links) {
    first_local_ = static_cast<LinkId>(links.links().size());
    for (std::uint32_t g = 0; g < shape.groups; ++g)
      for (std::uint32_t a = 0; a < shape.routers; ++a)
        for (std::uint32_t b = a + 1; b < shape.routers; ++b)
          links.add_cable(
              "group" + std::to_string(g) + ".router" + std::to_string(a) + '-' + std::to_string(b),
              shape.local_Bps, shape.local_latency_s);
    first_global_ = static_cast<LinkId>(links.links().size());
    for (std::uint32_t a = 0; a < shape.groups; ++a)
      for (std::uint32_t b = a + 1; b < shape.groups; ++b)
        links.add_cable("group" + std::to_string(a) + "-group" + std::to_string(b), shape.global_Bps,
                        shape.global_latency_s);
  }

  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    const std::uint32_t from_router = from.host / shape_.hosts, to_router = to.host / shape_.hosts;
    const std::uint32_t from_group = from_router / shape_.routers, to_group = to_router / shape_.routers;
    links.push_back(nics_.up(from));
    if (from_group == to_group) {
      append_local(from_group, from_router % shape_.routers, to_router % shape_.routers, links);
    } else {
      append_local(from_group, from_router % shape_.routers, gateway(from_group, to_group), links);
      links.push_back(from_group < to_group ? global(from_group, to_group)
                                            : global(to_group, from_group) + 1);
      append_local(to_group, gateway(to_group, from_group), to_router % shape_.routers, links);
    }
    links.push_back(nics_.down(to));
  }

 private:
  /// Router of `group` that has the cable to `other`: groups are counted on from `group` and spread over its
  /// routers.
  std::uint32_t gateway(std::uint32_t group, std::uint32_t other) const {
    const std::uint64_t port = (other + shape_.groups - group - 1) % shape_.groups;
    return static_cast<std::uint32_t>(port * shape_.routers / (shape_.groups - 1));
  }
  void append_local(std::uint32_t group, std::uint32_t from, std::uint32_t to,
                    std::vector<LinkId>& links) const {
    if (from == to) return;
    const std::uint32_t first = first_local_ + group * shape_.routers * (shape_.routers - 1);
    links.push_back(from < to ? first + pair(from, to, shape_.routers)
                              : first + pair(to, from, shape_.routers) + 1);
  }
  LinkId global(std::uint32_t a, std::uint32_t b) const { return first_global_ + pair(a, b, shape_.groups); }
  /// Upward link of the cable a < b when the pairs of `count` are listed row by row.
  static LinkId pair(std::uint32_t a, std::uint32_t b, std::uint32_t count) {
    return 2 * (a * count - a * (a + 1) / 2 + (b - a - 1));
  }

  DragonflyShape shape_;
  NicLinks nics_;
  LinkId first_local_ = 0, first_global_ = 0;
};

class DragonflyFabric final : public Fabric {
 public:
  DragonflyFabric(const YamlMap& map, const NicSpec& nic, const DragonflyShape& shape)
      : Fabric(map, nic), shape_(shape) {}

  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    const std::uint64_t room = std::uint64_t{shape_.groups} * shape_.routers * shape_.hosts;
    if (hosts.size() > room)
      fail(fmt::format("a dragonfly of {} groups x {} routers x {} hosts has no room for {} hosts",
                       shape_.groups, shape_.routers, shape_.hosts, hosts.size()));
    return std::make_unique<DragonflyRoutes>(shape_, hosts, links);
  }
  std::string text() const override {
    return fmt::format("dragonfly of {} groups x {} routers x {} hosts, {}", shape_.groups, shape_.routers,
                       shape_.hosts, nic_text(nic()));
  }

 private:
  DragonflyShape shape_;
};

struct DragonflyDraft {
  NicSpec nic;
  DragonflyShape shape;
};

Key<DragonflyDraft> router_count_key(std::string name, std::string meaning,
                                     std::uint32_t DragonflyShape::*field) {
  return optional_integer_key<DragonflyDraft>(
             std::move(name), "", 1, max_count, std::move(meaning),
             [field](DragonflyDraft& draft) -> std::uint32_t& { return draft.shape.*field; })
      .required();
}

/// As payload can use it; that of the NICs where it is not given.
Key<DragonflyDraft> router_bandwidth_key(std::string name, std::string meaning,
                                         double DragonflyShape::*field) {
  return {key_text(name, "as bandwidth", forms::quantity(Dimension::bandwidth, true), std::move(meaning)),
          [name, field](YamlMap& map, DragonflyDraft& draft) {
            draft.shape.*field = map.find(name)
                                     ? draft.nic.efficiency * map.quantity(name, Dimension::bandwidth, true)
                                     : draft.nic.bandwidth_Bps;
          }};
}

Key<DragonflyDraft> router_latency_key(std::string name, std::string meaning, double DragonflyShape::*field) {
  return optional_quantity_key<DragonflyDraft>(
      std::move(name), "0s", Dimension::time, false, std::move(meaning),
      [field](DragonflyDraft& draft) -> double& { return draft.shape.*field; });
}

const Keys<DragonflyDraft>& dragonfly_table() {
  using S = DragonflyShape;
  static const Keys<DragonflyDraft> keys = [] {
    Keys<DragonflyDraft> table = keys_of_part<DragonflyDraft>(nic_keys(), &DragonflyDraft::nic);
    append_keys(table,
                Keys<DragonflyDraft>{
                    router_count_key("groups", "of routers", &S::groups),
                    router_count_key("routers", "of a group", &S::routers),
                    router_count_key("hosts", "of a router", &S::hosts),
                    router_bandwidth_key("local_bandwidth", "of cables inside a group", &S::local_Bps),
                    router_bandwidth_key("global_bandwidth", "of cables between groups", &S::global_Bps),
                    router_latency_key("local_latency", "of cables inside a group", &S::local_latency_s),
                    router_latency_key("global_latency", "of cables between groups", &S::global_latency_s)});
    return table;
  }();
  return keys;
}

}  // namespace

std::vector<KeyText> dragonfly_keys() { return texts_of(dragonfly_table()); }

std::shared_ptr<const Fabric> read_dragonfly_fabric(YamlMap& map) {
  DragonflyDraft draft;
  read_keys(dragonfly_table(), map, draft);
  const DragonflyShape& shape = draft.shape;
  const auto pairs = [](std::uint64_t n) { return n * (n - 1) / 2; };
  if (const std::uint64_t cables = shape.groups * pairs(shape.routers) + pairs(shape.groups);
      cables > max_router_cables)
    map.fail(fmt::format("{} cables between routers; at most {} are allowed", cables, max_router_cables));
  return std::make_shared<DragonflyFabric>(map, draft.nic, shape);
}

}  // namespace convoy::topologies
