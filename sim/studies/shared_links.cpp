// SPDX-License-Identifier: MIT
#include "sim/studies/shared_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "models/model.h"
#include "sim/replay/side_by_side.h"
#include "sim/run/interrupt.h"
#include "sim/run/search/search_spec.h"
#include "topologies/first_devices.h"

namespace convoy::inline studies {
namespace {

/// Whether hosts differ in nothing but their names, and that of their own links.
bool are_alike(const Machine& machine) {
  using LinkText = std::tuple<LinkKind, Link::Direction, double, double>;
  std::vector<std::multiset<LinkText>> links(machine.hosts.size());
  for (const Link& link : machine.links)
    if (link.host != Link::no_host)
      links[link.host].emplace(link.kind, link.direction, link.bandwidth_Bps, link.latency_s);
  for (std::size_t h = 1; h < machine.hosts.size(); ++h) {
    const Host &first = machine.hosts[0], &host = machine.hosts[h];
    if (host.type != first.type || host.device_count != first.device_count || links[h] != links[0])
      return false;
    for (std::uint32_t d = 0; d < host.device_count; ++d) {
      const Device &a = machine.devices[first.first_device + d], &b = machine.devices[host.first_device + d];
      if (a.type != b.type || a.speed != b.speed) return false;
    }
  }
  return true;
}

std::set<std::string> devices_of(const Machine& machine) {
  std::set<std::string> names;
  for (const Device& device : machine.devices) names.insert(machine.device_types[device.type].name);
  return names;
}

/// Jobs that meet: by job, the first job of its set.
class Sets {
 public:
  explicit Sets(std::size_t jobs) : first_(jobs) { std::iota(first_.begin(), first_.end(), std::size_t{0}); }
  std::size_t of(std::size_t job) {
    while (first_[job] != job) job = first_[job] = first_[first_[job]];
    return job;
  }
  void join(std::size_t a, std::size_t b) {
    a = of(a), b = of(b);
    first_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> first_;
};

}  // namespace

SharedLinks::SharedLinks(Preparer& preparer, const JobStudy& study) : preparer_(preparer), study_(study) {
  const YamlNode& node = *study.cluster;
  const GpuPool& pool = study.pools.front();
  const ClusterSpec& cluster = preparer.cluster(node);
  if (!study.learning.empty())
    throw InputError(node.pos,
                     "jobs.cluster: jobs that share links keep their batch; leave out 'convergence'");
  if (cluster.device_count() != pool.gpus || cluster.node_count() * pool.gpus_per_host != pool.gpus)
    throw InputError(
        node.pos, fmt::format("jobs.cluster: has {} devices in {} hosts, and the queue {} GPUs, {} a host",
                              cluster.device_count(), cluster.node_count(), pool.gpus, pool.gpus_per_host));
  read_points();
  machine_ = preparer_.machine_of(plannables_.front().point);
  const std::set<std::string> names = devices_of(machine_);
  for (const Plannable& plannable : plannables_)
    if (plannable.device_names != names)
      throw InputError(node.pos,
                       fmt::format("jobs.cluster: has {}, and a run of the sweep {}; jobs train as fast as "
                                   "these runs, so give it the same devices",
                                   fmt::join(names, ", "), fmt::join(plannable.device_names, ", ")));
  check_strategies();
  hosts_alike_ = are_alike(machine_);
}

void SharedLinks::read_points() {
  const Experiment& experiment = preparer_.experiment();
  for (std::size_t i = 0; i < experiment.size(); ++i) {
    Point point = experiment.point(i);
    const ClusterSpec& own = preparer_.cluster(point.cluster);
    const auto devices = own.device_count(), hosts = own.node_count();
    if (is_search(point.strategy))
      throw InputError(
          point.strategy->pos,
          "strategy: jobs that share links (jobs.cluster) need one strategy each, and not 'auto'");
    std::set<std::string> names = devices_of(preparer_.machine_of(point));
    point.cluster = *study_.cluster;
    point.spreads.clear();
    point.numerics.reset();
    point.variability.reset();
    by_model_[preparer_.model(point.model).name].push_back(plannables_.size());
    plannables_.push_back({std::move(point), devices, hosts, std::move(names)});
  }
}

/// On two of the cluster's devices, one of each of two hosts where there are so many.
void SharedLinks::check_strategies() {
  std::set<std::string> checked;
  for (const Plannable& plannable : plannables_) {
    const Point& point = plannable.point;
    if (!checked.insert(point.strategy.fingerprint()).second) continue;
    if (preparer_.machine_of(point).transport != machine_.transport)
      throw InputError(point.strategy->pos,
                       "strategy: jobs that share links (jobs.cluster) need one transport for all");
    const std::vector<EndpointId> some = plannable.devices == 1 ? std::vector<EndpointId>{0}
                                         : machine_.hosts.size() > 1
                                             ? std::vector<EndpointId>{0, machine_.hosts[1].first_device}
                                             : std::vector<EndpointId>{0, 1};
    const PreparedRun run = preparer_.prepare_on(point, some);
    const std::string reason =
        run.phased ? "its plan changes during the run" : refuses_neighbours(run.plan, run.machine);
    if (!reason.empty())
      throw InputError(
          point.strategy->pos,
          fmt::format("strategy: cannot be simulated beside other jobs (jobs.cluster): {}", reason));
  }
}

std::size_t SharedLinks::plannable_of(const PlacedJob& job) const {
  const auto badness = [&](std::size_t i) {
    const Plannable& it = plannables_[i];
    const bool larger = it.devices > job.gpus;
    const std::uint32_t off = larger ? it.devices - job.gpus : job.gpus - it.devices;
    const std::uint32_t hosts = job.place->hosts();
    return std::tuple{larger, off, it.hosts > hosts ? it.hosts - hosts : hosts - it.hosts, i};
  };
  const std::vector<std::size_t>& all = by_model_.at(job.job->model);
  return *std::min_element(all.begin(), all.end(),
                           [&](std::size_t a, std::size_t b) { return badness(a) < badness(b); });
}

/// On each host, jobs take its GPUs in the order of their arrival.
std::vector<SharedLinks::Member> SharedLinks::members(const std::vector<PlacedJob>& jobs) const {
  std::vector<std::uint32_t> taken(machine_.hosts.size(), 0);
  std::vector<Member> result;
  for (const PlacedJob& job : jobs) {
    Member& member = result.emplace_back(Member{plannable_of(job), {}});
    for (const auto& [host, count] : job.place->on) {
      Seat& seat = member.seats.emplace_back(Seat{static_cast<std::uint32_t>(host), {}});
      for (std::uint32_t i = 0; i < count; ++i) seat.gpus.push_back(taken[host]++);
    }
  }
  return result;
}

std::vector<EndpointId> SharedLinks::devices(const Member& member) const {
  std::vector<EndpointId> result;
  for (const Seat& seat : member.seats)
    for (const std::uint32_t gpu : seat.gpus) result.push_back(machine_.hosts[seat.host].first_device + gpu);
  std::sort(result.begin(), result.end());
  return result;
}

const std::vector<LinkId>& SharedLinks::links(const Member& member) {
  std::vector<EndpointId> devices = this->devices(member);
  auto key = std::pair{member.plannable, std::move(devices)};
  const auto [it, fresh] = links_.try_emplace(key);
  if (fresh && key.second.size() > 1) {
    const PreparedRun run = preparer_.prepare_on(plannables_[member.plannable].point, key.second);
    it->second = links_of({run.plan, run.cost, endpoints_of_chosen(machine_, key.second)}, machine_);
  }
  return it->second;
}

std::vector<double> SharedLinks::slowdowns(const std::vector<PlacedJob>& jobs) {
  const std::vector<Member> placed = members(jobs);
  Sets sets(jobs.size());
  std::map<LinkId, std::size_t> first_on;
  std::vector<bool> leaves_hosts(jobs.size(), false);  // over links that are no host's
  for (std::size_t j = 0; j < jobs.size(); ++j)
    for (const LinkId link : links(placed[j])) {
      sets.join(first_on.try_emplace(link, j).first->second, j);
      if (machine_.links[link].host == Link::no_host) leaves_hosts[j] = true;
    }
  std::map<std::size_t, std::vector<std::size_t>> by_first;
  for (std::size_t j = 0; j < jobs.size(); ++j) by_first[sets.of(j)].push_back(j);
  std::vector<double> result(jobs.size(), 1);
  for (const auto& [first, set] : by_first) {
    if (set.size() < 2) continue;
    std::vector<Member> of_set;
    bool alike = hosts_alike_;
    for (const std::size_t j : set) {
      of_set.push_back(placed[j]);
      alike = alike && !leaves_hosts[j];
    }
    const std::vector<double> slow = together(of_set, alike);
    for (std::size_t i = 0; i < set.size(); ++i) result[set[i]] = slow[i];
  }
  return result;
}

std::vector<double> SharedLinks::together(const std::vector<Member>& set, bool hosts_are_alike) {
  std::vector<Member> sorted = set;
  const auto size_first = [](const Seat& a, const Seat& b) {
    return std::tuple{b.gpus.size(), a.gpus, a.host} < std::tuple{a.gpus.size(), b.gpus, b.host};
  };
  for (Member& member : sorted) std::sort(member.seats.begin(), member.seats.end(), size_first);
  std::vector<std::size_t> order(set.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto shape = [&](std::size_t i) {
    std::vector<std::vector<std::uint32_t>> gpus;
    for (const Seat& seat : sorted[i].seats) gpus.push_back(seat.gpus);
    return std::pair{sorted[i].plannable, std::move(gpus)};
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shape(a) < shape(b); });
  std::map<std::uint32_t, std::uint32_t> number;  // of hosts, in the order in which they are met
  std::vector<Member> numbered;
  std::string text;
  for (const std::size_t i : order) {
    Member& member = numbered.emplace_back(sorted[i]);
    text += fmt::format("{}:", member.plannable);
    for (Seat& seat : member.seats) {
      if (hosts_are_alike)
        seat.host = number.try_emplace(seat.host, static_cast<std::uint32_t>(number.size())).first->second;
      text += fmt::format(" {}/{}", seat.host, fmt::join(seat.gpus, "+"));
    }
    text += ';';
  }
  const auto known = known_.find(text);
  const std::vector<double>& slow =
      known != known_.end() ? known->second : known_.emplace(text, simulate(numbered)).first->second;
  std::vector<double> result(set.size());
  for (std::size_t k = 0; k < order.size(); ++k) result[order[k]] = slow[k];
  return result;
}

std::vector<double> SharedLinks::simulate(const std::vector<Member>& set) {
  if (InterruptGuard::signal() != 0) throw QueueInterrupted();
  std::vector<PreparedRun> runs;
  for (const Member& member : set)
    runs.push_back(preparer_.prepare_on(plannables_[member.plannable].point, devices(member)));
  std::vector<JobBeside> jobs;
  for (std::size_t i = 0; i < set.size(); ++i)
    jobs.push_back({runs[i].plan, runs[i].cost, endpoints_of_chosen(machine_, devices(set[i]))});
  return slowdowns_beside(jobs, machine_);
}

void check_queues(const Experiment& experiment) {
  if (!experiment.jobs()) return;
  const JobStudy study = read_job_study(*experiment.jobs());
  if (!study.cluster) return;
  Preparer preparer(experiment);
  SharedLinks links(preparer, study);
}

std::vector<ScheduleResult> run_queues(const Experiment& experiment, const JobStudy& study,
                                       const JobKinds& kinds, const SourcePos& pos) {
  if (!study.cluster) return run_job_study(study, kinds, pos);
  Preparer preparer(experiment);
  SharedLinks links(preparer, study);
  return run_job_study(study, kinds, pos,
                       [&](const std::vector<PlacedJob>& jobs) { return links.slowdowns(jobs); });
}

}  // namespace convoy::studies
