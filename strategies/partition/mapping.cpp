// SPDX-License-Identifier: MIT
#include "strategies/partition/mapping.h"

#include <algorithm>
#include <numeric>

#include "strategies/partition/fenwick.h"

namespace convoy::inline partition {
namespace {

/// The first round leaves out clusters whose heads are among the first levels: those are the many small ones
/// (constants, reads of variables) that should follow what they feed.
constexpr std::uint32_t first_levels = 5;

/// Values that the load trees of all parts may have together; with more, neighbouring levels are one.
constexpr std::size_t largest_trees = 50'000'000;

/// A pass over a window that maps less than this share of it is the window's last.
constexpr double worth_repeating = 0.01;

struct Window {
  std::uint32_t from, to;  ///< levels in which a cluster can run without delaying anyone
};

class Mapper {
 public:
  Mapper(const PartitionTask& task, const Slices& slices)
      : task_(task),
        dag_(task.dag),
        slices_(slices),
        part_of_(slices.clusters.size(), no_part),
        load_(find_levels(), task.parts + 1) {
    for (std::uint32_t c = 0; c < part_of_.size(); ++c) {
      work_.push_back(0);
      for (const NodeId v : slices_.clusters[c]) {
        work_.back() += dag_.time_us(v);
        load_.add(level_[v], task_.parts, dag_.time_us(v));
      }
    }
    const std::vector<double> message_us = message_costs(dag_, task.link);
    for (NodeId v = 0; v < dag_.size(); ++v)
      seen_.push_back({message_us[v], task_.parts + slices_.cluster_of[v]});
    with_part_.resize(task_.parts);
    messages_.resize(slices_.clusters.size());
    for (std::uint32_t c = 0; c < part_of_.size(); ++c) window_.push_back(window_of(c));
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
  /// Levels are the different values of top_us, in order. Their number.
  std::uint32_t find_levels() {
    tops_ = slices_.top_us;
    std::sort(tops_.begin(), tops_.end());
    tops_.erase(std::unique(tops_.begin(), tops_.end()), tops_.end());
    merged_ = static_cast<std::uint32_t>(tops_.size() * task_.parts / largest_trees + 1);
    levels_ = static_cast<std::uint32_t>(tops_.size() / merged_ + 1);
    level_.resize(dag_.size());
    for (NodeId v = 0; v < dag_.size(); ++v) level_[v] = level_at(slices_.top_us[v]);
    return levels_;
  }
  std::uint32_t level_at(double time_us) const {
    const auto at = std::lower_bound(tops_.begin(), tops_.end(), time_us);
    return static_cast<std::uint32_t>(at - tops_.begin()) / merged_;
  }

  Window window_of(std::uint32_t cluster) const {
    const NodeId head = slices_.clusters[cluster].front(), tail = slices_.clusters[cluster].back();
    double from = 0;
    for (const NodeId u : dag_.parents(head)) from = std::max(from, slices_.top_us[u] + dag_.time_us(u));
    std::uint32_t to = levels_;
    for (const NodeId w : dag_.children(tail)) to = std::min(to, level_[w]);
    return {level_at(from), std::max(to, level_[tail] + 1)};
  }

  void assign(std::uint32_t cluster, Part part) {
    part_of_[cluster] = part;
    for (const NodeId v : slices_.clusters[cluster]) {
      load_.add(level_[v], part, dag_.time_us(v));
      load_.add(level_[v], task_.parts, -dag_.time_us(v));
      seen_[v].where = part;
      for (const NodeId w : dag_.children(v)) forget_messages(w);
      for (const NodeId u : dag_.parents(v)) forget_messages(u);
    }
  }

  /// Those of the node's cluster; nobody asks for them again once it is mapped.
  void forget_messages(NodeId v) {
    if (seen_[v].where >= task_.parts) messages_[seen_[v].where - task_.parts].known = false;
  }

  using Rule = Part (Mapper::*)(std::uint32_t);

  /// Tries the first tenths of the clusters, most critical heads first, in the order of their slack, until
  /// nothing changes any more.
  void map_window(const std::vector<std::uint32_t>& clusters, int tenths, Rule rule) {
    const std::size_t count = clusters.size() * static_cast<std::size_t>(tenths) / 10;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> open;  // width of the window, cluster
    for (std::size_t i = 0; i < count; ++i) {
      if (part_of_[clusters[i]] != no_part) continue;
      const Window& slack = window_[clusters[i]];
      open.emplace_back(slack.to - slack.from, clusters[i]);
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

  /// What a node's neighbours look at, side by side: its output's message, and its part or, while it has none,
  /// task_.parts + its cluster.
  struct Seen {
    double message_us;
    std::uint32_t where;
  };

  /// Of a cluster, where its neighbours are mapped as they were.
  struct Messages {
    Part part = 0;                  ///< most are with it
    bool known = false;             ///< since the last neighbour was mapped
    double with_part = 0, all = 0;  ///< with that part, and with all and the no_part
    double largest_free = 0;        ///< of the no_part cluster that most are with
  };

  /// The messages between a cluster and each part and each no_part cluster, weighed anew where need be.
  const Messages& messages(std::uint32_t cluster) {
    Messages& result = messages_[cluster];
    if (result.known) return result;
    weigh_messages(cluster);
    result.part =
        static_cast<Part>(std::max_element(with_part_.begin(), with_part_.end()) - with_part_.begin());
    result.with_part = with_part_[result.part];
    result.all = std::accumulate(with_part_.begin(), with_part_.end(), all_free_);
    result.largest_free = largest_free_;
    result.known = true;
    return result;
  }

  /// Sums up the messages between a no_part cluster and each part (with_part_) and each other no_part
  /// cluster (largest_free_, all_free_).
  void weigh_messages(std::uint32_t cluster) {
    std::fill(with_part_.begin(), with_part_.end(), 0);
    with_free_.clear();
    const auto add = [&](std::uint32_t where, double cost) {
      if (where < task_.parts)
        with_part_[where] += cost;
      else if (where != task_.parts + cluster)
        with_free_.emplace_back(where, cost);
    };
    for (const NodeId v : slices_.clusters[cluster]) {
      for (const NodeId w : dag_.children(v)) add(seen_[w].where, seen_[v].message_us);
      for (const NodeId u : dag_.parents(v)) add(seen_[u].where, seen_[u].message_us);
    }
    std::sort(with_free_.begin(), with_free_.end());
    largest_free_ = all_free_ = 0;
    double sum = 0;
    for (std::size_t i = 0; i < with_free_.size(); ++i) {
      sum = (i > 0 && with_free_[i].first == with_free_[i - 1].first ? sum : 0) + with_free_[i].second;
      largest_free_ = std::max(largest_free_, sum);
      all_free_ += with_free_[i].second;
    }
  }
  /// The part that the cluster talks to most, where that costs no time there.
  Part merges(std::uint32_t cluster) {
    const Messages& with = messages(cluster);
    const Part part = with.part;
    const double saved = with.with_part;
    if (saved <= task_.link.latency_us || saved < with.largest_free) return no_part;
    const Window& slack = window_[cluster];
    load_.sum(slack.from, slack.to, in_window_);
    const auto unmapped = in_window_.begin() + task_.parts;
    const double most = *std::max_element(in_window_.begin(), unmapped);
    const double least = *std::min_element(in_window_.begin(), unmapped);
    const double all = std::accumulate(in_window_.begin(), unmapped, 0.0);
    const double work = work_[cluster], open = *unmapped;
    const double after = in_window_[part] + work;
    const bool balanced = after <= (all + open) / task_.parts;
    const bool not_later =
        after <= std::max(most, least + work + saved + task_.link.latency_us + open / task_.parts);
    const bool cheaper = after <= work + saved;
    const bool worth_it = saved >= most - least;
    return balanced || not_later || cheaper || worth_it ? part : no_part;
  }

  /// For graphs whose messages dominate: the part that more than half of its messages are with.
  Part saves_messages(std::uint32_t cluster) {
    const Messages& with = messages(cluster);
    return with.with_part > std::max(with.all / 2, with.all / task_.parts) ? with.part : no_part;
  }

  Part cheapest(std::uint32_t cluster) {
    weigh_messages(cluster);
    load_.sum(window_[cluster].from, window_[cluster].to, in_window_);
    Part best = 0;
    double best_cost = 0;
    for (Part k = 0; k < task_.parts; ++k) {
      const double cost = in_window_[k] - with_part_[k];
      if (k == 0 || cost < best_cost) best = k, best_cost = cost;
    }
    return best;
  }

  const PartitionTask& task_;
  const Dag& dag_;
  const Slices& slices_;
  std::vector<double> tops_, work_;
  std::vector<Part> part_of_;
  std::uint32_t levels_ = 0, merged_ = 1;
  std::vector<std::uint32_t> level_;
  FenwickTree load_;                ///< by level, of each part and, last, of what is not mapped yet
  std::vector<Window> window_;      ///< of each cluster
  std::vector<Messages> messages_;  ///< of each cluster
  std::vector<Seen> seen_;          ///< of each node
  std::vector<double> with_part_, in_window_;
  std::vector<std::pair<std::uint32_t, double>> with_free_;
  double largest_free_ = 0, all_free_ = 0;
};

}  // namespace

Placement map_clusters(const PartitionTask& task, const Slices& slices) { return Mapper(task, slices).run(); }

}  // namespace convoy::partition
