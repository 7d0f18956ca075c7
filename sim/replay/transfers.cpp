// SPDX-License-Identifier: MIT
#include "sim/replay/transfers.h"

#include <algorithm>

namespace convoy::inline replays {

Transfers::Transfers(const FoldedPlan& folded, Contention contention, Engine& engine, LinkClock& link_clock,
                     MessageListener& listener)
    : machine_(folded.machine),
      table_(folded.table),
      folding_(folded.folding),
      engine_(engine),
      link_clock_(link_clock),
      listener_(listener),
      order_(folded, contention, engine) {}

/// Where all communications have their links to themselves, nobody asks for routes.
void Transfers::list_routes() {
  routes_.reserve(folding_.routes.size());
  for (std::uint32_t c = 0; c < folding_.flow_class_count(); ++c) {
    if (folding_.route_class[c] != routes_.size()) continue;  // known
    const Flow& flow = folding_.flow(table_, c);
    double lone_rate_Bps = Engine::no_limit;
    for (const LinkUse& use : folding_.route(c))
      lone_rate_Bps = std::min(lone_rate_Bps, bandwidth_Bps(machine_, table_, folding_.links[use.link]));
    routes_.push_back({folding_.endpoint_class[flow.from], folding_.endpoint_class[flow.to],
                       folding_.route(c).empty() ? no_route : unknown, flow.latency_s, lone_rate_Bps});
  }
}

void Transfers::send(std::uint32_t route_class, double bytes, double repeat, const Callback& end) {
  MessageRoute& message_route = route_of(route_class);
  if (message_route.route == unknown) message_route.route = engine_.add_route(folding_.routes[route_class]);
  link_clock_.flow_begins(route_class, engine_.now_s());
  if (bytes == 0 || message_route.route == no_route)
    engine_.after(message_route.latency_s * repeat, end);
  else if (order_.has(route_class))
    order_.send(route_class, message_route.latency_s, bytes, message_route.route, end);
  else
    engine_.start_message(message_route.latency_s * repeat, bytes * repeat, message_route.route, end);
}

}  // namespace convoy::replays
