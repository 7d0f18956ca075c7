// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "topologies/cluster.h"
#include "topologies/server_layout.h"

namespace convoy::inline topologies {
namespace {

/// More than this is taken for a slip of the pen.
constexpr std::uint64_t max_devices = 2'000'000, max_dedicated_hosts = 100'000;
/// Rate at which a server's CPUs add up gradients where it gives none, unless the fabric is ideal:
/// TensorFlow's assign_add of 10 MB vectors 6933 MB/s (tensorflow/tensorflow, issue 4498).
constexpr double default_reduce_Bps = 6.9e9;
/// Tells the draws of NICs from those of devices.
constexpr std::uint64_t nic_draws = 0x6e69635f73707264u;
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
    route.connection_Bps = std::numeric_limits<double>::infinity();
    const auto [from_host, from_place] = locate(from);
    const auto [to_host, to_place] = locate(to);
    if (from_host == to_host) {
      append(from_host, from_place, to_place, route.links);
      const std::uint32_t memory = hosts[from_host].layout->memory();
      if (inside_hosts && from_place != to_place && from_place != memory && to_place != memory)
        connect(from, to, route);
    } else {
      const ServerLayout &start = *hosts[from_host].layout, &end = *hosts[to_host].layout;
      const std::uint32_t out = start.nearest_nic(from_place), in = end.nearest_nic(to_place);
      append(from_host, from_place, start.nic(out), route.links);
      append_copies(from_host, route.links);
      fabric->append({from_host, out}, {to_host, in}, route.links);
      append_copies(to_host, route.links);
      append(to_host, end.nic(in), to_place, route.links);
      if (process_a_host)
        connect(endpoint_of(from_host), endpoint_of(to_host), route);
      else
        connect(from, to, route);
    }
    for (const LinkId link : route.links) route.latency_s += latency_s[link];
  }

  bool halves(EndpointId endpoint, std::vector<LinkId>& out, std::vector<LinkId>& in) const override {
    if (!fabric) return false;
    out.clear();
    in.clear();
    const auto [host, place] = locate(endpoint);
    const ServerLayout& layout = *hosts[host].layout;
    const std::uint32_t nic = layout.nearest_nic(place);
    append(host, place, layout.nic(nic), out);
    append_copies(host, out);
    if (!fabric->append_halves({host, nic}, out, in)) return false;
    append_copies(host, in);
    append(host, layout.nic(nic), place, in);
    return true;
  }

  std::vector<std::unique_ptr<const ServerLayout>> layouts;
  std::vector<Place> hosts;
  std::vector<std::uint32_t> host_of;  ///< by device
  std::unique_ptr<const FabricRoutes> fabric;
  std::vector<double> latency_s;  ///< by link
  double connection_Bps = std::numeric_limits<double>::infinity();
  bool process_a_host = false;  ///< Transport::process_a_host
  bool inside_hosts = false;    ///< the transport's connections limit messages between a host's devices too
  std::vector<LinkId> copies_of_host;  ///< where the transport's copies take time; empty: nowhere

 private:
  void connect(EndpointId from, EndpointId to, Route& route) const {
    route.connection = {from, to};
    route.connection_Bps = connection_Bps;
  }
  void append_copies(std::uint32_t host, std::vector<LinkId>& links) const {
    if (!copies_of_host.empty()) links.push_back(copies_of_host[host]);
  }

  /// That of a host: its number behind those of all devices.
  EndpointId endpoint_of(std::uint32_t host) const { return static_cast<EndpointId>(host_of.size() + host); }

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
  MachineBuilder(const ClusterSpec& cluster, std::uint32_t dedicated_hosts, const Transport& transport)
      : cluster_(cluster), dedicated_(dedicated_hosts), transport_(transport) {}

