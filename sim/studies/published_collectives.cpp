// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/base/yaml_node.h"
#include "sim/collectives/collectives.h"
#include "sim/collectives/nccl_pattern.h"
#include "sim/collectives/nccl_tuning.h"
#include "sim/collectives/table.h"
#include "sim/costs/residuals.h"
#include "sim/replay/replay.h"
#include "sim/studies/reproduce.h"
#include "topologies/cluster.h"

namespace convoy::inline studies {
namespace {

/// A measured collective of results/published/collectives.csv.
struct CollectiveRow {
  std::string table, server, nccl, collective, role;
  int hosts = 0, devices = 0;
  std::optional<double> call_us;  ///< of the measuring program, before the first message
  double bytes = 0, time_us = 0;
};

std::vector<CollectiveRow> read_collectives() {
  const std::vector<std::string> columns{"table",   "server",     "hosts", "devices", "nccl",
                                         "call_us", "collective", "bytes", "time_us", "role"};
  const CsvTable table(data_path("results/published") + "/collectives.csv", columns, columns);
  std::vector<CollectiveRow> rows;
  for (const CsvRow& row : table.rows())
    rows.push_back({table.text(row, "table"), table.text(row, "server"), table.text(row, "nccl"),
                    table.text(row, "collective"), table.text(row, "role"),
                    static_cast<int>(table.number(row, "hosts", true)),
                    static_cast<int>(table.number(row, "devices", true)),
                    table.text(row, "call_us").empty() ? std::nullopt
                                                       : std::optional(table.number(row, "call_us", true)),
                    table.number(row, "bytes", true), table.number(row, "time_us", true)});
  return rows;
}

Machine machine_of(const CollectiveRow& row) {
  const YamlNode cluster = parse_yaml(
      fmt::format("{{server: {}, nodes: {}, devices_per_node: {}}}", row.server, row.hosts, row.devices),
      "collectives.csv");
  Machine machine = build_machine(read_cluster(cluster), 0, transport_over("nccl", Protocol::rdma));
  if (row.call_us) {
    machine.collective_overhead_s = 1e-6 * *row.call_us;
    return machine;
  }
  // Inside a host nccl-tests' calls follow one another on the devices: what a framework does before a call
  // has passed while the one before it was under way.
  if (row.hosts == 1)
    machine.collective_overhead_s = nccl_call_s(nccl_generation(machine.device_types[0].generation));
  return machine;
}

/// Time of one collective of NCCL over all devices of the machine, with nothing beside it.
double collective_s(const CollectiveRow& row, const Machine& machine) {
  std::vector<EndpointId> ranks(machine.devices.size());
  std::iota(ranks.begin(), ranks.end(), 0u);
  const auto make = row.collective == "all_reduce"   ? &all_reduce_pattern
                    : row.collective == "all_gather" ? &all_gather_pattern
                                                     : &reduce_scatter_pattern;
  const Plan plan =
      collective_of_all(make(AllReduceAlgorithm::nccl, ranks, machine, row.bytes, RingOrder::mesh),
                        row.collective, row.bytes, machine);
  return replay(plan, machine, CostModel(Software{}), {}).step_time_s;
}

/// Rows of one host, or of several.
Reproduction reproduce_collectives(Reproduction result, bool inside, std::size_t jobs) {
  std::vector<CollectiveRow> rows = read_collectives();
  std::erase_if(rows, [&](const CollectiveRow& row) { return (row.hosts == 1) != inside; });
  for (const CollectiveRow& row : rows)
    result.rows.push_back({row.nccl.empty() ? row.table : fmt::format("{}, NCCL {}", row.table, row.nccl),
                           row.collective,
                           fmt::format("{} x {}, {:.0f} B", row.hosts, row.devices, row.bytes), row.time_us,
                           0, 0, false, "results/published/collectives.csv", row.role == "fit"});
  predict_rows(result, jobs, [&](std::size_t i, Preparer&) {
    const Machine machine = machine_of(rows[i]);
    Prediction prediction(1e6 * collective_s(rows[i], machine));
    if (const std::optional<CommKind> kind = comm_kind(machine)) {
      const double factor = std::exp(quantile_80 * comm_spread(*kind));
      prediction.interval = {prediction.value / factor, prediction.value * factor};
    }
    return prediction;
  });
  ErrorGroups groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto add = [&](const std::string& group, const std::string& name) {
      groups[{rows[i].role, group, name}].push_back(result.rows[i].error);
    };
    add("table", rows[i].table);
    add("collective", rows[i].collective);
    add("layout", fmt::format("{:>3} x {}", rows[i].hosts, rows[i].devices));
    add("bytes", rows[i].bytes < 1024 * 1024        ? "below 1 MiB"
                 : rows[i].bytes < 64 * 1024 * 1024 ? "1 to 64 MiB"
                                                    : "from 64 MiB");
  }
  result.summaries = summaries_by_group(std::move(groups));
  return result;
}

}  // namespace

Reproduction reproduce_collectives_inside(std::size_t jobs) {
  return reproduce_collectives({"collectives-inside", "Time of NCCL's collectives inside a host", "us"}, true,
                               jobs);
}

Reproduction reproduce_collectives_between(std::size_t jobs) {
  return reproduce_collectives({"collectives-between", "Time of NCCL's collectives between hosts", "us"},
                               false, jobs);
}

}  // namespace convoy::studies
