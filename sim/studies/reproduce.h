// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/calibration/kernel_accuracy.h"
#include "sim/run/preparer.h"

namespace convoy::inline studies {

/// A published figure and its prediction.
struct ReproducedRow {
  std::string table;  ///< "EC2 p2.8xlarge, K80, batch 64"
  std::string model;
  std::string setup;  ///< "4 x 8, batch 64"
  double published = 0, predicted = 0;
  double error = 0;     ///< predicted / published - 1
  bool anchor = false;  ///< the prediction was scaled to this row, which says nothing about the error
  std::string source;
  bool fitted = false;      ///< a constant was fitted to this row: its error is shown but not counted
  std::string group{};      ///< the hardware: rows of one group can be alternatives
  std::string kind{};       ///< of communication: "tcp"; "" where rows have none
  std::string transport{};  ///< "nccl-tcp"; the same
  std::optional<std::array<double, 2>> interval{};  ///< where the figure lies with probability 80 %
  bool sets_interval = false;  ///< the interval's width was taken from rows like this, so it does not test it
  std::string
      shortfall{};  ///< why it is off by more than the worst tolerance (results/published/shortfalls.yaml)
  std::string
      reason{};  ///< why it is off by more than explained_tolerance; the same as shortfall if there is one

  bool outside = false;  ///< the model is known not to hold here (RowRole::outside): shown but not counted

  bool tested() const { return !anchor && !fitted && !outside; }
};

/// The prediction for a row.
struct Prediction {
  Prediction(double predicted) : value(predicted) {}
  double value;
  std::optional<std::array<double, 2>> interval{};
  std::string kind{}, transport{};
};

/// A figure of a comparison with the range in which it has to lie.
struct Gate {
  std::string name;  ///< "mean error", "bias of family vgg"
  double value = 0, low = 0, high = 0;
  std::string shortfall{};  ///< why it is known not to lie there

  bool inside() const { return low <= value && value <= high; }
  /// A known shortfall has to be one: once it is fixed, it must be removed from the list.
  bool as_listed() const { return inside() == shortfall.empty(); }
};

/// Errors of rows that have something in common.
struct ErrorSummary {
  std::string role, group, name;  ///< "test", "device", "k80"
  std::size_t rows = 0;
  double median = 0, mean = 0, ninety = 0;  ///< of |error|; 90 % of the rows are off by less than the last
  double bias = 0;                          ///< mean of the errors
};
/// Errors by role, group and name of their summary.
using ErrorGroups = std::map<std::array<std::string, 3>, std::vector<double>>;
/// In the order of the keys.
std::vector<ErrorSummary> summaries_by_group(ErrorGroups groups);

inline constexpr double bytes_a_mib = 1024 * 1024;

/// A batch that is published as trainable on a device, or as running out of memory, with the predicted
/// process.
struct BatchRow {
  std::string device, model, setup, software, source;
  bool ran = false;  ///< else training ran out of memory
  double process_mib = 0;
  double usable_mib = 0;   ///< what the driver of the device leaves to processes
  double uncertainty = 1;  ///< the process is by probability 80 % within this factor of what is predicted

  bool fits() const { return process_mib <= usable_mib; }
  /// Whether the uncertainty does not change the verdict.
  bool sure() const {
    return fits() ? process_mib * uncertainty <= usable_mib : process_mib / uncertainty > usable_mib;
  }
};

/// How many of the batches that ran, or did not run, are predicted to fit.
struct BatchCount {
  std::size_t rows = 0, fit = 0, may_fit = 0, may_not_fit = 0, do_not_fit = 0;  ///< may: where it is not sure
};
BatchCount count_batches(const std::vector<BatchRow>& batches, const std::string& software, bool ran);
/// The software of the batches, in alphabetical order.
std::vector<std::string> batch_software(const std::vector<BatchRow>& batches);

/// A comparison with its rows and the errors that it promises not to exceed.
struct Reproduction {
  std::string name, title;
  std::string unit = "images_per_s";  ///< of the figures; or "mib", "j", "us"
  std::vector<ReproducedRow> rows{};
  std::vector<ErrorSummary> summaries{};
  // Tolerances, from results/published/gates.yaml (read_tolerances):
  double mean_tolerance = 0;  ///< of |error|
  std::optional<double> worst_tolerance{};
  std::optional<double> median_tolerance{};
  std::optional<double> bias_tolerance{};            ///< of the groups of test rows below
  std::vector<std::string> bias_groups{};            ///< "family", "device"
  std::optional<double> order_tolerance{};           ///< least share of right_order()
  std::optional<double> rare_tolerance{};            ///< most rows that are off by more than 20 %, as a share
  std::optional<double> explained_tolerance{};       ///< no row is off by more without a reason
  std::optional<std::array<double, 2>> coverage_range{};  ///< of coverage()
  std::string because{};                             ///< why the tolerances are what they are
  std::vector<BatchRow> batches{};                   ///< of memory: no false "fits" is promised for these
  std::vector<Gate> gates{};                         ///< made by judge() from all of the above
  std::vector<std::string> outdated_shortfalls{};    ///< named in the list, but there is no such row or gate

