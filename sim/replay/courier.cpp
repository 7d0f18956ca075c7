// SPDX-License-Identifier: MIT
#include "sim/replay/courier.h"

#include <utility>

namespace convoy {

void Courier::launch(std::uint32_t flow_class, double bytes, double repeat, std::function<void()> delivered) {
  const double latency_s = table_.flows[folding_.flows[flow_class]].latency_s * repeat;
  link_clock_.flow_begins(flow_class, engine_.now_s());
  auto end = [this, flow_class, delivered = std::move(delivered)] {
    link_clock_.flow_ends(flow_class, engine_.now_s());
    delivered();
    listener_.after_event();
  };
  if (bytes == 0 || folding_.flow_route[flow_class].empty())
    engine_.after(latency_s, std::move(end));
  else if (latency_s == 0)
    engine_.start_flow(bytes * repeat, folding_.flow_route[flow_class], std::move(end));
  else
    engine_.after(latency_s, [this, bytes, repeat, flow_class, end = std::move(end)] {
      engine_.start_flow(bytes * repeat, folding_.flow_route[flow_class], end);
    });
}

void Courier::launch_for_ends(std::uint32_t flow_class, double bytes,
                              std::function<void(std::uint32_t, std::uint32_t)> delivered) {
  const Flow& flow = table_.flows[folding_.flows[flow_class]];
  const std::uint32_t from_class = folding_.endpoint_class[flow.from],
                      to_class = folding_.endpoint_class[flow.to];
  listener_.message_begins(from_class);
  listener_.message_begins(to_class);
  launch(flow_class, bytes, 1, [this, from_class, to_class, delivered = std::move(delivered)] {
    listener_.message_ends(from_class);
    listener_.message_ends(to_class);
    delivered(from_class, to_class);
  });
}

}  // namespace convoy
