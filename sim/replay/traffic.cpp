// SPDX-License-Identifier: MIT
#include "sim/replay/traffic.h"

#include <algorithm>

namespace convoy::inline replays {
namespace {

/// A change of the rates; `messages` counts the messages under way.
struct RateChange {
  double time_s, sent_Bps, received_Bps;
  int messages;
};

std::vector<TrafficPoint> summed(std::vector<RateChange> changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const RateChange& a, const RateChange& b) { return a.time_s < b.time_s; });
  std::vector<TrafficPoint> points;
  TrafficPoint now;
  int messages = 0;
  for (const RateChange& change : changes) {
    messages += change.messages;
    now.time_s = change.time_s;
    // Without a message, the rate is zero, not the rounding error of the sum.
    now.sent_Bps = messages > 0 ? std::max(0.0, now.sent_Bps + change.sent_Bps) : 0;
    now.received_Bps = messages > 0 ? std::max(0.0, now.received_Bps + change.received_Bps) : 0;
    if (!points.empty() && points.back().time_s == now.time_s) points.pop_back();
    points.push_back(now);
  }
  return points;
}

}  // namespace

Traffic::Traffic(const ReplayResult& result, const Plan& plan, const Machine& machine)
    : result_(result), plan_(plan), machine_(machine), sends_(result.timelines.size()) {
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    const Timeline& timeline = result.timelines[i];
    const std::vector<Task>& program = plan.roles[timeline.role].program;
    for (TaskId t = 0; t < program.size(); ++t)
      if (program[t].kind == Task::Kind::collective || program[t].kind == Task::Kind::send)
        sends_[i].emplace_back(program[t].comm, timeline.tasks[t]);
    std::stable_sort(sends_[i].begin(), sends_[i].end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }
}

const TaskTimes* Traffic::sending(EndpointId from, CommId comm) const {
  const std::uint32_t timeline = result_.timeline_of[from];
  if (timeline == ReplayResult::no_timeline) return nullptr;
  const auto& sends = sends_[timeline];
  const auto it = std::lower_bound(sends.begin(), sends.end(), comm,
                                   [](const auto& send, CommId wanted) { return send.first < wanted; });
  return it != sends.end() && it->first == comm ? &it->second : nullptr;
}

std::vector<Traffic::Message> Traffic::messages_of(const Pattern& pattern, std::uint32_t host) const {
  std::vector<Message> messages;
  for (const std::vector<EndpointId>& group : pattern.groups) {
    const auto here = [&](std::uint32_t member) { return machine_.host_of(group[member]) == host; };
    for (const Round& round : pattern.rounds) {
      const auto add = [&](std::uint32_t from, std::uint32_t to, double fraction) {
        if (here(from) != here(to)) messages.push_back({group[from], fraction * round.repeat, here(from)});
      };
      for (std::size_t k = 0; k < round.pairs.size(); ++k)
        add(round.pairs[k].first, round.pairs[k].second, round.fraction(k));
      if (!round.all_to_all) continue;
      // Only the pairs with one end here, since there may be many millions of others.
      for (const AllToAll::Part& from : round.all_to_all->senders)
        if (here(from.member))
          for (const AllToAll::Part& to : round.all_to_all->receivers)
            add(from.member, to.member, from.share * to.share);
      for (const AllToAll::Part& to : round.all_to_all->receivers)
        if (here(to.member))
          for (const AllToAll::Part& from : round.all_to_all->senders)
            add(from.member, to.member, from.share * to.share);
    }
  }
  return messages;
}

std::vector<TrafficPoint> Traffic::of_host(std::uint32_t host) const {
  if (plan_.service()) return {};
  std::vector<std::vector<Message>> messages;
  for (const Pattern& pattern : plan_.patterns) messages.push_back(messages_of(pattern, host));
  std::vector<RateChange> changes;
  for (CommId c = 0; c < plan_.communications.size(); ++c)
    for (const Message& message : messages[plan_.communications[c].pattern]) {
      const TaskTimes* times = sending(message.from, c);
      if (!times || times->end_s <= times->start_s) continue;
      const double rate_Bps =
          plan_.communications[c].bytes * message.fraction / (times->end_s - times->start_s);
      const double sent_Bps = message.leaves ? rate_Bps : 0, received_Bps = message.leaves ? 0 : rate_Bps;
      changes.push_back({times->start_s, sent_Bps, received_Bps, 1});
      changes.push_back({times->end_s, -sent_Bps, -received_Bps, -1});
    }
  return summed(std::move(changes));
}

}  // namespace convoy::replays