  double mean_error() const;    ///< of |error| over rows that are neither anchors nor fitted
  double median_error() const;  ///< the same, the median
  double fitted_error() const;  ///< of |error| over fitted rows, on average
  double worst_error() const;   ///< over those that are not known shortfalls either
  /// The share of the rows testing intervals that lie inside theirs; nothing if there are none.
  std::optional<double> coverage() const;
  /// Whether everything that is promised is kept.
  bool passed() const;
  /// Whether nothing is short that is not listed as such, nor listed without being short.
  bool as_listed() const;
};

/// Fills in the tolerances of results/published/gates.yaml for the comparison of this name. @throws
/// InputError if the file is wrong or has none
void read_tolerances(Reproduction& reproduction);
/// The tolerance for the times of single kernels.
double worst_median_of_kernels();

/// @param listed shortfalls.yaml  @param promised gates.yaml, which has to promise what the list makes
/// exceptions of
/// @throws InputError at a comparison that gates.yaml does not have, at rows without its `worst`, and at reasons
/// without its `explained`
void check_shortfalls(const YamlNode& listed, const YamlNode& promised);
/// Fills in gates, with the known shortfalls of results/published/shortfalls.yaml. @throws InputError if the
/// file is wrong.
void judge(Reproduction& reproduction);

/// Alternatives are two test rows of different tables with the same `group`, model and setup, whose published
/// figures differ by more than 3 %. Counts the pairs, and those whose predicted figures are in the published
/// order.
struct OrderCount {
  std::size_t pairs = 0, right = 0;
};
OrderCount right_order(const std::vector<ReproducedRow>& rows);

/// Fills in predictions and errors. `predict` computes the figure of row i, with a preparer that keeps the
/// models and clusters of earlier rows of the same process.
/// @param jobs processes at a time
/// @throws std::runtime_error if one failed
void predict_rows(Reproduction& reproduction, std::size_t jobs,
                  const std::function<Prediction(std::size_t, Preparer&)>& predict);

/// Times of single kernels, fitted to some and tested on others.
struct KernelReproduction {
  double tolerance = 0;  ///< of the median error of the test rows of a device and precision
  std::vector<KernelAccuracy> rows;

  double worst() const;  ///< of these medians
  bool passed() const { return worst() <= tolerance; }
};
KernelReproduction reproduce_kernels();

/// Throughput of single devices (results/published/single_device.csv) from the cost model alone, with
/// summaries by role, device, precision, family of networks, batch, framework and part of the step. Rows with
/// role fit are fitted: the tolerances apply to the test rows alone.
Reproduction reproduce_single_device();

/// Throughput of several devices (results/published/scaling.yaml) from that of one. Each table names an
/// experiment in configs/published, which has the cluster and the strategy; the anchor is the row of one
/// device with the same experiment, model and batch. @param jobs processes at a time
Reproduction reproduce_scaling(std::size_t jobs);

/// The same for the transports and links between devices (results/published/scaling_transports.yaml): rows
/// with `role: fit` set constants of topologies/catalog/transports, and the others test them.
Reproduction reproduce_transports(std::size_t jobs);

/// Throughput of training on images from files (results/published/real_images.yaml): every row is predicted
/// from the figure of one device with synthetic images, with `training.input` from the settings of its table.
/// @param jobs processes at a time
Reproduction reproduce_real_images(std::size_t jobs);

/// Throughput of pipelines (results/published/pipelines.yaml): that of one partition from plain training,
/// that of several from one.
Reproduction reproduce_pipelines();

/// Peak memory of training, of a device's tensors or of its process (results/published/memory.yaml). @param
/// jobs processes at a time
Reproduction reproduce_memory(std::size_t jobs);

/// Largest batches that ran and smallest that ran out of memory (results/published/largest_batches.csv).
/// @param jobs processes at a time
std::vector<BatchRow> published_batches(std::size_t jobs);
/// What the driver of a device of the catalogue leaves to processes.
double usable_mib(const std::string& device);
/// The factor within which the memory of a process lies with probability 80 %, by framework.
double memory_uncertainty(const std::string& framework);

/// Minutes to 75.9 % on ImageNet of MLPerf's submissions (results/published/mlperf.csv), with the submitted
/// epochs and with those of the goal's table: epochs x images / predicted throughput, and nothing in addition
/// to training. @param jobs processes at a time
Reproduction reproduce_mlperf(std::size_t jobs);
inline constexpr std::string_view table_of_epochs = "epochs from the table of the goal";

/// Images a second of training RetinaNet, Faster and Mask R-CNN, SSD and 3D U-Net (results/published/detection.csv):
/// MLPerf's submissions, NVIDIA's examples and Detectron2. @param jobs processes at a time
Reproduction reproduce_detection(std::size_t jobs);

/// Images a second of training on files through a loader, where neither the step nor the loader was measured
/// alone (results/published/loaders.csv): GluonCV's logs and a tutorial's epochs. @param jobs processes at a time
Reproduction reproduce_loaders(std::size_t jobs);

/// USD that DAWNBench's entries had cost when ResNet-50 reached 93 % (results/published/dawnbench.csv),
/// computed from the cost of an epoch with each of their image and batch sizes. @param jobs processes at a
/// time
Reproduction reproduce_dawnbench(std::size_t jobs);

/// How many times as long (or as dear) as their steps predict the runs of mlperf, with their own epochs, and
/// dawnbench were, beside the interval that plans give whole runs by those of the other teams
/// (sim/planning/whole_runs.h). @param jobs processes at a time
Reproduction reproduce_whole_runs(std::size_t jobs);

/// Time of NCCL's collectives alone (results/published/collectives.csv), us, inside a host and between hosts,
/// with summaries by role, table, collective, layout and size. @param jobs processes at a time
Reproduction reproduce_collectives_inside(std::size_t jobs);
Reproduction reproduce_collectives_between(std::size_t jobs);

/// Energy per image in training on one device under power limits (results/published/energy.csv), J, from the
/// throughput that was measured at the highest limit with the same batch. @param jobs processes at a time
Reproduction reproduce_energy(std::size_t jobs);

}  // namespace convoy::studies
