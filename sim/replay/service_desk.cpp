// SPDX-License-Identifier: MIT
#include "sim/replay/service_desk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace convoy::inline replays {
namespace {

/// Server classes whose additions take time, with the rate of one server.
std::vector<std::pair<std::uint32_t, double>> adders(const Plan& plan, const Machine& machine,
                                                     const Folding& folding) {
  std::vector<std::pair<std::uint32_t, double>> result;
  if (!plan.service()) return result;
  for (std::uint32_t c = 0; c < folding.endpoints.size(); ++c) {
    const EndpointId endpoint = folding.endpoints[c];
    if (endpoint < machine.devices.size()) continue;
    const Host& host = machine.hosts[endpoint - machine.devices.size()];
    const double rate = machine.host_types[host.type].reduce_bandwidth_Bps;
    if (std::isfinite(rate)) result.emplace_back(c, rate);
  }
  return result;
}

/// Whether a is before b, and not at the same moment up to rounding.
bool before(double a_s, double b_s) { return a_s < b_s - 1e-9 * std::max(1e-3, std::abs(b_s)); }

}  // namespace

std::vector<double> ServiceDesk::adder_capacities(const Plan& plan, const Machine& machine,
                                                  const Folding& folding) {
  std::vector<double> result;
  for (const auto& [server, rate] : adders(plan, machine, folding)) result.push_back(rate);
  return result;
}

ServiceDesk::ServiceDesk(const Plan& plan, const Machine& machine, const FlowTable& table,
                         const Folding& folding, Engine& engine, Courier& courier, MessageListener& listener)
    : service_(*plan.service()),
      folding_(folding),
      engine_(engine),
      courier_(courier),
      listener_(listener),
      exchange_of_(plan.communications.size()),
      clients_(folding.endpoints.size()),
      members_(folding.endpoints.size(), 0) {
  for (const std::uint32_t c : folding.endpoint_class)
    if (c != Folding::none) ++members_[c];
  auto adder_link = static_cast<std::uint32_t>(folding.links.size());
  for (const auto& [server, rate] : adders(plan, machine, folding)) adder_[server] = adder_link++;

  const std::vector<std::uint32_t> way_back = answers(plan, table);
  std::map<std::uint32_t, LanesByServer> by_pattern;
  for (const Service::Exchange& exchange : service_.exchanges) {
    const std::uint32_t pattern = plan.communications[exchange.push].pattern;
    const auto [known, fresh] = by_pattern.try_emplace(pattern);
    if (fresh) known->second = find_lanes(pattern, table, way_back);
  }
  for (Lane& lane : lanes_)
    if (const auto adder = adder_.find(lane.server); adder != adder_.end())
      lane.adding = engine.add_route(std::vector<LinkUse>{{adder->second, lane.arrivals}});
  for (const Service::Client& client : service_.clients) {
    Client& known = clients_[folding.endpoint_class[client.device]];
    if (!known.turns.empty()) continue;
    known.turns.resize(service_.exchanges.size());
    known.steps = client.head_start;
    steps_.add(client.head_start);
  }
  add_desks(plan, by_pattern);
  if (service_.max_lead != Service::unbounded) count_first_steps();
}

/// Adds the lanes of a pattern.
ServiceDesk::LanesByServer ServiceDesk::find_lanes(std::uint32_t pattern, const FlowTable& table,
                                                   const std::vector<std::uint32_t>& way_back) {
  LanesByServer result;
  std::unordered_map<std::uint32_t, std::uint32_t> lane_of;  // by flow class
  const std::uint32_t first_group = table.first_group[pattern], last_group = table.first_group[pattern + 1];
  for (std::uint32_t g = first_group; g < last_group; ++g)
    for (std::uint32_t f = table.groups[g].first_flow;
         f < table.groups[g].first_flow + table.groups[g].flow_count; ++f) {
      const Flow& flow = table.flows[f];
      const std::uint32_t server = folding_.endpoint_class[flow.to], push = folding_.flow_class[f],
                          pull = folding_.flow_class[way_back[f]];
      const auto [it, first] = lane_of.emplace(push, static_cast<std::uint32_t>(lanes_.size()));
      if (first) {
        lanes_.push_back({folding_.endpoint_class[flow.from], server, push, pull, 0, Folding::none,
                          folding_.flows[push].fraction, folding_.flows[pull].fraction});
        result[server].push_back(it->second);
      }
      if (flow.to == folding_.endpoints[server]) ++lanes_[it->second].arrivals;
    }
  return result;
}

