// SPDX-License-Identifier: MIT
#include "sim/cli/show_transport.h"

#include <fmt/format.h>

#include <cmath>
#include <ostream>
#include <tuple>

#include "sim/base/quantity.h"
#include "sim/cli/show_grades.h"
#include "sim/results/json_writer.h"
#include "topologies/catalog.h"
#include "topologies/transport.h"

namespace convoy::inline cli {
namespace {

/// What a transport adds to the wires, as lines of label and text.
Description transport_lines(const Transport& transport) {
  Description lines;
  const auto bandwidth = [&](const char* label, double Bps) {
    if (std::isfinite(Bps)) lines.emplace_back(label, format_bandwidth(Bps));
  };
  const auto time = [&](const char* label, double s) {
    if (s > 0) lines.emplace_back(label, format_time(s));
  };
  bandwidth("a stream", transport.stream_bandwidth_Bps);
  if (std::isfinite(transport.stream_bandwidth_Bps))
    lines.emplace_back("streams between two hosts", std::to_string(transport.streams));
  bandwidth("copies of a host, both directions", transport.host_bandwidth_Bps);
  time("a message", transport.message_s);
  time("start of a collective", transport.start_s);
  if (transport.start_delays > 0)
    lines.emplace_back("delays before a collective", std::to_string(transport.start_delays));
  time("a call", transport.call_s);
  bandwidth("a message's bytes at either end", transport.serialise_Bps);
  if (std::isfinite(transport.serialise_halved_bytes))
    lines.emplace_back("half of it for a message of", format_bytes(transport.serialise_halved_bytes));
  if (transport.process_a_host) lines.emplace_back("processes", "one a host");
  lines.emplace_back("messages of a connection", transport.in_order ? "in order" : "interleaved");
  lines.emplace_back("through host memory", transport.through_host_memory ? "yes" : "no");
  if (transport.channels > 0)
    lines.emplace_back("processors of a device that a collective takes", std::to_string(transport.channels));
  return lines;
}

}  // namespace

std::string transport_line(const std::string& name) {
  return load_transport(name, {"show transports", 1, 1}).title;
}

void show_transport(std::ostream& out, const ShowArguments& arguments) {
  const auto& [name, as_json] = std::tie(arguments.name, arguments.json);
  const Transport transport = load_transport(name, {"show transports", 1, 1});
  if (!as_json) {
    out << fmt::format("{}: {}\n", transport.name, transport.title);
    for (const auto& [label, text] : transport_lines(transport))
      out << fmt::format("  {:<47}  {}\n", label, text);
    print_sources(out, transport.sources);
    return;
  }
  const auto finite = [](JsonWriter& json, const char* key, double value) {
    json.key(key);
    std::isfinite(value) ? json.value(value) : json.null();
  };
  JsonWriter json(out);
  json.begin_object();
  json.field("name", transport.name);
  json.field("title", transport.title);
  finite(json, "stream_bandwidth_Bps", transport.stream_bandwidth_Bps);
  json.field("streams", static_cast<std::int64_t>(transport.streams));
  finite(json, "host_bandwidth_Bps", transport.host_bandwidth_Bps);
  json.field("message_s", transport.message_s);
  json.field("start_s", transport.start_s);
  json.field("start_delays", static_cast<std::int64_t>(transport.start_delays));
  json.field("call_s", transport.call_s);
  finite(json, "serialise_Bps", transport.serialise_Bps);
  finite(json, "serialise_halved_bytes", transport.serialise_halved_bytes);
  json.field("process_a_host", transport.process_a_host);
  json.field("connection", transport.in_order ? "in_order" : "interleaved");
  json.field("through_host_memory", transport.through_host_memory);
  json.field("inside_hosts", transport.inside_hosts);
  json.field("channels", static_cast<std::int64_t>(transport.channels));
  write_grades(json, transport.sources);
  json.end_object();
  json.raw("\n");
}

}  // namespace convoy::cli
