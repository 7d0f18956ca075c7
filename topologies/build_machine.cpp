// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topologies/cluster.h"
#include "topologies/server_layout.h"

namespace convoy {
namespace {

/// More than this is taken for a slip of the pen.
constexpr std::uint64_t max_devices = 2'000'000, max_dedicated_hosts = 100'000;
/// Tells the draws of NICs from those of devices.
constexpr std::uint64_t nics = 0x6e69635f73707264u;
constexpr std::size_t max_links = 10'000'000;  // about 1 GB

/// Joins the ways inside the two hosts and through the fabric.
class MachineRouter final : public Router {
 public:
  struct Place {
    const ServerLayout* layout;
    LinkId first_link;
    std::uint32_t first_device;
  };

  void route(EndpointId from, EndpointId to, Route& route) const override {
    route.links.clear();
    route.latency_s = 0;
    const auto [from_host, from_place] = locate(from);
    const auto [to_host, to_place] = locate(to);
    if (from_host == to_host) {
      append(from_host, from_place, to_place, route.links);
    } else {
      const ServerLayout &start = *hosts[from_host].layout, &end = *hosts[to_host].layout;
      const std::uint32_t out = start.nearest_nic(from_place), in = end.nearest_nic(to_place);
      append(from_host, from_place, start.nic(out), route.links);
      fabric->append({from_host, out}, {to_host, in}, route.links);
      append(to_host, end.nic(in), to_place, route.links);
    }
    for (const LinkId link : route.links) route.latency_s += latency_s[link];
  }

  std::vector<std::unique_ptr<const ServerLayout>> layouts;
  std::vector<Place> hosts;
  std::vector<std::uint32_t> host_of;  ///< by device
  std::unique_ptr<const FabricRoutes> fabric;
  std::vector<double> latency_s;  ///< by link

 private:
  std::pair<std::uint32_t, std::uint32_t> locate(EndpointId endpoint) const {
    if (endpoint < host_of.size())
      return {host_of[endpoint], endpoint - hosts[host_of[endpoint]].first_device};
    const auto host = static_cast<std::uint32_t>(endpoint - host_of.size());
    return {host, hosts[host].layout->memory()};
  }

  void append(std::uint32_t host, std::uint32_t from, std::uint32_t to, std::vector<LinkId>& links) const {
    for (const LinkId link : hosts[host].layout->path(from, to))
      links.push_back(hosts[host].first_link + link);
  }
};

/// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014), as a hash of
/// a seed and a counter: a device's draw does not depend on how many devices there are.
double uniform(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1.0p-53;
}

class MachineBuilder {
 public:
  MachineBuilder(const ClusterSpec& cluster, std::uint32_t dedicated_hosts)
      : cluster_(cluster), dedicated_(dedicated_hosts) {}

  Machine build() {
    machine_.name = cluster_.name;
    machine_.network_model = "max-min, alpha-beta";
    machine_.collective_overhead_s = cluster_.collective_overhead_s;
    for (const ServerSpec& server : cluster_.servers)
      machine_.step_jitter = std::max(machine_.step_jitter, server.step_jitter);
    machine_.step_jitter = cluster_.step_jitter.value_or(machine_.step_jitter);
    check_size();
    add_types();
    add_layouts();
    add_hosts();
    add_dedicated_hosts();
    router_->fabric = hosts_.size() > 1 ? fabric().build(hosts_, links_) : nullptr;
    router_->latency_s.reserve(links_.links().size());
    for (const Link& link : links_.links()) router_->latency_s.push_back(link.latency_s);
    machine_.port_count = links_.port_count();
    machine_.links = links_.take();
    machine_.router = std::move(router_);
    return std::move(machine_);
  }

 private:
  void check_size() const {
    std::uint64_t devices = 0;
    for (const NodeGroup& group : cluster_.groups)
      devices += std::uint64_t{group.count} * cluster_.devices_of(group);
    if (devices > max_devices)
      throw InputError(cluster_.pos,
                       fmt::format("cluster: {} devices; at most {} are allowed", devices, max_devices));
    if (dedicated_ > max_dedicated_hosts)
      throw InputError(cluster_.pos, fmt::format("cluster: {} dedicated hosts; at most {} are allowed",
                                                 dedicated_, max_dedicated_hosts));
    if (cluster_.node_count() + std::uint64_t{dedicated_} > 1 && !cluster_.fabric &&
        !cluster_.servers[0].fabric)
      throw InputError(
          cluster_.pos,
          "cluster: key 'fabric' is missing: the strategy adds dedicated hosts, and nothing joins them");
  }

  const Fabric& fabric() const { return cluster_.fabric ? *cluster_.fabric : *cluster_.servers[0].fabric; }

  void add_types() {
    std::map<std::string, std::uint32_t> index;
    for (const ServerSpec& server : cluster_.servers) {
      machine_.host_types.push_back(server.host);
      std::vector<std::uint32_t>& types = device_types_.emplace_back();
      for (const auto& [type, count] : server.devices) {
        const auto [known, is_new] = index.emplace(type.name, machine_.device_types.size());
        if (is_new) machine_.device_types.push_back(type);
        types.insert(types.end(), count, known->second);
      }
    }
  }

