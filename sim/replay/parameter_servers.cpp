// SPDX-License-Identifier: MIT
#include "sim/replay/parameter_servers.h"

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

std::vector<double> ParameterServers::adder_capacities(const Plan& plan, const Machine& machine,
                                                       const Folding& folding) {
  std::vector<double> result;
  for (const auto& [server, rate] : adders(plan, machine, folding)) result.push_back(rate);
  return result;
}

ParameterServers::ParameterServers(const Plan& plan, const Machine& machine, const FlowTable& table,
                                   const Folding& folding, Engine& engine, Transfers& transfers,
                                   MessageListener& listener, ServiceLog* log)
    : service_(*plan.service()),
      folding_(folding),
      engine_(engine),
      transfers_(transfers),
      listener_(listener),
      log_(log),
      exchange_of_(plan.communications.size()),
      clients_(folding.endpoints.size()),
      members_(folding.endpoints.size(), 0) {
  for (const std::uint32_t c : folding.endpoint_class)
    if (c != Folding::none) ++members_[c];
  auto adder_link = static_cast<std::uint32_t>(folding.links.size());
  for (const auto& [server, rate] : adders(plan, machine, folding)) adder_[server] = adder_link++;

  const std::vector<std::uint32_t> way_back = answers(plan, table);
  std::map<std::uint32_t, ConnectionsByServer> by_pattern;
  for (const Service::Exchange& exchange : service_.exchanges) {
    const std::uint32_t pattern = plan.communications[exchange.push].pattern;
    const auto [known, fresh] = by_pattern.try_emplace(pattern);
    if (fresh) known->second = find_connections(pattern, table, way_back);
  }
  for (Connection& connection : connections_)
    if (const auto adder = adder_.find(connection.server); adder != adder_.end())
      connection.adding = engine.add_route(std::vector<LinkUse>{{adder->second, connection.arrivals}});
  for (const Service::Client& client : service_.clients) {
    Client& known = clients_[folding.endpoint_class[client.device]];
    if (known.first_exchange != none) continue;
    known.first_exchange = static_cast<std::uint32_t>(exchange_progress_.size());
    exchange_progress_.resize(exchange_progress_.size() + service_.exchanges.size());
    known.first_tasks = static_cast<std::uint32_t>(
        folding.endpoint_role[folding.endpoint_class[client.device]] * service_.exchanges.size());
    known.steps = client.head_start;
    steps_.add(client.head_start);
  }
  add_exchanges(plan, by_pattern);
  list_tasks(plan);
  if (service_.max_lead != Service::unbounded) count_first_steps();
}

/// Adds the connections of a pattern.
ParameterServers::ConnectionsByServer ParameterServers::find_connections(
    std::uint32_t pattern, const FlowTable& table, const std::vector<std::uint32_t>& way_back) {
  ConnectionsByServer result;
  std::unordered_map<std::uint32_t, std::uint32_t> connection_of;  // by flow class
  const std::uint32_t first_group = table.first_group[pattern], last_group = table.first_group[pattern + 1];
  for (std::uint32_t g = first_group; g < last_group; ++g)
    for (std::uint32_t f = table.groups[g].first_flow;
         f < table.groups[g].first_flow + table.groups[g].flow_count; ++f) {
      const FlowPath& path = table.path(table.flows[f]);
      const std::uint32_t server = folding_.endpoint_class[path.to], push = folding_.flow_class[f],
                          pull = folding_.flow_class[way_back[f]];
      const auto [it, first] = connection_of.emplace(push, static_cast<std::uint32_t>(connections_.size()));
      if (first) {
        connections_.push_back({folding_.endpoint_class[path.from], server, folding_.route_class[push],
                                folding_.route_class[pull], 0, Folding::none,
                                folding_.flow(table, push).fraction, folding_.flow(table, pull).fraction});
        result[server].push_back(it->second);
      }
      if (path.to == folding_.endpoints[server]) ++connections_[it->second].arrivals;
    }
  return result;
}

/// Also adds the exchanges and channels of the clients.
void ParameterServers::add_exchanges(const Plan& plan,
                                     const std::map<std::uint32_t, ConnectionsByServer>& by_pattern) {
  std::vector<std::vector<Channel>> channels(clients_.size());  // by client class
  for (std::size_t x = 0; x < service_.exchanges.size(); ++x) {
    const Service::Exchange& exchange = service_.exchanges[x];
    exchange_of_[exchange.push] = exchange_of_[exchange.pull] = x;
    for (const auto& [server, connections] : by_pattern.at(plan.communications[exchange.push].pattern)) {
      ServedExchange served;
      served.push_bytes = plan.communications[exchange.push].bytes;
      served.pull_bytes = plan.communications[exchange.pull].bytes;
      served.added_bytes = exchange.added_bytes.value_or(served.push_bytes);
      served.exchange = static_cast<std::uint32_t>(x);
      served.server = server;
      for (const std::uint32_t connection : connections) {
        const std::uint32_t client = connections_[connection].client;
        channels[client].push_back({static_cast<std::uint32_t>(served_.size()), connection});
        ++progress(client, x).channel_count;
      }
      served_.push_back(std::move(served));
    }
  }
  for (std::size_t c = 0; c < clients_.size(); ++c) {
    auto next = static_cast<std::uint32_t>(channels_.size());
    for (ExchangeProgress& progress : exchanges_of(clients_[c])) {
      progress.first_channel = next;
      next += progress.channel_count;
    }
    channels_.insert(channels_.end(), channels[c].begin(), channels[c].end());
  }
}

