// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <boost/iterator/indirect_iterator.hpp>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/results/result.h"

namespace convoy::inline results {

/// A dotted path and its value.
using Coordinate = std::pair<std::string, YamlNode>;

/// The point of a run: a list of coordinates, each of which lies in a pool.
class PooledPoint {
 public:
  using Iterator = boost::indirect_iterator<const Coordinate* const*>;

  explicit PooledPoint(std::span<const Coordinate* const> places) : places_(places) {}
  std::size_t size() const { return places_.size(); }
  const Coordinate& operator[](std::size_t c) const { return *places_[c]; }
  Iterator begin() const { return Iterator(places_.data()); }
  Iterator end() const { return Iterator(places_.data() + places_.size()); }

 private:
  std::span<const Coordinate* const> places_;
};

/// Bottleneck, its texts in a pool.
struct PooledBottleneck {
  const std::string &kind, &name;
  double utilization;
  const std::string& text;
};

/// What tables and pages say of every run of a sweep: members as in RunResult, without what a run lists. A million of them
/// are to fit in memory; texts, which many runs have in common, lie in a pool.
struct RunFigures {
  std::string id;
  PooledPoint point;
  const std::string &model, &cluster, &strategy, &servers, &device_type;
  const std::vector<std::string>&algorithms, &warnings;
  const SoftwareResult& software;
  std::int64_t devices;
  double global_batch, step_time_s, throughput_images_per_s;
  std::optional<double> epoch_time_s, cost_usd_per_epoch, bubble_fraction, mean_staleness;
  double energy_j, compute_s, exposed_comm_s, idle_s, issue_wait_s, comm_bytes, load_imbalance;
  double peak_memory_bytes, device_memory_bytes, process_memory_bytes;
  struct Interval {
    double level;
    IntervalResult::Range step_time_s, throughput_images_per_s;
  };
  std::optional<Interval> interval;
  PooledBottleneck bottleneck;
  /// Of the fullest device by class, bytes; nullptr where the run lists no device whose peak is the run's.
  const std::array<double, memory_class_count>* fullest_memory;
  bool fits;
  /// What the whole run (SweepResults::whole) has; phases: more than one.
  bool has_phases, has_changes, has_stages, has_partition, has_search, has_layouts, has_variability,
      has_counterfactuals, has_learning;
};

/// Texts and coordinates that figures refer to, each once.
class FiguresPool {
 public:
  RunFigures figures_of(const RunResult& run);

 private:
  const std::string& kept(const std::string& text) { return *texts_.insert(text).first; }
  const std::vector<std::string>& kept(const std::vector<std::string>& texts);
  const SoftwareResult& kept(const SoftwareResult& software);
  const Coordinate& kept(const Coordinate& coordinate);
  const std::array<double, memory_class_count>& kept(const std::array<double, memory_class_count>& memory);
  PooledPoint kept(const std::vector<Coordinate>& point);

  // Nodes of these stay where they are.
  std::unordered_set<std::string> texts_;
  std::unordered_map<std::string, std::vector<std::string>> lists_;
  std::list<SoftwareResult> software_;
  std::unordered_map<std::string, Coordinate> coordinates_;
  std::set<std::array<double, memory_class_count>> memories_;
  static constexpr std::size_t block_places = 4096;
  std::list<std::vector<const Coordinate*>> points_;  ///< blocks, in which points lie one after the other
};

}  // namespace convoy::results
