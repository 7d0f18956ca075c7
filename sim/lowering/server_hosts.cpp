// SPDX-License-Identifier: MIT
#include "sim/lowering/server_hosts.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
namespace {

TaskId add_host_work(Role& role, std::string name, double seconds, std::vector<TaskId> after) {
  const TaskId task = add_compute(role, std::move(name), {}, std::move(after));
  role.program[task].seconds = seconds;
  return task;
}

/// What a host does: index of the server it runs (every_server where all servers do the same), devices it
/// adds up for.
struct HostDuty {
  std::optional<std::uint32_t> server;
  std::uint32_t device_count;
  std::uint32_t type;
  auto operator<=>(const HostDuty&) const = default;
};

class ServerHosts {
 public:
  ServerHosts(const Machine& machine, const ServerExchange& exchange, const ServerMessages& messages,
              Plan& plan)
      : machine_(machine), exchange_(exchange), messages_(messages), plan_(plan) {}

  void add() {
    std::map<HostDuty, std::vector<EndpointId>> duties;
    std::unordered_map<EndpointId, std::uint32_t> server_of;
    for (std::uint32_t s = 0; s < exchange_.servers.size(); ++s) server_of.emplace(exchange_.servers[s], s);
    for (std::uint32_t h = 0; h < machine_.hosts.size(); ++h) {
      const Host& host = machine_.hosts[h];
      HostDuty duty{std::nullopt, sums_on_hosts() ? host.device_count : 0, host.type};
      if (const auto server = server_of.find(machine_.host_endpoint(h)); server != server_of.end())
        duty.server = exchange_.sharding == ServerSharding::even ? PushMessage::every_server : server->second;
      if (duty.server || duty.device_count > 0) duties[duty].push_back(machine_.host_endpoint(h));
    }
    for (auto& [duty, members] : duties) plan_.roles.push_back(host_role(duty, std::move(members)));
  }

 private:
  bool sums_on_hosts() const { return exchange_.sums_on_hosts(); }

  Role host_role(const HostDuty& duty, std::vector<EndpointId> members) {
    Role role;
    role.name = !duty.server ? "node host" : duty.device_count > 0 ? "node host and server" : "server";
    role.members = std::move(members);
    role.streams = {"cpu"};
    // What the first use pulls has been updated in the step before.
    const bool first_pulls = exchange_.pull == PullMode::at_first_use;
    for (std::size_t m = 0; first_pulls && m < messages_.size(); ++m) add_pulls(role, duty, m, {});
    std::vector<std::vector<TaskId>> summed(messages_.size());
    std::vector<std::vector<TaskId>> updated(messages_.size());  // what must be done before it goes back
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      summed[m] = add_node_sum(role, duty, m);
      if (!first_pulls) updated[m] = add_update(role, duty, m, summed[m]);
    }
    // Nobody waits for a single update: a host that waited for the other hosts' gradients of one message would
    // keep the next one back.
    for (std::size_t m = 0; first_pulls && m < messages_.size(); ++m)
      updated[m] = add_update(role, duty, m, summed[m]);
    if (exchange_.pull == PullMode::after_all) {
      std::vector<TaskId> all;
      for (const std::vector<TaskId>& tasks : updated) all.insert(all.end(), tasks.begin(), tasks.end());
      for (std::vector<TaskId>& tasks : updated)
        if (!tasks.empty()) tasks = all;
    }
    for (std::size_t m = 0; !first_pulls && m < messages_.size(); ++m) add_pulls(role, duty, m, updated[m]);
    return role;
  }

  bool serves(const HostDuty& duty, std::size_t m) const {
    return duty.server && messages_.is_target(m, *duty.server);
  }
  bool has_remote_target(const HostDuty& duty, std::size_t m) const {
    return duty.device_count > 0 && messages_.target_count(m) > (serves(duty, m) ? 1.0 : 0.0);
  }

  double seconds_for(const HostDuty& duty, double bytes) const {
    return bytes / machine_.host_types[duty.type].reduce_bandwidth_Bps;
  }

  /// What a host's devices have of message m is added up, if this host does that, and sent to its server.
  /// @return the task of the sum, if there is one
  std::vector<TaskId> add_node_sum(Role& role, const HostDuty& duty, std::size_t m) {
    std::vector<TaskId> summed;
    if (duty.device_count > 0) {
      const TaskId pushed = add_message(role, Task::Kind::receive, fmt::format("node's gradients {}", m),
                                        messages_.in_node(duty.device_count, m).in, {});
      summed = {add_host_work(role, fmt::format("add up node's gradients {}", m),
                              seconds_for(duty, duty.device_count * messages_.added_bytes(m)), {pushed})};
      mean_task(role.program[summed.front()], OpMeaning::Act::collect, m);
    }
    if (has_remote_target(duty, m))
      add_message(role, Task::Kind::send, fmt::format("push {}", m), messages_.with_servers(m).in, summed);
    return summed;
  }

  /// @return the task of message m's update, if this host serves it
  std::vector<TaskId> add_update(Role& role, const HostDuty& duty, std::size_t m,
                                 std::vector<TaskId> before) {
    if (!serves(duty, m)) return {};
    const double senders = messages_.sender_count() - (duty.device_count > 0 ? 1 : 0);
    before.push_back(add_message(role, Task::Kind::receive, fmt::format("gradients {}", m),
                                 messages_.with_servers(m).in, {}));
    const double bytes = senders * messages_.added_bytes(m) / messages_.target_count(m);
    const TaskId update =
        add_host_work(role, fmt::format("add up and update {}", m), seconds_for(duty, bytes), before);
    mean_task(role.program[update], OpMeaning::Act::serve, m);
    return {update};
  }

  /// The way back of message m: from this host's server, and to this host's devices.
  void add_pulls(Role& role, const HostDuty& duty, std::size_t m, const std::vector<TaskId>& updated) const {
    std::vector<TaskId> before = updated;
    if (serves(duty, m))
      add_message(role, Task::Kind::send, fmt::format("send back {}", m), messages_.with_servers(m).back,
                  updated);
    if (has_remote_target(duty, m)) {
      before.push_back(add_message(role, Task::Kind::receive, fmt::format("pull {}", m),
                                   messages_.with_servers(m).back, {}));
      if (std::isfinite(exchange_.unpack_Bps))
        before = {add_host_work(role, fmt::format("unpack {}", m),
                                messages_.all()[m].bytes / exchange_.unpack_Bps, std::move(before))};
    }
    if (duty.device_count > 0)
      add_message(role, Task::Kind::send, fmt::format("hand out {}", m),
                  messages_.in_node(duty.device_count, m).back, before);
  }

  /// Of a host's task.
  void mean_task(Task& task, OpMeaning::Act act, std::size_t m) const {
    if (!plan_.meaning) return;
    task.meaning = static_cast<std::uint32_t>(plan_.meaning->operations.size());
    plan_.meaning->operations.push_back({.act = act, .bucket = static_cast<std::uint32_t>(m)});
  }

  const Machine& machine_;
  const ServerExchange& exchange_;
  const ServerMessages& messages_;
  Plan& plan_;
};

}  // namespace

void add_server_hosts(const Machine& machine, const ServerExchange& exchange, const ServerMessages& messages,
                      Plan& plan) {
  ServerHosts(machine, exchange, messages, plan).add();
}

}  // namespace convoy::lowering
