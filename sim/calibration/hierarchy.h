// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/calibration/fit_parameters.h"
#include "sim/calibration/measurements.h"
#include "sim/costs/cost_model.h"

namespace convoy::inline calibration {

/// A row of a fit: work of known duration, in the order it is issued.
struct HierarchyRow {
  std::size_t device = 0;   ///< index into Hierarchy's devices
  std::vector<Work> works;  ///< each different one once
  std::vector<std::size_t> order;
  double images = 0, seconds = 0;
  double spread = 0;            ///< of log(seconds), beyond which its error counts linearly
  BesideStep beside;
  bool is_kernel = false;
  Framework framework = Framework::pytorch;
  Software software;
  std::string repository;  ///< of the figure, whose machines have hosts of their own; "" for none
};

/// The devices of the catalogue that are fitted together: GPUs of NVIDIA's, and CPUs.
std::vector<DeviceType> fitted_devices();

/// The unknowns of a fit over all devices: logarithms that add up to parameters.
class Hierarchy {
 public:
  explicit Hierarchy(std::vector<DeviceType> devices);

  struct Term {
    Eigen::Index unknown;
    double coefficient = 1;
  };
  /// What a row's prediction depends on: a number, and the unknowns whose weighted sum is its logarithm.
  struct Link {
    double value = 0;
    std::vector<Term> terms;
    void (*put)(double value, std::size_t parameter, DeviceType& device, Software& software) = nullptr;
    std::size_t parameter = 0;
    bool is_host = false;        ///< how slow the host is
    bool is_generation = false;  ///< SoftwareCosts::kepler
    bool is_feed = false;        ///< SoftwareCosts::feed_Bps
  };

  const std::vector<DeviceType>& devices() const { return devices_; }
  /// Index of a device by its name, or rather of its board: rows of boards that differ in the size of their
  /// memory alone (V100 SXM2 of 16 and 32 GB) are rows of one.
  std::optional<std::size_t> find(const std::string& device) const;
  /// The first device that is the same but for the size of its memory.
  std::size_t board_of(std::size_t device) const;
  HierarchyRow row_of(const Measurement& measurement, std::size_t device) const;
  /// The links of a row; makes unknowns that are not there yet.
  std::vector<Link> links(const HierarchyRow& row);
  /// Their values at `x`.
  static void set_values(std::vector<Link>& links, const Eigen::VectorXd& x);
  /// Seconds of the row.
  double predict(const HierarchyRow& row, const std::vector<Link>& links) const;
  /// `device` with the parameters of `x`, on a typical host.
  DeviceType device_at(std::size_t device, const Eigen::VectorXd& x);
  SoftwareCosts software_at(Framework framework, ExecutionMode execution, Layout layout,
                            const Eigen::VectorXd& x);

  Eigen::VectorXd prior() const { return Eigen::Map<const Eigen::VectorXd>(prior_.data(), size()); }
  Eigen::VectorXd spread() const { return Eigen::Map<const Eigen::VectorXd>(spread_.data(), size()); }
  /// Unknowns that are frameworks' times of issuing an operation.
  const std::set<Eigen::Index>& issue_times() const { return issue_times_; }
  Eigen::Index size() const { return static_cast<Eigen::Index>(prior_.size()); }

 private:
  Term unknown(const std::string& name, double prior, double spread, double coefficient = 1);
  /// Boards with one design of chips, on average.
  struct Design {
    double log_clock_hz = 0, log_watts = 0;  ///< of the boost clock, of a multiprocessor's share of the power
  };

  void add_launch_link(const HierarchyRow& row, const std::string& family, std::vector<Link>& links);
  void add_clock_link(const DeviceType& device, std::vector<Link>& links);
  void add_device_links(const HierarchyRow& row, std::vector<Link>& links);
  void add_software_links(Framework framework, ExecutionMode execution, Layout layout,
                          std::vector<Link>& links);
  void add_one_thread_link(Framework framework, std::vector<Link>& links);

  std::vector<DeviceType> devices_;
  std::map<std::string, Design> designs_;
  std::map<std::string, Eigen::Index> index_;
  std::vector<double> prior_, spread_;
  std::set<Eigen::Index> issue_times_;
};

}  // namespace convoy::calibration
