// SPDX-License-Identifier: MIT
#include "sim/replay/courier.h"

namespace convoy::inline replays {

Courier::Courier(const Folding& folding, Engine& engine, LinkClock& link_clock, MessageListener& listener)
    : folding_(folding), engine_(engine), link_clock_(link_clock), listener_(listener) {
  lanes_.reserve(folding.flows.size());
  for (std::size_t c = 0; c < folding.flows.size(); ++c) {
    const Flow& flow = folding.flows[c];
    lanes_.push_back({folding.endpoint_class[flow.from], folding.endpoint_class[flow.to],
                      folding.flow_route[c].empty() ? no_route : unknown, flow.latency_s});
  }
}

void Courier::send(std::uint32_t flow_class, double bytes, double repeat, Callback end) {
  Lane& lane = lanes_[flow_class];
  if (lane.route == unknown) lane.route = engine_.add_route(folding_.flow_route[flow_class]);
  link_clock_.flow_begins(flow_class, engine_.now_s());
  if (bytes == 0 || lane.route == no_route)
    engine_.after(lane.latency_s * repeat, end);
  else
    engine_.start_message(lane.latency_s * repeat, bytes * repeat, lane.route, end);
}

}  // namespace convoy::replays
