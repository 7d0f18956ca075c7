// SPDX-License-Identifier: MIT
#include "topologies/catalog.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/unexpected_value.h"
#include "topologies/catalogue_memo.h"
#include "topologies/prices.h"

namespace convoy::inline topologies {
std::vector<std::string> server_names() { return catalogue_names(CatalogueKind::server); }
std::vector<std::string> cluster_names() { return catalogue_names(CatalogueKind::cluster); }

ServerSpec load_server(const std::string& written, const SourcePos& pos) {
  const std::string name = catalogue_name(CatalogueKind::server, written);
  return from_catalogue<ServerSpec>(name, [&] {
    return read_catalogue_server(load_catalogue_entry(CatalogueKind::server, name, pos), "", name,
                                 load_device);
  });
}

ServerSpec read_catalogue_server(const CatalogueEntry& entry, const std::string& path,
                                 const std::string& name, const DeviceLookup& devices) {
  ServerSpec server = read_server(entry.node, path, name, devices);
  if (server.host.price_usd_per_h || entry.root.empty()) return server;
  if (const std::optional<Price> price = PriceTable::shipped().find(entry.root, Market::on_demand)) {
    server.host.price_usd_per_h = price->usd_per_hour;
    server.host.price_origin = price->origin();
    if (!server.bare_price_usd_per_h) server.bare_price_usd_per_h = price->usd_per_hour;
  }
  return server;
}

ClusterSpec load_cluster(const std::string& written, const SourcePos& pos) {
  const std::string name = catalogue_name(CatalogueKind::cluster, written);
  const YamlNode node = load_catalogue_entry(CatalogueKind::cluster, name, pos).node;
  if (node.kind != YamlNode::Kind::mapping) fail_unexpected(node, "", "a mapping (key: value)");
  ClusterSpec cluster = read_cluster(node);
  cluster.name = name;
  return cluster;
}

std::string price_text(const HostType& host) {
  if (!host.price_usd_per_h) return "no price";
  const std::string price = fmt::format("{:.2f} USD/h", *host.price_usd_per_h);
  return host.price_origin.empty() ? price : fmt::format("{} ({})", price, host.price_origin);
}

Description describe(const ServerSpec& server) {
  Description lines = {{"name", server.host.server}};
  if (!server.title.empty()) lines.emplace_back("title", server.title);
  for (const auto& [type, count] : server.devices)
    lines.emplace_back("devices", fmt::format("{} x {}", count, type.name));
  if (server.interior) lines.emplace_back("interconnect", server.interior->text());
  if (server.fabric) lines.emplace_back("fabric", server.fabric->text());
  if (server.host.price_usd_per_h) lines.emplace_back("price", price_text(server.host));
  if (server.bare_price_usd_per_h && server.bare_price_usd_per_h != server.host.price_usd_per_h)
    lines.emplace_back("price without devices", fmt::format("{:g} USD/h", *server.bare_price_usd_per_h));
  if (server.host.vcpus > 0) lines.emplace_back("vCPUs", std::to_string(server.host.vcpus));
  if (server.host.memory_bytes > 0) lines.emplace_back("host memory", format_bytes(server.host.memory_bytes));
  if (server.host.disk_bytes > 0) lines.emplace_back("local disk", format_bytes(server.host.disk_bytes));
  if (std::isfinite(server.host.reduce_bandwidth_Bps))
    lines.emplace_back("gradient sums on the host", format_bandwidth(server.host.reduce_bandwidth_Bps));
  if (std::isfinite(server.copy_bandwidth_Bps))
    lines.emplace_back("copies through host memory", format_bandwidth(server.copy_bandwidth_Bps));
  if (server.host.issue_factor > 0)
    lines.emplace_back("issue of operations",
                       fmt::format("{:g} of the typical host's time", server.host.issue_factor));
  if (server.host.host_power_w > 0)
    lines.emplace_back("host power", fmt::format("{:g} W", server.host.host_power_w));
  return lines;
}

Description describe(const ClusterSpec& cluster) {
  Description lines = {{"name", cluster.name}};
  if (!cluster.title.empty()) lines.emplace_back("title", cluster.title);
  for (const NodeGroup& group : cluster.groups)
    lines.emplace_back("nodes",
                       fmt::format("{} x {}, {} devices each", group.count,
                                   cluster.servers[group.server].host.server, cluster.devices_of(group)));
  lines.emplace_back("devices", std::to_string(cluster.device_count()));
  if (cluster.fabric)
    lines.emplace_back("fabric", cluster.fabric->text());
  else if (cluster.node_count() > 1)
    for (const ServerSpec& server : cluster.servers)
      lines.emplace_back("fabric", fmt::format("{} ({})", server.fabric->text(), server.host.server));
  return lines;
}

}  // namespace convoy::topologies
