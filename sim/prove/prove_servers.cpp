// SPDX-License-Identifier: MIT
#include "sim/prove/prove_servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/prove/image_cover.h"
#include "sim/prove/served_role.h"
#include "sim/prove/server_flows.h"

namespace convoy::inline prove {
namespace {

using Kind = CommMeaning::Kind;
using Act = OpMeaning::Act;

class ServerProver {
 public:
  ServerProver(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
               const HappensBefore& order, RoundRules& rounds)
      : plan_(plan),
        meaning_(*plan.meaning),
        graph_(graph),
        machine_(machine),
        order_(order),
        flows_(plan, machine, rounds),
        ways_(plan.meaning->buckets.size()) {
    for (std::uint32_t r = 0; r < plan.roles.size(); ++r)
      roles_.push_back(served_role(plan, graph, machine, order.of(r), r));
    for (CommId id = 0; id < plan.communications.size(); ++id) add_way(id);
  }

  void prove() {
    check_buckets();
    check_service();
    check_images();
    for (std::uint32_t b = 0; b < ways_.size(); ++b) {
      check_bytes(b);
      check_tasks(b);
      flows_.check(ways_[b], servers_of(b), bucket_name(b));
      const bool at_first_use = pulls_first(b);
      for (std::uint32_t r = 0; r < roles_.size(); ++r)
        roles_[r].works ? check_worker(r, b, at_first_use) : check_host(r, b, at_first_use);
    }
  }

 private:
  std::string at(std::uint32_t r, TaskId t) const { return name_of(plan_.roles[r], t, machine_); }
  std::string role_name(std::uint32_t r) const { return name_of(plan_.roles[r], machine_); }
  std::string bucket_name(std::uint32_t b) const {
    const std::vector<std::size_t>& of = meaning_.buckets[b].parameters;
    return fmt::format(
        "{}{}", graph_.parameters[of.front()].name,
        of.size() > 1 ? fmt::format(" and {} other tensor{}", of.size() - 1, of.size() == 2 ? "" : "s") : "");
  }

  // What there is.

  void add_way(CommId id) {
    const Communication& comm = plan_.communications[id];
    if (comm.meaning == no_meaning) throw NotCovered(fmt::format("what '{}' carries is not said", comm.name));
    const CommMeaning& means = meaning_.communications[comm.meaning];
    const auto once = [&](std::optional<CommId>& of) {
      if (of)
        throw Refuted(fmt::format("{} has two ways to its servers, or back", bucket_name(means.bucket)));
      of = id;
    };
    switch (means.kind) {
      case Kind::push:
        return once(ways_.at(means.bucket).push);
      case Kind::pull:
        return once(ways_.at(means.bucket).pull);
      case Kind::collect:
        return ways_.at(means.bucket).collects.push_back(id);
      case Kind::hand_out:
        return ways_.at(means.bucket).hand_outs.push_back(id);
      case Kind::scatter:
        return ways_.at(means.bucket).scatters.push_back(id);
      case Kind::gather_parameters:
        return ways_.at(means.bucket).gathers.push_back(id);
      default:
        throw NotCovered(fmt::format("'{}' is no message of servers", comm.name));
    }
  }

  // Rules of the whole plan.

  /// Each parameter is in one bucket, which goes there and back.
  void check_buckets() const {
    std::vector<int> in(graph_.parameters.size(), 0);
    for (std::uint32_t b = 0; b < ways_.size(); ++b) {
      if (meaning_.buckets[b].parameters.empty()) throw Refuted("a message of servers has no tensors");
      if (!ways_[b].push || !ways_[b].pull)
        throw Refuted(fmt::format("no message brings {} to servers and back", bucket_name(b)));
      if (meaning_.buckets[b].zero > 0)
        throw NotCovered(fmt::format("members have only shares of {}", bucket_name(b)));
      for (const std::size_t p : meaning_.buckets[b].parameters)
        if (++in[p] > 1)
          throw Refuted(fmt::format("the gradient of {} is sent twice", graph_.parameters[p].name));
    }
    for (std::size_t p = 0; p < in.size(); ++p)
      if (in[p] == 0)
        throw Refuted(
            fmt::format("no message brings the gradient of {} to a server", graph_.parameters[p].name));
  }

