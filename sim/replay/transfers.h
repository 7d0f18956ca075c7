// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/replay/busy_clock.h"
#include "sim/replay/callback.h"
#include "sim/replay/engine.h"
#include "sim/replay/executor.h"
#include "sim/replay/flows.h"
#include "sim/replay/fold.h"
#include "sim/replay/message_order.h"

namespace convoy::inline replays {

/// Is notified of what happens to the tasks of endpoint classes.
class MessageListener {
 public:
  virtual void messages_begin(std::uint32_t endpoint_class,
                              TaskId task) = 0;  ///< the task's first message or overhead begins
  virtual void message_begins(std::uint32_t endpoint_class) = 0;
  virtual void message_ends(std::uint32_t endpoint_class) = 0;
  /// A message will be under way between these times.
  virtual void message_foreseen(std::uint32_t endpoint_class, double begin_s, double end_s) = 0;
  /// All messages that have been foreseen up to now, the time of the last one's end, have ended.
  virtual void take_foreseen(std::uint32_t endpoint_class, double now_s) = 0;
  virtual void task_done(std::uint32_t endpoint_class, TaskId task) = 0;
  /// Asks for what these functions will need of the endpoint class.
  virtual void fetch(std::uint32_t endpoint_class) const = 0;
  virtual void after_event() = 0;  ///< called when all events of one moment have been reported

 protected:
  ~MessageListener() = default;
};

/// Transports messages over classes of routes from end to end: latency, then a share of the links, where messages are
/// in order when it is their turn. The state of a message under way is in the event of its end. Where messages do not share
/// links (Contention::none), the clocks of links and endpoints are not told of them: only times of tasks are asked for.
class Transfers {
 public:
  Transfers(const FoldedPlan& folded, Contention contention, Engine& engine, LinkClock& link_clock,
            MessageListener& listener);

  /// One message per flow, or `repeat` consecutive messages treated as one.
  /// @param delivered a closure of at most 16 bytes
  template <class Closure>
  void launch(std::uint32_t route_class, double bytes, double repeat, Closure delivered) {
    if (shares_links_) link_clock_.flow_begins(route_class, engine_.now_s());
    send(route_class, bytes, repeat) = [this, route_class, delivered]() mutable {
      if (shares_links_) link_clock_.flow_ends(route_class, engine_.now_s());
      delivered();
      listener_.after_event();
    };
  }

  /// The message counts as under way at both ends until it is delivered. Clocks of links only count whether messages are under
  /// way: of those over one class of routes, they are told of the first that begins and of the last that ends.
  template <class Closure>
  void launch_for_ends(std::uint32_t route_class, double bytes, Closure delivered) {
    MessageRoute& route = route_of(route_class);
    if (shares_links_) {
      listener_.message_begins(route.from);
      listener_.message_begins(route.to);
      if (route.under_way++ == 0) link_clock_.flow_begins(route_class, engine_.now_s());
    }
    send(route_class, bytes, 1) = End<Closure>{this, route_class, delivered};
  }

  /// A message that has all its links to itself (lone_messages.h) and begins now or later. It counts as under way when
  /// its time comes. @return its end
  double foresee_for_ends(std::uint32_t route_class, double bytes, double begin_s) {
    const MessageRoute& route = route_of(route_class);
    const double end_s = begin_s + route.latency_s + bytes / route.lone_rate_Bps;
    if (!shares_links_) return end_s;
    link_clock_.flow_foreseen(route_class, begin_s, end_s, engine_.now_s());
    listener_.message_foreseen(route.from, begin_s, end_s);
    listener_.message_foreseen(route.to, begin_s, end_s);
    return end_s;
  }
  /// How long such a message takes.
  double lone_s(std::uint32_t route_class, double bytes) {
    const MessageRoute& route = route_of(route_class);
    return route.latency_s + bytes / route.lone_rate_Bps;
  }

 private:
  /// The end of a message that counts as under way at both ends.
  template <class Closure>
  struct End {
    Transfers* transfers;
    std::uint32_t route_class;
    Closure delivered;
    void operator()() {
      if (transfers->shares_links_) {
        MessageRoute& route = transfers->routes_[route_class];
        if (--route.under_way == 0) transfers->link_clock_.flow_ends(route_class, transfers->engine_.now_s());
        transfers->listener_.message_ends(route.from);
        transfers->listener_.message_ends(route.to);
      }
      delivered();
      transfers->listener_.after_event();
    }
    void fetch() const {
      transfers->listener_.fetch(transfers->routes_[route_class].from);
      transfers->listener_.fetch(transfers->routes_[route_class].to);
      if constexpr (requires { delivered.fetch(); }) delivered.fetch();
    }
  };

  static constexpr std::uint32_t no_route = Folding::none, unknown = no_route - 1;
  /// What the messages over one class of routes have in common.
  struct MessageRoute {
    std::uint32_t from, to;  ///< endpoint classes
    std::uint32_t route;  ///< no_route: both ends are in one place; unknown: looked up at the first message
    double latency_s;
    double lone_rate_Bps;  ///< of a flow that has its links to itself
    std::uint32_t under_way = 0;  ///< messages that count as such at both ends
  };

  /// @return where to put what happens at the end
  Callback& send(std::uint32_t route_class, double bytes, double repeat);
  MessageRoute& route_of(std::uint32_t route_class) {
    if (routes_.empty()) [[unlikely]]
      list_routes();
    return routes_[route_class];
  }
  void list_routes();

  const bool shares_links_;
  const Machine& machine_;
  const FlowTable& table_;
  const Folding& folding_;
  Engine& engine_;
  LinkClock& link_clock_;
  MessageListener& listener_;
  MessageOrder order_;
  std::vector<MessageRoute> routes_;  ///< by class of routes; empty before the first message
};

}  // namespace convoy::replays
