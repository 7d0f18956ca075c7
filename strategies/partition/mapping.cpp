// SPDX-License-Identifier: MIT
#include "strategies/partition/mapping.h"

#include <algorithm>
#include <numeric>

#include "strategies/partition/cluster_messages.h"
#include "strategies/partition/window_loads.h"

namespace convoy::inline partition {
namespace {

/// The first round leaves out clusters whose heads are among the first levels: those are the many small ones
/// (constants, reads of variables) that should follow what they feed.
constexpr std::uint32_t first_levels = 5;

/// A pass over a window that maps less than this share of it is the window's last.
constexpr double worth_repeating = 0.01;

/// A cluster's slack: where it can run without delaying anyone.
struct Window {
  std::uint32_t from, to;  ///< positions in the order of the levels
  std::uint32_t width;     ///< levels
  double work_us;          ///< of all that is in it, mapped or not
};

class Mapper {
 public:
  Mapper(const PartitionTask& task, const Slices& slices)
      : task_(task),
        dag_(task.dag),
        slices_(slices),
        talk_(dag_, slices, message_costs(dag_, task.link)),
        part_of_(slices.clusters.size(), no_part),
        load_(sort_by_level(), task.parts),
        messages_(slices.clusters.size()),
        known_(slices.clusters.size()),
        with_part_us_(task.parts) {
    find_windows();
    for (const std::vector<NodeId>& cluster : slices_.clusters) {
      work_us_.push_back(0);
      for (const NodeId v : cluster) work_us_.back() += load_.work_us(position_[v]);
    }
    for (Part k = 0; k < slices_.primaries; ++k) assign(k, k);
  }

  Placement run() {
    const auto first = slices_.primaries;
    std::vector<std::uint32_t> secondaries(part_of_.size() - first);
    std::iota(secondaries.begin(), secondaries.end(), first);
    for (int round = 0; round < 2; ++round) {
      std::vector<std::uint32_t> candidates;
      for (const std::uint32_t c : secondaries)
        if (round > 0 || level_[slices_.clusters[c].front()] > first_levels) candidates.push_back(c);
      for (int tenths = 5; tenths <= 10; ++tenths) map_window(candidates, tenths, &Mapper::merges);
    }
    if (slices_.communication >= std::max(10.0, 2 * slices_.parallelism))
      for (int tenths = 5; tenths <= 10; ++tenths) map_window(secondaries, tenths, &Mapper::saves_messages);
    for (const std::uint32_t c : secondaries)
      if (part_of_[c] == no_part) assign(c, cheapest(c));
    Placement placement(dag_.size());
    for (NodeId v = 0; v < dag_.size(); ++v) placement[v] = part_of_[slices_.cluster_of[v]];
    return placement;
  }

 private:
  /// Levels are the different values of top_us, in order; positions are nodes by their levels. The work at
  /// each position.
  std::vector<double> sort_by_level() {
    std::vector<std::pair<double, NodeId>> by_top;
    by_top.reserve(dag_.size());
    for (NodeId v = 0; v < dag_.size(); ++v) by_top.emplace_back(slices_.top_us[v], v);
    std::sort(by_top.begin(), by_top.end());
    position_.resize(dag_.size());
    level_.resize(dag_.size());
    std::vector<double> work_us;
    work_us.reserve(dag_.size());
    for (const auto& [top_us, v] : by_top) {
      const auto position = static_cast<std::uint32_t>(work_us.size());
      if (tops_us_.empty() || top_us > tops_us_.back()) {
        tops_us_.push_back(top_us);
        level_begin_.push_back(position);
      }
      level_[v] = static_cast<std::uint32_t>(tops_us_.size() - 1);
      position_[v] = position;
      work_us.push_back(dag_.time_us(v));
    }
    level_begin_.resize(tops_us_.size() + 2, dag_.size());  // one level is beyond the last
    return work_us;
  }
  std::uint32_t level_at(double time_us) const {
    return static_cast<std::uint32_t>(std::lower_bound(tops_us_.begin(), tops_us_.end(), time_us) -
                                      tops_us_.begin());
  }

  void find_windows() {
    std::vector<double> work_before_us{0};  // each position
    work_before_us.reserve(dag_.size() + 1);
    for (NodeId i = 0; i < dag_.size(); ++i)
      work_before_us.push_back(work_before_us.back() + load_.work_us(i));
    for (const std::vector<NodeId>& cluster : slices_.clusters) {
      const NodeId head = cluster.front(), tail = cluster.back();
      double ready_us = 0;
      for (const NodeId u : dag_.parents(head))
        ready_us = std::max(ready_us, slices_.top_us[u] + dag_.time_us(u));
      auto wanted = static_cast<std::uint32_t>(tops_us_.size() + 1);
      for (const NodeId w : dag_.children(tail)) wanted = std::min(wanted, level_[w]);
      const std::uint32_t from = level_at(ready_us), to = std::max(wanted, level_[tail] + 1);
      window_.push_back({level_begin_[from], level_begin_[to], to - from,
                         work_before_us[level_begin_[to]] - work_before_us[level_begin_[from]]});
    }
  }

  void assign(std::uint32_t cluster, Part part) {
    part_of_[cluster] = part;
    for (const NodeId v : slices_.clusters[cluster]) load_.give(position_[v], part);
    for (const std::uint32_t other : talk_.others(cluster)) known_[other] = false;
  }

  using Rule = Part (Mapper::*)(std::uint32_t);

