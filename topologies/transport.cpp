// SPDX-License-Identifier: MIT
#include "topologies/transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/data_path.h"
#include "sim/base/key_parts.h"
#include "sim/base/memo.h"
#include "sim/base/names.h"
#include "topologies/cluster_keys.h"

namespace convoy::inline topologies {
namespace {

constexpr const char* transport_folder = "topologies/catalog/transports";

/// What a file of the catalogue says of a library over a protocol. Left out: it adds nothing.
const Keys<Transport>& transport_keys() {
  using T = Transport;
  static const Keys<T> keys{
      optional_text_key<T>("title", "", "a text", "for people", &T::title).required(),
      optional_quantity_key<T>("stream_bandwidth", "no limit", Dimension::bandwidth, true,
                               "of one connection between two hosts, in one direction",
                               &T::stream_bandwidth_Bps),
      integer_key<T>("streams", 1, 1024, "connections that it opens", &T::streams),
      choice_key<T>("connection", {"interleaved", "in_order"},
                    "messages of one connection go one after the other, or share it frame by frame",
                    &T::in_order),
      optional_quantity_key<T>("host_bandwidth", "no limit", Dimension::bandwidth, true,
                               "what a host's threads copy and serialise, both directions together",
                               &T::host_bandwidth_Bps),
      optional_quantity_key<T>("message", "0s", Dimension::time, false,
                               "added to the latency of a message between hosts", &T::message_s),
      optional_quantity_key<T>("start", "0s", Dimension::time, false,
                               "before the first message of a collective", &T::start_s),
      optional_quantity_key<T>("call", "0s", Dimension::time, false,
                               "before a message that is no part of a collective", &T::call_s),
      integer_key<T>("start_delays", 0, 16, "one-way delays before the first message of a collective",
                     &T::start_delays),
      flag_key<T>("through_host_memory", "devices' messages are copied to their host's memory first",
                  &T::through_host_memory),
      flag_key<T>("inside_hosts", "messages between devices of one host go by it too", &T::inside_hosts),
      flag_key<T>("process_a_host", "all devices of a host share its connections to another host",
                  &T::process_a_host),
      optional_quantity_key<T>("serialise", "no limit", Dimension::bandwidth, true,
                               "of a message's bytes at either end, before it goes on", &T::serialise_Bps),
      optional_quantity_key<T>(
          "serialise_halved", "no limit", Dimension::bytes, true,
          "the message that is serialised at half that rate, one of twice as many bytes at "
          "a third",
          &T::serialise_halved_bytes),
      integer_key<T>("channels", 0, 1024, "processors (SMs) of a device that a collective takes",
                     &T::channels),
      custom_key<T>("sources", "none", sources_form(), "where the numbers are from",
                    [](YamlMap& map, T& transport) { transport.sources = read_sources(map); })};
  return keys;
}

Transport read_transport(const YamlNode& node, Protocol protocol, const std::string& name) {
  Transport transport;
  transport.protocol = protocol;
  transport.name = name;
  read_part(transport_keys(), YamlMap(node, ""), transport);
  return transport;
}

constexpr std::array real_protocols{Protocol::tcp, Protocol::rdma};

std::string name_of(const std::string& library, Protocol protocol) {
  return fmt::format("{}-{}", library, protocol_names[static_cast<std::size_t>(protocol)]);
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
  for (const std::string& library : library_names())
    for (const Protocol protocol : real_protocols)
      if (name == name_of(library, protocol)) return transport_over(library, protocol);
  throw InputError(pos, fmt::format("unknown transport '{}'{}; there are {}", name, suggestion(name, names),
                                    list_of(names)));
}

const std::vector<std::string>& library_names() {
  static const std::vector<std::string> libraries = [] {
    const std::vector<std::string> files = transport_names();
    std::vector<std::string> all;
    for (const std::string& file : files) {
      const std::string library = file.substr(0, file.rfind('-'));
      const auto has_file = [&](Protocol protocol) {
        return std::ranges::binary_search(files, name_of(library, protocol));
      };
      if (std::ranges::all_of(real_protocols, has_file) && (all.empty() || all.back() != library))
        all.push_back(library);
    }
    return all;
  }();
  return libraries;
}

Transport transport_over(const std::string& library, Protocol protocol) {
  struct Key {
    std::string library;
    Protocol protocol;
    bool operator==(const Key&) const = default;
    std::size_t hash() const {
      return hash_with(std::hash<std::string>{}(library), static_cast<std::size_t>(protocol));
    }
  };
  if (protocol == Protocol::ideal) return ideal_transport();
  static thread_local Memo<Key, Transport> memo(64);
  return memo.of({library, protocol}, [](const Key& of) {
    const std::string name = name_of(of.library, of.protocol);
    return read_transport(data_yaml(transport_folder, name), of.protocol, name);
  });
}

}  // namespace convoy::topologies
