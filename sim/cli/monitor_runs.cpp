// SPDX-License-Identifier: MIT
#include "sim/cli/monitor_runs.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/input_error.h"
#include "sim/base/quantity.h"
#include "sim/run/watch_hosts.h"

namespace convoy::inline cli {
namespace {

constexpr double a_minute_s = 60, intervals_without_dataset = 10, most_lines = 1e6;

double interval_s(const RunArguments& arguments) {
  return quantity_option("--monitor-every", arguments.monitor_every, Dimension::time, a_minute_s);
}

/// An epoch where the dataset is known.
double monitored_s(const RunArguments& arguments, const RunResult& run) {
  return quantity_option("--monitor-for", arguments.monitor_for, Dimension::time,
                         run.epoch_time_s.value_or(intervals_without_dataset * interval_s(arguments)));
}

/// @param of_what that has so many lines
void refuse_too_many(const std::string& of_what, double lines) {
  if (lines <= most_lines) return;
  throw InputError({"--monitor", 0, 0},
                   fmt::format("{} it would write {:.0f} lines, and {:.0f} are allowed: a longer "
                               "--monitor-every or a shorter --monitor-for has fewer",
                               of_what, lines, most_lines));
}

}  // namespace

void check_monitor(const RunArguments& arguments) {
  if (!arguments.monitor) {
    if (!arguments.monitor_every.empty())
      throw InputError({"--monitor-every", 0, 0}, "is for --monitor, which is not there");
    if (!arguments.monitor_for.empty())
      throw InputError({"--monitor-for", 0, 0}, "is for --monitor, which is not there");
    return;
  }
  refuse_too_many("for a host of a run", std::ceil(monitored_s(arguments, {}) / interval_s(arguments)));
  if (arguments.shard.of > 1)
    throw InputError({"--monitor", 0, 0}, "is of finished sweeps, and --shard simulates a part of one");
  if (arguments.network_model == "simgrid")
    throw InputError({"--monitor", 0, 0},
                     "takes convoy's own network model, and not --network-model simgrid");
}

std::vector<RunMonitor> monitor_runs(Preparer& preparer, const SweepResults& results,
                                     const RunArguments& arguments) {
  const double every_s = interval_s(arguments);
  std::vector<RunMonitor> monitors;
  double lines = 0;
  for (std::size_t r = 0; r < results.runs.size(); ++r) {
    const std::shared_ptr<const RunResult> whole = results.whole(r);
    const RunResult& result = *whole;
    const std::size_t index = point_index(result.id);
    const PreparedRun run = with_every_task(
        preparer.prepare(index, result.search ? &result.search->ranking.front().candidate : nullptr));
    const double for_s = monitored_s(arguments, result);
    lines += std::ceil(for_s / every_s) * static_cast<double>(run.machine.hosts.size());
    refuse_too_many(fmt::format("up to run {}", result.id), lines);
    const ReplayResult replayed = replay(run.plan, run.machine, run.cost, {true, run.network_model});
    monitors.push_back({r, watch_hosts(run, replayed, preparer.point(index).training.input, every_s, for_s)});
  }
  return monitors;
}

}  // namespace convoy::cli
