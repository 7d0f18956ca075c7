// SPDX-License-Identifier: MIT
// libFuzzer target of everything that reads what users give: any bytes are what the reader reads, or an
// InputError.
// --reader=NAME chooses one of `readers`; files are read in a folder of the process's own.
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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
#include "sim/planning/plan_spec.h"
#include "sim/planning/read_plan_json.h"
#include "sim/results/read_json.h"
#include "sim/results/read_trace.h"
#include "sim/run/simulate.h"
#include "sim/schedule/trace_file.h"
#include "strategies/partition/read_dag.h"
#include "topologies/cluster.h"
#include "topologies/prices.h"

namespace {

using namespace convoy;

struct Reader {
  std::string_view name;
  const char* file;  ///< the bytes stand in it where the reader wants a file
  void (*read)(const std::string& text, const std::string& file);
};

constexpr std::size_t most_layers = 5000;  // `repeat` makes large models of few bytes

void summarize_small(const Model& model) {
  if (model.layers.size() <= most_layers) summarize(model);
}

/// Models that other files are a part of are left alone.
void read_yaml_model(const std::string& text, const std::string& file) {
  const YamlNode node = parse_yaml(text, file);
  if (node.find("file") || node.find("onnx") || node.find("profile")) return;
  summarize_small(read_model(node));
}

ClusterSpec read_inline_cluster(const std::string& text) { return read_cluster(parse_yaml(text, "c.yaml")); }

Machine small_machine(const ClusterSpec& cluster) {
  return cluster.node_count() <= 1000 ? build_machine(cluster, 0, Transport{}) : Machine{};
}

/// A small experiment is planned and simulated too.
void run_experiment(const std::string&, const std::string& file) {
  Preparer preparer;
  const Experiment experiment = Experiment::load(file, {});
  if (experiment.plan()) return static_cast<void>(read_plan(experiment));
  preparer = Preparer(experiment);
  const Point point = experiment.point(0);
  const Model& model = preparer.model(point.model);
  const ClusterSpec& cluster = preparer.cluster(point.cluster);
  if (model.layers.size() > 100 || cluster.node_count() > 16 || point.variability) return;
  if (point.training.batch.over(16) > 100'000) return;
  if (const YamlNode* kind = point.strategy.find("kind"); kind && kind->scalar == "auto") return;
  simulate(preparer.prepare(0), true);
}

constexpr const char* on_platform =
    "server: box\nnodes: 2\nfabric: {kind: simgrid, file: input.xml}\nservers: {box: {devices: [{device: "
    "v100-sxm2-16gb}]}}\n";
constexpr const char* inside_nccl =
    "server: box\nnodes: 1\nfabric: {kind: switch, bandwidth: 1GB/s, latency: 1us}\nservers: {box: {devices: "
    "[{device: "
    "v100-sxm2-16gb, count: 2}], interconnect: {kind: nccl_xml, file: input.xml, socket_link: 10GB/s}}}\n";
constexpr const char* inside_smi =
    "server: box\nnodes: 1\nfabric: {kind: switch, bandwidth: 1GB/s, latency: 1us}\nservers: {box: {devices: "
    "[{device: "
    "v100-sxm2-16gb, count: 2}], interconnect: {kind: nvidia_smi, file: input.txt, socket_link: 10GB/s}}}\n";

constexpr Reader readers[] = {
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

const Reader* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view option = "--reader=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    for (const Reader& reader : readers)
      if (word.starts_with(option) && word.substr(option.size()) == reader.name) chosen = &reader;
  }
  if (!chosen) {
    std::fprintf(stderr, "fuzz_reader: --reader=NAME is missing; names are");
    for (const Reader& reader : readers) std::fprintf(stderr, " %s", std::string(reader.name).c_str());
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path folder = [] {
    std::string name = (std::filesystem::temp_directory_path() / "convoy-fuzz-XXXXXX").string();
    if (!::mkdtemp(name.data())) std::abort();
    return std::filesystem::path(name);
  }();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);  // findings are written where the fuzzer was started
  std::ofstream(chosen->file, std::ios::binary) << text;
  try {
    chosen->read(text, chosen->file);
  } catch (const InputError&) {
  }
  std::filesystem::current_path(before);
  return 0;
}