  /// Tries the first tenths of the clusters, most critical heads first, in the order of their slack, until
  /// nothing changes any more.
  void map_window(const std::vector<std::uint32_t>& clusters, int tenths, Rule rule) {
    const std::size_t count = clusters.size() * static_cast<std::size_t>(tenths) / 10;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> open;  // width of the window, cluster
    for (std::size_t i = 0; i < count; ++i) {
      if (part_of_[clusters[i]] != no_part) continue;
      open.emplace_back(window_[clusters[i]].width, clusters[i]);
    }
    std::stable_sort(open.begin(), open.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (bool again = true; again && !open.empty();) {
      const std::size_t before = open.size();
      std::erase_if(open, [&](const auto& entry) {
        const Part part = (this->*rule)(entry.second);
        if (part != no_part) assign(entry.second, part);
        return part != no_part;
      });
      again = static_cast<double>(before - open.size()) > worth_repeating * static_cast<double>(before);
    }
  }

  /// Of a cluster, where its neighbours are mapped as they were.
  struct Messages {
    Part part;                    ///< most are with it
    double with_part_us, all_us;  ///< with that part, and with all parts and unmapped clusters
    double largest_unmapped_us;   ///< of the unmapped cluster that most are with
  };

  /// The messages between a cluster and each part and each unmapped cluster, weighed anew where a neighbour
  /// was mapped since they were last.
  const Messages& messages(std::uint32_t cluster) {
    Messages& result = messages_[cluster];
    if (known_[cluster]) return result;
    const double unmapped_us = weigh_messages(cluster, result.largest_unmapped_us);
    const auto most = std::max_element(with_part_us_.begin(), with_part_us_.end());
    result.part = static_cast<Part>(most - with_part_us_.begin());
    result.with_part_us = *most;
    result.all_us = std::accumulate(with_part_us_.begin(), with_part_us_.end(), unmapped_us);
    known_[cluster] = true;
    return result;
  }

  /// Sums up the messages between a cluster and each part (with_part_us_), and each unmapped cluster.
  double weigh_messages(std::uint32_t cluster, double& largest_unmapped_us) {
    std::fill(with_part_us_.begin(), with_part_us_.end(), 0);
    with_unmapped_.clear();
    const auto others = talk_.others(cluster);
    const auto costs_us = talk_.costs_us(cluster);
    for (std::size_t i = 0; i < others.size(); ++i) {
      const Part part = part_of_[others[i]];
      if (part == no_part)
        with_unmapped_.emplace_back(others[i], costs_us[i]);
      else
        with_part_us_[part] += costs_us[i];
    }
    std::sort(with_unmapped_.begin(), with_unmapped_.end());
    largest_unmapped_us = 0;
    double all_us = 0, sum_us = 0;
    for (std::size_t i = 0; i < with_unmapped_.size(); ++i) {
      const auto& [other, cost_us] = with_unmapped_[i];
      sum_us = (i > 0 && other == with_unmapped_[i - 1].first ? sum_us : 0) + cost_us;
      largest_unmapped_us = std::max(largest_unmapped_us, sum_us);
      all_us += cost_us;
    }
    return all_us;
  }

  /// The part that the cluster talks to most, where that costs no time there.
  Part merges(std::uint32_t cluster) {
    const Messages& with = messages(cluster);
    const Part part = with.part;
    const double saved = with.with_part_us;
    if (saved <= task_.link.latency_us || saved < with.largest_unmapped_us) return no_part;
    const Window& slack = window_[cluster];
    load_.sum(slack.from, slack.to, in_window_us_);
    const double most = *std::max_element(in_window_us_.begin(), in_window_us_.end());
    const double least = *std::min_element(in_window_us_.begin(), in_window_us_.end());
    const double mapped = std::accumulate(in_window_us_.begin(), in_window_us_.end(), 0.0);
    const double work = work_us_[cluster], open = slack.work_us - mapped;
    const double after = in_window_us_[part] + work;
    const bool balanced = after <= slack.work_us / task_.parts;
    const bool not_later =
        after <= std::max(most, least + work + saved + task_.link.latency_us + open / task_.parts);
    const bool cheaper = after <= work + saved;
    const bool worth_it = saved >= most - least;
    return balanced || not_later || cheaper || worth_it ? part : no_part;
  }

  /// For graphs whose messages dominate: the part that more than half of its messages are with.
  Part saves_messages(std::uint32_t cluster) {
    const Messages& with = messages(cluster);
    return with.with_part_us > std::max(with.all_us / 2, with.all_us / task_.parts) ? with.part : no_part;
  }

  Part cheapest(std::uint32_t cluster) {
    double largest_unmapped_us;
    weigh_messages(cluster, largest_unmapped_us);
    load_.sum(window_[cluster].from, window_[cluster].to, in_window_us_);
    Part best = 0;
    double best_cost = 0;
    for (Part k = 0; k < task_.parts; ++k) {
      const double cost = in_window_us_[k] - with_part_us_[k];
      if (k == 0 || cost < best_cost) best = k, best_cost = cost;
    }
    return best;
  }

  const PartitionTask& task_;
  const Dag& dag_;
  const Slices& slices_;
  const ClusterMessages talk_;
  std::vector<Part> part_of_;                    ///< of each cluster
  std::vector<double> tops_us_;                  ///< of each level
  std::vector<std::uint32_t> level_begin_;       ///< position of each level's first node
  std::vector<std::uint32_t> level_, position_;  ///< of each node
  WindowLoads load_;                             ///< by position
  std::vector<Window> window_;                   ///< of each cluster
  std::vector<double> work_us_;                  ///< of each cluster
  std::vector<Messages> messages_;               ///< of each cluster
  std::vector<char> known_;  ///< whether messages_ are as the cluster's neighbours are mapped
  std::vector<double> with_part_us_, in_window_us_;
  std::vector<std::pair<std::uint32_t, double>> with_unmapped_;
};

}  // namespace

Placement map_clusters(const PartitionTask& task, const Slices& slices) { return Mapper(task, slices).run(); }

}  // namespace convoy::partition
