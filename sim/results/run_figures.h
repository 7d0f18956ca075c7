// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <boost/iterator/indirect_iterator.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
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

/// A number that not every run has, in the room of one: no result is NaN.
class OptionalNumber {
 public:
  OptionalNumber(const std::optional<double>& number)  // NOLINT(google-explicit-constructor)
      : number_(number.value_or(std::numeric_limits<double>::quiet_NaN())) {}
  operator std::optional<double>() const {  // NOLINT(google-explicit-constructor)
    return has_value() ? std::optional(number_) : std::nullopt;
  }
  bool has_value() const { return !std::isnan(number_); }
  explicit operator bool() const { return has_value(); }
  double operator*() const { return number_; }

 private:
  double number_;
};

/// What many runs of a sweep have in common; members as in RunResult.
struct RunWords {
  std::string model, cluster, strategy, servers, device_type;
  std::vector<std::string> algorithms, warnings;
  SoftwareResult software;
  std::string bottleneck_kind, bottleneck_name;
  double interval_level;  ///< where it has an interval
};

/// What tables and pages say of every run of a sweep: members as in RunResult, without what a run lists. A million of them
/// are to fit in memory; what many runs have in common lies in a pool.
struct RunFigures {
  std::string id;
  PooledPoint point;
  const RunWords& words;
  const std::string& bottleneck_sentence;
  double bottleneck_utilization;
  std::int64_t devices;
  double global_batch, step_time_s, throughput_images_per_s;
  OptionalNumber epoch_time_s, cost_usd_per_epoch, bubble_fraction, mean_staleness;
  double energy_j, compute_s, exposed_comm_s, idle_s, issue_wait_s, comm_bytes, load_imbalance;
  double peak_memory_bytes, device_memory_bytes, process_memory_bytes;
  IntervalResult::Range step_interval_s, throughput_interval_images_per_s;  ///< where has_interval
  /// Of the fullest device by class, bytes; nullptr where the run lists no device whose peak is the run's.
  const std::array<double, memory_class_count>* fullest_memory;
  bool fits : 1, has_interval : 1;
  /// What the whole run (SweepResults::whole) has; phases: more than one.
  bool has_phases : 1, has_changes : 1, has_stages : 1, has_partition : 1, has_search : 1, has_layouts : 1,
      has_variability : 1, has_counterfactuals : 1, has_learning : 1;
};

/// Texts and coordinates that figures refer to, each once.
class FiguresPool {
 public:
  RunFigures figures_of(const RunResult& run);

 private:
  const std::string& kept(const std::string& text) { return *texts_.insert(text).first; }
  const RunWords& words_of(const RunResult& run);
  const Coordinate& kept(const Coordinate& coordinate);
  const std::array<double, memory_class_count>& kept(const std::array<double, memory_class_count>& memory);
  PooledPoint kept(const std::vector<Coordinate>& point);

  // Nodes of these stay where they are.
  std::unordered_set<std::string> texts_;
  std::unordered_map<std::string, RunWords> words_;
  std::unordered_map<std::string, Coordinate> coordinates_;
  std::set<std::array<double, memory_class_count>> memories_;
  static constexpr std::size_t block_places = 4096;
  std::list<std::vector<const Coordinate*>> points_;  ///< blocks, in which points lie one after the other
};

}  // namespace convoy::results
