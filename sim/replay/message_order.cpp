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
  std::vector<std::uint32_t> flow_classes;  // by lane
  for (std::uint32_t f = 0; f < folding.flows.size(); ++f) {
    const Flow& flow = folding.flows[f];
    if (!folded.plan.patterns[folded.table.groups[flow.group].pattern].in_order ||
        folding.flow_route[f].empty())
      continue;
    if (f < folding.listed && folded.machine.host_of(flow.from) == folded.machine.host_of(flow.to)) continue;
    lane_of_.resize(folding.flows.size(), none);
    lane_of_[f] = static_cast<std::uint32_t>(flow_classes.size());
    flow_classes.push_back(f);
  }
  lanes_.resize(flow_classes.size());
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
  std::map<std::pair<std::uint32_t, bool>, std::vector<std::uint32_t>> lanes_of;
  for (std::uint32_t lane = 0; lane < flow_classes.size(); ++lane) {
    const Flow& flow = folding.flows[flow_classes[lane]];
    lanes_of[{folding.endpoint_class[is_host(flow.to) ? flow.to : flow.from], is_host(flow.to)}].push_back(
        lane);
  }
  const double servers = server_count(folded);
  for (const auto& [which, lanes] : lanes_of) {
    std::map<std::uint32_t, std::size_t> crossed;  // by link: lanes
    for (const std::uint32_t lane : lanes)
      for (const LinkUse& use : folding.flow_route[flow_classes[lane]]) ++crossed[use.link];
    Server server;
    server.capacity_Bps = std::numeric_limits<double>::infinity();
    for (const auto& [link, count] : crossed)
      if (count == lanes.size()) server.capacity_Bps = std::min(server.capacity_Bps, bandwidth(link));
    if (!std::isfinite(server.capacity_Bps)) continue;  // its messages share nothing: none waits for another
    for (const std::uint32_t lane : lanes) {
      double rate_Bps = server.capacity_Bps, equal = 1;
      for (const LinkUse& use : folding.flow_route[flow_classes[lane]]) {
        const bool of_machine = folding.links[use.link] < folded.machine.links.size();
        if (crossed[use.link] == lanes.size())
          equal = std::max<double>(equal, use.multiplicity);
        else
          rate_Bps = std::min(
              rate_Bps, bandwidth(use.link) / std::max<double>(use.multiplicity, of_machine ? servers : 1));
      }
      lanes_[lane].server = static_cast<std::uint32_t>(servers_.size());
      lanes_[lane].rate_Bps = std::min(server.capacity_Bps, rate_Bps * equal);
    }
    servers_.push_back(std::move(server));
  }
}

void MessageOrder::send(std::uint32_t flow_class, double latency_s, double bytes, std::uint32_t route,
                        Callback done) {
  const std::uint32_t lane = lane_of_[flow_class];
  lanes_[lane].messages.push_back({bytes, route, done});
  if (latency_s == 0)
    arrive(lane);
  else
    engine_.after_latency(latency_s, [this, lane] { arrive(lane); });
}

void MessageOrder::arrive(std::uint32_t lane) {
  ++lanes_[lane].arrived;
  next(lane);
}

void MessageOrder::next(std::uint32_t l) {
  Lane& lane = lanes_[l];
  if (lane.busy || lane.arrived == 0) return;
  lane.busy = true;
  if (lane.server == none) {
    start(l);
    return;
  }
  servers_[lane.server].turns.push_back({l, engine_.now_s()});
  ask(lane.server);
}

/// Others may come at this moment.
void MessageOrder::ask(std::uint32_t server) {
  if (!std::exchange(servers_[server].asked, true))
    engine_.after_latency(0, [this, server] { admit(server); });
}

void MessageOrder::admit(std::uint32_t s) {
  Server& server = servers_[s];
  server.asked = false;
  while (!server.turns.empty()) {
    const Server::Turn turn = server.turns.front();
    const bool with_the_last = server.under_way > 0 && turn.at_s <= server.moment_s + one_moment_s;
    if (!with_the_last) {
      if (server.under_way > 0 && server.taken_Bps >= server.capacity_Bps * (1 - 1e-9)) {
        fetch_next(server);
        return;
      }
      server.moment_s = turn.at_s;
    }
    server.turns.pop_front();
    server.taken_Bps += lanes_[turn.lane].rate_Bps;
    ++server.under_way;
    start(turn.lane);
  }
}

/// Those whose turn is next have waited for so long that the processor's caches have lost them.
void MessageOrder::fetch_next(const Server& server) const {
  __builtin_prefetch(&lanes_[server.turns.front().lane].messages.front());
  if (server.turns.size() > 1) __builtin_prefetch(&lanes_[server.turns[1].lane]);
}

void MessageOrder::start(std::uint32_t l) {
  Lane& lane = lanes_[l];
  const Lane::Message message = lane.messages.front();
  lane.messages.pop_front();
  --lane.arrived;
  lane.done = message.done;
  engine_.start_flow(message.bytes, message.route, [this, l] { end(l); });
}

void MessageOrder::end(std::uint32_t l) {
  Lane& lane = lanes_[l];
  lane.busy = false;
  Callback done = lane.done;
  if (lane.server != none) {
    Server& server = servers_[lane.server];
    server.taken_Bps = --server.under_way == 0 ? 0 : server.taken_Bps - lane.rate_Bps;
    if (!server.turns.empty()) ask(lane.server);
  }
  next(l);
  done();
}

}  // namespace convoy::replays
