// SPDX-License-Identifier: MIT
#include "topologies/fabrics/torus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

namespace convoy::inline topologies {
namespace {

constexpr std::size_t max_dims = 8;
constexpr std::int64_t max_positions = 131'072;

struct Grid {
  std::vector<std::uint32_t> dims;
  std::uint32_t positions = 1;
};

class TorusRoutes final : public FabricRoutes {
 public:
  TorusRoutes(const Grid& grid, std::span<const FabricHost> hosts, const NicSpec& cable, LinkTable& links)
      : grid_(grid), onward_(grid.dims.size() * grid.positions), stacks_(add_cables(hosts, cable, links)) {
    for (const FabricHost& host : hosts) {
      nics_.push_back(no_nic);
      if (!host.own_rate) continue;
      nics_.back() = links.add_cable(host.name + ".nic", host.nic.bandwidth_Bps, 0, LinkKind::nic);
      links.give_to(host.index, nics_.back());
    }
  }

  void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const override {
    stacks_.append_up(from.host, links);
    if (nics_[from.host] != no_nic) links.push_back(nics_[from.host]);
    std::uint32_t at = from.host, stride = 1;
    for (std::uint32_t d = 0; d < grid_.dims.size(); stride *= grid_.dims[d++]) {
      const std::uint32_t size = grid_.dims[d], goal = to.host / stride % size;
      std::uint32_t here = at / stride % size;
      const bool forward = (goal + size - here) % size <= (here + size - goal) % size;
      while (here != goal) {
        const std::uint32_t next = forward ? (here + 1) % size : (here + size - 1) % size;
        const std::uint32_t next_at = at - here * stride + next * stride;
        // A ring of two has one cable only: the way on from 0 is the way back from 1.
        const bool up = forward && !(size == 2 && here == 1);
        links.push_back(up ? cable(d, at) : cable(d, next_at) + 1);
        at = next_at;
        here = next;
      }
    }
    if (nics_[to.host] != no_nic) links.push_back(nics_[to.host] + 1);
    stacks_.append_down(to.host, links);
  }

 private:
  static constexpr LinkId no_nic = std::numeric_limits<LinkId>::max();

  LinkId cable(std::uint32_t dim, std::uint32_t position) const {
    return onward_[dim * grid_.positions + position];
  }

  StackLinks add_cables(std::span<const FabricHost> hosts, const NicSpec& spec, LinkTable& links) {
    std::uint32_t stride = 1;
    double capacity_Bps = 0;
    for (std::uint32_t d = 0; d < grid_.dims.size(); stride *= grid_.dims[d++]) {
      const std::uint32_t size = grid_.dims[d];
      capacity_Bps += (size == 1 ? 0 : size == 2 ? 1 : 2) * spec.bandwidth_Bps;
      for (std::uint32_t p = 0; p < grid_.positions; ++p) {
        const std::uint32_t here = p / stride % size;
        if (size == 1 || (size == 2 && here == 1)) continue;
        onward_[d * grid_.positions + p] =
            links.add_cable(position_name(p) + ".d" + std::to_string(d), spec.bandwidth_Bps, spec.latency_s);
      }
    }
    const std::vector<double> capacities(hosts.size(), capacity_Bps);
    return StackLinks(hosts, capacities, spec.message_overhead_s, links);
  }

  /// "torus1-0-3": the coordinates, because positions without a host have cables too.
  std::string position_name(std::uint32_t position) const {
    std::string name = "torus";
    for (std::size_t d = 0; d < grid_.dims.size(); ++d) {
      if (d > 0) name += '-';
      name += std::to_string(position % grid_.dims[d]);
      position /= grid_.dims[d];
    }
    return name;
  }

  Grid grid_;
  std::vector<LinkId>
      onward_;  ///< by dimension and position: the cable to the next position in that dimension
  StackLinks stacks_;
  std::vector<LinkId> nics_;  ///< by host
};

class TorusFabric final : public Fabric {
 public:
  TorusFabric(const YamlMap& map, const NicSpec& cable, Grid grid)
      : Fabric(map, cable), grid_(std::move(grid)) {}
  std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                            LinkTable& links) const override {
    if (hosts.size() > grid_.positions)
      fail(fmt::format("a torus of {} has {} positions, too few for {} hosts", dims_text(), grid_.positions,
                       hosts.size()));
    return std::make_unique<TorusRoutes>(grid_, hosts, nic(), links);
  }
  std::string text() const override { return fmt::format("torus {}, {}", dims_text(), nic_text(nic())); }

 private:
  std::string dims_text() const { return fmt::format("{}", fmt::join(grid_.dims, " x ")); }
  Grid grid_;
};

struct TorusDraft {
  NicSpec cable;
  Grid grid;
};

void read_dims(YamlMap& map, TorusDraft& draft) {
  const YamlNode& list = map.node("dims");
  if (list.kind != YamlNode::Kind::sequence || list.items.empty() || list.items.size() > max_dims)
    map.fail("dims", fmt::format("expected a list of 1 to {} whole numbers, such as [4, 4, 8]", max_dims));
  std::int64_t positions = 1;
  for (std::size_t d = 0; d < list.items.size(); ++d) {
    const std::int64_t size =
        read_integer(list.items[d], fmt::format("{}[{}]", map.path_of("dims"), d), 1, max_positions);
    positions *= size;
    if (positions > max_positions) map.fail("dims", fmt::format("more than {} positions", max_positions));
    draft.grid.dims.push_back(static_cast<std::uint32_t>(size));
  }
  draft.grid.positions = static_cast<std::uint32_t>(positions);
}

const Keys<TorusDraft>& torus_table() {
  static const Keys<TorusDraft> keys = [] {
    Keys<TorusDraft> table = keys_of_part<TorusDraft>(cable_keys(), &TorusDraft::cable);
    table.push_back(
        list_key<TorusDraft>("dims", "",
                             forms::list(forms::whole(1, max_positions), "a list such as [4, 4, 8]", 1),
                             "positions by dimension, the first fastest", &read_dims)
            .told_required());
    return table;
  }();
  return keys;
}

}  // namespace

std::vector<KeyText> torus_keys() { return texts_of(torus_table()); }

std::shared_ptr<const Fabric> read_torus_fabric(YamlMap& map) {
  TorusDraft draft;
  read_keys(torus_table(), map, draft);
  return std::make_shared<TorusFabric>(map, draft.cable, std::move(draft.grid));
}

}  // namespace convoy::topologies
