// SPDX-License-Identifier: MIT
#include "sim/replay/flow_model.h"

#include <algorithm>
#include <utility>

namespace convoy {

std::uint32_t FlowModel::keep(Event event) {
  event.number = asked_++;
  if (free_events_.empty()) {
    events_.push_back(event);
    return static_cast<std::uint32_t>(events_.size() - 1);
  }
  const std::uint32_t slot = free_events_.back();
  free_events_.pop_back();
  events_[slot] = event;
  return slot;
}

void FlowModel::after(double delay_s, Callback done) {
  const std::uint32_t event = keep({done});
  delays_.push_back({now_s_ + delay_s, events_[event].number, event});
  std::push_heap(delays_.begin(), delays_.end());
}

void FlowModel::start_flow(double bytes, std::uint32_t route, Callback done) {
  rates_.start(route, bytes, keep({done}), now_s_);
}

void FlowModel::start_message(double latency_s, double bytes, std::uint32_t route, Callback done) {
  if (latency_s == 0) {
    start_flow(bytes, route, done);
    return;
  }
  const std::uint32_t event = keep({done, 0, bytes, route});
  delays_.push_back({now_s_ + latency_s, events_[event].number, event});
  std::push_heap(delays_.begin(), delays_.end());
}

double FlowModel::next_event_s() {
  const double flow_ends_s = rates_.next_end_s(now_s_);
  return delays_.empty() ? flow_ends_s : std::min(flow_ends_s, delays_.front().at_s);
}

void FlowModel::advance() {
  now_s_ = std::max(now_s_, next_event_s());
  moment_.clear();
  while (!delays_.empty() && delays_.front().at_s <= now_s_ + one_moment_s) {
    moment_.push_back(delays_.front().event);
    std::pop_heap(delays_.begin(), delays_.end());
    delays_.pop_back();
  }
  rates_.take_ended(now_s_, one_moment_s, moment_);
  if (!delays_.empty()) __builtin_prefetch(&events_[delays_.front().event]);  // of the next moment, maybe
  std::sort(moment_.begin(), moment_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return events_[a].number < events_[b].number; });
  for (std::size_t i = 0; i < moment_.size(); ++i) {  // nothing that happens now is added to this moment
    const std::uint32_t slot = moment_[i];
    Event& event = events_[slot];
    if (event.route != no_route) {
      rates_.start(std::exchange(event.route, no_route), event.bytes, slot, now_s_);
      continue;
    }
    Callback done = event.done;
    free_events_.push_back(slot);
    done();
  }
}

}  // namespace convoy
