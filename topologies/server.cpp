// SPDX-License-Identifier: MIT
#include "topologies/server.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy {
namespace {

/// The ways between all places of a server are worked out once; their number grows with the square of the
/// devices.
constexpr std::uint32_t max_devices = 128;

void read_host_facts(YamlMap& map, HostType& host) {
  host.vcpus = static_cast<std::uint32_t>(map.integer_or("vcpus", 0, 1, 100'000));
  host.memory_bytes = map.quantity_or("host_memory", Dimension::bytes, 0, true);
  host.disk_bytes = map.quantity_or("local_disk", Dimension::bytes, 0);
  if (!map.find("host_power")) return;
  if (const YamlNode* own = map.find("host"); own && own->find("power"))
    map.fail("host_power", "is given twice: as `host_power` and as `host: {power}`");
  host.host_power_w = map.quantity("host_power", Dimension::power);
}

}  // namespace

std::uint32_t ServerSpec::device_count() const {
  std::uint32_t count = 0;
  for (const auto& [type, of_type] : devices) count += of_type;
  return count;
}

void read_sources(YamlMap& map) {
  if (!map.find("sources")) return;
  YamlMap sources = map.map("sources");
  for (const std::string& key : sources.keys()) sources.text(key);
}

double read_step_jitter(YamlMap& map) {
  const double jitter = map.quantity_or("step_jitter", Dimension::fraction, 0);
  if (jitter > 0.5)
    map.fail("step_jitter", "must be at most 50%: beyond that, times are no longer near their mean");
  return jitter;
}

ServerSpec read_server(const YamlNode& node, const std::string& path, const std::string& name,
                       const DeviceLookup& devices) {
  YamlMap map(node, path);
  ServerSpec server;
  server.host.server = name;
  server.title = map.text_or("title", "");
  for (YamlMap& entry : map.maps("devices")) {
    const std::string device = entry.text("device");
    const auto count = static_cast<std::uint32_t>(entry.integer_or("count", 1, 1, max_devices));
    server.devices.emplace_back(devices(device, entry.pos("device")), count);
    entry.finish();
  }
  const std::uint32_t count = server.device_count();
  if (count == 0) map.fail("devices", "a server needs at least one device");
  if (count > max_devices)
    map.fail("devices", fmt::format("{} devices in one server; at most {} are allowed", count, max_devices));

  if (const YamlNode* interconnect = map.find("interconnect"))
    server.interior = read_interior(*interconnect, map.path_of("interconnect"), count);
  else if (count > 1)
    map.fail(fmt::format("key 'interconnect' is missing: say how the {} devices are connected", count));
  if (const YamlNode* fabric = map.find("fabric"))
    server.fabric = read_fabric(*fabric, map.path_of("fabric"));

  if (map.find("boards")) {
    YamlMap boards = map.map("boards");
    server.board_devices = static_cast<std::uint32_t>(boards.integer("devices", 2, count));
    server.board_speed = boards.quantity("speed", Dimension::fraction, true);
    if (server.board_speed > 1)
      boards.fail("speed", "must be at most 100%: sharing a board makes no device faster");
    boards.finish();
  }
  const bool devices_reach = std::all_of(server.devices.begin(), server.devices.end(),
                                         [](const auto& entry) { return entry.first.peer_to_peer; });
  server.peer_to_peer = map.flag_or("peer_to_peer", devices_reach);
  server.step_jitter = read_step_jitter(map);
  server.host.price_usd_per_h = map.quantity_or("price", Dimension::price, 0);
  server.bare_price_usd_per_h = server.host.price_usd_per_h;
  if (map.find("host")) {
    YamlMap host = map.map("host");
    server.host.reduce_bandwidth_Bps =
        host.quantity_or("reduce_bandwidth", Dimension::bandwidth, server.host.reduce_bandwidth_Bps, true);
    server.host.host_power_w = host.quantity_or("power", Dimension::power, server.host.host_power_w);
    server.copy_bandwidth_Bps =
        host.quantity_or("copy_bandwidth", Dimension::bandwidth, server.copy_bandwidth_Bps, true);
    server.staging_bandwidth_Bps =
        host.quantity_or("staging_bandwidth", Dimension::bandwidth, server.staging_bandwidth_Bps, true);
    server.bare_price_usd_per_h = host.quantity_or("price", Dimension::price, server.bare_price_usd_per_h);
    host.finish();
  }
  read_host_facts(map, server.host);
  read_sources(map);
  map.finish();
  return server;
}

}  // namespace convoy
