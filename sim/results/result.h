// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/training_graph.h"
#include "sim/base/yaml_node.h"
#include "sim/plan/strategy_report.h"

namespace convoy::inline results {

// The results of an experiment as plain values, named as in results.json (docs/results.md, schema
// convoy.results/1).

struct DeviceResult {
  std::string name;
  double busy_s = 0, sent_bytes = 0, received_bytes = 0, peak_memory_bytes = 0, energy_j = 0;
  std::array<double, memory_class_count> memory{};  ///< by class at the peak, bytes
  std::int64_t count = 1;  ///< number of devices that are equal in all of this; `name` is the first
  bool operator==(const DeviceResult&) const = default;
};

struct LinkResult {
  std::string name;
  double bytes = 0, utilization = 0;  ///< bytes / (bandwidth step time)
  std::int64_t count = 1;             ///< number of equal ones; `name` is the first
  bool operator==(const LinkResult&) const = default;
};

/// What the step waits for most: the device or port that is busy for the largest share of it.
struct Bottleneck {
  std::string kind;        ///< "compute" | "link" | "latency" | "input" | "memory" | "host"
  std::string name;        ///< of the device or port
  double utilization = 0;  ///< share of the step it is busy; latency: with more than bytes
  std::string text;        ///< a sentence for people
  bool operator==(const Bottleneck&) const = default;
};

/// Steps on the same devices, in a run whose devices change.
struct PhaseResult {
  std::int64_t first_step = 0, devices = 0;
  double start_s = 0;  ///< when its first step begins
  double step_time_s = 0, throughput_images_per_s = 0;
  std::int64_t least_images = 0, most_images = 0;  ///< of a device in a step
  double peak_memory_bytes = 0;                    ///< of the fullest device
  bool operator==(const PhaseResult&) const = default;
};

/// A change of devices between two phases.
struct ReconfigurationResult {
  std::int64_t at_step = 0;  ///< when it was asked for
  std::int64_t from = 0, to = 0;
  double pause_s = 0;           ///< while nobody trains
  std::array<double, 2> pause_interval_s{};  ///< of 80 %, by what is not stated and by messages
  std::int64_t first_step = 0;  ///< of the phase after it
  bool operator==(const ReconfigurationResult&) const = default;
};

/// A stage of a pipeline.
struct StageResult {
  std::string device;                 ///< of its first replica
  std::vector<std::string> replicas;  ///< all its devices
  std::vector<std::string> layers;
  double compute_s = 0, peak_memory_bytes = 0;  ///< of the replica that computes longest, of the fullest one
  std::int64_t weight_versions = 1;             ///< that each replica keeps
  Staleness staleness{};
  bool operator==(const StageResult&) const = default;
};

/// The outcome of one candidate of a search over strategies.
struct CandidateResult {
  std::string strategy;  ///< label, with what distinguishes it from candidates with the same label
  YamlNode candidate;    ///< its `strategy:` mapping
  std::string
      outcome;  ///< "best" | "beaten" | "pruned" | "does_not_fit" | "cannot_run" | "failed" | "unknown"
  std::optional<double> value;  ///< of the objective, if it was simulated
  /// A bound of the objective: no simulation gives a better value. Present if the cost table or the plan
  /// gives one.
  std::optional<double> bound;
  bool tie = false;    ///< simulated, and within the interval of its difference to the best
  std::string reason;  ///< a sentence: why it is not the best
};

/// `strategy: {kind: auto}`: the run is that of the best candidate.
struct SearchSummary {
  std::string objective;
  std::int64_t planned = 0, simulated = 0;  ///< numbers of candidates
  std::int64_t pruned_by_cost_table = 0;    ///< before they were planned
  bool proven = true;  ///< no candidate can be better: none was left out because of the budget
  std::vector<CandidateResult> ranking;  ///< best first
};

/// Where the true values lie with probability `level` (docs/cost_model.md).
struct IntervalResult {
  using Range = std::array<double, 2>;  ///< the lowest and the highest
  double level = 0.8;
  Range step_time_s{}, throughput_images_per_s{}, peak_memory_bytes{}, energy_j{};
  bool operator==(const IntervalResult&) const = default;
};

/// A run repeated with the variations that its experiment describes (`variability:`).
struct VariabilityResult {
  std::int64_t runs = 0;
  double level = 0.8;      ///< share of the repetitions inside the intervals
  double step_time_s = 0;  ///< on average
  IntervalResult::Range step_time_interval_s{};
  std::optional<double> epoch_time_s = {};           ///< on average, if the data set is known
  std::optional<IntervalResult::Range> epoch_time_interval_s = {};
  std::optional<double> expected_epoch_time_s = {};  ///< in closed form, with steps of step_time_s
  std::optional<double> cost_usd_per_epoch = {};     ///< on average: all hosts, all the time
  double failures = 0;                               ///< in an epoch, on average
  bool operator==(const VariabilityResult&) const = default;
};

/// The same run with one thing changed (`--explain`).
struct Counterfactual {
  std::string change;      ///< "all links twice as fast"
  double step_time_s = 0;  ///< then
  double gain_s = 0;       ///< for as many images as the run's step has; negative: it would be slower
  std::optional<double> gain_usd_per_epoch = {};  ///< if data set and prices are known
  double global_batch = 0;                        ///< images of that step
  double peak_memory_bytes = 0;                   ///< then, of the fullest device
  bool fits = true;                               ///< then
};

/// A change that cannot be tried on the run, and why (`--explain`).
struct RefusedChange {
  std::string change, reason;
};

/// What the run was predicted for, including defaults.
struct SoftwareResult {
  std::string framework, execution, layout, precision;
  std::string update;              ///< kernels of the optimizer's step: "foreach"
  std::string transport;           ///< "ideal": latency + bytes/bandwidth
  bool transport_assumed = false;  ///< the protocol of its hosts' network is not known (warnings say why)
  std::string launches;            ///< who launches all-reduces: "per_process"; "" if the strategy has none
  std::string input;               ///< "synthetic": images are available when needed
  bool operator==(const SoftwareResult&) const = default;
};

/// What the network has learnt by a time of the training (`numerics:`).
struct LearningPoint {
  std::int64_t step = 0;        ///< steps of a global batch that are done
  double time_s = 0, loss = 0;  ///< since the beginning; mean over the images since the last point
  double accuracy = 0;          ///< share of the held-out images that are classified right
  bool operator==(const LearningPoint&) const = default;
};

struct RunResult {
  std::string id;                                       ///< "1", "2", ... in sweep order
  std::vector<std::pair<std::string, YamlNode>> point;  ///< dotted path -> value
  std::string model, cluster, strategy;
  std::vector<std::string> algorithms;  ///< those that `algorithm: auto` chose, the one with most bytes first
  std::string servers;                  ///< kinds of hosts with devices: "dgx1-v100"; "a + b" if they differ
  std::string device_type;              ///< "k80"; "v100-sxm2-16gb + k80" if they differ
  std::string network_model;            ///< of the machine; in results.json, part of the manifest
  std::int64_t devices = 0;
  double global_batch = 0;
  double step_time_s = 0, throughput_images_per_s = 0;
  std::optional<double> epoch_time_s, cost_usd_per_epoch;  ///< if data set and prices are known
  double energy_j = 0;
  double compute_s = 0, exposed_comm_s = 0,
         idle_s = 0;        ///< of the critical device; they add up to step_time_s
  double issue_wait_s = 0;  ///< of its compute_s, waiting for the host to issue the next operation
  double comm_bytes = 0, load_imbalance = 1;
  double peak_memory_bytes = 0, device_memory_bytes = 0;  ///< of the fullest device: its peak and its memory
  double process_memory_bytes = 0;  ///< of the fullest process: what nvidia-smi would show
  bool fits = true;                 ///< every process fits in the memory that the driver leaves of its device
  SoftwareResult software;
  std::vector<std::string> warnings;  ///< one line each: parts of the prediction that rest on little evidence
  std::optional<IntervalResult>
      interval;  ///< where devices have parameters with a spread: not for exact ones
  Bottleneck bottleneck;
  std::vector<DeviceResult> per_device;
  std::vector<LinkResult> per_link;
  /// If the devices change during the run: its phases and what lies between them. Everything above then
  /// belongs to the last phase, except peak_memory_bytes, process_memory_bytes, device_memory_bytes and fits,
  /// which belong to the fullest one.
  std::vector<PhaseResult> phases;
  std::vector<ReconfigurationResult> reconfigurations;
  std::optional<Staleness> staleness;  ///< for training whose workers or stages may miss updates
  /// For pipelines: the share of the step in which their devices do not compute, on average; stages in order.
  /// Nothing for other strategies.
  std::optional<double> bubble_fraction;
  std::vector<StageResult> stages;
  std::optional<PartitionSummary> partition;     ///< if the strategy partitions the training graph
  std::optional<SearchSummary> search;           ///< if the strategy was searched for
  std::vector<LayerGroup> layouts;               ///< if the strategy decides layer by layer
  std::optional<VariabilityResult> variability;  ///< if the experiment says what varies
  std::vector<Counterfactual> counterfactuals;   ///< if they were asked for; what gains most first
  std::vector<RefusedChange> refused_changes;    ///< those that cannot be tried, if they were asked for
  std::vector<LearningPoint> learning;           ///< if the experiment has the network learn
};

struct Manifest {
  std::string version, simgrid, network_model, config_sha256;
  std::vector<std::string> set;                             ///< --set key=value, as given
  std::vector<std::pair<std::string, std::string>> inputs;  ///< file -> sha256
};

/// A queue of jobs under one policy.
struct ScheduleResult {
  std::string policy;
  std::uint64_t seed = 0;
  std::int64_t jobs = 0;
  double mean_interval_s = 0;  ///< between arrivals
  double mean_completion_s = 0, makespan_s = 0;
  double busy_share = 0;                     ///< of the GPUs' time, the share in which jobs held them
  std::int64_t changes = 0;                  ///< of a job's GPUs
  std::optional<double> deadlines_met = {};  ///< share of the jobs with a deadline, if there are any
  /// Of the GPUs' time, the share with jobs on more hosts than needed, if placement matters.
  std::optional<double> scattered_share = {};
  /// Of the time of GPUs that train, the share that jobs lose because others send over the same links, if
  /// links are shared.
  std::optional<double> sharing_loss = {};
};

/// A point of the sweep that has no run.
struct FailedPoint {
  std::string id;
  std::vector<std::pair<std::string, YamlNode>> point;
  std::string kind;  ///< "input" | "memory" | "time" | "crash"
  std::string reason;
};

struct Results {
  std::string experiment;
  std::vector<RunResult> runs;
  Manifest manifest;
  std::vector<ScheduleResult> schedules = {};  ///< if the experiment has `jobs:`
  std::vector<FailedPoint> failed = {};
  /// Number of points of the sweep; points that are neither among the runs nor failed have not been computed
  /// yet. Nothing: there are no such points.
  std::optional<std::int64_t> points = {};
};

}  // namespace convoy::results
