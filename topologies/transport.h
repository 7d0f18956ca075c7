// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/input_error.h"
#include "topologies/sources.h"

namespace convoy::inline topologies {

/// What a fabric speaks (`fabric.protocol`). Over an ideal one messages take latency + bytes / bandwidth and
/// software between devices costs nothing.
enum class Protocol : std::uint8_t { ideal, tcp, rdma };
inline const std::vector<std::string> protocol_names{"ideal", "tcp", "rdma"};

/// What the hosts of a cluster speak, and how that is known.
struct SpokenProtocol {
  Protocol protocol = Protocol::ideal;
  Source source;
  bool assumed() const { return is_guess(source.grade); }
};

/// "the protocol between hosts is assumed to be tcp: ..." @pre it is assumed
std::string assumption_text(const SpokenProtocol& spoken);

/// A library over a protocol: what software adds to the wires. The default adds nothing (an ideal fabric).
struct Transport {
  Protocol protocol = Protocol::ideal;
  std::string name;   ///< "nccl-tcp"; "ideal"
  std::string title;  ///< for people
  /// Of one connection between two hosts, in one direction, and how many of them the library opens.
  double stream_bandwidth_Bps = std::numeric_limits<double>::infinity();
  std::uint32_t streams = 1;
  /// What the threads of one host that copy and serialise get through, both directions and all peers
  /// together.
  double host_bandwidth_Bps = std::numeric_limits<double>::infinity();
  double message_s = 0;            ///< added to the latency of a message between hosts, half at either end
  double start_s = 0;              ///< before the first message of a collective
  double call_s = 0;               ///< before a message that is no part of a collective (a tensor's RPC)
  std::uint32_t start_delays = 0;  ///< one-way delays before the first message of a collective (rendezvous)
  bool through_host_memory =
      false;  ///< devices' messages are copied to their host's memory and sent from there
  /// Messages between devices of one host go by it too. The servers' libraries have none: NCCL's, or copies.
  bool inside_hosts = true;
  /// All devices of a host share the connections to another host (one process a host); else each pair has its
  /// own.
  bool process_a_host = false;
  /// Messages of one device to one server, and back, go one after the other, as bytes of a stream do; else the
  /// library cuts them into frames and interleaves these, so that they share the connection.
  bool in_order = true;
  double serialise_Bps =
      std::numeric_limits<double>::infinity();  ///< of a message's bytes at either end, before it goes on
  /// A message of so many bytes is serialised at half of that rate, one of n times as many at 1/(n + 1) of it:
  /// of libraries that take time in proportion to the square of a message.
  double serialise_halved_bytes = std::numeric_limits<double>::infinity();
  /// Of the fabric's network and its library, for NCCL: what a message that does not go at once waits for its
  /// receiver to tell where to, and the largest piece that trees of switches' sums pass on (0: NCCL's own).
  double handshake_s = 0, tree_chunk_bytes = 0;
  bool simple_only = false;  ///< likewise: NCCL has its Simple protocol alone
  /// Processors (SMs) of a device that a collective takes while it is under way: one a channel.
  std::uint32_t channels = 0;
  Sources sources;  ///< of its numbers

  bool operator==(const Transport&) const = default;

  bool ideal() const { return protocol == Protocol::ideal; }
  /// Before a message of so many bytes that is no part of a collective.
  double call_s_of(double bytes) const {
    return call_s + 2 * bytes / serialise_Bps * (1 + bytes / serialise_halved_bytes);
  }
  /// Between two hosts, in one direction, however wide the wires are.
  double pair_bandwidth_Bps() const { return stream_bandwidth_Bps * streams; }
};

/// Nothing but wires.
Transport ideal_transport();

/// Libraries that move bytes between devices (`transport:` of a strategy): those that the catalogue has over TCP
/// and RDMA, sorted: "gloo", "grpc", ...
const std::vector<std::string>& library_names();

/// topologies/catalog/transports/LIBRARY-PROTOCOL.yaml; ideal_transport() over the ideal protocol.
/// @pre library is one of library_names()
Transport transport_over(const std::string& library, Protocol protocol);
/// By "LIBRARY-PROTOCOL". @throws InputError at `pos`, naming the pairs there are
Transport load_transport(const std::string& name, const SourcePos& pos);

/// Names of the catalogue's transports, sorted: "gloo-rdma", "gloo-tcp", ...
std::vector<std::string> transport_names();

}  // namespace convoy::topologies
