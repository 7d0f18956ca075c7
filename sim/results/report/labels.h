// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/results/sweep_results.h"

namespace convoy::inline results {

/// Runs (by index) that differ only in what an axis shows.
struct RunSeries {
  std::string label;
  std::vector<std::size_t> runs;
};

/// What distinguishes the runs of an experiment, in words.
class RunLabels {
 public:
  explicit RunLabels(const std::vector<RunFigures>& runs);

  const std::vector<std::string>& models() const { return models_; }
  std::vector<std::size_t> of_model(const std::string& model) const;
  /// Coordinates of the sweep with at least two different values.
  const std::vector<std::size_t>& varying() const { return varying_; }
  bool sweeps(std::string_view path) const;  ///< whether the coordinate of that path varies
  /// "bandwidth" for cluster.fabric.bandwidth.
  std::string name_of(std::size_t coordinate) const;
  const std::string& path_of(std::size_t coordinate) const { return runs_.front().point[coordinate].first; }
  std::string value_text(std::size_t run, std::size_t coordinate) const;
  /// The value as a number: plain, or a quantity in SI units.
  std::optional<double> value_of(std::size_t run, std::size_t coordinate) const;

  /// For `runs`: "ring all-reduce, bandwidth 10Gbps, 8 devices"; what all of them share is left out.
  std::vector<std::string> labels(const std::vector<std::size_t>& runs) const;
  /// That of one among them.
  std::string label(std::size_t run, const std::vector<std::size_t>& runs) const;
  /// Series over the number of devices, fewest first, in the order of their first runs.
  std::vector<RunSeries> over_devices(const std::vector<std::size_t>& runs) const;
  /// Series over a coordinate, smallest first.
  std::vector<RunSeries> over(std::size_t coordinate, const std::vector<std::size_t>& runs) const;

 private:
  std::vector<RunSeries> grouped(const std::vector<std::size_t>& runs,
                                 const std::vector<std::size_t>& without, bool over_devices) const;
  /// Of the wanted ones among `runs`.
  std::vector<std::string> worded(const std::vector<std::size_t>& wanted,
                                  const std::vector<std::size_t>& runs,
                                  const std::vector<std::size_t>& without, bool with_devices) const;

  const std::vector<RunFigures>& runs_;
  std::vector<std::string> models_;
  std::vector<std::size_t> varying_;
};

}  // namespace convoy::results
