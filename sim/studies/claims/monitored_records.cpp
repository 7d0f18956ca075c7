// SPDX-License-Identifier: MIT
#include "sim/studies/claims/monitored_records.h"

#include <algorithm>
#include <optional>

#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/run/watch_hosts.h"

namespace convoy::inline studies {
namespace {

/// What the NICs of a host carry in one direction.
double nic_Bps(const Machine& machine, std::size_t host) {
  double rate_Bps = 0;
  for (const Link& link : machine.links)
    if (link.kind == LinkKind::nic && link.host == host && link.direction == Link::Direction::up)
      rate_Bps += link.bandwidth_Bps;
  return rate_Bps;
}

void add_host(const Machine& machine, std::size_t index, const MonitoredHost& host, const std::string& name,
              Record& record) {
  const MonitorSample& sample = host.samples.front();
  const auto add = [&](const char* figure, double value) {
    record.numbers["monitor." + name + '.' + figure] = value;
  };
  add("sent_Bps", sample.sent_Bps);
  add("received_Bps", sample.received_Bps);
  if (const double most_Bps = nic_Bps(machine, index); most_Bps > 0)
    add("nic_share", std::max(sample.sent_Bps, sample.received_Bps) / most_Bps);
  if (host.vcpus > 0) add("cpu_share", sample.busy_vcpus / host.vcpus);
  if (!sample.gpus) return;
  add("gpu_busy_share", sample.gpus->busy_share);
  add("gpu_memory_bytes", sample.gpus->memory_bytes);
}

}  // namespace

void add_monitored(const Experiment& experiment, const std::vector<RunResult>& runs,
                   std::vector<Record>& records) {
  constexpr double a_minute_s = 60;
  Preparer preparer(experiment);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::size_t index = point_index(runs[r].id);
    const std::optional<SearchSummary>& search = runs[r].search;
    const PreparedRun run =
        with_every_task(preparer.prepare(index, search ? &search->ranking.front().candidate : nullptr));
    const ReplayResult replayed = replay(run.plan, run.machine, run.cost, {true, run.network_model});
    const std::vector<MonitoredHost> hosts =
        watch_hosts(run, replayed, preparer.point(index).training.input, a_minute_s, a_minute_s);
    std::size_t first = 0, busiest = 0;
    const auto traffic = [&](std::size_t h) {
      return hosts[h].samples.front().sent_Bps + hosts[h].samples.front().received_Bps;
    };
    for (std::size_t h = hosts.size(); h-- > 0;) {
      if (hosts[h].samples.empty()) continue;  // it comes later than in the first minute
      if (hosts[h].samples.front().gpus) first = h;
      if (traffic(h) >= traffic(busiest)) busiest = h;
    }
    const Machine& machine = run.phased ? run.phased->machine : run.machine;
    add_host(machine, first, hosts[first], "first", records[r]);
    add_host(machine, busiest, hosts[busiest], "busiest", records[r]);
  }
}

}  // namespace convoy::studies
