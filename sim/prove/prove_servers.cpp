// SPDX-License-Identifier: MIT
#include "sim/prove/prove_servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/prove/image_cover.h"
#include "sim/prove/server_prover.h"

namespace convoy::inline prove {
namespace servers {

ServerProver::ServerProver(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
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

void ServerProver::prove() {
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

std::string ServerProver::bucket_name(std::uint32_t b) const {
  const std::vector<std::size_t>& of = meaning_.buckets[b].parameters;
  return fmt::format(
      "{}{}", graph_.parameters[of.front()].name,
      of.size() > 1 ? fmt::format(" and {} other tensor{}", of.size() - 1, of.size() == 2 ? "" : "s") : "");
}

void ServerProver::add_way(CommId id) {
  const Communication& comm = plan_.communications[id];
  if (comm.meaning == no_meaning) throw NotCovered(fmt::format("what '{}' carries is not said", comm.name));
  const CommMeaning& means = meaning_.communications[comm.meaning];
  const auto once = [&](std::optional<CommId>& of) {
    if (of) throw Refuted(fmt::format("{} has two ways to its servers, or back", bucket_name(means.bucket)));
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

void ServerProver::check_buckets() const {
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

void ServerProver::check_service() const {
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
                                  machine_.endpoint_name(e), found == images.end() ? 0 : found->second, own));
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

double ServerProver::images_of_role(std::uint32_t r) const {
  double most = 0;
  for (const auto& [operation, steps] : roles_[r].gradients) {
    double images = 0;
    for (const ServedStep& step : steps) images += step.images.count;
    most = std::max(most, images);
  }
  return most;
}

void ServerProver::check_images() const {
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

void ServerProver::check_bytes(std::uint32_t b) const {
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

}  // namespace servers

bool has_peers(const Plan& plan) {
  return plan.service() &&
         std::any_of(plan.meaning->communications.begin(), plan.meaning->communications.end(),
                     [](const CommMeaning& of) { return of.kind == CommMeaning::Kind::exchange; });
}

bool has_servers(const Plan& plan) {
  if (has_peers(plan)) return false;
  return plan.service() ||
         std::any_of(plan.meaning->communications.begin(), plan.meaning->communications.end(),
                     [](const CommMeaning& of) { return of.kind == CommMeaning::Kind::push; });
}

void prove_servers(const Plan& plan, const TrainingGraph& graph, const Machine& machine,
                   const HappensBefore& order, RoundRules& rounds) {
  servers::ServerProver(plan, graph, machine, order, rounds).prove();
}

double images_of_workers(const Plan& plan) {
  const Service* service = plan.service();
  if (!service || service->quorum == 0) return plan.images;
  return plan.images * static_cast<double>(service->clients.size()) / service->quorum;
}

std::string allowed_by_service(const Plan& plan) {
  const Service* service = plan.service();
  if (!service || service->exchanges.empty() || has_peers(plan)) return "";
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