  Machine build() {
    machine_.name = cluster_.name;
    machine_.network_model = "max-min, alpha-beta";
    machine_.transport = transport_;
    for (const ServerSpec& server : cluster_.servers)
      machine_.step_jitter = std::max(machine_.step_jitter, server.step_jitter);
    machine_.step_jitter = cluster_.step_jitter.value_or(machine_.step_jitter);
    check_size();
    add_types();
    add_layouts();
    add_hosts();
    add_dedicated_hosts();
    add_transport();
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
    std::map<std::string, std::map<double, std::uint32_t>> index;  // by name and its hosts' issue_factor
    for (const ServerSpec& server : cluster_.servers) {
      machine_.host_types.push_back(server.host);
      const double issue_factor = server.host.issue_factor > 0 ? server.host.issue_factor : 1;
      double& reduce_Bps = machine_.host_types.back().reduce_bandwidth_Bps;
      if (std::isinf(reduce_Bps) && !transport_.ideal()) reduce_Bps = default_reduce_Bps;
      std::vector<std::uint32_t>& types = device_types_.emplace_back();
      for (const auto& [type, count] : server.devices) {
        DeviceType own = type;
        own.issue_factor *= issue_factor;
        std::map<double, std::uint32_t>& hosts = index[type.name];
        const auto [known, is_new] = hosts.emplace(own.issue_factor, machine_.device_types.size());
        // Measured times and anchors are kept by the type's name.
        if (hosts.size() > 1) own.name += " in " + server.host.server;
        if (is_new) machine_.device_types.push_back(std::move(own));
        types.insert(types.end(), count, known->second);
      }
    }
  }

