// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "sim/results/write_trace.h"

namespace convoy::inline results {
namespace {

/// Which of many sizes are the largest: all above one, and of those that equal it the first.
template <class Size>
class Largest {
 public:
  /// @pre there are more than `most`
  Largest(std::vector<Size> sizes, std::size_t most) : any_(most > 0), equal_(most) {
    if (!any_) return;
    const auto last = sizes.begin() + static_cast<std::ptrdiff_t>(most - 1);
    std::nth_element(sizes.begin(), last, sizes.end(), std::greater<>());
    least_ = *last;
    equal_ -= static_cast<std::size_t>(
        std::count_if(sizes.begin(), last, [&](const Size& size) { return size > least_; }));
  }

  /// To be asked once of each, in order.
  bool has(const Size& size) {
    if (!any_ || size < least_) return false;
    return size > least_ || (equal_ > 0 && equal_-- > 0);
  }

 private:
  bool any_;           ///< is kept
  Size least_{};       ///< that is
  std::size_t equal_;  ///< so many of those that are as large are still to be kept
};

/// Those of the critical path come before all others.
std::pair<bool, double> size_of(const TraceSpan& span) { return {span.critical, span.end_s - span.start_s}; }

/// By how much of its range a counter changes at each of its points.
template <class Points, class Level>
std::vector<double> changes_of(const Points& points, Level level) {
  double highest = 0, before = 0;
  for (const auto& point : points) highest = std::max(highest, level(point));
  std::vector<double> changes;
  for (const auto& point : points) {
    changes.push_back(highest > 0 ? std::abs(level(point) - before) / highest : 0);
    before = level(point);
  }
  return changes;
}

double memory_level(const TraceMemoryPoint& point) {
  return std::accumulate(point.bytes.begin(), point.bytes.end(), 0.0);
}
double traffic_level(const TraceTrafficPoint& point) { return point.sent_Bps + point.received_Bps; }

/// @returns how many were taken away
template <class Items, class Size>
std::int64_t keep(Items& items, const std::vector<Size>& sizes, Largest<Size>& largest) {
  Items kept;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (largest.has(sizes[i])) kept.push_back(std::move(items[i]));
  const std::size_t lost = items.size() - kept.size();
  items = std::move(kept);
  return static_cast<std::int64_t>(lost);
}

void keep_spans(std::vector<TraceProcess>& processes, std::size_t most) {
  std::vector<std::pair<bool, double>> sizes;
  for (const TraceProcess& process : processes)
    for (const TraceThread& thread : process.threads)
      for (const TraceSpan& span : thread.spans) sizes.push_back(size_of(span));
  if (sizes.size() <= most) return;
  Largest largest(std::move(sizes), most);
  for (TraceProcess& process : processes)
    for (TraceThread& thread : process.threads) {
      std::vector<std::pair<bool, double>> of_thread;
      for (const TraceSpan& span : thread.spans) of_thread.push_back(size_of(span));
      process.left_out += keep(thread.spans, of_thread, largest);
    }
}

void keep_points(std::vector<TraceProcess>& processes, std::size_t most) {
  std::vector<double> sizes;
  for (const TraceProcess& process : processes) {
    for (const TraceMemory& memory : process.memory)
      for (const double change : changes_of(memory.points, memory_level)) sizes.push_back(change);
    for (const double change : changes_of(process.traffic, traffic_level)) sizes.push_back(change);
  }
  if (sizes.size() <= most) return;
  Largest largest(std::move(sizes), most);
  for (TraceProcess& process : processes) {
    for (TraceMemory& memory : process.memory)
      process.left_out += keep(memory.points, changes_of(memory.points, memory_level), largest);
    process.left_out += keep(process.traffic, changes_of(process.traffic, traffic_level), largest);
  }
}

bool is_in_a_span(const TraceThread& thread, double time_s) {
  const auto after = std::upper_bound(thread.spans.begin(), thread.spans.end(), time_s,
                                      [](double time, const TraceSpan& span) { return time < span.start_s; });
  return after != thread.spans.begin() && time_s <= std::prev(after)->end_s;
}

void keep_arrows(std::vector<TraceProcess>& processes, std::size_t most_ends) {
  std::map<std::int64_t, int> ends;
  for (const TraceProcess& process : processes)
    for (const TraceArrowEnd& end : process.arrows)
      if (is_in_a_span(process.threads[static_cast<std::size_t>(end.thread)], end.time_s)) ++ends[end.id];
  std::set<std::int64_t> kept;
  for (const auto& [id, count] : ends)
    if (count == 2 && 2 * (kept.size() + 1) <= most_ends) kept.insert(id);
  for (TraceProcess& process : processes)
    process.left_out += static_cast<std::int64_t>(
        std::erase_if(process.arrows, [&](const TraceArrowEnd& end) { return !kept.contains(end.id); }));
}

}  // namespace

void keep_largest(std::vector<TraceProcess>& processes, std::size_t most) {
  keep_spans(processes, most / 2);
  keep_points(processes, most / 4);
  keep_arrows(processes, most / 4);
}

}  // namespace convoy::results
