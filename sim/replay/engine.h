// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/replay/callback.h"
#include "sim/replay/max_min.h"

namespace convoy::inline replays {

/// Who shares the links: convoy's own flow model in SimGrid's engine, or SimGrid's network model, as a
/// reference.
enum class NetworkModel : std::uint8_t { convoy, simgrid };

/// Whether flows share the links they cross (max-min), or each has all of them to itself.
enum class Contention : std::uint8_t { shared, none };

/// The only interface to SimGrid: a clock, delays, and flows over links with max-min fair sharing. Links have
/// only a capacity; the latency of a message is a delay before its flow.
///
/// With NetworkModel::convoy, all of this happens in our own model (FlowModel), which SimGrid's engine asks
/// for its next event and tells to advance to it. Its clock begins at 0, so that results are the same to the
/// last bit, however many replays run in a process and in whatever order. With NetworkModel::simgrid, flows
/// are activities over SimGrid's links, and the clock continues from one engine to the next. In both cases, a
/// process can have one engine at a time. Without contention, SimGrid is not used, a flow takes its bytes
/// over the narrowest of its links, and there may be any number of engines.
class Engine {
 public:
  static constexpr double no_limit = std::numeric_limits<double>::infinity();

  /// @param link_bandwidth_Bps capacity of each link, all > 0.
  /// @param largest_flow_bytes no flow will be larger; NetworkModel::simgrid counts payloads in whole numbers
  /// of 2^-20 bytes (up to 8 TB, coarser above).
  Engine(const std::vector<double>& link_bandwidth_Bps, double largest_flow_bytes,
         Contention contention = Contention::shared, NetworkModel model = NetworkModel::convoy);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  double now_s() const { return clock_s_ != nullptr ? *clock_s_ : simgrid_now_s(); }
  /// @return where to put what happens then, before anything else is asked of the engine; so with all functions that return it
  Callback& after(double delay_s);
  /// The same, and quicker for delays of which many have the same length.
  Callback& after_latency(double latency_s);

  /// @param uses at least one link, each at most once
  /// @param flow_limit_Bps no flow of this route is faster than it
  /// @return the route's number
  std::uint32_t add_route(std::span<const LinkUse> uses, double flow_limit_Bps = no_limit);
  /// @pre bytes > 0
  Callback& start_flow(double bytes, std::uint32_t route);
  /// Asks for what start_flow() will need: of the route, and then of its links.
  void fetch_route(std::uint32_t route) const;
  void fetch_links(std::uint32_t route) const;
  /// A flow that begins after a delay.
  Callback& start_message(double latency_s, double bytes, std::uint32_t route);
  /// Takes effect now; 0 stops everything that crosses the link. @pre NetworkModel::convoy
  void set_bandwidth(std::uint32_t link, double bandwidth_Bps);

  /// Runs until nothing is under way.
  void run();

  static std::string simgrid_version();

 private:
  struct Impl;
  struct OwnLinks;
  struct SimgridLinks;
  struct FreeLinks;
  double simgrid_now_s() const;

  std::unique_ptr<Impl> impl_;
  const double* clock_s_;  ///< of a flow model; nullptr: SimGrid's clock
};

}  // namespace convoy::replays
