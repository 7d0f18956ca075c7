// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <tuple>

#include "models/model.h"
#include "sim/base/document_kind.h"
#include "sim/base/names.h"
#include "sim/base/quantity.h"
#include "sim/cli/commands.h"
#include "sim/cli/draw_cluster.h"
#include "sim/cli/show_algorithm.h"
#include "sim/cli/show_framework.h"
#include "sim/cli/show_grades.h"
#include "sim/cli/show_keys.h"
#include "sim/cli/show_model.h"
#include "sim/cli/show_schema.h"
#include "sim/cli/show_transport.h"
#include "sim/costs/residuals.h"
#include "sim/results/json_writer.h"
#include "sim/run/output_folder.h"
#include "topologies/catalog.h"
#include "topologies/prices.h"

namespace convoy::inline cli {
namespace {

using Style = JsonWriter::Style;

/// Where names on the command line stand, for errors and relative files.
SourcePos argument_pos(const std::string& subject) { return {"show " + subject, 1, 1}; }

/// A list for people: a line a name with what tells it from the others.
struct Listing {
  std::vector<std::string> names;
  std::string (*line)(const std::string& name);
};

void print_list(std::ostream& out, const Listing& listing, bool as_json) {
  if (as_json) {
    JsonWriter json(out);
    json.begin_array();
    for (const std::string& name : listing.names) json.value(std::string_view(name));
    json.end_array();
    json.raw("\n");
    return;
  }
  std::size_t width = 0;
  for (const std::string& name : listing.names) width = std::max(width, name.size());
  for (const std::string& name : listing.names) {
    const std::string line = listing.line(name);
    out << (line.empty() ? name : fmt::format("{:<{}}  {}", name, width, line)) << '\n';
  }
}

// --- devices

std::string peaks_text(const DeviceType& device) {
  std::vector<std::string> peaks;
  for (const auto& [precision, flops] : device.peak_flops)
    peaks.push_back(fmt::format("{} {:.4g} TFLOPS", to_string(precision), flops / 1e12));
  return fmt::format("{}", fmt::join(peaks, ", "));
}

std::string chip_text(const DeviceType& device) {
  std::vector<std::string> parts;
  if (!device.generation.empty()) parts.push_back(device.generation);
  if (device.sms) parts.push_back(fmt::format("{} {}", device.sms, device.kind->units));
  if (device.clock_hz > 0) parts.push_back(fmt::format("{:.4g} MHz", device.clock_hz / 1e6));
  if (device.l2_bytes > 0) parts.push_back("cache " + format_bytes(device.l2_bytes));
  return parts.empty() ? "" : fmt::format("  chip              {}\n", fmt::join(parts, ", "));
}

std::string device_line(const std::string& name) {
  const DeviceType device = load_device(name, argument_pos("devices"));
  return fmt::format("{:>8}  {:>10}  {}", format_bytes(device.memory_bytes),
                     format_bandwidth(device.memory_bandwidth_Bps), peaks_text(device));
}

std::string evidence_text(const DeviceType& device) {
  std::string rows =
      device.evidence_rows > 0 ? fmt::format("of {} rows", device.evidence_rows) : "of no row of this device";
  if (device.evidence_left_out_error > 0)
    rows += fmt::format(", networks left out are off by {:.3g} %", 100 * device.evidence_left_out_error);
  return fmt::format("{}: +-{:.3g} % of the time (one standard deviation)", rows,
                     100 * std::expm1(device_spread(device, device_is_seen(device))));
}

void show_device(std::ostream& out, const ShowArguments& arguments) {
  const auto& [name, as_json] = std::tie(arguments.name, arguments.json);
  const DeviceType device = load_device(name, argument_pos("devices"));
  if (!as_json) {
    out << fmt::format(
        "{}: {}\n  peak              {}\n  memory            {} at {}\n  launch overhead   {}\n"
        "  reserved          {}\n  power             {} W idle, {} W at most\n",
        device.name, device.title, peaks_text(device), format_bytes(device.memory_bytes),
        format_bandwidth(device.memory_bandwidth_Bps), format_time(device.launch_overhead_s),
        device.framework_reserves ? "by the framework" : format_bytes(device.reserved_bytes),
        device.idle_power_w, device.peak_power_w);
    out << chip_text(device);
    if (device.evidence_spread > 0) out << fmt::format("  efficiency        {}\n", evidence_text(device));
    print_sources(out, device.sources);
    return;
  }
  JsonWriter json(out);
  json.begin_object();
  json.field("name", device.name);
  json.field("title", device.title);
  json.field("kind", device.kind->name);
  json.key("peak_flops");
  json.begin_object(Style::compact);
  for (const auto& [precision, flops] : device.peak_flops) json.field(to_string(precision), flops);
  json.end_object();
  json.field("memory_bytes", device.memory_bytes);
  json.field("memory_bandwidth_Bps", device.memory_bandwidth_Bps);
  json.field("usable_memory_bytes", device.usable_memory_bytes);
  json.field("generation", device.generation);
  json.field("sms", static_cast<std::int64_t>(device.sms));
  json.field("clock_hz", device.clock_hz);
  json.field("l2_bytes", device.l2_bytes);
  json.field("launch_overhead_s", device.launch_overhead_s);
  json.key("reserved_bytes");
  device.framework_reserves ? json.null() : json.value(device.reserved_bytes);
  json.field("idle_power_w", device.idle_power_w);
  json.field("peak_power_w", device.peak_power_w);
  json.key("evidence");
  json.begin_object(Style::compact);
  json.field("rows", static_cast<std::int64_t>(device.evidence_rows));
  json.field("spread", device_spread(device, device_is_seen(device)));
  json.field("left_out_error", device.evidence_left_out_error);
  json.end_object();
  write_grades(json, device.sources);
  json.end_object();
  json.raw("\n");
}

// --- servers and clusters

std::string devices_text(const ServerSpec& server) {
  std::vector<std::string> parts;
  for (const auto& [type, count] : server.devices) parts.push_back(fmt::format("{} x {}", count, type.name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string server_line(const std::string& name) {
  const ServerSpec server = load_server(name, argument_pos("servers"));
  return fmt::format("{:<24}  {:<63}  {}", devices_text(server), price_text(server.host),
                     server.fabric ? server.fabric->text() : "no fabric of its own");
}

void print_prices(std::ostream& out, const std::string& server) {
  const PriceTable& table = PriceTable::shipped();
  bool any = false;
  for (const Market market : {Market::on_demand, Market::spot})
    for (const Price& price : table.regions(server, market)) {
      any = true;
      const std::string doubt = table.doubt(price);
      out << fmt::format("  price     {:.4g} USD/h, {} ({}){}{}\n", price.usd_per_hour, price.origin(),
                         to_string(price.grade), doubt.empty() ? "" : ": ", doubt);
    }
  if (!any) out << "  price     none\n";
}

/// The latest price of every market and region, with its date and what speaks against it.
void write_prices(JsonWriter& json, const std::string& server) {
  const PriceTable& table = PriceTable::shipped();
  json.key("prices");
  json.begin_array();
  for (const Market market : {Market::on_demand, Market::spot})
    for (const Price& price : table.regions(server, market)) {
      json.begin_object(Style::compact);
      json.field("market", to_string(market));
      json.field("region", price.region);
      json.field("usd_per_h", price.usd_per_hour);
      json.field("from", price.from);
      json.field("until", price.until);
      json.field("source", price.source);
      json.field("grade", to_string(price.grade));
      if (!price.note.empty()) json.field("note", price.note);
      if (const std::string doubt = table.doubt(price); !doubt.empty()) json.field("doubt", doubt);
      json.end_object();
    }
  json.end_array();
}

void server_fields(JsonWriter& json, const ServerSpec& server) {
  json.field("name", server.host.server);
  json.field("title", server.title);
  json.key("devices");
  json.begin_array(Style::compact);
  for (const auto& [type, count] : server.devices) {
    json.begin_object();
    json.field("device", type.name);
    json.field("count", static_cast<std::int64_t>(count));
    json.end_object();
  }
  json.end_array();
  json.key("price_usd_per_h");
  server.host.price_usd_per_h ? json.value(*server.host.price_usd_per_h) : json.null();
  write_prices(json, server.host.server);
  json.field("vcpus", static_cast<std::int64_t>(server.host.vcpus));
  json.field("host_memory_bytes", server.host.memory_bytes);
  json.field("local_disk_bytes", server.host.disk_bytes);
  json.field("host_power_w", server.host.host_power_w);
  json.field("fabric", server.fabric ? server.fabric->text() : std::string{});
}

void show_server(std::ostream& out, const ShowArguments& arguments) {
  const auto& [name, as_json] = std::tie(arguments.name, arguments.json);
  const ServerSpec server = load_server(name, argument_pos("servers"));
  if (!as_json) {
    out << fmt::format("{}: {}\n  devices   {}\n  network   {}\n", name, server.title, devices_text(server),
                       server.fabric ? server.fabric->text() : "none of its own");
    const HostType& host = server.host;
    if (host.vcpus > 0)
      out << fmt::format(
          "  host      {} vCPUs, {}{}\n", host.vcpus, format_bytes(host.memory_bytes),
          host.disk_bytes > 0 ? fmt::format(", local disks of {}", format_bytes(host.disk_bytes)) : "");
    if (host.host_power_w > 0)
      out << fmt::format("  power     {:g} W without the devices\n", host.host_power_w);
    print_prices(out, server.host.server);
    print_sources(out, server.sources);
    return;
  }
  JsonWriter json(out);
  json.begin_object();
  server_fields(json, server);
  write_grades(json, server.sources);
  json.end_object();
  json.raw("\n");
}

std::string cluster_line(const std::string& name) {
  const ClusterSpec cluster = load_cluster(name, argument_pos("clusters"));
  return fmt::format("{} nodes, {} devices", cluster.node_count(), cluster.device_count());
}

/// A cluster of the catalogue, or the `cluster:` of an experiment's file.
ClusterSpec cluster_to_show(const std::string& name) {
  if (!name.ends_with(".yaml") && !name.ends_with(".yml"))
    return load_cluster(name, argument_pos("clusters"));
  const YamlNode file = load_yaml(name);
  const YamlNode* cluster = file.find("cluster");
  if (!cluster) refuse_other_document(file, DocumentKind::cluster);
  return read_cluster(cluster ? *cluster : file);
}

void show_cluster(std::ostream& out, const ShowArguments& arguments) {
  const auto& [name, as_json] = std::tie(arguments.name, arguments.json);
  const ClusterSpec cluster = cluster_to_show(name);
  if (arguments.dot) return write_cluster_dot(out, build_machine(cluster, 0));
  if (arguments.svg) return write_cluster_svg(out, build_machine(cluster, 0));
  if (!as_json) {
    out << fmt::format("{}: {} nodes, {} devices\n", name, cluster.node_count(), cluster.device_count());
    for (const NodeGroup& group : cluster.groups)
      out << fmt::format("  {} x {} ({})\n", group.count, cluster.servers[group.server].host.server,
                         devices_text(cluster.servers[group.server]));
    if (cluster.fabric) out << fmt::format("  network {}\n", cluster.fabric->text());
    return;
  }
  JsonWriter json(out);
  json.begin_object();
  json.field("name", name);
  json.field("nodes", static_cast<std::int64_t>(cluster.node_count()));
  json.field("devices", static_cast<std::int64_t>(cluster.device_count()));
  json.field("fabric", cluster.fabric ? cluster.fabric->text() : std::string{});
  json.key("servers");
  json.begin_array();
  for (const NodeGroup& group : cluster.groups) {
    json.begin_object();
    json.field("count", static_cast<std::int64_t>(group.count));
    server_fields(json, cluster.servers[group.server]);
    json.end_object();
  }
  json.end_array();
  write_bandwidth_matrix(json, build_machine(cluster, 0));
  json.end_object();
  json.raw("\n");
}

struct Subject {
  const char* name;
  std::vector<std::string> (*names)();
  std::string (*line)(const std::string& name);
  void (*show)(std::ostream& out, const ShowArguments& arguments);
};

constexpr std::array subjects{Subject{"models", &zoo_names, &model_line, &show_model},
                              Subject{"devices", &device_names, &device_line, &show_device},
                              Subject{"servers", &server_names, &server_line, &show_server},
                              Subject{"clusters", &cluster_names, &cluster_line, &show_cluster},
                              Subject{"transports", &transport_names, &transport_line, &show_transport},
                              Subject{"algorithms", &algorithm_names, &algorithm_line, &show_algorithm},
                              Subject{"strategies", &strategy_names, &strategy_line, &show_strategy},
                              Subject{"frameworks", &framework_names, &framework_line, &show_framework},
                              Subject{"keys", &key_section_names, &key_section_line, &show_key_section},
                              Subject{"schema", &schema_names, &schema_line, &show_schema}};

}  // namespace

std::vector<std::string> show_subjects() {
  std::vector<std::string> names;
  for (const Subject& subject : subjects) names.emplace_back(subject.name);
  return names;
}

std::vector<std::string> names_to_show(const std::string& subject) {
  for (const Subject& known : subjects)
    if (subject == known.name) return known.names();
  return {};
}

void show(std::ostream& out, const ShowArguments& arguments) {
  const auto subject = std::find_if(subjects.begin(), subjects.end(),
                                    [&](const Subject& s) { return s.name == arguments.what; });
  const bool one_model = arguments.what == "models" && !arguments.name.empty();
  const bool one_cluster = arguments.what == "clusters" && !arguments.name.empty();
  if (!one_model && !arguments.device.empty())
    throw InputError(argument_pos(arguments.what), "--device shows one model: convoy show models NAME");
  if (!one_model && !one_cluster && arguments.dot)
    throw InputError(argument_pos(arguments.what),
                     "--dot shows one model or cluster: convoy show models NAME, convoy show clusters NAME");
  if (!one_cluster && arguments.svg)
    throw InputError(argument_pos(arguments.what), "--svg shows one cluster: convoy show clusters NAME");
  if (arguments.name.empty()) {
    print_list(out, {subject->names(), subject->line}, arguments.json);
    return;
  }
  ShowArguments named = arguments;
  if (!one_model) named.name = meant(arguments.name, subject->names());  // models have names of families, too
  subject->show(out, named);
}

Exit show_command(const ShowArguments& arguments) {
  write_stdout([&](std::ostream& out) { show(out, arguments); });
  return Exit::done;
}

}  // namespace convoy::cli