/// Also adds the turns and ways of the clients.
void ServiceDesk::add_desks(const Plan& plan, const std::map<std::uint32_t, LanesByServer>& by_pattern) {
  std::vector<std::vector<Way>> ways(clients_.size());  // by client class
  for (std::size_t x = 0; x < service_.exchanges.size(); ++x) {
    const Service::Exchange& exchange = service_.exchanges[x];
    exchange_of_[exchange.push] = exchange_of_[exchange.pull] = x;
    for (const auto& [server, lanes] : by_pattern.at(plan.communications[exchange.push].pattern)) {
      Desk desk;
      desk.push_bytes = plan.communications[exchange.push].bytes;
      desk.pull_bytes = plan.communications[exchange.pull].bytes;
      desk.added_bytes = exchange.added_bytes.value_or(desk.push_bytes);
      desk.exchange = static_cast<std::uint32_t>(x);
      desk.server = server;
      for (const std::uint32_t lane : lanes) {
        const std::uint32_t client = lanes_[lane].client;
        ways[client].push_back({static_cast<std::uint32_t>(desks_.size()), lane});
        ++turn(client, x).way_count;
      }
      desks_.push_back(std::move(desk));
    }
  }
  for (std::size_t c = 0; c < clients_.size(); ++c) {
    auto next = static_cast<std::uint32_t>(ways_.size());
    for (Turn& turn : clients_[c].turns) {
      turn.first_way = next;
      next += turn.way_count;
    }
    ways_.insert(ways_.end(), ways[c].begin(), ways[c].end());
  }
}

void ServiceDesk::count_first_steps() {
  for (Way& way : ways_) {
    way.steps = clients_[lanes_[way.lane].client].steps;
    desks_[way.desk].steps.add(way.steps);
  }
}

double ServiceDesk::adding_s(std::uint32_t server_class, double now_s) const {
  const auto found = adding_.find(server_class);
  return found == adding_.end() ? 0 : found->second.total_s(now_s);
}

void ServiceDesk::begin_step(std::uint32_t client_class) {
  Client& client = clients_[client_class];
  client.version = std::exchange(client.next_version, std::numeric_limits<std::uint64_t>::max());
  client.left = 0;
  for (Turn& turn : client.turns) {
    turn.to_deliver = turn.to_receive = turn.way_count;
    turn.receive_started = false;
    client.left += turn.way_count;
  }
  max_lead_ = std::max(max_lead_, client.steps - steps_.fewest());
}

void ServiceDesk::count_push(std::uint32_t client_class) {
  Client& client = clients_[client_class];
  if (--client.left == 0) steps_.step(client.steps++);
}

void ServiceDesk::start(std::uint32_t client_class, TaskId id, const Task& task) {
  const std::size_t exchange = exchange_of_[task.comm];
  Turn& turn = this->turn(client_class, exchange);
  if (task.kind == Task::Kind::send) {
    turn.send = id;
    if (turn.to_deliver == 0) listener_.task_done(client_class, id);
    send(client_class, exchange);
    return;
  }
  turn.receive = id;
  turn.receive_started = true;
  if (turn.to_receive == 0) listener_.task_done(client_class, id);
}

void ServiceDesk::send(std::uint32_t client_class, std::size_t exchange) {
  const Turn& turn = this->turn(client_class, exchange);
  for (std::uint32_t w = turn.first_way; w < turn.first_way + turn.way_count; ++w) {
    const Lane& lane = lanes_[ways_[w].lane];
    if (service_.quorum > 0) ways_[w].steps = clients_[client_class].version;
    courier_.launch_for_ends(lane.push, desks_[ways_[w].desk].push_bytes * lane.push_fraction,
                             [this, w] { arrive(w); });
  }
}

void ServiceDesk::arrive(std::uint32_t w) {
  const Way& way = ways_[w];
  const Lane& lane = lanes_[way.lane];
  Turn& turn = this->turn(lane.client, desks_[way.desk].exchange);
  if (--turn.to_deliver == 0) listener_.task_done(lane.client, turn.send);
  if (service_.quorum > 0 && way.steps < desks_[way.desk].version) {
    answer(w);
    return;
  }
  const double bytes = desks_[way.desk].added_bytes * lane.push_fraction;
  if (lane.adding == Folding::none || bytes == 0) {
    apply(w);
    return;
  }
  adding_[lane.server].enter(engine_.now_s());
  engine_.start_flow(bytes, lane.adding, [this, w, server = lane.server] {
    adding_[server].leave(engine_.now_s());
    apply(w);
    listener_.after_event();
  });
}

