// SPDX-License-Identifier: MIT
// The keys that `convoy show keys` tells of clusters, servers and devices are those that their readers take.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>

#include "sim/base/input_error.h"
#include "tests/support/told_keys.h"
#include "topologies/cluster.h"
#include "topologies/cluster_keys.h"

using namespace convoy;

namespace {

template <class Read>
std::string said_of(const std::string& entries, const Read& read) {
  try {
    const YamlNode node = parse_yaml("{" + entries + "}", "told.yaml");
    return read(node);
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string text_of(const Efficiency& e) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                     fmt::join(e.compute, " "), fmt::join(e.bandwidth, " "), e.data_gradient,
                     e.weight_gradient, e.half_outputs, e.half_reduction, e.half_rows, e.half_weight_outputs,
                     e.half_weight_reduction, e.half_weight_rows, e.half_matmul_rows, e.strided_data_gradient,
                     e.half_winograd, e.unaligned, e.half_group, e.depthwise_data_gradient,
                     e.depthwise_weight_gradient, e.wide_groups_nhwc, e.transpose_passes, e.filter_order,
                     e.first_touch, e.pooling_windows);
}

std::string text_of(const DeviceType& d) {
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", d.title, d.kind->name, d.memory_bytes,
                  d.memory_bandwidth_Bps, d.launch_overhead_s, d.reserved_bytes, d.idle_power_w,
                  d.peak_power_w, d.usable_memory_bytes, d.generation, d.sms, d.clock_hz, d.l2_bytes,
                  d.peer_to_peer, d.issue_factor, d.evidence_rows);
  for (const auto& [precision, peak] : d.peak_flops)
    text += fmt::format(" {}: {}", to_string(precision), peak);
  for (const Efficiency& each : d.efficiency) text += "; " + text_of(each);
  return text;
}

std::string text_of(const ServerSpec& s) {
  std::string text = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", s.title, s.host.price_usd_per_h.value_or(-1),
      s.bare_price_usd_per_h.value_or(-1), s.host.reduce_bandwidth_Bps, s.host.host_power_w, s.host.vcpus,
      s.host.memory_bytes, s.host.disk_bytes, s.host.issue_factor, s.copy_bandwidth_Bps, s.peer_to_peer,
      s.staging_bandwidth_Bps, s.board_devices, s.board_speed, s.step_jitter);
  for (const auto& [type, count] : s.devices) text += fmt::format("; {} {}", count, text_of(type));
  return text + (s.interior ? s.interior->text() : "") + (s.fabric ? s.fabric->text() : "");
}

std::string text_of(const ClusterSpec& c) {
  std::string text = fmt::format("{} {} {} {} {} {} {} {} {}", c.name, c.title, c.devices_per_node,
                                 c.speed_seed, c.collective_overhead_s, c.dedicated.server != nullptr,
                                 c.dedicated.nic_bandwidth_Bps.value_or(0),
                                 c.dedicated.price_usd_per_h.value_or(-1), c.step_jitter.value_or(-1));
  for (const NodeGroup& g : c.groups)
    text += fmt::format("; {} {} {} {} {} {} {}", g.name, g.count, g.server, g.speed, g.speed_spread,
                        g.nic_bandwidth_Bps.value_or(0), g.nic_spread);
  for (const ServerSpec& server : c.servers) text += "; " + text_of(server);
  return text + (c.fabric ? c.fabric->text() : "");
}

std::string device_said(const std::string& entries) {
  return said_of(entries, [](const YamlNode& node) { return text_of(read_device(node, "mine")); });
}

std::string cluster_said(const std::string& entries) {
  return said_of(entries, [](const YamlNode& node) { return text_of(read_cluster(node)); });
}

const std::string least_device =
    "peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1";
const std::string own_devices = "devices: {mine: {" + least_device + "}}, ";
const std::string one_switch = "fabric: {kind: switch, bandwidth: 1GB/s, latency: 1us}, ";

std::string fabric_said(const std::string& entries) {
  return said_of(entries, [](const YamlNode& node) {
    const std::shared_ptr<const Fabric> read = read_fabric(node, "fabric");
    const NicSpec& nic = read->nic();
    return fmt::format("{} {} {} {} {} {} {} {} {} {}", read->text(), nic.message_overhead_s, nic.efficiency,
                       nic.count, nic.protocol ? static_cast<int>(*nic.protocol) : -1, nic.streams,
                       nic.stream_bandwidth_Bps, nic.handshake_s, nic.tree_chunk_bytes, nic.simple_only);
  });
}

std::string interconnect_said(const std::string& entries) {
  return said_of(entries,
                 [](const YamlNode& node) { return read_interior(node, "interconnect", 4)->text(); });
}

/// A registry's row takes the keys that it tells, beside its kind. @param least beside the kind; none: what
/// it reads without which keys is not tried
template <class Entry>
void check_kind(const Entry& entry, const std::optional<std::string>& least,
                std::string (*read)(const std::string&)) {
  CAPTURE(entry.kind);
  std::vector<KeyText> keys = entry.keys;
  keys.push_back({"kind", "a name", "said"});
  const std::string kind = fmt::format("kind: {}", entry.kind);
  if (least)
    told::check(keys, kind + *least, read);
  else
    CHECK(told::known_keys(read(kind + ", zzzzzzzz: 1")) == told::told_names(keys));
}

/// Reads entries as what stands between two texts.
told::Reading told_between(std::string before, std::string after, std::string (*read)(const std::string&)) {
  return [=](const std::string& entries) { return read(before + entries + after); };
}

}  // namespace

