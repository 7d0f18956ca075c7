// SPDX-License-Identifier: MIT
#include "topologies/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/key_parts.h"
#include "topologies/cluster_keys.h"

namespace convoy::inline topologies {
namespace {

/// The ways between all places of a server are worked out once; their number grows with the square of the
/// devices.
constexpr std::uint32_t max_server_devices = 128;

/// Equal devices of a server: an entry of `devices`.
struct DeviceEntry {
  std::string device;
  SourcePos device_pos;
  std::uint32_t count = 1;
};

/// Devices in a row that share a board.
struct Boards {
  std::uint32_t devices = 1;
  SourcePos devices_pos;
  double speed = 1;
};

/// A server while it is read.
struct ServerDraft {
  ServerSpec server;
  std::vector<DeviceEntry> devices;
  Boards boards;

  std::uint32_t device_count() const {
    std::uint32_t count = 0;
    for (const DeviceEntry& entry : devices) count += entry.count;
    return count;
  }
};

Keys<DeviceEntry> device_entry_keys() {
  return {optional_text_key<DeviceEntry>(
              "device", "", "a name", "of the experiment's `devices` or the catalogue", &DeviceEntry::device)
              .required()
              .at(&DeviceEntry::device_pos),
          integer_key<DeviceEntry>("count", 1, max_server_devices, "so many of them", &DeviceEntry::count)};
}

Keys<Boards> board_keys() {
  return {optional_integer_key<Boards>("devices", "", 2, max_server_devices, "of a board, in a row",
                                       &Boards::devices)
              .required()
              .at(&Boards::devices_pos),
          share_key<Boards>("speed", "", true, "of a device where two or more of its board are used",
                            &Boards::speed)
              .required()};
}

Keys<ServerSpec> host_keys() {
  using S = ServerSpec;
  return {
      optional_quantity_key<S>("reduce_bandwidth", "6.9 GB/s, no limit where the fabric is ideal",
                               Dimension::bandwidth, true,
                               "rate at which its CPUs add gradients into a parameter",
                               [](S& s) -> double& { return s.host.reduce_bandwidth_Bps; }),
      optional_number_key<S>("issue_factor", "1, and less sure", 0.01, 100,
                             "time its CPUs take to issue an operation, relative to the typical host",
                             [](S& s) -> double& { return s.host.issue_factor; }),
      optional_quantity_key<S>("power", "0W", Dimension::power, false, "of the host without its devices",
                               [](S& s) -> double& { return s.host.host_power_w; }),
      optional_quantity_key<S>("copy_bandwidth", "no limit", Dimension::bandwidth, true,
                               "of copies through host memory, all devices together", &S::copy_bandwidth_Bps),
      optional_quantity_key<S>("staging_bandwidth", "16GB/s", Dimension::bandwidth, true,
                               "of all messages between its devices through host memory, together",
                               &S::staging_bandwidth_Bps),
      optional_quantity_key<S>("price", "the server's", Dimension::price, false,
                               "without devices, as a dedicated server", &S::bare_price_usd_per_h)};
}

void read_server_devices(YamlMap& map, ServerDraft& draft) {
  for (YamlMap& entry : map.maps("devices"))
    read_part(device_entry_keys(), std::move(entry), draft.devices.emplace_back());
  const std::uint32_t count = draft.device_count();
  if (count == 0) map.fail("devices", "a server needs at least one device");
  if (count > max_server_devices)
    map.fail("devices",
             fmt::format("{} devices in one server; at most {} are allowed", count, max_server_devices));
}

void read_interconnect(YamlMap& map, ServerDraft& draft) {
  const std::uint32_t count = draft.device_count();
  if (const YamlNode* interconnect = map.find("interconnect"))
    draft.server.interior = read_interior(*interconnect, map.path_of("interconnect"), count);
  else if (count > 1)
    map.fail(fmt::format("key 'interconnect' is missing: say how the {} devices are connected", count));
}

void read_host_power(YamlMap& map, ServerDraft& draft) {
  if (!map.find("host_power")) return;
  if (const YamlNode* own = map.find("host"); own && own->find("power"))
    map.fail("host_power", "is given twice: as `host_power` and as `host: {power}`");
  draft.server.host.host_power_w = map.quantity("host_power", Dimension::power);
}

/// What stands on a server's bill and data sheet.
Keys<ServerDraft> host_fact_keys() {
  using D = ServerDraft;
  return {custom_key<D>("price", "none", forms::quantity(Dimension::price), "of the server with its devices",
                        [](YamlMap& map, D& draft) {
                          if (!map.find("price")) return;
                          draft.server.host.price_usd_per_h = map.quantity("price", Dimension::price);
                          draft.server.bare_price_usd_per_h = draft.server.host.price_usd_per_h;
                        }),
          mapping_key<D>("host", "none", "what its CPUs and memory do", host_keys(), &D::server),
          optional_integer_key<D>("vcpus", "not told", 1, 100'000, "of the host",
                                  [](D& d) -> std::uint32_t& { return d.server.host.vcpus; }),
          optional_quantity_key<D>("host_memory", "not told", Dimension::bytes, true, "of the host",
                                   [](D& d) -> double& { return d.server.host.memory_bytes; }),
          optional_quantity_key<D>("local_disk", "0B", Dimension::bytes, false, "of the host",
                                   [](D& d) -> double& { return d.server.host.disk_bytes; }),
          custom_key<D>("host_power", "0W", forms::quantity(Dimension::power), "as host.power",
                        &read_host_power)};
}

Keys<ServerDraft> make_server_keys() {
  using D = ServerDraft;
  Keys<D> keys{
      optional_text_key<D>("title", "none", "a text", "for people",
                           [](D& d) -> std::string& { return d.server.title; }),
      list_key<D>("devices", "", keys_detail::list_of_parts(texts_of(device_entry_keys())), "in order",
                  &read_server_devices)
          .told_required()
          .with_parts(texts_of(device_entry_keys())),
      custom_key<D>("interconnect", "", forms::section("interconnect", "{kind, ...}"),
                    "between its devices; required where there are two or more", &read_interconnect),
      custom_key<D>("fabric", "none", forms::section("fabric", "{kind, ...}"),
                    "its provider's, where a cluster names none",
                    [](YamlMap& map, D& draft) {
                      if (const YamlNode* fabric = map.find("fabric"))
                        draft.server.fabric = read_fabric(*fabric, map.path_of("fabric"));
                    }),
      mapping_key<D>("boards", "a board each", "devices that share a board and its power", board_keys(),
                     &D::boards),
      custom_key<D>(
          "peer_to_peer", "as the devices say", forms::flag(),
          "its devices reach each other over PCIe; else messages go through host memory",
          [](YamlMap& map, D& draft) { draft.server.peer_to_peer = map.flag_or("peer_to_peer", true); }),
      custom_key<D>("step_jitter", "0%", forms::quantity(Dimension::fraction).said("a fraction up to 50%"),
                    "as a cluster's",
                    [](YamlMap& map, D& draft) { draft.server.step_jitter = read_step_jitter(map); })};
  append_keys(keys, host_fact_keys());
  keys.push_back(custom_key<D>("sources", "none", sources_form(), "where the numbers are from",
                               [](YamlMap& map, D& draft) { draft.server.sources = read_sources(map); }));
  return keys;
}

const Keys<ServerDraft>& all_server_keys() {
  static const Keys<ServerDraft> keys = make_server_keys();
  return keys;
}

}  // namespace

std::uint32_t ServerSpec::device_count() const {
  std::uint32_t count = 0;
  for (const auto& [type, of_type] : devices) count += of_type;
  return count;
}

double read_step_jitter(YamlMap& map) {
  const double jitter = map.quantity_or("step_jitter", Dimension::fraction, 0);
  if (jitter > 0.5)
    map.fail("step_jitter", "must be at most 50%: beyond that, times are no longer near their mean");
  return jitter;
}

ServerSpec read_server(const YamlNode& node, const std::string& path, const std::string& name,
                       const DeviceLookup& devices) {
  ServerDraft draft;
  ServerSpec& server = draft.server;
  server.host.server = name;
  const YamlMap map(node, path);
  read_part(all_server_keys(), map, draft);
  for (const DeviceEntry& entry : draft.devices)
    server.devices.emplace_back(devices(entry.device, entry.device_pos), entry.count);
  if (!map.has("peer_to_peer"))
    server.peer_to_peer = std::all_of(server.devices.begin(), server.devices.end(),
                                      [](const auto& entry) { return entry.first.peer_to_peer; });
  if (draft.boards.devices > draft.device_count())
    throw InputError(draft.boards.devices_pos,
                     fmt::format("{}.boards.devices: {} on a board, but the server has {}", path,
                                 draft.boards.devices, draft.device_count()));
  server.board_devices = draft.boards.devices;
  server.board_speed = draft.boards.speed;
  return std::move(server);
}

KeySection server_keys() {
  KeySection section{"server", "an entry of a cluster's `servers`, or `{base: NAME}` with what differs",
                     texts_of(all_server_keys())};
  section.derived = true;
  return section;
}

KeySection described_server_keys() {
  KeySection section = server_keys();
  section.name = "described-server";
  section.keys.push_back(key_text("name", "its base's", forms::text("a name"), "what it is called"));
  return section;
}

}  // namespace convoy::topologies
