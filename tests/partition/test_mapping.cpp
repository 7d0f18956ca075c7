// SPDX-License-Identifier: MIT
// The mapping of clusters to parts, beside a second way to find it that keeps nothing from one question to
// the next. Times and messages are whole numbers, so that both have the same sums.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "strategies/partition/mapping.h"
#include "tests/partition/graphs.h"

using namespace convoy;

namespace {

class PlainMapper {
 public:
  PlainMapper(const PartitionTask& task, const Slices& slices)
      : task_(task), dag_(task.dag), slices_(slices), part_of_(slices.clusters.size(), no_part) {
    const std::set<double> moments(slices.top_us.begin(), slices.top_us.end());
    moments_.assign(moments.begin(), moments.end());
    for (std::uint32_t c = 0; c < slices.primaries; ++c) part_of_[c] = c;
  }

  Placement run() {
    for (const bool all : {false, true}) {
      std::vector<std::uint32_t> candidates;
      for (std::uint32_t c = slices_.primaries; c < part_of_.size(); ++c)
        if (all || level(slices_.clusters[c].front()) > 5) candidates.push_back(c);
      widen(candidates, [&](std::uint32_t c) { return merges(c); });
    }
    std::vector<std::uint32_t> secondaries;
    for (std::uint32_t c = slices_.primaries; c < part_of_.size(); ++c) secondaries.push_back(c);
    if (slices_.communication >= std::max(10.0, 2 * slices_.parallelism))
      widen(secondaries, [&](std::uint32_t c) { return saves_messages(c); });
    for (const std::uint32_t c : secondaries)
      if (part_of_[c] == no_part) part_of_[c] = cheapest(c);
    Placement placement;
    for (NodeId v = 0; v < dag_.size(); ++v) placement.push_back(part_of_[slices_.cluster_of[v]]);
    return placement;
  }

 private:
  /// How many moments at which something may begin come before one.
  std::uint32_t level_at(double time_us) const {
    return static_cast<std::uint32_t>(std::lower_bound(moments_.begin(), moments_.end(), time_us) -
                                      moments_.begin());
  }
  std::uint32_t level(NodeId v) const { return level_at(slices_.top_us[v]); }

  std::pair<std::uint32_t, std::uint32_t> window(std::uint32_t c) const {
    const NodeId head = slices_.clusters[c].front(), tail = slices_.clusters[c].back();
    double ready_us = 0;
    for (const NodeId u : dag_.parents(head))
      ready_us = std::max(ready_us, slices_.top_us[u] + dag_.time_us(u));
    std::uint32_t wanted = level_at(1e300) + 1;
    for (const NodeId w : dag_.children(tail)) wanted = std::min(wanted, level(w));
    return {level_at(ready_us), std::max(wanted, level(tail) + 1)};
  }

  /// Work within a cluster's window: of each part, and of what has none.
  std::map<Part, double> load(std::uint32_t c) const {
    const auto [from, to] = window(c);
    std::map<Part, double> result;
    for (NodeId v = 0; v < dag_.size(); ++v)
      if (from <= level(v) && level(v) < to) result[part_of_[slices_.cluster_of[v]]] += dag_.time_us(v);
    return result;
  }

  /// Cost of the messages between a cluster and each part, and each cluster without one.
  struct Talk {
    std::vector<double> part;
    std::map<std::uint32_t, double> open;
    double all = 0;
  };
  Talk talk(std::uint32_t c) const {
    Talk result{std::vector<double>(task_.parts), {}, 0};
    const auto add = [&](NodeId sender, NodeId other) {
      const std::uint32_t of = slices_.cluster_of[other];
      if (of == c) return;
      const double cost_us = task_.link.cost_us(dag_.output_bytes(sender));
      (part_of_[of] == no_part ? result.open[of] : result.part[part_of_[of]]) += cost_us;
      result.all += cost_us;
    };
    for (const NodeId v : slices_.clusters[c]) {
      for (const NodeId w : dag_.children(v)) add(v, w);
      for (const NodeId u : dag_.parents(v)) add(u, u);
    }
    return result;
  }

