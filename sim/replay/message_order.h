// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/replay/callback.h"
#include "sim/replay/engine.h"
#include "sim/replay/executor.h"
#include "sim/replay/large_pages.h"
#include "sim/replay/ring.h"

namespace convoy::inline replays {

/// Messages of patterns whose messages are in order (Pattern::in_order), between hosts. Those of one pattern
/// from one endpoint to another go one after the other: a message's bytes begin when its latency has passed
/// and all bytes before them have gone. Those of different patterns, or of different devices, do not wait for
/// each other, even where a library has one connection for them (Transport::process_a_host). The servers of a
/// service take in (and give out) whole messages, too, one after the other in the order in which they come,
/// and only as many at a time as it takes to fill the links that all of them cross, such as the server's NIC:
/// if a message's other links allow less, there is room for the next one. Messages that come at one moment go
/// together, so that equal clients stay equal. Servers whose messages have no such link take all at once.
class MessageOrder {
 public:
  /// Without contention every message goes at once.
  MessageOrder(const FoldedPlan& folded, Contention contention, Engine& engine);

  bool has(std::uint32_t route_class) const { return !queue_of_.empty() && queue_of_[route_class] != none; }
  /// @pre has(route_class), bytes > 0
  /// @param route of the engine
  /// @return where to put what happens when it has arrived, before anything else is sent
  Callback& send(std::uint32_t route_class, double latency_s, double bytes, std::uint32_t route);

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  /// It fills a cache line. A place that has become free is the next to be taken, since it is still in the processor's caches.
  struct alignas(64) Message {
    double bytes = 0;
    double ready_s = 0;  ///< when its latency has passed
    Callback done;
    std::uint32_t next = none;  ///< in its queue, or among free places
  };
  /// The messages over a class of routes: of equal pairs of endpoints.
  struct Queue {
    std::uint32_t first = none,
                  last = none;   ///< in the order in which they were sent; the first may be under way
    std::uint32_t route = none;  ///< of the engine
    std::uint32_t server = none;
    double ready_s = 0;   ///< when the latency of all its messages has passed
    double rate_Bps = 0;  ///< what a message takes of the server's links if it is alone there
  };
  /// One direction of a class of servers of a service.
  struct Server {
    struct Waiting {
      std::uint32_t queue;
      double since_s;
    };
    double capacity_Bps = 0, taken_Bps = 0;
    std::uint32_t under_way = 0;
    Ring<Waiting> waiting;
    double moment_s = -1;  ///< at which those came that went last
    bool asked = false;    ///< admit() will be called at this moment
  };

  std::uint32_t add_message(double bytes, double ready_s);
  void find_servers(const FoldedPlan& folded, const std::vector<std::uint32_t>& flow_classes);
  void next(std::uint32_t queue);
  void ask(std::uint32_t server);
  void admit(std::uint32_t server);
  void fetch_next(const Server& server) const;
  void start(std::uint32_t queue);
  void end(std::uint32_t queue);

  Engine& engine_;
  std::vector<std::uint32_t> queue_of_;  ///< by class of routes; empty: no message is in order
  std::vector<Queue> queues_;
  LargeVector<Message> messages_;  ///< of all queues
  std::uint32_t first_free_ = none;
  std::vector<Server> servers_;
};

}  // namespace convoy::replays
