// SPDX-License-Identifier: MIT
#include "sim/results/write_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <vector>

#include "sim/results/json_writer.h"

namespace convoy {
namespace {

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string cell(double number) { return shortest(number); }
std::string cell(const std::optional<double>& number) { return number ? shortest(*number) : std::string{}; }

struct Column {
  const char* name;
  std::string (*text)(const RunResult& run);
};

constexpr Column columns[] = {
    {"id", [](const RunResult& r) { return cell(r.id); }},
    {"model", [](const RunResult& r) { return cell(r.model); }},
    {"cluster", [](const RunResult& r) { return cell(r.cluster); }},
    {"strategy", [](const RunResult& r) { return cell(r.strategy); }},
    {"devices", [](const RunResult& r) { return std::to_string(r.devices); }},
    {"global_batch", [](const RunResult& r) { return cell(r.global_batch); }},
    {"step_time_s", [](const RunResult& r) { return cell(r.step_time_s); }},
    {"throughput_images_per_s", [](const RunResult& r) { return cell(r.throughput_images_per_s); }},
    {"epoch_time_s", [](const RunResult& r) { return cell(r.epoch_time_s); }},
    {"cost_usd_per_epoch", [](const RunResult& r) { return cell(r.cost_usd_per_epoch); }},
    {"energy_j", [](const RunResult& r) { return cell(r.energy_j); }},
    {"compute_s", [](const RunResult& r) { return cell(r.compute_s); }},
    {"exposed_comm_s", [](const RunResult& r) { return cell(r.exposed_comm_s); }},
    {"idle_s", [](const RunResult& r) { return cell(r.idle_s); }},
    {"comm_bytes", [](const RunResult& r) { return cell(r.comm_bytes); }},
    {"load_imbalance", [](const RunResult& r) { return cell(r.load_imbalance); }},
    {"peak_memory_bytes", [](const RunResult& r) { return cell(r.peak_memory_bytes); }},
    {"process_memory_bytes", [](const RunResult& r) { return cell(r.process_memory_bytes); }},
    {"fits", [](const RunResult& r) { return std::string(r.fits ? "true" : "false"); }},
    {"bottleneck_kind", [](const RunResult& r) { return cell(r.bottleneck.kind); }},
    {"bottleneck_name", [](const RunResult& r) { return cell(r.bottleneck.name); }},
    {"bottleneck_utilization", [](const RunResult& r) { return cell(r.bottleneck.utilization); }},
};

/// Only where a strategy was searched for.
constexpr Column search_columns[] = {
    {"auto_candidates",
     [](const RunResult& r) { return r.search ? std::to_string(r.search->ranking.size()) : std::string{}; }},
    {"auto_simulated",
     [](const RunResult& r) { return r.search ? std::to_string(r.search->simulated) : std::string{}; }},
};

}  // namespace

void write_csv(const Results& results, std::ostream& out) {
  const std::vector<double> efficiency = scaling_efficiency(results.runs);
  std::vector<Column> shown(std::begin(columns), std::end(columns));
  if (std::any_of(results.runs.begin(), results.runs.end(),
                  [](const RunResult& run) { return run.search.has_value(); }))
    shown.insert(shown.end(), std::begin(search_columns), std::end(search_columns));
  std::string header;
  if (!results.runs.empty())
    for (const auto& [path, value] : results.runs.front().point) header += cell(path) + ",";
  for (const Column& column : shown) header += std::string(column.name) + ",";
  out << header << "scaling_efficiency\n";
  for (std::size_t i = 0; i < results.runs.size(); ++i) {
    const RunResult& run = results.runs[i];
    std::string row;
    for (const auto& [path, value] : run.point)
      row += cell(value.kind == YamlNode::Kind::scalar ? value.scalar : to_flow(value)) + ",";
    for (const Column& column : shown) row += column.text(run) + ",";
    out << row << (efficiency.empty() ? "" : shortest(efficiency[i])) << '\n';
  }
}

}  // namespace convoy