void ServiceDesk::apply(std::uint32_t w) {
  Way& way = ways_[w];
  Desk& desk = desks_[way.desk];
  const Lane& lane = lanes_[way.lane];
  if (service_.quorum > 0) {
    if (way.steps < desk.version) {
      answer(w);
      return;
    }
    desk.waiting.push_back(w);
    desk.counted += lane.arrivals;
    if (desk.counted < service_.quorum) return;
    ++desk.version;
    desk.counted = 0;
    for (const std::uint32_t waiting : std::exchange(desk.waiting, {})) answer(waiting);
    return;
  }
  // An answer that had to wait now has everything it waited for.
  desk.pushes.push_back(
      {way.answered_at_s, engine_.now_s(), lane.arrivals, before(way.applied_at_s, way.answered_at_s)});
  way.applied_at_s = engine_.now_s();
  if (service_.max_lead != Service::unbounded) desk.steps.step(way.steps);
  ++way.steps;
  count_push(lane.client);
  const bool all_may = desk.steps.fewest() > std::exchange(desk.released_at, desk.steps.fewest());
  if (!all_may && may_go_on(desk, way)) {
    answer(w);
    return;
  }
  desk.waiting.push_back(w);
  if (all_may) release(desk);
}

/// Whether a client is not too far ahead.
bool ServiceDesk::may_go_on(const Desk& desk, const Way& way) const {
  return service_.max_lead == Service::unbounded || way.steps - desk.steps.fewest() <= service_.max_lead;
}

/// Answers those that no longer are too far ahead.
void ServiceDesk::release(Desk& desk) {
  std::vector<std::uint32_t> ready;
  std::erase_if(desk.waiting, [&](std::uint32_t w) {
    if (!may_go_on(desk, ways_[w])) return false;
    ready.push_back(w);
    return true;
  });
  for (const std::uint32_t w : ready) answer(w);
}

void ServiceDesk::answer(std::uint32_t w) {
  Way& way = ways_[w];
  const Desk& desk = desks_[way.desk];
  const Lane& lane = lanes_[way.lane];
  const std::uint32_t client = lane.client;
  way.answered_at_s = engine_.now_s();
  // The next step of a client counts as computed from the oldest version that it received.
  std::uint64_t& next_version = clients_[client].next_version;
  next_version = std::min(next_version, desk.version);
  courier_.launch_for_ends(lane.pull, desk.pull_bytes * lane.pull_fraction,
                           [this, client, exchange = desk.exchange] {
                             Turn& turn = this->turn(client, exchange);
                             if (--turn.to_receive == 0 && turn.receive_started)
                               listener_.task_done(client, turn.receive);
                           });
}

namespace {

/// Sums of members over the first pushes, up to each number of them.
template <class Pushes>
std::vector<double> running_totals(const Pushes& pushes) {
  std::vector<double> totals{0};
  totals.reserve(pushes.size() + 1);
  for (const auto& push : pushes) totals.push_back(totals.back() + push.members);
  return totals;
}

}  // namespace

StalenessResult ServiceDesk::staleness(double from_s, double until_s) const {
  StalenessResult result;
  result.max_lead = max_lead_;
  double weight = 0;
  for (const Desk& desk : desks_) {
    const std::vector<double> totals = running_totals(desk.pushes);
    const auto place = [&](auto it) { return static_cast<std::size_t>(it - desk.pushes.begin()); };
    const double servers = members_[desk.server];
    std::size_t first = 0, last = 0;  // pushes at the same moment as the current one
    for (const Push& push : desk.pushes) {
      while (before(desk.pushes[first].applied_at_s, push.applied_at_s)) ++first;
      while (last < desk.pushes.size() && !before(push.applied_at_s, desk.pushes[last].applied_at_s)) ++last;
      if (push.answered_at_s < 0 || before(push.applied_at_s, from_s) || before(until_s, push.applied_at_s))
        continue;
      // Pushes at the moment at which the parameters were sent.
      const auto then = std::partition_point(desk.pushes.begin(), desk.pushes.end(), [&](const Push& p) {
        return before(p.applied_at_s, push.answered_at_s);
      });
      auto then_end = then;
      while (then_end != desk.pushes.end() && !before(push.answered_at_s, then_end->applied_at_s)) ++then_end;
      const double then_total = totals[place(then_end)], then_at_once = then_total - totals[place(then)],
                   now_at_once = totals[last] - totals[first];
      const double missed =
          totals[first] - then_total + (now_at_once - 1) / 2 + (push.waited ? 0 : (then_at_once - 1) / 2);
      result.max = std::max(result.max, missed);
      result.mean += missed * push.members * servers;
      weight += push.members * servers;
    }
  }
  if (weight > 0) result.mean /= weight;
  return result;
}

}  // namespace convoy::replays