TEST_CASE("told keys: a device takes those that its table tells, and their defaults change nothing") {
  const std::vector<KeyText> keys = device_keys().keys;
  CHECK(told::check(keys, least_device, &device_said) >= 6);
  CHECK(told::check(
            efficiency_keys(), "default: 0.5",
            told_between("peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: {",
                         "}", &device_said)) >= 10);
  told::check(
      told::parts_of(keys, "peak"), "fp32: 10TFLOPS",
      told_between("memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1, peak: {", "}", &device_said));
  told::check(told::parts_of(keys, "evidence"), "rows: 1, spread: 0.1",
              told_between(least_device + ", evidence: {", "}", &device_said));
}

TEST_CASE("told keys: a server takes those that its table tells, and their defaults change nothing") {
  const std::vector<KeyText> keys = server_keys().keys;
  const std::string least = "devices: [{device: mine, count: 2}], interconnect: {kind: none}";
  const auto inside = [](const std::string& before, const std::string& after) {
    return told_between(own_devices + "server: box, servers: {box: {" + before, after + "}}", &cluster_said);
  };
  CHECK(told::check(keys, least, inside("", "")) >= 3);
  CHECK(told::check(told::parts_of(keys, "devices"), "device: mine",
                    inside("interconnect: {kind: none}, devices: [{", "}]")) == 1);
  CHECK(told::check(told::parts_of(keys, "host"), "", inside(least + ", host: {", "}")) == 2);
  told::check(told::parts_of(keys, "boards"), "devices: 2, speed: 90%", inside(least + ", boards: {", "}"));
}

TEST_CASE("told keys: a cluster takes those that its table tells, and their defaults change nothing") {
  const std::vector<KeyText> keys = cluster_keys().keys;
  const std::string own = own_devices + "servers: {box: {devices: [{device: mine}]}}, " + one_switch;
  CHECK(told::check(keys, own + "server: box", &cluster_said) == 2);
  CHECK(told::check(told::parts_of(keys, "nodes"), "server: box",
                    told_between(own + "nodes: [{", "}]", &cluster_said)) == 4);
  for (const char* name : {"dedicated", "speed_variation", "communication"}) {
    CAPTURE(name);
    told::check(told::parts_of(keys, name), "",
                told_between(own + "server: box, " + name + ": {", "}", &cluster_said));
  }
}

TEST_CASE("told keys: a misspelt key of a list's item is told, and not that another one is missing") {
  const std::string own = own_devices + one_switch;
  CHECK(
      cluster_said(own + "servers: {box: {devices: [{device: mine}]}}, nodes: [{name: a, serve: box}]")
          .ends_with("cluster.nodes[0].serve: unknown key (did you mean 'server'?); known here: count, name, "
                     "nic_bandwidth, nic_spread, server, speed, speed_spread"));
  CHECK(cluster_said(own + "server: box, servers: {box: {devices: [{type: mine}]}}")
            .ends_with("cluster.servers.box.devices[0].type: unknown key; known here: count, device"));
}

TEST_CASE(
    "told keys: every kind of fabric takes those that its row tells, and their defaults change nothing") {
  const std::string nic = ", bandwidth: 1GB/s, latency: 1us, protocol: tcp",
                    site = "{hosts: 1, fabric: {kind: switch" + nic + "}}";
  const std::map<std::string, std::string> least{
      {"switch", nic},
      {"shared", nic},
      {"ring", nic},
      {"full_mesh", nic},
      {"fat_tree", nic + ", levels: 3, hosts_per_leaf: 2, leaves_per_pod: 2"},
      {"torus", nic + ", dims: [2, 2]"},
      {"dragonfly", nic + ", groups: 2, routers: 2, hosts: 2"},
      {"custom", ", protocol: tcp, links: []"},
      {"rail", nic + ", hosts_per_group: 2"},
      {"sites", ", sites: [" + site + ", " + site + "], wan: {bandwidth: 1GB/s, latency: 1us}"}};
  for (const FabricEntry& entry : fabric_registry()) {
    const auto it = least.find(std::string(entry.kind));
    check_kind(entry, it == least.end() ? std::nullopt : std::optional(it->second), &fabric_said);
  }
  CHECK(fabric_said("kind: fat_tree" + nic + ", radix: 4, spines: 2")
            .ends_with("fabric.spines: goes with no radix only; leave it out"));
}

TEST_CASE(
    "told keys: every kind of interconnect takes those that its row tells, and their defaults change "
    "nothing") {
  const std::map<std::string, std::string> least{
      {"none", ""},
      {"pcie", ", bandwidth: 1GB/s, switches: [[0, 1], [2, 3]], sockets: [[0], [1]], socket_link: 1GB/s"},
      {"nvlink", ", bandwidth: 1GB/s"},
      {"nvswitch", ", bandwidth: 1GB/s"},
      {"custom",
       ", switches: [s], links: [{from: gpu0, to: s, bandwidth: 1GB/s}, {from: gpu1, to: s, bandwidth: "
       "1GB/s}, "
       "{from: gpu2, to: s, bandwidth: 1GB/s}, {from: gpu3, to: s, bandwidth: 1GB/s}, {from: host, to: s, "
       "bandwidth: 1GB/s}]"}};
  for (const InteriorEntry& entry : interior_registry()) {
    const auto it = least.find(std::string(entry.kind));
    check_kind(entry, it == least.end() ? std::nullopt : std::optional(it->second), &interconnect_said);
  }
  CHECK(interconnect_said("kind: nvlink, bandwidth: 1GB/s, pcie: {bandwith: 1GB/s}")
            .find("pcie.bandwith: unknown key (did you mean 'bandwidth'?)") != std::string::npos);
}
