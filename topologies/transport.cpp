// SPDX-License-Identifier: MIT
#include "topologies/transport.h"

#include <fmt/format.h>

#include "sim/base/data_path.h"
#include "sim/base/names.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline topologies {
namespace {

constexpr const char* transport_folder = "topologies/catalog/transports";

Transport read_transport(const YamlNode& node, Protocol protocol, const std::string& name) {
  YamlMap map(node, "");
  Transport transport;
  transport.protocol = protocol;
  transport.name = name;
  transport.title = map.text("title");
  transport.stream_bandwidth_Bps =
      map.quantity_or("stream_bandwidth", Dimension::bandwidth, transport.stream_bandwidth_Bps, true);
  transport.streams = static_cast<std::uint32_t>(map.integer_or("streams", 1, 1, 1024));
  transport.host_bandwidth_Bps =
      map.quantity_or("host_bandwidth", Dimension::bandwidth, transport.host_bandwidth_Bps, true);
  transport.message_s = map.quantity_or("message", Dimension::time, 0);
  transport.start_s = map.quantity_or("start", Dimension::time, 0);
  transport.call_s = map.quantity_or("call", Dimension::time, 0);
  transport.start_delays = static_cast<std::uint32_t>(map.integer_or("start_delays", 0, 0, 16));
  transport.through_host_memory = map.flag_or("through_host_memory", false);
  transport.inside_hosts = map.flag_or("inside_hosts", true);
  transport.process_a_host = map.flag_or("process_a_host", false);
  transport.serialise_Bps = map.quantity_or("serialise", Dimension::bandwidth, transport.serialise_Bps, true);
  transport.channels = static_cast<std::uint32_t>(map.integer_or("channels", 0, 0, 1024));
  transport.sources = read_sources(map);
  map.finish();
  return transport;
}

std::string name_of(Library library, Protocol protocol) {
  return fmt::format("{}-{}", library_names[static_cast<std::size_t>(library)],
                     protocol_names[static_cast<std::size_t>(protocol)]);
}

}  // namespace

std::string assumption_text(const SpokenProtocol& spoken) {
  return fmt::format("the protocol between hosts is assumed to be {}: {}",
                     protocol_names[static_cast<std::size_t>(spoken.protocol)], spoken.source.text);
}

Transport ideal_transport() {
  Transport transport;
  transport.name = "ideal";
  return transport;
}

std::vector<std::string> transport_names() { return data_names(transport_folder); }

Transport load_transport(const std::string& written, const SourcePos& pos) {
  const std::vector<std::string> names = transport_names();
  const std::string name = meant(written, names);
  for (std::size_t l = 0; l < library_names.size(); ++l)
    for (const Protocol protocol : {Protocol::tcp, Protocol::rdma})
      if (const auto library = static_cast<Library>(l); name == name_of(library, protocol))
        return load_transport(library, protocol);
  throw InputError(pos, fmt::format("unknown transport '{}'{}; there are {}", name, suggestion(name, names),
                                    list_of(names)));
}

Transport load_transport(Library library, Protocol protocol) {
  if (protocol == Protocol::ideal) return ideal_transport();
  const std::string name = name_of(library, protocol);
  return read_transport(data_yaml(transport_folder, name), protocol, name);
}

}  // namespace convoy::topologies
