// SPDX-License-Identifier: MIT
#include "sim/replay/courier.h"

namespace convoy {

Courier::Courier(const Folding& folding, Engine& engine, LinkClock& link_clock, MessageListener& listener)
    : folding_(folding), engine_(engine), link_clock_(link_clock), listener_(listener) {
  lanes_.reserve(folding.flows.size());
  for (std::size_t c = 0; c < folding.flows.size(); ++c) {
    const Flow& flow = folding.flows[c];
    lanes_.push_back({folding.endpoint_class[flow.from], folding.endpoint_class[flow.to],
                      folding.flow_route[c].empty() ? no_route : unknown, flow.latency_s});
  }
}

void Courier::launch(std::uint32_t flow_class, double bytes, double repeat, Callback delivered) {
  send(flow_class, bytes, repeat, false, delivered);
}

void Courier::launch_for_ends(std::uint32_t flow_class, double bytes, Callback delivered) {
  listener_.message_begins(lanes_[flow_class].from);
  listener_.message_begins(lanes_[flow_class].to);
  send(flow_class, bytes, 1, true, delivered);
}

void Courier::send(std::uint32_t flow_class, double bytes, double repeat, bool for_ends, Callback delivered) {
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(messages_.size());
    messages_.push_back({flow_class, for_ends, delivered});
  } else {
    slot = free_.back();
    free_.pop_back();
    messages_[slot] = {flow_class, for_ends, delivered};
  }
  Lane& lane = lanes_[flow_class];
  if (lane.route == unknown) lane.route = engine_.add_route(folding_.flow_route[flow_class]);
  link_clock_.flow_begins(flow_class, engine_.now_s());
  const auto end = [this, slot] { deliver(slot); };
  if (bytes == 0 || lane.route == no_route)
    engine_.after(lane.latency_s * repeat, end);
  else
    engine_.start_message(lane.latency_s * repeat, bytes * repeat, lane.route, end);
}

void Courier::deliver(std::uint32_t slot) {
  Message message = messages_[slot];
  free_.push_back(slot);
  link_clock_.flow_ends(message.flow_class, engine_.now_s());
  if (message.for_ends) {
    listener_.message_ends(lanes_[message.flow_class].from);
    listener_.message_ends(lanes_[message.flow_class].to);
  }
  message.delivered();
  listener_.after_event();
}

}  // namespace convoy