  /// Who does a step is a client, once, with the images of its program, and what it exchanges are buckets.
  void check_service() const {
    const Service* service = plan_.service();
    if (!service) return;
    std::map<EndpointId, double> images;
    for (const Service::Client& client : service->clients) images[client.device] = client.images;
    for (std::uint32_t r = 0; r < roles_.size(); ++r) {
      if (!roles_[r].works) continue;
      const double own = images_of_role(r);
      for (const EndpointId e : plan_.roles[r].members)
        if (const auto found = images.find(e);
            found == images.end() || std::abs(found->second - own) > 1e-9 * (1 + own))
          throw Refuted(fmt::format("{}: the service counts {} images of its step, and it has {}",
                                    machine_.endpoint_name(e), found == images.end() ? 0 : found->second,
                                    own));
    }
    std::size_t exchanged = 0;
    for (const Service::Exchange& exchange : service->exchanges)
      for (const BucketWays& ways : ways_)
        if (ways.push == exchange.push) {
          if (ways.pull != exchange.pull)
            throw Refuted(fmt::format("'{}' is answered with other parameters",
                                      plan_.communications[exchange.push].name));
          ++exchanged;
        }
    if (exchanged != ways_.size() || exchanged != service->exchanges.size())
      throw Refuted(fmt::format("servers answer {} of {} messages", exchanged, ways_.size()));
  }

  double images_of_role(std::uint32_t r) const {
    double most = 0;
    for (const auto& [operation, steps] : roles_[r].gradients) {
      double images = 0;
      for (const ServedStep& step : steps) images += step.images.count;
      most = std::max(most, images);
    }
    return most;
  }

  /// All workers together have the gradients of all images, each once, of every layer.
  void check_images() const {
    const double images = images_of_workers(plan_);
    const double tolerance = 1e-9 * (1 + images);
    std::map<OpId, std::vector<std::pair<double, double>>> parts;
    for (const Parameter& parameter : graph_.parameters) parts[parameter.gradient];
    for (std::uint32_t r = 0; r < roles_.size(); ++r)
      for (const auto& [operation, steps] : roles_[r].gradients)
        for (const ServedStep& step : steps)
          for (const EndpointId e : plan_.roles[r].members)
            if (step.images.count > 0)
              parts[operation].emplace_back(step.images.first + meaning_.lanes[e] * step.images.count,
                                            step.images.count);
    std::vector<std::vector<std::pair<double, double>>> known;  // many layers have the same
    for (auto& [operation, of] : parts) {
      if (std::find(known.begin(), known.end(), of) != known.end()) continue;
      if (known.size() < 4) known.push_back(of);
      const std::string& name = graph_.model.layers[graph_.operations[operation].layer].name;
      const double end = end_of_images(of, 0, tolerance, name);
      if (std::abs(end - images) > tolerance)
        throw Refuted(
            fmt::format("the gradients of {} are of {} images, and the batch has {}", name, end, images));
    }
  }

  // Rules of a bucket.

  void check_bytes(std::uint32_t b) const {
    const BucketMeaning& bucket = meaning_.buckets[b];
    double elements = 0;
    for (const std::size_t p : bucket.parameters)
      elements += static_cast<double>(graph_.parameters[p].elements);
    const auto check = [&](CommId id, double element) {
      const Communication& comm = plan_.communications[id];
      if (element > 0 && std::abs(comm.bytes - element * elements) > 1e-9 * (1 + comm.bytes))
        throw Refuted(fmt::format("'{}' carries {} bytes, and its tensors have {}", comm.name, comm.bytes,
                                  element * elements));
    };
    const BucketWays& ways = ways_[b];
    const double whole = element_bytes(graph_.options.precision);
    check(*ways.push, bucket.element_bytes);  // which gradients are the largest, compression decides
    check(*ways.pull, whole);
    for (const CommId comm : ways.collects) check(comm, bucket.element_bytes);
    for (const CommId comm : ways.scatters) check(comm, bucket.element_bytes);
    for (const auto* back : {&ways.hand_outs, &ways.gathers})
      for (const CommId comm : *back) check(comm, whole);
  }

