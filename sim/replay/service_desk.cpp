// SPDX-License-Identifier: MIT
#include "sim/replay/service_desk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace convoy {
namespace {

/// Server classes whose adding up takes time, with the rate of one server.
std::vector<std::pair<std::uint32_t, double>> adders(const Plan& plan, const Machine& machine,
                                                     const Folding& folding) {
  std::vector<std::pair<std::uint32_t, double>> result;
  if (!plan.service) return result;
  for (std::uint32_t c = 0; c < folding.endpoints.size(); ++c) {
    const EndpointId endpoint = folding.endpoints[c];
    if (endpoint < machine.devices.size()) continue;
    const Host& host = machine.hosts[endpoint - machine.devices.size()];
    const double rate = machine.host_types[host.type].reduce_bandwidth_Bps;
    if (std::isfinite(rate)) result.emplace_back(c, rate);
  }
  return result;
}

/// Two events of one moment, up to rounding.
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
    : plan_(plan),
      service_(*plan.service),
      table_(table),
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
  std::map<std::uint32_t, std::map<std::uint32_t, std::vector<std::uint32_t>>> by_pattern;  // server -> lanes
  for (const Service::Exchange& exchange : service_.exchanges) {
    const std::uint32_t pattern = plan.communications[exchange.push].pattern;
    const auto [known, fresh] = by_pattern.try_emplace(pattern);
    if (!fresh) continue;
    std::map<std::uint32_t, std::uint32_t> lane_of;  // by flow class
    for (std::uint32_t g = table.first_group[pattern]; g < table.first_group[pattern + 1]; ++g)
      for (std::uint32_t f = table.groups[g].first_flow;
           f < table.groups[g].first_flow + table.groups[g].flow_count; ++f) {
        const Flow& flow = table.flows[f];
        const std::uint32_t server = folding.endpoint_class[flow.to];
        const auto [it, first] =
            lane_of.emplace(folding.flow_class[f], static_cast<std::uint32_t>(lanes_.size()));
        if (first) {
          lanes_.push_back({folding.endpoint_class[flow.from], server, folding.flow_class[f],
                            folding.flow_class[way_back[f]], 0, Folding::none});
          known->second[server].push_back(it->second);
        }
        if (flow.to == folding.endpoints[server]) ++lanes_[it->second].arrivals;
      }
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
  for (std::size_t x = 0; x < service_.exchanges.size(); ++x) {
    const Service::Exchange& exchange = service_.exchanges[x];
    exchange_of_[exchange.push] = exchange_of_[exchange.pull] = x;
    for (const auto& [server, lanes] : by_pattern.at(plan.communications[exchange.push].pattern)) {
      Desk desk;
      desk.push_bytes = plan.communications[exchange.push].bytes;
      desk.pull_bytes = plan.communications[exchange.pull].bytes;
      desk.added_bytes = exchange.added_bytes.value_or(desk.push_bytes);
      desk.lanes = lanes;
      desk.accounts.resize(lanes.size());
      for (std::uint32_t position = 0; position < lanes.size(); ++position)
        turn(lanes_[lanes[position]].client, x)
            .lanes.emplace_back(static_cast<std::uint32_t>(desks_.size()), position);
      desks_.push_back(std::move(desk));
      exchange_of_desk_.push_back(x);
    }
  }
  if (service_.max_lead == Service::unbounded) return;
  for (const Client& client : clients_)
    for (const Turn& turn : client.turns)
      for (const auto& [desk, position] : turn.lanes) desks_[desk].accounts[position].steps = client.steps;
  for (Desk& desk : desks_)
    for (const Account& account : desk.accounts) desk.steps.add(account.steps);
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
    turn.to_deliver = turn.to_receive = static_cast<std::uint32_t>(turn.lanes.size());
    turn.receive_started = false;
    client.left += turn.lanes.size();
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
  for (const auto& [desk, position] : turn(client_class, exchange).lanes) {
    const Lane& lane = lanes_[desks_[desk].lanes[position]];
    if (service_.quorum > 0) desks_[desk].accounts[position].steps = clients_[client_class].version;
    const double bytes = desks_[desk].push_bytes * table_.flows[folding_.flows[lane.push]].fraction;
    courier_.launch_for_ends(lane.push, bytes,
                             [this, desk = desk, position = position, client_class,
                              exchange = static_cast<std::uint32_t>(exchange)] {
                               Turn& turn = this->turn(client_class, exchange);
                               if (--turn.to_deliver == 0) listener_.task_done(client_class, turn.send);
                               arrive(desk, position);
                             });
  }
}

void ServiceDesk::arrive(std::uint32_t desk, std::uint32_t position) {
  const Lane& lane = lanes_[desks_[desk].lanes[position]];
  if (service_.quorum > 0 && desks_[desk].accounts[position].steps < desks_[desk].version) {
    answer(desk, position);
    return;
  }
  const double bytes = desks_[desk].added_bytes * table_.flows[folding_.flows[lane.push]].fraction;
  if (lane.adding == Folding::none || bytes == 0) {
    apply(desk, position);
    return;
  }
  adding_[lane.server].enter(engine_.now_s());
  engine_.start_flow(bytes, lane.adding, [this, desk, position, server = lane.server] {
    adding_[server].leave(engine_.now_s());
    apply(desk, position);
    listener_.after_event();
  });
}

void ServiceDesk::apply(std::uint32_t desk_id, std::uint32_t position) {
  Desk& desk = desks_[desk_id];
  Account& account = desk.accounts[position];
  const std::uint32_t arrivals = lanes_[desk.lanes[position]].arrivals;
  if (service_.quorum > 0) {
    if (account.steps < desk.version) {
      answer(desk_id, position);
      return;
    }
    desk.waiting.push_back(position);
    desk.counted += arrivals;
    if (desk.counted < service_.quorum) return;
    ++desk.version;
    desk.counted = 0;
    for (const std::uint32_t waiting : std::exchange(desk.waiting, {})) answer(desk_id, waiting);
    return;
  }
  desk.pushes.push_back({account.applied_at_s, account.answered_at_s, engine_.now_s(), arrivals});
  account.applied_at_s = engine_.now_s();
  desk.applied.push_back(
      {engine_.now_s(), (desk.applied.empty() ? 0 : desk.applied.back().total) + arrivals});
  if (service_.max_lead != Service::unbounded) desk.steps.step(account.steps);
  ++account.steps;
  count_push(lanes_[desk.lanes[position]].client);
  const bool all_may = desk.steps.fewest() > std::exchange(desk.released_at, desk.steps.fewest());
  if (!all_may && may_go_on(desk, position)) {
    answer(desk_id, position);
    return;
  }
  desk.waiting.push_back(position);
  if (all_may) release(desk_id);
}

/// Whether a client is not too far ahead.
bool ServiceDesk::may_go_on(const Desk& desk, std::uint32_t position) const {
  return service_.max_lead == Service::unbounded ||
         desk.accounts[position].steps - desk.steps.fewest() <= service_.max_lead;
}

/// Answers those who no longer are.
void ServiceDesk::release(std::uint32_t desk_id) {
  Desk& desk = desks_[desk_id];
  std::vector<std::uint32_t> ready;
  std::erase_if(desk.waiting, [&](std::uint32_t position) {
    if (!may_go_on(desk, position)) return false;
    ready.push_back(position);
    return true;
  });
  for (const std::uint32_t position : ready) answer(desk_id, position);
}

void ServiceDesk::answer(std::uint32_t desk_id, std::uint32_t position) {
  Desk& desk = desks_[desk_id];
  const Lane& lane = lanes_[desk.lanes[position]];
  const std::uint32_t client = lane.client;
  desk.accounts[position].answered_at_s = engine_.now_s();
  // The oldest of what a client gets is what its next step counts as made from.
  std::uint64_t& next_version = clients_[client].next_version;
  next_version = std::min(next_version, desk.version);
  const double bytes = desk.pull_bytes * table_.flows[folding_.flows[lane.pull]].fraction;
  courier_.launch_for_ends(lane.pull, bytes, [this, client, exchange = exchange_of_desk_[desk_id]] {
    Turn& turn = this->turn(client, exchange);
    if (--turn.to_receive == 0 && turn.receive_started) listener_.task_done(client, turn.receive);
  });
}

StalenessResult ServiceDesk::staleness(double from_s, double until_s) const {
  StalenessResult result;
  result.max_lead = max_lead_;
  double weight = 0;
  for (const Desk& desk : desks_) {
    struct Updates {
      double earlier, at_once;
    };
    const auto updates = [&](double at_s) {
      const auto total = [&](auto end) { return end == desk.applied.begin() ? 0.0 : (end - 1)->total; };
      const auto first = std::partition_point(desk.applied.begin(), desk.applied.end(),
                                              [&](const Applied& a) { return before(a.at_s, at_s); });
      const auto last = std::partition_point(first, desk.applied.end(),
                                             [&](const Applied& a) { return !before(at_s, a.at_s); });
      return Updates{total(first), total(last) - total(first)};
    };
    const double servers = members_[lanes_[desk.lanes[0]].server];
    for (const Push& push : desk.pushes) {
      if (push.answered_at_s < 0 || before(push.applied_at_s, from_s) || before(until_s, push.applied_at_s))
        continue;
      const Updates then = updates(push.answered_at_s), now = updates(push.applied_at_s);
      // An answer that had to wait has all that it waited for.
      const bool waited = before(push.last_applied_at_s, push.answered_at_s);
      const double missed = now.earlier - (then.earlier + then.at_once) + (now.at_once - 1) / 2 +
                            (waited ? 0 : (then.at_once - 1) / 2);
      result.max = std::max(result.max, missed);
      result.mean += missed * push.members * servers;
      weight += push.members * servers;
    }
  }
  if (weight > 0) result.mean /= weight;
  return result;
}

}  // namespace convoy
