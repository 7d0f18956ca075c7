// SPDX-License-Identifier: MIT
#include "sim/replay/message_order.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace convoy::inline replays {
namespace {

/// Messages that come so close to each other come at one moment, so that rounding does not decide who is
/// first.
constexpr double one_moment_s = 1e-9;
constexpr double rounding_s = 1e-12;  ///< of a time at which the engine has arrived

double server_count(const FoldedPlan& folded) {
  std::size_t count = 0;
  for (const Role& role : folded.plan.roles)
    if (role.members.front() >= folded.machine.devices.size()) count += role.members.size();
  return static_cast<double>(std::max<std::size_t>(1, count));
}

}  // namespace

MessageOrder::MessageOrder(const FoldedPlan& folded, Contention contention, Engine& engine)
    : engine_(engine) {
  if (contention == Contention::none) return;
  const Folding& folding = folded.folding;
  std::vector<std::uint32_t> flow_classes;  // by queue: the first of them
  for (std::uint32_t f = 0; f < folding.flow_class_count(); ++f) {
    const FlowPath& path = folding.path(folded.table, f);
    if (!folded.plan.patterns[folded.table.groups[path.group].pattern].in_order || folding.route(f).empty())
      continue;
    if (folding.is_listed(f) && folded.machine.host_of(path.from) == folded.machine.host_of(path.to))
      continue;
    queue_of_.resize(folding.routes.size(), none);
    std::uint32_t& queue = queue_of_[folding.route_class[f]];
    if (queue != none) continue;
    queue = static_cast<std::uint32_t>(flow_classes.size());
    flow_classes.push_back(f);
  }
  queues_.resize(flow_classes.size());
  if (folded.plan.service()) find_servers(folded, flow_classes);
}

/// What all messages of a server in one direction cross is the server's; of everything else a client has as
/// much for one server as it does not need for the others, to which it sends at the same time.
void MessageOrder::find_servers(const FoldedPlan& folded, const std::vector<std::uint32_t>& flow_classes) {
  const Folding& folding = folded.folding;
  const auto bandwidth = [&](std::uint32_t link) {
    return bandwidth_Bps(folded.machine, folded.table, folding.links[link]);
  };
  const auto is_host = [&](EndpointId e) { return e >= folded.machine.devices.size(); };
  std::map<std::pair<std::uint32_t, bool>, std::vector<std::uint32_t>> queues_of;
  for (std::uint32_t queue = 0; queue < flow_classes.size(); ++queue) {
    const FlowPath& path = folding.path(folded.table, flow_classes[queue]);
    queues_of[{folding.endpoint_class[is_host(path.to) ? path.to : path.from], is_host(path.to)}].push_back(
        queue);
  }
  const double servers = server_count(folded);
  for (const auto& [which, queues] : queues_of) {
    std::map<std::uint32_t, std::size_t> crossed;  // by link: queues
    for (const std::uint32_t queue : queues)
      for (const LinkUse& use : folding.route(flow_classes[queue])) ++crossed[use.link];
    Server server;
    server.capacity_Bps = std::numeric_limits<double>::infinity();
    for (const auto& [link, count] : crossed)
      if (count == queues.size()) server.capacity_Bps = std::min(server.capacity_Bps, bandwidth(link));
    if (!std::isfinite(server.capacity_Bps)) continue;  // its messages share nothing: none waits for another
    for (const std::uint32_t queue : queues) {
      double rate_Bps = server.capacity_Bps, equal = 1;
      for (const LinkUse& use : folding.route(flow_classes[queue])) {
        const bool of_machine = folding.links[use.link] < folded.machine.links.size();
        if (crossed[use.link] == queues.size())
          equal = std::max<double>(equal, use.multiplicity);
        else
          rate_Bps = std::min(
              rate_Bps, bandwidth(use.link) / std::max<double>(use.multiplicity, of_machine ? servers : 1));
      }
      queues_[queue].server = static_cast<std::uint32_t>(servers_.size());
      queues_[queue].rate_Bps = std::min(server.capacity_Bps, rate_Bps * equal);
    }
    servers_.push_back(std::move(server));
  }
}