  Part merges(std::uint32_t c) const {
    const Talk with = talk(c);
    const auto most_with = std::max_element(with.part.begin(), with.part.end());
    const auto part = static_cast<Part>(most_with - with.part.begin());
    const double saved = *most_with, latency = task_.link.latency_us;
    if (saved <= latency) return no_part;
    for (const auto& [other, cost_us] : with.open)
      if (saved < cost_us) return no_part;
    std::map<Part, double> load_of = load(c);
    double most = 0, least = 1e300, all = 0, work = 0;
    for (Part k = 0; k < task_.parts; ++k) {
      most = std::max(most, load_of[k]), least = std::min(least, load_of[k]);
      all += load_of[k];
    }
    for (const NodeId v : slices_.clusters[c]) work += dag_.time_us(v);
    const double open = load_of[no_part], after = load_of[part] + work;
    const bool fits = after <= (all + open) / task_.parts || after <= most ||
                      after <= least + work + saved + latency + open / task_.parts || after <= work + saved ||
                      saved >= most - least;
    return fits ? part : no_part;
  }

  Part saves_messages(std::uint32_t c) const {
    const Talk with = talk(c);
    const auto most_with = std::max_element(with.part.begin(), with.part.end());
    if (*most_with <= with.all / 2 || *most_with <= with.all / task_.parts) return no_part;
    return static_cast<Part>(most_with - with.part.begin());
  }

  Part cheapest(std::uint32_t c) const {
    const Talk with = talk(c);
    std::map<Part, double> load_of = load(c);
    Part best = 0;
    for (Part k = 1; k < task_.parts; ++k)
      if (load_of[k] - with.part[k] < load_of[best] - with.part[best]) best = k;
    return best;
  }

  /// A rule for the first half of the clusters, then for a tenth more each time: those with the narrowest
  /// windows first, again until hardly anything changes.
  template <class Rule>
  void widen(const std::vector<std::uint32_t>& clusters, Rule rule) {
    for (std::size_t tenths = 5; tenths <= 10; ++tenths) {
      std::vector<std::uint32_t> open(
          clusters.begin(), clusters.begin() + static_cast<std::ptrdiff_t>(clusters.size() * tenths / 10));
      std::erase_if(open, [&](std::uint32_t c) { return part_of_[c] != no_part; });
      std::stable_sort(open.begin(), open.end(), [&](std::uint32_t a, std::uint32_t b) {
        return window(a).second - window(a).first < window(b).second - window(b).first;
      });
      for (bool again = true; again && !open.empty();) {
        std::vector<std::uint32_t> left;
        for (const std::uint32_t c : open) {
          part_of_[c] = rule(c);
          if (part_of_[c] == no_part) left.push_back(c);
        }
        again = static_cast<double>(open.size() - left.size()) > 0.01 * static_cast<double>(open.size());
        open = left;
      }
    }
  }

  const PartitionTask& task_;
  const Dag& dag_;
  const Slices& slices_;
  std::vector<double> moments_;  ///< at which something may begin
  std::vector<Part> part_of_;
};

}  // namespace

TEST_CASE("mapping: clusters go where a second, plain mapper puts them [law]") {
  int secondaries = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    // Messages of 2 to 41 us beside operations of up to 19 us, or a tenth of it.
    const Dag dag = graphs::any(seed, 10 + seed % 60).dag();
    for (const double latency_us : {2.0, 25.0})
      for (const double bandwidth_Bpus : {1e5, 1e4}) {
        const PartitionTask task{dag, 2 + seed % 4, {latency_us, bandwidth_Bpus}, std::nullopt, 1, true};
        const Slices slices = slice(task);
        CAPTURE(latency_us);
        CAPTURE(bandwidth_Bpus);
        secondaries += static_cast<int>(slices.clusters.size() - slices.primaries);
        CHECK(map_clusters(task, slices) == PlainMapper(task, slices).run());
      }
  }
  CHECK(secondaries > 2000);
}
