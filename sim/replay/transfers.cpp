// SPDX-License-Identifier: MIT
#include "sim/replay/transfers.h"

#include <algorithm>

namespace convoy::inline replays {

Transfers::Transfers(const FoldedPlan& folded, Contention contention, Engine& engine, LinkClock& link_clock,
                     MessageListener& listener)
    : shares_links_(contention == Contention::shared),
      machine_(folded.machine),
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
    const FlowPath& path = folding_.path(table_, c);
    double lone_rate_Bps = Engine::no_limit;
    for (const LinkUse& use : folding_.route(c))
      lone_rate_Bps = std::min(lone_rate_Bps,
                               bandwidth_Bps(machine_, table_, folding_.links[use.link]) / use.multiplicity);
    routes_.push_back({folding_.endpoint_class[path.from], folding_.endpoint_class[path.to],
                       folding_.route(c).empty() ? no_route : unknown, path.latency_s, lone_rate_Bps});
  }
}

Callback& Transfers::send(std::uint32_t route_class, double bytes, double repeat) {
  MessageRoute& message_route = route_of(route_class);
  if (message_route.route == unknown) message_route.route = engine_.add_route(folding_.routes[route_class]);
  if (bytes == 0 || message_route.route == no_route) return engine_.after(message_route.latency_s * repeat);
  if (order_.has(route_class))
    return order_.send(route_class, message_route.latency_s, bytes, message_route.route);
  return engine_.start_message(message_route.latency_s * repeat, bytes * repeat, message_route.route);
}

}  // namespace convoy::replays