  /// Of the hosts' connections and of the threads that serve them.
  void add_transport() {
    const bool several = machine_.hosts.size() > 1;
    machine_.collective_overhead_s = cluster_.collective_overhead_s + transport_.start_s;
    if (!several) {  // a message that stays on its host is no call
      machine_.transport.call_s = 0;
      machine_.transport.serialise_Bps = std::numeric_limits<double>::infinity();
    }
    const NicSpec nic = several ? hosts_.front().nic : NicSpec{};
    if (several)
      machine_.collective_overhead_s += transport_.start_delays * (nic.latency_s + transport_.message_s);
    router_->connection_Bps = std::min(transport_.stream_bandwidth_Bps, nic.stream_bandwidth_Bps) *
                              (nic.streams > 0 ? nic.streams : transport_.streams);
    machine_.transport.handshake_s = nic.handshake_s;
    machine_.transport.tree_chunk_bytes = nic.tree_chunk_bytes;
    machine_.transport.simple_only = nic.simple_only;
    router_->process_a_host = transport_.process_a_host;
    router_->inside_hosts = transport_.through_host_memory && transport_.inside_hosts;
    if (transport_.ideal() || (std::isinf(transport_.host_bandwidth_Bps) && transport_.message_s == 0))
      return;
    for (std::uint32_t h = 0; h < machine_.hosts.size(); ++h) {
      router_->copies_of_host.push_back(
          links_.add_medium(machine_.hosts[h].name + ".copies", transport_.host_bandwidth_Bps,
                            several ? transport_.message_s / 2 : 0, LinkKind::memory));
      links_.give_to(h, router_->copies_of_host.back());
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
      Staging staging;
      if (!server.peer_to_peer || (transport_.through_host_memory && transport_.inside_hosts))
        staging = {server.staging_bandwidth_Bps, server.staging_lane_share};
      machine_.host_types[s].staged = std::isfinite(staging.bandwidth_Bps);
      router_->layouts.push_back(std::make_unique<ServerLayout>(
          server.interior.get(), devices, nic_count_of(s), server.copy_bandwidth_Bps, staging));
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
    links_.give_to(host, router_->hosts.back().first_link);
    if (cluster_.fabric || cluster_.servers[group.server].fabric) {
      FabricHost& fabric_host = hosts_.emplace_back(FabricHost{name, nic_of(group.server), false, host});
      if (group.nic_bandwidth_Bps)
        fabric_host.nic.bandwidth_Bps = *group.nic_bandwidth_Bps * fabric_host.nic.efficiency;
      if (group.nic_spread > 0)
        fabric_host.nic.bandwidth_Bps *=
            1 + group.nic_spread * (2 * uniform(cluster_.speed_seed ^ nic_draws, host) - 1);
      fabric_host.own_rate = group.nic_bandwidth_Bps || group.nic_spread > 0;
    }
    machine_.hosts.push_back({std::move(name), group.server, first_device, count});
  }

  /// Of the d-th of `count` used devices of a server.
  static double board_speed(const ServerSpec& server, std::uint32_t d, std::uint32_t count) {
    const std::uint32_t first = d - d % server.board_devices;
    const std::uint32_t used = std::min(count, first + server.board_devices) - first;
    return used > 1 ? server.board_speed : 1.0;
  }

  /// What hosts of dedicated servers have between them and the fabric.
  NicSpec dedicated_nic(const ServerSpec& server) const {
    NicSpec nic = hosts_.front().nic;
    if (cluster_.dedicated.server) {
      if (cluster_.fabric)
        nic = cluster_.fabric->nic();
      else if (server.fabric)
        nic = server.fabric->nic();
    }
    if (cluster_.dedicated.nic_bandwidth_Bps)
      nic.bandwidth_Bps = *cluster_.dedicated.nic_bandwidth_Bps * nic.efficiency;
    return nic;
  }

  void add_dedicated_hosts() {
    if (dedicated_ == 0) return;
    const NodeGroup& first = cluster_.groups.front();
    const ServerSpec& server =
        cluster_.dedicated.server ? *cluster_.dedicated.server : cluster_.servers[first.server];
    const NicSpec nic = dedicated_nic(server);
    HostType type = server.host;
    type.price_usd_per_h =
        cluster_.dedicated.price_usd_per_h ? cluster_.dedicated.price_usd_per_h : server.bare_price_usd_per_h;
    const auto type_index = static_cast<std::uint32_t>(machine_.host_types.size());
    machine_.host_types.push_back(std::move(type));
    router_->layouts.push_back(std::make_unique<ServerLayout>(nullptr, 0, nic.count));
    const auto no_device = static_cast<std::uint32_t>(machine_.devices.size());
    for (std::uint32_t i = 0; i < dedicated_; ++i) {
      const std::string name = "ps" + std::to_string(i);
      router_->hosts.push_back({router_->layouts.back().get(), 0, no_device});
      hosts_.push_back({name, nic, cluster_.dedicated.nic_bandwidth_Bps.has_value(),
                        static_cast<std::uint32_t>(machine_.hosts.size())});
      machine_.hosts.push_back({name, type_index, no_device, 0});
    }
  }

  const ClusterSpec& cluster_;
  std::uint32_t dedicated_;
  const Transport& transport_;
  Machine machine_;
  LinkTable links_;
  std::shared_ptr<MachineRouter> router_ = std::make_shared<MachineRouter>();
  std::vector<std::vector<std::uint32_t>> device_types_;  ///< by server, of each of its devices
  std::vector<FabricHost> hosts_;
};

}  // namespace

Machine build_machine(const ClusterSpec& cluster, std::uint32_t dedicated_hosts, const Transport& transport) {
  return MachineBuilder(cluster, dedicated_hosts, transport).build();
}

namespace {

/// Processors' worth of computing that a collective takes at least: its blocks, and what these take of caches
/// and memory. Proteus (Duan et al., arXiv:2306.02267) measures computing and collectives beside each other
/// to last 1.3 times as long on Titan Xp (28 processors: 6.5 of them), 1.1 times on V100 (80: 7.3) and A100
/// (108: 9.8). Across hosts as inside one: the same kernels move the bytes between the device's memory and
/// the network's buffers.
constexpr double processors_of_collective = 7;
/// The largest that Proteus measured.
constexpr double most_taken = 1 - 1 / 1.3;

}  // namespace

double Machine::processors_taken(const DeviceType& type) const {
  if (type.sms == 0 || transport.channels == 0) return 0;
  const double processors = std::max<double>(transport.channels, processors_of_collective);
  return std::min(most_taken, processors / type.sms);
}

}  // namespace convoy::topologies