  /// Whoever has messages has a task for them.
  void check_tasks(std::uint32_t b) {
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
  /// By a rule and not by a program.
  bool answers(std::uint32_t r) const { return plan_.service() && !roles_[r].works; }

  /// Who updates a bucket; sorted.
  std::vector<EndpointId> servers_of(std::uint32_t b) {
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

  /// Whether parameters come at the beginning of a step, as the step before has left them. Then all workers
  /// wait for them (check_worker), and so does what updates them.
  bool pulls_first(std::uint32_t b) const {
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

  void need(std::uint32_t r, std::optional<TaskId> before, std::optional<TaskId> after) const {
    if (before && after && !order_.of(r).precedes(*before, *after))
      throw Refuted(
          fmt::format("{}: does not wait for '{}'", at(r, *after), plan_.roles[r].program[*before].name));
  }

  /// Gradients are complete, then compressed where they are, then sent; the old parameters are read no more;
  /// then the new ones come. At first use: parameters come, and then everything else.
  void check_worker(std::uint32_t r, std::uint32_t b, bool at_first_use) const {
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
    if (!leaves)
      throw Refuted(fmt::format("{}: the gradients of {} stay there", role_name(r), bucket_name(b)));
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
          throw Refuted(fmt::format(
              "{}: {} may read {} after its gradients have gone, when new parameters may have come",
              role_name(r), graph_.operations[read.operation].name, graph_.parameters[p].name));
        if (at_first_use && read.place < order_.of(r).ends[*comes])
          throw Refuted(fmt::format("{}: {} does not wait for '{}', which brings {}", role_name(r),
                                    graph_.operations[read.operation].name,
                                    plan_.roles[r].program[*comes].name, graph_.parameters[p].name));
      }
    }
    if (at_first_use && !is_late && order_.of(r).begins[*leaves] < order_.of(r).ends[*comes])
      throw Refuted(
          fmt::format("{}: does not wait for '{}'", at(r, *leaves), plan_.roles[r].program[*comes].name));
  }

  void check_gradients(std::uint32_t r, std::uint32_t b, TaskId leaves, bool is_late) const {
    const ServedRole& role = roles_[r];
    const BucketMeaning& bucket = meaning_.buckets[b];
    const bool compresses = bucket.element_bytes != element_bytes(graph_.options.precision);
    const auto compressed = role.compressed.find(b);
    const std::size_t times = compressed == role.compressed.end() ? 0 : compressed->second.size();
    if (times != (compresses ? 1 : 0))
      throw Refuted(fmt::format("{}: the gradients of {} are compressed {} times", role_name(r),
                                bucket_name(b), times));
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

  /// Hosts that collect gradients of their devices, servers, and those that are both.
  void check_host(std::uint32_t r, std::uint32_t b, bool at_first_use) const {
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

  const Plan& plan_;
  const Meaning& meaning_;
  const TrainingGraph& graph_;
  const Machine& machine_;
  const HappensBefore& order_;
  ServerFlows flows_;
  std::vector<BucketWays> ways_;  ///< by bucket
  std::vector<ServedRole> roles_;
};

}  // namespace

bool has_servers(const Plan& plan) {
  return plan.service() ||
         std::any_of(plan.meaning->communications.begin(), plan.meaning->communications.end(),
                     [](const CommMeaning& of) { return of.kind == Kind::push; });
}

void prove_servers(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                   const HappensBefore& order, RoundRules& rounds) {
  ServerProver(plan, graph, machine, order, rounds).prove();
}

double images_of_workers(const Plan& plan) {
  const Service* service = plan.service();
  if (!service || service->quorum == 0) return plan.images;
  return plan.images * static_cast<double>(service->clients.size()) / service->quorum;
}

std::string allowed_by_service(const Plan& plan) {
  const Service* service = plan.service();
  if (!service || service->exchanges.empty()) return "";
  const std::size_t workers = service->clients.size();
  if (service->quorum > 0)
    return service->quorum < workers ? fmt::format("updates with the gradients of the first {} of {} workers",
                                                   service->quorum, workers)
                                     : "";
  if (service->max_lead == Service::unbounded)
    return workers > 1 ? "updates with the gradients of one worker at a time, of any age" : "";
  return fmt::format(
      "updates with the gradients of one worker at a time, which is at most {} step{} ahead of the slowest",
      service->max_lead, service->max_lead == 1 ? "" : "s");
}

}  // namespace convoy::prove
