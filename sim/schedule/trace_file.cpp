// SPDX-License-Identifier: MIT
#include "sim/schedule/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/csv.h"
#include "sim/base/named_file.h"
#include "sim/base/yaml_map.h"

namespace convoy {
namespace {

constexpr std::size_t most_jobs = 100'000;

/// A list in `jobs:` that may stand in a file.
struct ListedJobs {
  const char* key;
  std::vector<std::string> columns, required;
  const char* example;
};

const ListedJobs trace_list{"trace",
                            {"arrival_s", "gpus", "length_s", "model", "deadline_s"},
                            {"arrival_s", "gpus", "length_s"},
                            "{arrival_s: 0, gpus: 4, length_s: 600}"};
const ListedJobs workload_list{"workload",
                               {"arrival_s", "gpus", "least_gpu_h", "most_gpu_h"},
                               {"arrival_s", "gpus", "least_gpu_h", "most_gpu_h"},
                               "{arrival_s: 0, gpus: 4, least_gpu_h: 1, most_gpu_h: 10}"};

YamlNode read_job_file(const YamlNode& name, const ListedJobs& listed) {
  const std::string file = beside(name.pos, read_text(name, fmt::format("jobs.{}", listed.key)));
  if (!std::filesystem::is_regular_file(file))
    throw InputError(name.pos, fmt::format("jobs.{}: there is no file {}", listed.key, file));
  const CsvTable table(file, listed.columns, listed.required);
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  list.pos = name.pos;
  for (const CsvRow& row : table.rows()) {
    YamlNode& job = list.items.emplace_back();
    job.kind = YamlNode::Kind::mapping;
    job.pos = row.front().pos;
    for (const std::string& column : listed.columns)
      if (const CsvCell* cell = table.find(row, column)) {
        YamlNode value;
        value.kind = YamlNode::Kind::scalar;
        value.scalar = cell->text;
        value.pos = value.key_pos = cell->pos;
        job.entries.emplace_back(column, std::move(value));
      }
  }
  return list;
}

/// @throws InputError: not a list of at least one job, or of too many
void check_job_list(const YamlNode& list, const ListedJobs& listed) {
  if (list.kind != YamlNode::Kind::sequence || list.items.empty() || list.items.size() > most_jobs)
    throw InputError(list.pos, fmt::format("jobs.{}: expected a CSV file, or a list of 1 to 100000 jobs such as {}",
                                           listed.key, listed.example));
}

}  // namespace

YamlNode with_trace_read(const YamlNode& jobs) {
  YamlNode result = jobs;
  for (auto& [key, value] : result.entries)
    for (const ListedJobs* listed : {&trace_list, &workload_list})
      if (key == listed->key && value.kind == YamlNode::Kind::scalar) value = read_job_file(value, *listed);
  return result;
}

std::vector<TracedJob> read_traced_jobs(const YamlNode& list, std::uint32_t most_gpus) {
  check_job_list(list, trace_list);
  std::vector<TracedJob> jobs;
  for (const YamlNode& item : list.items) {
    YamlMap map(item, "jobs.trace");
    TracedJob& job = jobs.emplace_back();
    job.arrival_s = map.number("arrival_s", 0);
    job.asked = static_cast<std::uint32_t>(map.integer("gpus", 1, most_gpus));
    job.length_s = map.number("length_s", 1e-9);
    job.model = map.text_or("model", "");
    if (map.has("deadline_s")) job.deadline_s = map.number("deadline_s", job.arrival_s);
    map.finish();
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const TracedJob& a, const TracedJob& b) { return a.arrival_s < b.arrival_s; });
  return jobs;
}

std::vector<WorkloadJob> read_workload_jobs(const YamlNode& list, std::uint32_t most_gpus) {
  constexpr double hour_s = 3600, least_gpu_h = 1e-6;
  check_job_list(list, workload_list);
  std::vector<WorkloadJob> jobs;
  for (const YamlNode& item : list.items) {
    YamlMap map(item, "jobs.workload");
    WorkloadJob& job = jobs.emplace_back();
    job.arrival_s = map.number("arrival_s", 0);
    job.asked = static_cast<std::uint32_t>(map.integer("gpus", 1, most_gpus));
    job.least_gpu_s = hour_s * map.number("least_gpu_h", least_gpu_h);
    job.most_gpu_s = hour_s * map.number("most_gpu_h", job.least_gpu_s / hour_s);
    map.finish();
  }
  return jobs;
}

}  // namespace convoy
