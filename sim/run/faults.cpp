// SPDX-License-Identifier: MIT
#include "sim/run/faults.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <vector>

#include "sim/run/dice.h"

namespace convoy::inline runs {
namespace {

double lost_hosts(const Faults& faults, double hosts) { return std::min(faults.lost_at_once, hosts); }

/// Hosts that come back, ordered by time.
struct Return {
  double at_s;
  std::int64_t hosts;
  bool operator>(const Return& other) const { return at_s > other.at_s; }
};

}  // namespace

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double Faults::events_per_s(double hosts) const { return per_host_s * hosts / lost_hosts(*this, hosts); }

double young_interval_s(double checkpoint_s, double mean_between_events_s) {
  return std::sqrt(2 * checkpoint_s * mean_between_events_s);
}

double daly_interval_s(double checkpoint_s, double mean_between_events_s) {
  const double d = checkpoint_s, m = mean_between_events_s;
  if (std::isinf(m)) return m;
  if (d >= 2 * m) return m;
  return std::sqrt(2 * d * m) * (1 + std::sqrt(d / (2 * m)) / 3 + d / (18 * m)) - d;
}

double checkpoint_interval_s(const Faults& faults, const Recovery& recovery, double hosts, double work_s) {
  const double rate = faults.events_per_s(hosts);
  if (recovery.every_s) return std::min(work_s, *recovery.every_s);
  // A checkpoint that costs nothing could be written all the time; the length of a step is not known here.
  const double best = rate > 0 ? std::max(1.0, daly_interval_s(recovery.checkpoint_s, 1 / rate))
                               : std::numeric_limits<double>::infinity();
  return std::min(work_s, best);
}

RunEstimate expected_run(const Faults& faults, const Recovery& recovery, double hosts, double work_s) {
  const double rate = faults.events_per_s(hosts);
  const double piece_s = checkpoint_interval_s(faults, recovery, hosts, work_s);
  const double pieces = work_s > 0 ? std::ceil(work_s / piece_s - 1e-9) : 0;
  const double last_s = work_s - (pieces - 1) * piece_s;
  // Seconds in which an event could happen.
  const auto exposed_s = [&](double length_s) {
    const double with_checkpoint_s = length_s + recovery.checkpoint_s;
    return rate > 0 ? std::exp(rate * recovery.restart_s) * std::expm1(rate * with_checkpoint_s) / rate
                    : with_checkpoint_s;
  };
  RunEstimate run;
  if (pieces == 0) return run;
  const double exposed = (pieces - 1) * exposed_s(piece_s) + exposed_s(last_s);
  run.events = rate * exposed;
  run.time_s = exposed + run.events * recovery.wait_s;
  run.paid_host_s = hosts * run.time_s - run.events * recovery.wait_s * lost_hosts(faults, hosts);
  return run;
}

RunEstimate drawn_run(const Faults& faults, const Recovery& recovery, double hosts, double work_s,
                      std::uint64_t seed) {
  const double rate = faults.events_per_s(hosts);
  const double piece_s = checkpoint_interval_s(faults, recovery, hosts, work_s);
  SeededDice dice(seed);
  RunEstimate run;
  double done_s = 0;
  bool restarting = false;
  while (done_s < work_s) {
    // Until the next event: first the restart, then whole pieces with their checkpoints.
    double left_s = rate > 0 ? dice.exponential(rate) : std::numeric_limits<double>::infinity();
    const double until_event_s = left_s;
    left_s -= restarting ? recovery.restart_s : 0;
    if (left_s >= 0) {
      const double whole_s = piece_s + recovery.checkpoint_s;
      const double pieces_left = std::ceil((work_s - done_s) / piece_s - 1e-9);
      const double full = std::min(pieces_left - 1, std::floor(left_s / whole_s));
      done_s += full * piece_s;
      left_s -= full * whole_s;
      const double last_s = std::min(piece_s, work_s - done_s) + recovery.checkpoint_s;
      if (full == pieces_left - 1 && left_s >= last_s) {
        run.time_s += (restarting ? recovery.restart_s : 0) + full * whole_s + last_s;
        break;
      }
    }
    run.time_s += until_event_s + recovery.wait_s;
    run.events += 1;
    restarting = true;
  }
  run.paid_host_s = hosts * run.time_s - run.events * recovery.wait_s * lost_hosts(faults, hosts);
  return run;
}

RunEstimate expected_elastic_run(const Faults& faults, const Elastic& elastic, double hosts, double work_s) {
  const double there = 1 / (1 + faults.per_host_s * elastic.wait_s);
  const double events_per_s = faults.events_per_s(hosts) * there;
  const double training_s = work_s / there;
  RunEstimate run;
  run.events = events_per_s * training_s;
  run.time_s = training_s + run.events * 2 * elastic.reconfigure_s;
  run.paid_host_s = hosts * there * run.time_s;
  return run;
}

RunEstimate drawn_elastic_run(const Faults& faults, const Elastic& elastic, std::int64_t hosts, double work_s,
                              std::uint64_t seed) {
  SeededDice dice(seed);
  RunEstimate run;
  std::priority_queue<Return, std::vector<Return>, std::greater<>> away;  // by training time
  std::int64_t there = hosts;
  double done_host_s = 0, clock_s = 0;  // the clock stands still in pauses, as do events and replacements
  double pauses_s = 0, paid = 0;
  const double all_host_s = work_s * static_cast<double>(hosts);
  const double at_once = lost_hosts(faults, static_cast<double>(hosts));
  while (done_host_s < all_host_s) {
    const auto speed = static_cast<double>(there);
    const double rate = faults.per_host_s * speed / at_once;
    const double end_s =
        there > 0 ? clock_s + (all_host_s - done_host_s) / speed : std::numeric_limits<double>::infinity();
    const double back_s = away.empty() ? std::numeric_limits<double>::infinity() : away.top().at_s;
    const double event_s =
        rate > 0 ? clock_s + dice.exponential(rate) : std::numeric_limits<double>::infinity();
    const double next_s = std::min({end_s, back_s, event_s});
    done_host_s = next_s == end_s ? all_host_s : done_host_s + (next_s - clock_s) * speed;
    paid += (next_s - clock_s) * speed;
    clock_s = next_s;
    if (next_s == end_s) break;
    if (next_s == back_s) {
      there += away.top().hosts;
      away.pop();
    } else {
      const double whole = std::floor(at_once);
      const auto drawn = static_cast<std::int64_t>(whole + (dice.uniform() <= at_once - whole ? 1 : 0));
      const std::int64_t lost = std::min(there, drawn);
      there -= lost;
      away.push({clock_s + elastic.wait_s, lost});
      run.events += 1;
    }
    pauses_s += elastic.reconfigure_s;
    paid += elastic.reconfigure_s * static_cast<double>(there);
  }
  run.time_s = clock_s + pauses_s;
  run.paid_host_s = paid;
  return run;
}

RunSpread repeated_runs(const std::function<RunEstimate(std::uint64_t seed)>& run, std::uint64_t seed,
                        int runs, double level) {
  RunSpread spread;
  std::vector<double> times, paid;
  for (int i = 0; i < runs; ++i) {
    const RunEstimate one = run(seed + static_cast<std::uint64_t>(i));
    spread.mean.time_s += one.time_s / runs;
    spread.mean.events += one.events / runs;
    spread.mean.paid_host_s += one.paid_host_s / runs;
    times.push_back(one.time_s);
    paid.push_back(one.paid_host_s);
  }
  std::sort(times.begin(), times.end());
  std::sort(paid.begin(), paid.end());
  spread.low_s = quantile(times, (1 - level) / 2);
  spread.high_s = quantile(times, (1 + level) / 2);
  spread.low_host_s = quantile(paid, (1 - level) / 2);
  spread.high_host_s = quantile(paid, (1 + level) / 2);
  return spread;
}

}  // namespace convoy::runs
