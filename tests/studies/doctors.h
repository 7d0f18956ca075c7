// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/costs/residuals.h"
#include "sim/run/sweep.h"
#include "sim/studies/doctor.h"
#include "tests/laws/random_experiment.h"

namespace convoy {

inline Experiment experiment_of(const std::string& text, const std::vector<std::string>& settings = {}) {
  return Experiment::parse(text, "doctor.yaml", settings);
}

inline RunResult result_of(const std::string& text, const std::vector<std::string>& settings = {}) {
  const Experiment experiment = experiment_of(text, settings);
  Preparer preparer(experiment);
  return simulate(preparer.prepare(0), false).result;
}

inline DoctorRun diagnosed(const std::string& text, const std::vector<std::string>& settings = {}) {
  const Experiment experiment = experiment_of(text, settings);
  Preparer preparer(experiment);
  return diagnose_run(preparer.prepare(0));
}

inline const DoctorInput& input_of(const DoctorRun& run, const std::string& key) {
  const auto found = std::find_if(run.inputs.begin(), run.inputs.end(),
                                  [&](const DoctorInput& input) { return input.key == key; });
  REQUIRE_MESSAGE(found != run.inputs.end(), key);
  return *found;
}

/// 2 to 4 hosts on one switch.
struct DoctorHosts {
  int nodes = 2;
  std::string device = "v100-sxm2-16gb", fabric = "bandwidth: 10Gbps, latency: 20us", vcpus = "", node = "",
              more = "";
  std::string training = "batch_per_device: 8",
              strategy = "{kind: data_parallel, sync: all_reduce, algorithm: ring}";
  std::string model = "resnet18";

  std::string text() const {
    return fmt::format(
        "experiment: e\nmodel: {}\ntraining: {{{}}}\nstrategy: {}\ncluster:\n"
        "  nodes: [{{name: n, count: {}, server: box{}}}]\n  fabric: {{kind: switch, {}}}\n"
        "  servers: {{box: {{devices: [{{device: {}, count: 1}}], interconnect: {{kind: none}}{}}}}}\n"
        "  devices: {{ideal: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, "
        "efficiency: 1.0}}}}\n{}",
        model, training, strategy, nodes, node, fabric, device, vcpus, more);
  }
};

inline DoctorHosts random_hosts(lab::Dice& dice) {
  DoctorHosts hosts;
  hosts.nodes = dice.between(2, 4);
  hosts.device = dice.one_of<std::string>({"v100-sxm2-16gb", "k80", "b200-sxm-180gb", "a100-sxm4-40gb"});
  hosts.fabric = fmt::format("bandwidth: {}Gbps, latency: 20us{}", dice.one_of<int>({1, 10, 100}),
                             dice.one_of<std::string>({"", ", protocol: tcp", ", protocol: rdma"}));
  hosts.training = fmt::format("batch_per_device: {}", dice.one_of<int>({1, 8, 64}));
  hosts.model = lab::random_model(dice);
  hosts.strategy = dice.coin() ? lab::random_all_reduce(dice, "auto") : lab::random_parameter_server(dice);
  if (dice.coin()) hosts.more = "spread: {cluster.fabric.bandwidth: 30%}\n";
  return hosts;
}

/// Half of what lies between the ends of an interval of 80 %, in standard deviations of the logarithm.
inline double spread_of(const std::optional<IntervalResult>& interval) {
  return interval ? std::log(interval->step_time_s[1] / interval->step_time_s[0]) / (2 * quantile_80) : 0;
}

}  // namespace convoy
