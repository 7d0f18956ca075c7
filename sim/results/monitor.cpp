// SPDX-License-Identifier: MIT
#include "sim/results/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "sim/base/csv.h"

namespace convoy::inline results {
namespace {

const std::vector<std::string> monitor_columns{"run",
                                               "host",
                                               "from_s",
                                               "to_s",
                                               "sent_Bps",
                                               "received_Bps",
                                               "busy_vcpus",
                                               "vcpus",
                                               "gpu_busy_share",
                                               "gpu_memory_bytes",
                                               "gpu_tensor_bytes"};

/// The run of that id. @throws InputError
std::size_t run_named(const SweepResults& results, const CsvCell& id) {
  const auto found = std::find_if(results.runs.begin(), results.runs.end(),
                                  [&](const RunFigures& run) { return run.id == id.text; });
  if (found == results.runs.end())
    throw InputError(id.pos, fmt::format("run '{}' is not among the folder's results", id.text));
  return static_cast<std::size_t>(found - results.runs.begin());
}

/// 0 where they are not known. @throws InputError
std::uint32_t vcpus_of(const CsvTable& table, const CsvRow& row) {
  constexpr double most = 1e6;
  const CsvCell* const cell = table.find(row, "vcpus");
  if (!cell) return 0;
  const double vcpus = table.number(row, "vcpus", true);
  if (vcpus != std::floor(vcpus) || vcpus > most)
    throw InputError(
        cell->pos, fmt::format("vcpus: expected a whole number up to {:.0f}, found '{}'", most, cell->text));
  return static_cast<std::uint32_t>(vcpus);
}

}  // namespace

void write_monitor(const SweepResults& results, const std::vector<RunMonitor>& monitors, std::ostream& out) {
  out << fmt::format("{}\n", fmt::join(monitor_columns, ","));
  for (const RunMonitor& monitor : monitors)
    for (const MonitoredHost& host : monitor.hosts) {
      const std::string vcpus = host.vcpus > 0 ? std::to_string(host.vcpus) : "";
      for (const MonitorSample& sample : host.samples)
        out << fmt::format("{},{},{},{},{},{},{},{},{}\n", results.runs[monitor.run].id, host.name,
                           sample.from_s, sample.to_s, sample.sent_Bps, sample.received_Bps,
                           sample.busy_vcpus, vcpus,
                           sample.gpus ? fmt::format("{},{},{}", sample.gpus->busy_share,
                                                     sample.gpus->memory_bytes, sample.gpus->tensor_bytes)
                                       : ",,");
    }
}

std::vector<RunMonitor> read_monitor(const std::string& file, const SweepResults& results) {
  const CsvTable table(file, monitor_columns, monitor_columns);
  std::vector<RunMonitor> monitors;
  for (const CsvRow& row : table.rows()) {
    const CsvCell* const id = table.find(row, "run");
    const std::size_t run =
        id ? run_named(results, *id) : throw InputError(row.front().pos, "run is missing");
    if (monitors.empty() || monitors.back().run != run) monitors.push_back({run, {}});
    std::vector<MonitoredHost>& hosts = monitors.back().hosts;
    const auto number = [&](const char* column) { return table.number(row, column, false); };
    if (!table.find(row, "host")) throw InputError(row.front().pos, "host is missing");
    if (const std::string name = table.text(row, "host"); hosts.empty() || hosts.back().name != name)
      hosts.push_back({name, vcpus_of(table, row), {}});
    MonitorSample& sample = hosts.back().samples.emplace_back();
    sample.from_s = number("from_s");
    sample.to_s = number("to_s");
    sample.sent_Bps = number("sent_Bps");
    sample.received_Bps = number("received_Bps");
    sample.busy_vcpus = number("busy_vcpus");
    if (table.find(row, "gpu_busy_share"))
      sample.gpus = {number("gpu_busy_share"), number("gpu_memory_bytes"), number("gpu_tensor_bytes")};
  }
  return monitors;
}

}  // namespace convoy::results
