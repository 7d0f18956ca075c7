// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/replay/colours.h"
#include "sim/replay/heap.h"

namespace convoy::inline replays {

/// Fair shares and rates of flows that differ by no more than this share are equal.
inline constexpr double equal_rates = 1e-12;

/// The claim of a flow on one link: it takes `multiplicity` times its rate from the link's capacity, because
/// the flow stands for equal flows of which this many cross each link that this link stands for (1 if nothing
/// is folded).
struct LinkUse {
  std::uint32_t link;
  std::uint32_t multiplicity;
};

/// Flows over links with max-min fair sharing, and the times at which they end.
///
/// Rates are the max-min solution (Bertsekas & Gallager, Data Networks, 1992, 6.5.2): no link carries more
/// than its capacity, and every flow crosses a full link, its bottleneck, on which no flow is faster. So all
/// flows with the same bottleneck have the same rate, and a link keeps one virtual clock for all of them: the
/// bytes that each has received since the clock began (Parekh & Gallager's virtual time, ToN 1, 1993). In
/// terms of this clock, the order in which they end does not change when the rate does. Flows of one route
/// form a bundle, which moves from clock to clock as a whole.
///
/// A start or end only changes the shares on the links of its bundle. If all flows that cross a bottleneck
/// belong to it, and every other link they cross offers each flow a larger fair share (capacity / flows), the
/// bottleneck's own fair share is their rate and nothing else changes: O(log flows). To know that the other
/// links offer more without checking each time, a clock promises not to go faster than `limit_Bps`, and a
/// link promises not to offer less than `floor_Bps`. If a promise cannot be kept, the bundles of those links
/// are solved again with the rates of the others fixed, and bundles are added until every one has its
/// bottleneck again.
///
/// None of this is needed for a lone flow, one that has all its links to itself: it goes at the rate of the narrowest.
/// It joins the others when another flow begins on one of its links, or when the bandwidth of one changes.
class MaxMin {
 public:
  explicit MaxMin(const std::vector<double>& link_bandwidth_Bps)
      : link_bandwidth_Bps_(link_bandwidth_Bps), number_(link_bandwidth_Bps.size(), none) {}

  /// @param uses each link at most once
  /// @param flow_limit_Bps no flow of the route is faster; infinite: only its links limit it
  /// @return its number; equal routes have the same number
  std::uint32_t add_route(std::span<const LinkUse> uses, double flow_limit_Bps);
  /// @param flow the name that take_ended returns for it
  void start(std::uint32_t route, double bytes, std::uint32_t flow, double now_s);
  void set_bandwidth(std::uint32_t link, double bandwidth_Bps, double now_s);

  /// Computes the rates that flows have after what has changed.
  void find_rates(double now_s) {
    if (!changed_bundles_.empty() || !changed_links_.empty()) settle(now_s);
  }
  /// Does so, and then finds the time at which the next flow ends; infinite: none does.
  double next_end_s(double now_s) {
    find_rates(now_s);
    return ends_.empty() ? infinite : ends_.top().key;
  }
  /// Ends the flows that would end within `within_s` at their rate, and appends their names.
  void take_ended(double now_s, double within_s, std::vector<std::uint32_t>& ended) {
    while (!ends_.empty() && ends_.top().key <= now_s + within_s) take_next_ended(now_s, within_s, ended);
  }

  double rate_Bps(std::uint32_t route) const;

