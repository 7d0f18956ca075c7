// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace convoy {

/// A flow's claim on one link: it takes `multiplicity` times its rate of the link's capacity, because the
/// flow stands for equal ones of which so many cross each link that this link stands for (1 where nothing is
/// folded).
struct LinkUse {
  std::uint32_t link;
  std::uint32_t multiplicity;
};

/// Whether flows share the links they cross (max-min), or each has all of them for itself.
enum class Contention : std::uint8_t { shared, none };

/// The only door to SimGrid: a clock, timers, and flows over links that share max-min fairly. Links have
/// capacity only; latency is the caller's timer, since SimGrid 3.32 would turn it into a weight in the
/// sharing (CM02). One engine at a time in a process. SimGrid's clock goes on from one engine to the next, so
/// that results are the same to the last bit only for the first engine of a process. Without contention
/// SimGrid is not asked: a flow takes its bytes over the narrowest of its links, and any number of engines
/// may be used.
class Engine {
 public:
  using Callback = std::function<void()>;

  /// @param link_bandwidth_Bps capacity of each link, all > 0.
  /// @param largest_flow_bytes no flow will be larger; sets the resolution sizes are rounded to (2^-20 bytes
  ///        up to 8 TB, coarser above), since SimGrid counts payloads in whole numbers.
  Engine(const std::vector<double>& link_bandwidth_Bps, double largest_flow_bytes,
         Contention contention = Contention::shared);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  double now_s() const;
  void after(double delay_s, Callback done);
  /// @pre bytes > 0 and at least one link
  void start_flow(double bytes, const std::vector<LinkUse>& route, Callback done);
  /// Until nothing is under way.
  void run();

  static std::string simgrid_version();

 private:
  struct Impl;
  struct SharedLinks;
  struct FreeLinks;
  std::unique_ptr<Impl> impl_;
};

}  // namespace convoy