/// @pre exchange_of_ is known
void ParameterServers::list_tasks(const Plan& plan) {
  exchange_tasks_.resize(plan.roles.size() * service_.exchanges.size());
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    for (TaskId t = 0; t < plan.roles[r].program.size(); ++t) {
      const Task& task = plan.roles[r].program[t];
      if (task.kind != Task::Kind::send && task.kind != Task::Kind::receive) continue;
      ExchangeTasks& tasks = exchange_tasks_[r * service_.exchanges.size() + exchange_of_[task.comm]];
      (task.kind == Task::Kind::send ? tasks.send : tasks.receive) = t;
    }
}

void ParameterServers::count_first_steps() {
  for (Channel& channel : channels_) {
    channel.steps = clients_[connections_[channel.connection].client].steps;
    served_[channel.served].steps.add(channel.steps);
  }
}

double ParameterServers::adding_s(std::uint32_t server_class, double now_s) const {
  const auto found = adding_.find(server_class);
  return found == adding_.end() ? 0 : found->second.total_s(now_s);
}

void ParameterServers::add_to_log(ServiceLog::Event::Kind kind, const Channel& channel) {
  const Connection& connection = connections_[channel.connection];
  log_->events.push_back({kind, engine_.now_s(), folding_.endpoints[connection.client],
                          folding_.endpoints[connection.server], served_[channel.served].exchange});
}

void ParameterServers::begin_step(std::uint32_t client_class) {
  if (log_)
    log_->events.push_back(
        {ServiceLog::Event::Kind::begin, engine_.now_s(), folding_.endpoints[client_class], 0, 0});
  Client& client = clients_[client_class];
  client.version = std::exchange(client.next_version, std::numeric_limits<std::uint64_t>::max());
  client.left = 0;
  for (ExchangeProgress& progress : exchanges_of(client)) {
    progress.to_deliver = progress.to_receive = progress.channel_count;
    progress.receive_started = 0;
    client.left += progress.channel_count;
  }
  max_lead_ = std::max(max_lead_, client.steps - steps_.fewest());
}

void ParameterServers::count_push(std::uint32_t client_class) {
  Client& client = clients_[client_class];
  if (--client.left == 0) steps_.step(client.steps++);
}

void ParameterServers::start(std::uint32_t client_class, TaskId id, Task::Kind kind, CommId comm) {
  const std::size_t exchange = exchange_of_[comm];
  ExchangeProgress& progress = this->progress(client_class, exchange);
  if (kind == Task::Kind::send) {
    if (progress.to_deliver == 0) listener_.task_done(client_class, id);
    send(client_class, exchange);
    return;
  }
  progress.receive_started = 1;
  if (progress.to_receive == 0) listener_.task_done(client_class, id);
}

void ParameterServers::send(std::uint32_t client_class, std::size_t exchange) {
  const ExchangeProgress& progress = this->progress(client_class, exchange);
  const auto place = static_cast<std::uint32_t>(&progress - exchange_progress_.data());
  for (std::uint32_t w = progress.first_channel; w < progress.first_channel + progress.channel_count; ++w) {
    const Connection& connection = connections_[channels_[w].connection];
    if (service_.quorum > 0) channels_[w].steps = clients_[client_class].version;
    transfers_.launch_for_ends(connection.push,
                               served_[channels_[w].served].push_bytes * connection.push_fraction,
                               Arrival{this, w, place});
  }
}

void ParameterServers::arrive(std::uint32_t w) {
  const Channel& channel = channels_[w];
  const Connection& connection = connections_[channel.connection];
  const Client& client = clients_[connection.client];
  const std::uint32_t exchange = served_[channel.served].exchange;
  if (--exchange_progress_[client.first_exchange + exchange].to_deliver == 0)
    listener_.task_done(connection.client, exchange_tasks_[client.first_tasks + exchange].send);
  if (service_.quorum > 0 && channel.steps < served_[channel.served].version) {
    answer(w);
    return;
  }
  const double bytes = served_[channel.served].added_bytes * connection.push_fraction;
  if (connection.adding == Folding::none || bytes == 0) {
    apply(w);
    return;
  }
  adding_[connection.server].enter(engine_.now_s());
  engine_.start_flow(bytes, connection.adding) = [this, w, server = connection.server] {
    adding_[server].leave(engine_.now_s());
    apply(w);
    listener_.after_event();
  };
}

