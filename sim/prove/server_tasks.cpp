// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/prove/server_prover.h"

namespace convoy::inline prove {
namespace servers {

void ServerProver::check_tasks(std::uint32_t b) {
  const BucketWays& ways = ways_[b];
  const auto check = [&](CommId id) {
    const Communication& comm = plan_.communications[id];
    const ServerFlows::Ends& ends = flows_.ends_of(comm.pattern);
    for (const std::uint32_t r : ends.senders)
      if (!answers(r) && !roles_[r].sends.contains(id))
        throw Refuted(fmt::format("{}: no task sends '{}'", role_name(r), comm.name));
    for (const std::uint32_t r : ends.receivers)
      if (!answers(r) && !roles_[r].receives.contains(id))
        throw Refuted(fmt::format("{}: no task receives '{}'", role_name(r), comm.name));
  };
  check(*ways.push), check(*ways.pull);
  for (const auto* comms : {&ways.collects, &ways.hand_outs})
    for (const CommId comm : *comms) check(comm);
  for (const auto* comms : {&ways.scatters, &ways.gathers})
    for (const CommId id : *comms)
      for (const std::uint32_t r : flows_.ends_of(plan_.communications[id].pattern).senders)
        if (!roles_[r].joins.contains(id))
          throw Refuted(
              fmt::format("{}: takes no part in '{}'", role_name(r), plan_.communications[id].name));
}

std::vector<EndpointId> ServerProver::servers_of(std::uint32_t b) {
  std::vector<EndpointId> servers;
  const CommId pull = *ways_[b].pull;
  const bool updates = meaning_.communications[plan_.communications[pull].meaning].updates;
  if (plan_.service() || updates) {
    for (const std::vector<EndpointId>& group : plan_.patterns[plan_.communications[pull].pattern].groups)
      for (const Round& round : plan_.patterns[plan_.communications[pull].pattern].rounds)
        round.for_each_message(
            [&](std::uint32_t from, std::uint32_t, double) { servers.push_back(group[from]); });
  } else {
    for (std::uint32_t r = 0; r < roles_.size(); ++r)
      if (roles_[r].serves.contains(b))
        servers.insert(servers.end(), plan_.roles[r].members.begin(), plan_.roles[r].members.end());
  }
  std::sort(servers.begin(), servers.end());
  servers.erase(std::unique(servers.begin(), servers.end()), servers.end());
  return servers;
}

bool ServerProver::pulls_first(std::uint32_t b) const {
  for (std::uint32_t r = 0; r < roles_.size(); ++r) {
    const std::optional<TaskId> pull = task_in(roles_[r].sends, ways_[b].pull);
    if (!pull) continue;
    if (roles_[r].works) {  // who updates when it sends, with what it has received
      const std::optional<TaskId> sum = task_in(roles_[r].receives, ways_[b].push);
      if (sum && !order_.of(r).precedes(*sum, *pull)) return true;
      continue;
    }
    const auto serves = roles_[r].serves.find(b);
    if (serves != roles_[r].serves.end() && !order_.of(r).precedes(serves->second.front(), *pull))
      return true;
  }
  return false;
}

void ServerProver::need(std::uint32_t r, std::optional<TaskId> before, std::optional<TaskId> after) const {
  if (before && after && !order_.of(r).precedes(*before, *after))
    throw Refuted(
        fmt::format("{}: does not wait for '{}'", at(r, *after), plan_.roles[r].program[*before].name));
}

void ServerProver::check_worker(std::uint32_t r, std::uint32_t b, bool at_first_use) const {
  const ServedRole& role = roles_[r];
  const BucketWays& ways = ways_[b];
  const std::optional<TaskId> scatter = task_in(role.joins, ways.scatters),
                              collect = task_in(role.sends, ways.collects),
                              collected = task_in(role.receives, ways.collects),
                              push = task_in(role.sends, ways.push),
                              pushed = task_in(role.receives, ways.push),  // owners on a single node
      pull = task_in(role.receives, ways.pull), pulled = task_in(role.sends, ways.pull),
                              hand_out = task_in(role.sends, ways.hand_outs),
                              handed = task_in(role.receives, ways.hand_outs),
                              gather = task_in(role.joins, ways.gathers);
  const bool updates = pulled && !push;
  const std::optional<TaskId> leaves = scatter ? scatter : collect ? collect : push ? push : pulled;
  const std::optional<TaskId> comes = gather ? gather : handed ? handed : pull ? pull : pulled;
  if (!leaves) throw Refuted(fmt::format("{}: the gradients of {} stay there", role_name(r), bucket_name(b)));
  if (!comes) throw Refuted(fmt::format("{}: no new {} come", role_name(r), bucket_name(b)));
  need(r, scatter, push);
  need(r, collected, push);
  need(r, pull, gather);
  need(r, pull, hand_out);
  if (updates && !at_first_use) need(r, pushed, pulled);
  const bool is_late = updates && at_first_use;  // the update of the step before
  check_gradients(r, b, *leaves, is_late);
  for (const std::size_t p : meaning_.buckets[b].parameters) {
    const auto reads = role.reads.find(graph_.parameters[p].layer);
    if (reads == role.reads.end()) continue;
    for (const ServedStep& read : reads->second) {
      if (!is_late && read.place >= order_.of(r).begins[*leaves])
        throw Refuted(
            fmt::format("{}: {} may read {} after its gradients have gone, when new parameters may have come",
                        role_name(r), graph_.operations[read.operation].name, graph_.parameters[p].name));
      if (at_first_use && read.place < order_.of(r).ends[*comes])
        throw Refuted(fmt::format("{}: {} does not wait for '{}', which brings {}", role_name(r),
                                  graph_.operations[read.operation].name, plan_.roles[r].program[*comes].name,
                                  graph_.parameters[p].name));
    }
  }
  if (at_first_use && !is_late && order_.of(r).begins[*leaves] < order_.of(r).ends[*comes])
    throw Refuted(
        fmt::format("{}: does not wait for '{}'", at(r, *leaves), plan_.roles[r].program[*comes].name));
}

void ServerProver::check_gradients(std::uint32_t r, std::uint32_t b, TaskId leaves, bool is_late) const {
  const ServedRole& role = roles_[r];
  const BucketMeaning& bucket = meaning_.buckets[b];
  const bool compresses = bucket.element_bytes != element_bytes(graph_.options.precision);
  const auto compressed = role.compressed.find(b);
  const std::size_t times = compressed == role.compressed.end() ? 0 : compressed->second.size();
  if (times != (compresses ? 1 : 0))
    throw Refuted(
        fmt::format("{}: the gradients of {} are compressed {} times", role_name(r), bucket_name(b), times));
  if (compresses && compressed->second[0].place >= order_.of(r).begins[leaves])
    throw Refuted(fmt::format("{}: does not wait for its gradients to be compressed", at(r, leaves)));
  for (const std::size_t p : bucket.parameters) {
    const auto steps = role.gradients.find(graph_.parameters[p].gradient);
    if (steps == role.gradients.end())
      throw Refuted(
          fmt::format("{}: nothing makes the gradient of {}", role_name(r), graph_.parameters[p].name));
    for (const ServedStep& step : steps->second) {
      if (!is_late && step.place >= order_.of(r).begins[leaves])
        throw Refuted(fmt::format("{}: does not wait for the gradient of {}", at(r, leaves),
                                  graph_.parameters[p].name));
      if (compresses && compressed->second[0].number < step.number)
        throw Refuted(fmt::format("{}: the gradient of {} is not in what is sent", at(r, leaves),
                                  graph_.parameters[p].name));
    }
  }
}

void ServerProver::check_host(std::uint32_t r, std::uint32_t b, bool at_first_use) const {
  if (answers(r)) return;
  const ServedRole& role = roles_[r];
  const BucketWays& ways = ways_[b];
  const auto only = [&](const std::map<std::uint32_t, std::vector<TaskId>>& acts) -> std::optional<TaskId> {
    const auto found = acts.find(b);
    if (found == acts.end()) return std::nullopt;
    if (found->second.size() > 1)
      throw Refuted(fmt::format("{}: adds up the gradients of {} a second time", at(r, found->second[1]),
                                bucket_name(b)));
    return found->second[0];
  };
  const std::optional<TaskId> collected = task_in(role.receives, ways.collects), sum = only(role.collects),
                              serve = only(role.serves), push = task_in(role.sends, ways.push),
                              pushed = task_in(role.receives, ways.push),
                              pull = task_in(role.receives, ways.pull),
                              pulled = task_in(role.sends, ways.pull),
                              hand_out = task_in(role.sends, ways.hand_outs);
  if (collected && !sum)
    throw Refuted(fmt::format("{}: the gradients of {} that have come are not added up", at(r, *collected),
                              bucket_name(b)));
  need(r, collected, sum);
  need(r, sum, push);
  need(r, sum, serve);
  need(r, pushed, serve);
  need(r, pull, hand_out);
  if (at_first_use) return;
  need(r, serve, pulled);
  need(r, serve, hand_out);
}

}  // namespace servers

}  // namespace convoy::prove
