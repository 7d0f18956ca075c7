// SPDX-License-Identifier: MIT
// Everything that reads what users give, by name: what scripts/fuzz feeds with anything, and tests with the
// seeds.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "models/layer_profile.h"
#include "models/onnx/onnx_import.h"
#include "models/summary.h"
#include "sim/base/input_error.h"
#include "sim/calibration/kineto_trace.h"
#include "sim/calibration/measurements.h"
#include "sim/calibration/nccl_log.h"
#include "sim/collectives/schedule.h"
#include "sim/planning/plan_spec.h"
#include "sim/planning/read_plan_json.h"
#include "sim/results/read_json.h"
#include "sim/results/read_trace.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/schedule/trace_file.h"
#include "strategies/partition/read_dag.h"
#include "topologies/cluster.h"
#include "topologies/prices.h"

namespace fuzz {

using namespace convoy;

struct Reader {
  std::string_view name;
  const char* file;  ///< the bytes stand in it where the reader wants a file
  void (*read)(const std::string& text, const std::string& file);
};

inline constexpr std::size_t most_layers = 5000;  // `repeat` makes large models of few bytes

inline void summarize_small(const Model& model) {
  if (model.layers.size() <= most_layers) summarize(model);
}

/// Models that other files are a part of are left alone.
inline void read_yaml_model(const std::string& text, const std::string& file) {
  const YamlNode node = parse_yaml(text, file);
  if (node.find("file") || node.find("onnx") || node.find("profile")) return;
  summarize_small(read_model(node));
}

inline ClusterSpec read_inline_cluster(const std::string& text) {
  return read_cluster(parse_yaml(text, "c.yaml"));
}

inline Machine small_machine(const ClusterSpec& cluster) {
  return cluster.node_count() <= 1000 ? build_machine(cluster, 0, Transport{}) : Machine{};
}

/// A small experiment is planned and simulated too.
inline void run_experiment(const std::string&, const std::string& file) {
  Preparer preparer;
  const Experiment experiment = Experiment::load(file, {});
  if (experiment.plan()) return static_cast<void>(read_plan(experiment));
  preparer = Preparer(experiment);
  const Point point = experiment.point(0);
  const Model& model = preparer.model(point.model);
  const ClusterSpec& cluster = preparer.cluster(point.cluster);
  if (model.layers.size() > 100 || cluster.node_count() > 16 || point.variability) return;
  if (point.training.batch.over(16) > 100'000) return;
  if (const YamlNode* kind = point.strategy->find("kind"); kind && kind->scalar == "auto") return;
  simulate(preparer.prepare(0), true);
}

inline constexpr const char* on_platform =
    "server: box\nnodes: 2\nfabric: {kind: simgrid, file: input.xml}\nservers: {box: {devices: [{device: "
    "v100-sxm2-16gb}]}}\n";
inline constexpr const char* inside_nccl =
    "server: box\nnodes: 1\nfabric: {kind: switch, bandwidth: 1GB/s, latency: 1us}\nservers: {box: {devices: "
    "[{device: "
    "v100-sxm2-16gb, count: 2}], interconnect: {kind: nccl_xml, file: input.xml, socket_link: 10GB/s}}}\n";
inline constexpr const char* inside_smi =
    "server: box\nnodes: 1\nfabric: {kind: switch, bandwidth: 1GB/s, latency: 1us}\nservers: {box: {devices: "
    "[{device: "
    "v100-sxm2-16gb, count: 2}], interconnect: {kind: nvidia_smi, file: input.txt, bandwidth: 12GB/s, "
    "latency: 5us, nvlink: 25GB/s, socket_link: 10GB/s}}}\n";

inline constexpr Reader readers[] = {
    {"model", "input.yaml", read_yaml_model},
    {"onnx", "input.onnx",
     [](const std::string& text, const std::string& file) {
       summarize(import_onnx(parse_onnx(text, file), file, {}));
     }},
    {"profile", "input.csv",
     [](const std::string&, const std::string& file) {
       summarize_small(profiled_model(read_layer_profile(file), "p"));
     }},
    {"cluster", "input.yaml",
     [](const std::string& text, const std::string&) { small_machine(read_inline_cluster(text)); }},
    {"platform", "input.xml",
     [](const std::string&, const std::string&) { small_machine(read_inline_cluster(on_platform)); }},
    {"nccl-graph", "input.xml",
     [](const std::string&, const std::string&) { small_machine(read_inline_cluster(inside_nccl)); }},
    {"nvidia-smi", "input.txt",
     [](const std::string&, const std::string&) { small_machine(read_inline_cluster(inside_smi)); }},
    {"prices", "input.csv", [](const std::string&, const std::string& file) { PriceTable::read(file); }},
    {"measurements", "input.csv",
     [](const std::string&, const std::string& file) { read_measurements(file); }},
    {"kineto", "input.json",
     [](const std::string&, const std::string& file) { read_kineto_trace(file, "v100-sxm2-16gb"); }},
    {"nccl-log", "input.log",
     [](const std::string&, const std::string& file) {
       if (looks_like_nccl_log(file)) fit_link(read_all_reduce_log(file), file);
     }},
    {"jobs", "input.csv",
     [](const std::string&, const std::string&) {
       const YamlNode jobs = with_trace_read(parse_yaml("{trace: input.csv}", "jobs.yaml"));
       constexpr std::uint32_t most_gpus = 64;
       if (const YamlNode* trace = jobs.find("trace")) read_traced_jobs(*trace, most_gpus);
     }},
    {"msccl", "input.xml", [](const std::string&, const std::string& file) { SumSchedule::load(file); }},
    {"dag", "input.json", [](const std::string& text, const std::string& file) { parse_dag(text, file); }},
    {"results", "input.json",
     [](const std::string& text, const std::string& file) {
       std::istringstream in(text);
       read_json(in, file);
     }},
    {"trace", "input.json",
     [](const std::string& text, const std::string& file) {
       std::istringstream in(text);
       read_trace(in, file, [](const std::string&) { return true; });
     }},
    {"plan-answer", "input.json",
     [](const std::string& text, const std::string& file) {
       std::istringstream in(text);
       read_plan_answer(in, file);
     }},
    {"experiment", "input.yaml", run_experiment},
};

}  // namespace fuzz