  /// Asks for what start() will need: of the route, and then of its links.
  void fetch_route(std::uint32_t route) const { __builtin_prefetch(&bundles_[route]); }
  void fetch_links(std::uint32_t route) const {
    const Bundle& bundle = bundles_[route];
    for (std::uint32_t u = bundle.first_use; u < bundle.first_use + bundle.use_count; ++u)
      __builtin_prefetch(&links_[uses_[u].link]);
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  static constexpr double infinite = std::numeric_limits<double>::infinity();
  /// For the place of one link in one route: the position of the route's bundle among those of the link.
  struct Use {
    std::uint32_t link, multiplicity, place;
  };
  struct FlowEnd {
    double at_bytes;  ///< in the bundle's count of bytes
    std::uint32_t flow;
    bool operator<(const FlowEnd& other) const {  // std's heaps have the largest in front
      return at_bytes != other.at_bytes ? at_bytes > other.at_bytes : flow > other.flow;
    }
  };
  /// Flows of one route that are under way.
  struct alignas(64) Bundle {  // a lone flow needs its first line of the processor's caches only
    std::uint32_t first_use = 0, use_count = 0;
    double lone_rate_Bps = 0, lone_end_s = 0;  ///< of its lone flow; 0: it has none
    std::uint32_t lone_flow = none;
    std::uint32_t same_hash = none;  ///< the previous one whose route has the same hash
    std::uint32_t flow_count = 0;
    std::uint32_t bottleneck = none;
    std::uint32_t clock_place = none;
    /// Bytes that each of its flows would have received since the bundle began, minus those of the
    /// bottleneck's clock; without a bottleneck, these bytes themselves.
    double bytes = 0;
    bool active = false, changed = false;
    std::uint32_t solve_place = none;
    std::vector<FlowEnd> ends;  ///< a heap, the next in front
  };
  struct Crossing {
    std::uint32_t bundle, use;
  };
  struct ClockPlace {
    std::vector<Bundle>& bundles;
    std::uint32_t& operator()(std::uint32_t bundle) const { return bundles[bundle].clock_place; }
  };
  struct alignas(64) Link {    // as for bundles
    double bandwidth_Bps = 0;  ///< for the limit of a route: of one flow
    bool of_each_flow = false;
    bool changed = false;
    std::uint32_t lone = none;        ///< bundle of the lone flow that crosses it
    double weight = 0;                ///< other flows with their multiplicities
    std::vector<Crossing> crossings;  ///< the bundles under way that cross it, but for the lone flow's
    double floor_Bps = 0;
    // when it is a bottleneck
    IndexedHeap<ClockPlace> clock;  ///< bundles by the count of the clock at their next end
    double rate_Bps = 0, bytes = 0, at_s = 0;
    double limit_Bps = infinite;
    bool alone = true;  ///< its bundles cross no other bottleneck, and all bundles that cross it are its own
    std::uint32_t solve_place = none;
    double share_Bps() const { return of_each_flow ? bandwidth_Bps : bandwidth_Bps / weight; }
  };
  struct EndPlace {
    std::vector<std::uint32_t>& places;
    std::uint32_t& operator()(std::uint32_t link) const { return places[link]; }
  };
  // A solution for a part of the flows (max_min_solve.cpp).
  struct SolvedBundle {
    std::uint32_t bundle;
    double rate_Bps;
    std::uint32_t bottleneck;  ///< none: not known yet
  };
  struct SolvedLink {
    std::uint32_t link;
    double left_Bps, open_weight;   ///< for bundles whose rate is not known yet
    double share_Bps, fastest_Bps;  ///< of its own bundles as a bottleneck; of all that are solved
  };
  struct LinkShare {
    double share_Bps;
    std::uint32_t place;  ///< in solved_links_; of the only bundle that crosses the link, in uses_
    bool operator<(const LinkShare& other) const {  // std's heaps have the largest in front
      return share_Bps != other.share_Bps ? share_Bps > other.share_Bps : place > other.place;
    }
  };

  std::span<Use> uses_of(const Bundle& bundle) { return {uses_.data() + bundle.first_use, bundle.use_count}; }
  std::uint32_t number_of(std::uint32_t link);
  std::uint32_t add_link(double bandwidth_Bps, bool of_each_flow);
  double rate_alone_Bps(const Bundle& bundle);
  void join_others(std::uint32_t bundle, double now_s);
  void forget_lone(Bundle& bundle);
  void start_among_others(std::uint32_t route, double bytes, std::uint32_t flow, double now_s);
  void change(Bundle& bundle, std::uint32_t id);
  void touch(std::uint32_t link);
  void advance(Link& link, double now_s);
  void set_rate(std::uint32_t link, double rate_Bps, double now_s);
  void schedule(std::uint32_t link);
  void reschedule(std::uint32_t bundle);
  void attach(std::uint32_t bundle, std::uint32_t link, double now_s);
  void detach(std::uint32_t bundle, double now_s);
  void enter_links(std::uint32_t bundle);
  void leave_links(std::uint32_t bundle, double now_s);
  void attach_to_least_share(std::uint32_t bundle, double now_s);
  void take_next_ended(double now_s, double within_s, std::vector<std::uint32_t>& ended);
  void settle(double now_s);
  bool stays_simple(std::uint32_t link, double now_s);
  bool raise_limit(std::uint32_t link);
  bool lower_floor(std::uint32_t link);
  double least_other_share_Bps(std::uint32_t link);
  void promise(std::uint32_t link, double limit_Bps);
  void solve_anew(double now_s);
  bool add_to_solve(std::uint32_t link);
  void open_links();
  void fill();
  void fix(SolvedLink& link, double share_Bps);
  void fix(SolvedBundle& solved, std::uint32_t bottleneck, double rate_Bps);
  bool add_who_disagrees();
  bool disagrees(const SolvedLink& solved, const Bundle& other) const;
  void take_solution(double now_s);
  void find_alone(std::uint32_t link);
  void promise_rate_unless_alone(std::uint32_t link);
  bool keeps_floor(std::uint32_t link);
  void make_not_alone(std::uint32_t link);
  void make_simple(std::uint32_t link);

  std::vector<double> link_bandwidth_Bps_;
  std::vector<std::uint32_t> number_;  ///< by link: in links_; none: no route crosses it
  std::vector<Link> links_;            ///< that routes cross: of a large plan these may be few or none
  std::vector<Bundle> bundles_;
  std::vector<Use> uses_;
  ColourTable route_hashes_;
  std::vector<std::uint32_t> latest_of_hash_;  ///< bundle by number of its hash
  IndexedHeap<EndPlace> ends_;                 ///< links by the time of their next end
  std::vector<std::uint32_t> end_places_;      ///< by link: in ends_
  std::vector<std::uint32_t> changed_bundles_, changed_links_, failed_;
  std::vector<SolvedBundle> solved_bundles_;
  std::vector<SolvedLink> solved_links_;
  std::vector<LinkShare> shares_;
  std::vector<LinkShare> limits_;  ///< of bundles, by links that no other bundle crosses
  std::size_t open_bundles_ = 0;   ///< whose rate is not known yet
};

}  // namespace convoy::replays
