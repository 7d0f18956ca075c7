// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/replay/callback.h"
#include "sim/replay/max_min.h"
#include "sim/replay/ring.h"

namespace convoy::inline replays {

/// A clock with delays, and flows whose rates MaxMin finds. Its time begins at 0 and is independent: whatever
/// else a process simulates, the same calls give the same bits.
///
/// Events less than 1e-12 s apart belong to one moment; within a moment, they occur in the order in which
/// they were requested.
class FlowModel {
 public:
  explicit FlowModel(const std::vector<double>& link_bandwidth_Bps) : rates_(link_bandwidth_Bps) {}

  double now_s() const { return now_s_; }
  std::uint32_t add_route(std::span<const LinkUse> uses, double flow_limit_Bps) {
    return rates_.add_route(uses, flow_limit_Bps);
  }
  /// @return where to put what happens then, before anything else is asked of the model; so with the functions below
  Callback& after(double delay_s);
  /// The same, for delays of which many have the same length: a latency.
  Callback& after_latency(double latency_s);
  Callback& start_flow(double bytes, std::uint32_t route);
  Callback& start_message(double latency_s, double bytes, std::uint32_t route);
  void set_bandwidth(std::uint32_t link, double bandwidth_Bps) {
    rates_.set_bandwidth(link, bandwidth_Bps, now_s_);
  }

  /// Asks for what start_flow() will need: of the route, and then of its links.
  void fetch_route(std::uint32_t route) const { rates_.fetch_route(route); }
  void fetch_links(std::uint32_t route) const { rates_.fetch_links(route); }

  /// The time of the next event; infinite: there is none.
  double next_event_s();
  /// Advances to that time and executes all its events. @return false: there are no more events
  bool advance();
  /// Refers to now_s(), for as long as the model exists.
  const double& clock_s() const { return now_s_; }

 private:
  static constexpr double one_moment_s = 1e-12;
  static constexpr std::uint32_t no_route = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t no_event = std::numeric_limits<std::uint32_t>::max();
  /// What happens at the end of a delay or a flow; it fills a cache line.
  struct alignas(64) Event {
    Callback done;
    std::uint64_t number = 0;  ///< events of one moment come in this order
    double bytes = 0;          ///< with a route: size of the flow that begins at the end of the delay
    std::uint32_t route = no_route;
    std::uint32_t next_free = no_event;  ///< of one that is over: the one that was over before it
  };
  struct Delay {
    double at_s;
    std::uint64_t number;
    std::uint32_t event;
    bool operator<(const Delay& other) const {  // std's heaps have the largest in front
      return at_s != other.at_s ? at_s > other.at_s : number > other.number;
    }
  };

  /// Delays of equal length: they end in the order in which they began.
  struct Line {
    double delay_s;
    Ring<Delay> waiting;
  };
  /// Up to this many different latencies are kept in lines, all others in the heap.
  static constexpr std::size_t most_lines = 4;

  std::uint32_t add_event(double bytes = 0, std::uint32_t route = no_route);
  void wait_in_line(double delay_s, const Delay& delay);
  void wait(const Delay& delay);
  void take_moment();
  void take_delays(double until_s);
  void fetch_next() const;

  MaxMin rates_;
  double now_s_ = 0;
  std::uint64_t asked_ = 0;
  std::vector<Delay> delays_;  ///< a heap, the next in front
  std::vector<Line> lines_;
  std::vector<Event> events_;
  std::uint32_t first_free_ = no_event;
  std::vector<std::uint32_t> at_once_;  ///< events without a delay
  std::vector<std::uint32_t> moment_;
};

}  // namespace convoy::replays