  NicSpec nic_of(std::uint32_t server) const {
    return cluster_.fabric ? cluster_.fabric->nic() : cluster_.servers[server].fabric->nic();
  }
  std::uint32_t nic_count_of(std::uint32_t server) const {
    return cluster_.fabric || cluster_.servers[server].fabric ? nic_of(server).count : 1;
  }

  void add_layouts() {
    for (std::uint32_t s = 0; s < cluster_.servers.size(); ++s) {
      const ServerSpec& server = cluster_.servers[s];
      const std::uint32_t devices =
          cluster_.devices_per_node > 0 ? cluster_.devices_per_node : server.device_count();
      router_->layouts.push_back(std::make_unique<ServerLayout>(server.interior.get(), devices,
                                                                nic_count_of(s), server.copy_bandwidth_Bps));
    }
  }

  void add_hosts() {
    machine_.devices.reserve(cluster_.device_count());
    router_->host_of.reserve(cluster_.device_count());
    std::size_t link_count = 0;
    for (const NodeGroup& group : cluster_.groups)
      link_count +=
          group.count * (router_->layouts[group.server]->link_count() + 2 * nic_count_of(group.server));
    if (link_count > max_links)
      throw InputError(
          cluster_.pos,
          fmt::format("cluster: {} links inside servers and to their NICs; at most {} are allowed",
                      link_count, max_links));
    links_.reserve(link_count);
    for (const NodeGroup& group : cluster_.groups)
      for (std::uint32_t i = 0; i < group.count; ++i) add_host(group, group.name + std::to_string(i));
  }

  void add_host(const NodeGroup& group, std::string name) {
    const ServerLayout& layout = *router_->layouts[group.server];
    const auto host = static_cast<std::uint32_t>(machine_.hosts.size());
    const auto first_device = static_cast<std::uint32_t>(machine_.devices.size());
    const std::uint32_t count = cluster_.devices_of(group);
    for (std::uint32_t d = 0; d < count; ++d) {
      double speed = group.speed * board_speed(cluster_.servers[group.server], d, count);
      if (group.speed_spread > 0)
        speed *= 1 + group.speed_spread * (2 * uniform(cluster_.speed_seed, machine_.devices.size()) - 1);
      machine_.devices.push_back({count == 1 ? name : name + ".gpu" + std::to_string(d),
                                  device_types_[group.server][d], host, speed});
      router_->host_of.push_back(host);
    }
    router_->hosts.push_back({&layout, layout.add_links(name, links_), first_device});
    if (cluster_.fabric || cluster_.servers[group.server].fabric) {
      FabricHost& fabric_host = hosts_.emplace_back(FabricHost{name, nic_of(group.server)});
      if (group.nic_bandwidth_Bps)
        fabric_host.nic.bandwidth_Bps = *group.nic_bandwidth_Bps * fabric_host.nic.efficiency;
      if (group.nic_spread > 0)
        fabric_host.nic.bandwidth_Bps *=
            1 + group.nic_spread * (2 * uniform(cluster_.speed_seed ^ nics, host) - 1);
    }
    machine_.hosts.push_back({std::move(name), group.server, first_device, count});
  }

  /// Of the d-th of `count` used devices of a server.
  static double board_speed(const ServerSpec& server, std::uint32_t d, std::uint32_t count) {
    const std::uint32_t first = d - d % server.board_devices;
    const std::uint32_t used = std::min(count, first + server.board_devices) - first;
    return used > 1 ? server.board_speed : 1.0;
  }

  void add_dedicated_hosts() {
    if (dedicated_ == 0) return;
    const NodeGroup& first = cluster_.groups.front();
    HostType type = cluster_.servers[first.server].host;
    type.price_usd_per_h = cluster_.servers[first.server].bare_price_usd_per_h;
    const auto type_index = static_cast<std::uint32_t>(machine_.host_types.size());
    machine_.host_types.push_back(std::move(type));
    router_->layouts.push_back(std::make_unique<ServerLayout>(nullptr, 0, nic_count_of(first.server)));
    const auto no_device = static_cast<std::uint32_t>(machine_.devices.size());
    for (std::uint32_t i = 0; i < dedicated_; ++i) {
      const std::string name = "ps" + std::to_string(i);
      router_->hosts.push_back({router_->layouts.back().get(), 0, no_device});
      hosts_.push_back({name, hosts_.front().nic});
      machine_.hosts.push_back({name, type_index, no_device, 0});
    }
  }

  const ClusterSpec& cluster_;
  std::uint32_t dedicated_;
  Machine machine_;
  LinkTable links_;
  std::shared_ptr<MachineRouter> router_ = std::make_shared<MachineRouter>();
  std::vector<std::vector<std::uint32_t>> device_types_;  ///< by server, of each of its devices
  std::vector<FabricHost> hosts_;
};

}  // namespace

Machine build_machine(const ClusterSpec& cluster, std::uint32_t dedicated_hosts) {
  return MachineBuilder(cluster, dedicated_hosts).build();
}

}  // namespace convoy
