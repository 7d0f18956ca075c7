// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <chrono>
#include <numeric>
#include <ostream>

#include "sim/base/input_error.h"
#include "sim/base/quantity.h"
#include "sim/cli/commands.h"
#include "sim/results/json_writer.h"
#include "sim/run/experiment.h"
#include "sim/run/output_folder.h"
#include "sim/run/preparer.h"
#include "strategies/pardnn/networks/networks.h"
#include "strategies/pardnn/operation_dag.h"
#include "strategies/partition/paging.h"
#include "strategies/partition/read_dag.h"
#include "strategies/partition/report.h"

namespace convoy::inline cli {
namespace {

double option(const char* name, const std::string& text, Dimension dimension) {
  std::string why;
  const std::optional<double> value = parse_quantity(text, dimension, why);
  if (!value) throw InputError({name, 0, 0}, why);
  return *value;
}

PartLink read_link(const PartitionArguments& arguments) {
  constexpr double us_per_s = 1e6, s_per_us = 1e-6;  // as units are read: 25us / 1us is 25
  const PartLink link{option("--latency", arguments.latency, Dimension::time) / s_per_us,
                      option("--bandwidth", arguments.bandwidth, Dimension::bandwidth) / us_per_s};
  if (link.bandwidth_Bpus <= 0) throw InputError({"--bandwidth", 0, 0}, "must be more than 0");
  return link;
}

/// What one device takes for the graph that pages what does not fit over its host link; nothing without
/// --memory.
std::optional<PagedRun> paged_run(const PartitionArguments& arguments, const PartitionTask& task) {
  const double host_Bps = option("--host-bandwidth", arguments.host_bandwidth, Dimension::bandwidth);
  if (host_Bps <= 0) throw InputError({"--host-bandwidth", 0, 0}, "must be more than 0");
  if (!task.memory_bytes) return std::nullopt;
  return run_paged(task.dag, *task.memory_bytes, host_Bps / 1e6);
}

void write_json(const PartitionReport& report, const std::optional<PagedRun>& paged, const DagFile& file,
                std::ostream& out) {
  JsonWriter json(out);
  json.begin_object();
  json.field("method", report.method);
  json.field("parts", std::int64_t{report.parts});
  json.field("makespan_us", report.makespan_us);
  json.field("ready_order_makespan_us", report.ready_order_makespan_us);
  json.field("schedule_makespan_us", report.schedule_makespan_us);
  json.field("lower_bound_us", report.lower_bound_us);
  json.field("cut_bytes", report.cut_bytes);
  json.field("load_imbalance", report.load_imbalance);
  json.key("peak_memory_bytes");
  json.begin_array(JsonWriter::Style::compact);
  for (const double peak : report.peak_memory_bytes) json.value(peak);
  json.end_array();
  json.field("fits", report.fits);
  if (paged) {
    json.field("unified_memory_makespan_us", paged->makespan_us);
    json.field("unified_memory_paged_bytes", paged->in_bytes + paged->out_bytes);
  }
  json.field("partition_s", report.partition_s);
  json.key("assignment");
  json.begin_array(JsonWriter::Style::compact);
  for (const NodeId node : file.listed) json.value(std::int64_t{report.assignment[node]});
  json.end_array();
  json.end_object();
  json.raw("\n");
}

void write_table(const PartitionReport& report, const std::optional<PagedRun>& paged,
                 const PartitionTask& task, const DagFile& file, bool seeded, std::ostream& out) {
  const auto row = [&](const char* name, const std::string& value) {
    out << fmt::format("{:<18} {}\n", name, value);
  };
  const auto time = [](double us) { return format_time(us / 1e6); };
  row("graph",
      fmt::format("{}{}{} operations, {} edges, {} of work", file.name, file.name.empty() ? "" : ": ",
                  task.dag.size(), task.dag.edge_count(), time(task.dag.total_time_us())));
  row("method", seeded ? fmt::format("{}, seed {}", report.method, task.seed) : report.method);
  row("parts", fmt::format("{}", report.parts));
  row("makespan", fmt::format("{}, {:.2f} times the lower bound", time(report.makespan_us),
                              report.lower_bound_us > 0 ? report.makespan_us / report.lower_bound_us : 1));
  row("own schedule", time(report.schedule_makespan_us));
  row("cut", format_bytes(report.cut_bytes));
  row("load imbalance", fmt::format("{:.3f}", report.load_imbalance));
  std::string peaks;
  for (const double peak : report.peak_memory_bytes)
    peaks += (peaks.empty() ? "" : ", ") + format_bytes(peak);
  row("peak memory", peaks);
  if (task.memory_bytes)
    row("fits", fmt::format("{} {} a part", report.fits ? "yes, into" : "NO, not into",
                            format_bytes(*task.memory_bytes)));
  if (paged)
    row("one part, paging", fmt::format("{}, {} over the host link", time(paged->makespan_us),
                                        format_bytes(paged->in_bytes + paged->out_bytes)));
  row("time", format_time(report.partition_s));
}

std::vector<NodeId> in_order(std::size_t count) {
  std::vector<NodeId> nodes(count);
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

/// The graph of a JSON file; of an operation network (YAML) for its batch on its device; for an experiment
/// (YAML) the training graph of its first point, with the times of its cluster's devices.
DagFile load_graph(const std::string& file) {
  if (!file.ends_with(".yaml") && !file.ends_with(".yml")) return read_dag(file);
  if (const YamlNode root = load_yaml(file); root.find("network")) {
    OperationNetworkFile network = read_operation_network(root);
    std::vector<std::string> names;
    for (OperationNetwork::Node& node : network.network.nodes) names.push_back(node.name);
    const std::size_t count = names.size();
    return {network.name, network.dag(network.batch), std::move(names), in_order(count)};
  }
  const Experiment experiment = Experiment::load(file, {});
  const PreparedRun run = Preparer(experiment).prepare(0);
  const StrategyInput input{*run.graph, run.machine, run.cost, {}};
  OperationDag graph =
      operation_dag(input, run.plan.images, static_cast<std::uint32_t>(run.machine.devices.size()));
  std::vector<std::string> names;
  for (OperationDag::Node& node : graph.nodes) names.push_back(std::move(node.name));
  const std::size_t count = names.size();
  return {run.graph->model.name, std::move(graph.dag), std::move(names), in_order(count)};
}

}  // namespace

std::vector<std::string> partition_method_names() {
  std::vector<std::string> names;
  for (const PartitionMethod& method : partition_methods()) names.emplace_back(method.name);
  return names;
}

Exit partition_command(const PartitionArguments& arguments) {
  const PartitionMethod& method = *find_partition_method(arguments.method);
  if (!method.available())
    throw InputError({"--method", 0, 0},
                     fmt::format("this convoy was built without {} (docs/partition.md)", method.name));
  const PartLink link = read_link(arguments);
  std::optional<double> memory_bytes;
  if (!arguments.memory.empty()) memory_bytes = option("--memory", arguments.memory, Dimension::bytes);
  const DagFile file = load_graph(arguments.graph);
  const PartitionTask task{file.dag, arguments.parts, link, memory_bytes, arguments.seed, true};
  const auto start = std::chrono::steady_clock::now();
  const PartitionAnswer answer = method.run(task);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  PartitionReport report = report_partition(task, arguments.method, answer);
  report.partition_s = taken.count();
  const std::optional<PagedRun> paged = paged_run(arguments, task);
  write_stdout([&](std::ostream& out) {
    if (arguments.json)
      write_json(report, paged, file, out);
    else
      write_table(report, paged, task, file, method.draws, out);
  });
  return Exit::done;
}

}  // namespace convoy::cli
