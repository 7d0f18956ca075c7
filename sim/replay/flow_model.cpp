// SPDX-License-Identifier: MIT
#include "sim/replay/flow_model.h"

#include <algorithm>
#include <utility>

namespace convoy::inline replays {

std::uint32_t FlowModel::add_event(double bytes, std::uint32_t route) {
  const std::uint32_t slot =
      first_free_ == no_event ? static_cast<std::uint32_t>(events_.size()) : first_free_;
  if (first_free_ == no_event)
    events_.emplace_back();
  else
    first_free_ = events_[slot].next_free;
  Event& event = events_[slot];
  event.number = asked_++;
  event.bytes = bytes;
  event.route = route;
  return slot;
}

Callback& FlowModel::after(double delay_s) {
  const std::uint32_t event = add_event();
  wait({now_s_ + delay_s, events_[event].number, event});
  return events_[event].done;
}

Callback& FlowModel::after_latency(double latency_s) {
  const std::uint32_t event = add_event();
  if (latency_s == 0)
    at_once_.push_back(event);
  else
    wait_in_line(latency_s, {now_s_ + latency_s, events_[event].number, event});
  return events_[event].done;
}

void FlowModel::wait(const Delay& delay) {
  delays_.push_back(delay);
  std::push_heap(delays_.begin(), delays_.end());
}

void FlowModel::wait_in_line(double delay_s, const Delay& delay) {
  for (Line& line : lines_)
    if (line.delay_s == delay_s) {
      line.waiting.push_back(delay);
      return;
    }
  if (lines_.size() == most_lines) {
    wait(delay);
    return;
  }
  lines_.push_back({delay_s, {}});
  lines_.back().waiting.push_back(delay);
}

Callback& FlowModel::start_flow(double bytes, std::uint32_t route) {
  const std::uint32_t event = add_event();
  rates_.start(route, bytes, event, now_s_);
  return events_[event].done;
}

Callback& FlowModel::start_message(double latency_s, double bytes, std::uint32_t route) {
  if (latency_s == 0) return start_flow(bytes, route);
  const std::uint32_t event = add_event(bytes, route);
  wait_in_line(latency_s, {now_s_ + latency_s, events_[event].number, event});
  return events_[event].done;
}

double FlowModel::next_event_s() {
  double next_s = rates_.next_end_s(now_s_);
  if (!at_once_.empty()) return now_s_;
  if (!delays_.empty()) next_s = std::min(next_s, delays_.front().at_s);
  for (const Line& line : lines_)
    if (!line.waiting.empty()) next_s = std::min(next_s, line.waiting.front().at_s);
  return next_s;
}

/// Adds the events of these delays to the current moment.
void FlowModel::take_delays(double until_s) {
  while (!delays_.empty() && delays_.front().at_s <= until_s) {
    moment_.push_back(delays_.front().event);
    std::pop_heap(delays_.begin(), delays_.end());
    delays_.pop_back();
  }
  for (Line& line : lines_)
    while (!line.waiting.empty() && line.waiting.front().at_s <= until_s) {
      moment_.push_back(line.waiting.front().event);
      line.waiting.pop_front();
    }
}

/// Asks for what the next delay needs at its end, and for the events that may be the next ones after it.
void FlowModel::fetch_next() const {
  if (delays_.empty()) return;
  events_[delays_.front().event].done.fetch();
  for (std::size_t place = 1; place < std::min<std::size_t>(3, delays_.size()); ++place)
    fetch_soon(events_[delays_[place].event]);
}

bool FlowModel::advance() {
  const double next_s = next_event_s();
  if (next_s == std::numeric_limits<double>::infinity()) return false;
  now_s_ = std::max(now_s_, next_s);
  take_moment();
  while (!at_once_.empty()) {
    rates_.find_rates(now_s_);
    take_moment();
  }
  fetch_next();
  return true;
}

/// Executes the events of this moment so far.
void FlowModel::take_moment() {
  moment_.clear();
  moment_.swap(at_once_);
  take_delays(now_s_ + one_moment_s);
  rates_.take_ended(now_s_, one_moment_s, moment_);
  if (moment_.size() > 1)
    std::sort(moment_.begin(), moment_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return events_[a].number < events_[b].number; });
  for (std::size_t i = 0; i < moment_.size(); ++i) {  // the loop adds nothing to this moment
    const std::uint32_t slot = moment_[i];
    Event& event = events_[slot];
    if (event.route != no_route) {
      rates_.start(std::exchange(event.route, no_route), event.bytes, slot, now_s_);
      continue;
    }
    Callback done = event.done;
    event.next_free = std::exchange(first_free_, slot);
    done();
  }
}

}  // namespace convoy::replays