std::uint32_t MessageOrder::add_message(double bytes, double ready_s) {
  std::uint32_t place = first_free_;
  if (place == none) {
    place = static_cast<std::uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    first_free_ = messages_[place].next;
    if (first_free_ != none) fetch_soon(messages_[first_free_]);  // for the next message
  }
  Message& message = messages_[place];
  message.bytes = bytes;
  message.ready_s = ready_s;
  message.next = none;
  return place;
}

Callback& MessageOrder::send(std::uint32_t route_class, double latency_s, double bytes, std::uint32_t route) {
  const std::uint32_t q = queue_of_[route_class];
  Queue& queue = queues_[q];
  queue.route = route;
  queue.ready_s = engine_.now_s() + latency_s;
  const std::uint32_t message = add_message(bytes, queue.ready_s);
  const bool first = queue.first == none;
  (first ? queue.first : messages_[queue.last].next) = message;
  queue.last = message;
  // Those behind another one need no event of their own: who ends before them looks whether they are ready.
  if (first && latency_s == 0)
    next(q);
  else if (first)
    engine_.after_latency(latency_s) = [this, q] { next(q); };
  return messages_[message].done;
}

/// @pre none of the queue is under way. The first message goes, or waits for its turn, once its latency has passed.
void MessageOrder::next(std::uint32_t q) {
  Queue& queue = queues_[q];
  if (queue.first == none) return;
  if (queue.ready_s - engine_.now_s() > rounding_s)  // the last one is not ready
    if (const double left_s = messages_[queue.first].ready_s - engine_.now_s(); left_s > rounding_s) {
      engine_.after(left_s) = [this, q] { next(q); };
      return;
    }
  if (queue.server == none) {
    start(q);
    return;
  }
  Server& server = servers_[queue.server];
  server.waiting.push_back({q, engine_.now_s()});
  // Where others wait, the first of them has been refused since the last message ended, and still is.
  if (server.waiting.size() == 1) ask(queue.server);
}

/// Others may come at this moment.
void MessageOrder::ask(std::uint32_t server) {
  if (!std::exchange(servers_[server].asked, true))
    engine_.after_latency(0) = [this, server] { admit(server); };
}

void MessageOrder::admit(std::uint32_t s) {
  Server& server = servers_[s];
  server.asked = false;
  while (!server.waiting.empty()) {
    const Server::Waiting first = server.waiting.front();
    const bool with_the_last = server.under_way > 0 && first.since_s <= server.moment_s + one_moment_s;
    if (!with_the_last) {
      if (server.under_way > 0 && server.taken_Bps >= server.capacity_Bps * (1 - 1e-9)) {
        fetch_next(server);
        return;
      }
      server.moment_s = first.since_s;
    }
    server.waiting.pop_front();
    server.taken_Bps += queues_[first.queue].rate_Bps;
    ++server.under_way;
    start(first.queue);
  }
}

/// Those whose turn is next have waited for long: asks for what the first will need, for the message of the next, and for the
/// queue of the one after it.
void MessageOrder::fetch_next(const Server& server) const {
  const Queue& first = queues_[server.waiting.front().queue];
  messages_[first.first].done.fetch();
  engine_.fetch_links(first.route);
  if (server.waiting.size() > 1) {
    const Queue& second = queues_[server.waiting[1].queue];
    fetch_soon(messages_[second.first]);
    engine_.fetch_route(second.route);
  }
  if (server.waiting.size() > 2) fetch_soon(queues_[server.waiting[2].queue]);
}

void MessageOrder::start(std::uint32_t q) {
  const Queue& queue = queues_[q];
  engine_.start_flow(messages_[queue.first].bytes, queue.route) = [this, q] { end(q); };
}

void MessageOrder::end(std::uint32_t q) {
  Queue& queue = queues_[q];
  const std::uint32_t message = queue.first;
  Callback done = messages_[message].done;
  queue.first = messages_[message].next;
  messages_[message].next = std::exchange(first_free_, message);
  if (queue.server != none) {
    Server& server = servers_[queue.server];
    server.taken_Bps = --server.under_way == 0 ? 0 : server.taken_Bps - queue.rate_Bps;
    if (!server.waiting.empty()) ask(queue.server);
  }
  next(q);
  done();
}

}  // namespace convoy::replays