void ParameterServers::apply(std::uint32_t w) {
  Channel& channel = channels_[w];
  ServedExchange& served = served_[channel.served];
  const Connection& connection = connections_[channel.connection];
  if (service_.quorum > 0) {
    if (channel.steps < served.version) {
      answer(w);
      return;
    }
    log(ServiceLog::Event::Kind::add, channel);
    served.waiting.push_back(w);
    served.counted += connection.arrivals;
    if (served.counted < service_.quorum) return;
    log(ServiceLog::Event::Kind::update, channel);
    ++served.version;
    served.counted = 0;
    for (const std::uint32_t waiting : std::exchange(served.waiting, {})) answer(waiting);
    return;
  }
  log(ServiceLog::Event::Kind::add, channel);
  log(ServiceLog::Event::Kind::update, channel);
  // An answer that had to wait now has everything it waited for.
  const bool waited =
      channel.answered != channel.applied &&
      before(served.pushes[channel.applied].applied_at_s, served.pushes[channel.answered].applied_at_s);
  channel.applied = static_cast<std::uint32_t>(served.pushes.size());
  served.pushes.push_back({engine_.now_s(), channel.answered, connection.arrivals, waited});
  if (service_.max_lead != Service::unbounded) served.steps.step(channel.steps);
  ++channel.steps;
  count_push(connection.client);
  const bool all_may = served.steps.fewest() > std::exchange(served.released_at, served.steps.fewest());
  if (!all_may && may_go_on(served, channel)) {
    answer(w);
    return;
  }
  served.waiting.push_back(w);
  if (all_may) release(served);
}

/// Whether a client is not too far ahead.
bool ParameterServers::may_go_on(const ServedExchange& served, const Channel& channel) const {
  return service_.max_lead == Service::unbounded ||
         channel.steps - served.steps.fewest() <= service_.max_lead;
}

/// Answers those that no longer are too far ahead.
void ParameterServers::release(ServedExchange& served) {
  std::vector<std::uint32_t> ready;
  std::erase_if(served.waiting, [&](std::uint32_t w) {
    if (!may_go_on(served, channels_[w])) return false;
    ready.push_back(w);
    return true;
  });
  for (const std::uint32_t w : ready) answer(w);
}

void ParameterServers::answer(std::uint32_t w) {
  Channel& channel = channels_[w];
  const ServedExchange& served = served_[channel.served];
  const Connection& connection = connections_[channel.connection];
  const std::uint32_t client = connection.client;
  log(ServiceLog::Event::Kind::answer, channel);
  channel.answered = static_cast<std::uint32_t>(served.pushes.size()) - 1;
  // The next step of a client counts as computed from the oldest version that it received.
  std::uint64_t& next_version = clients_[client].next_version;
  next_version = std::min(next_version, served.version);
  transfers_.launch_for_ends(connection.pull, served.pull_bytes * connection.pull_fraction,
                             Answered{this, client, clients_[client].first_exchange + served.exchange});
}

/// @param place in exchange_progress_
void ParameterServers::receive(std::uint32_t client_class, std::uint32_t place) {
  ExchangeProgress& progress = exchange_progress_[place];
  const Client& client = clients_[client_class];
  if (--progress.to_receive == 0 && progress.receive_started)
    listener_.task_done(client_class,
                        exchange_tasks_[client.first_tasks + (place - client.first_exchange)].receive);
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

StalenessResult ParameterServers::staleness(double from_s, double until_s) const {
  StalenessResult result;
  result.max_lead = max_lead_;
  double weight = 0;
  for (const ServedExchange& served : served_) {
    const std::vector<Push> pushes(served.pushes.begin(), served.pushes.end());
    const std::vector<double> totals = running_totals(pushes);
    const double servers = members_[served.server];
    std::size_t first = 0, last = 0;  // pushes at the same moment as the current one
    for (const Push& push : pushes) {
      while (before(pushes[first].applied_at_s, push.applied_at_s)) ++first;
      while (last < pushes.size() && !before(push.applied_at_s, pushes[last].applied_at_s)) ++last;
      if (push.answered == none || before(push.applied_at_s, from_s) || before(until_s, push.applied_at_s))
        continue;
      // Pushes at the moment at which the parameters were sent.
      const double answered_at_s = pushes[push.answered].applied_at_s;
      std::size_t then = push.answered, then_end = push.answered + 1;
      while (then > 0 && !before(pushes[then - 1].applied_at_s, answered_at_s)) --then;
      while (then_end < pushes.size() && !before(answered_at_s, pushes[then_end].applied_at_s)) ++then_end;
      const double then_total = totals[then_end], then_at_once = then_total - totals[then],
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
