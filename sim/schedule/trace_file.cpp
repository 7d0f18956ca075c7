// SPDX-License-Identifier: MIT
#include "sim/schedule/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "sim/base/csv.h"
#include "sim/base/key_parts.h"
#include "sim/base/named_file.h"

namespace convoy::inline schedule {
namespace {

constexpr std::size_t most_jobs = 100'000;

constexpr double least_gpu_h = 1e-6, least_length_s = 1e-9;

/// The keys that every job of a list has. @param most_gpus the most that it may ask for
template <class ListedJob>
Keys<ListedJob> asked_job_keys(std::uint32_t most_gpus) {
  return {optional_number_key<ListedJob>("arrival_s", "", 0, std::numeric_limits<double>::max(),
                                         "when it arrives, in seconds", &ListedJob::arrival_s)
              .required(),
          optional_integer_key<ListedJob>("gpus", "", 1, most_gpus, "that it asks for", &ListedJob::asked)
              .required()};
}

Keys<TracedJob> traced_job_keys(std::uint32_t most_gpus) {
  using Job = TracedJob;
  Keys<Job> keys = asked_job_keys<Job>(most_gpus);
  keys.push_back(optional_number_key<Job>("length_s", "", least_length_s, std::numeric_limits<double>::max(),
                                          "that it takes on these GPUs", &Job::length_s)
                     .required());
  keys.push_back(
      optional_text_key<Job>("model", "by chance", "a name", "one of the sweep's models", &Job::model));
  keys.push_back(custom_key<Job>("deadline_s", "none", forms::number(0).said("a number from arrival_s"),
                                 "on the clock of arrivals", [](YamlMap& map, Job& job) {
                                   if (map.find("deadline_s"))
                                     job.deadline_s = map.number("deadline_s", job.arrival_s);
                                 }));
  return keys;
}

Keys<WorkloadJob> workload_job_keys(std::uint32_t most_gpus) {
  using Job = WorkloadJob;
  Keys<Job> keys = asked_job_keys<Job>(most_gpus);
  keys.push_back(
      custom_key<Job>(
          "least_gpu_h", "", forms::number(least_gpu_h), "GPU hours that it takes at least",
          [](YamlMap& map, Job& job) { job.least_gpu_s = hour_s * map.number("least_gpu_h", least_gpu_h); })
          .told_required());
  keys.push_back(
      custom_key<Job>("most_gpu_h", "", forms::number(0).said("a number from least_gpu_h"), "and at most",
                      [](YamlMap& map, Job& job) {
                        job.most_gpu_s = hour_s * map.number("most_gpu_h", job.least_gpu_s / hour_s);
                      })
          .told_required());
  return keys;
}

/// A list in `jobs:` that may be in a file, whose columns are then the keys of its jobs.
struct ListedJobs {
  const char* key;
  std::vector<KeyText> columns;
  const char* example;

  std::vector<std::string> required() const {
    std::vector<std::string> those;
    for (const KeyText& column : columns)
      if (column.required) those.push_back(column.name);
    return those;
  }
};

const ListedJobs& trace_list() {
  static const ListedJobs list{"trace", traced_job_columns(), "{arrival_s: 0, gpus: 4, length_s: 600}"};
  return list;
}

const ListedJobs& workload_list() {
  static const ListedJobs list{"workload", workload_job_columns(),
                               "{arrival_s: 0, gpus: 4, least_gpu_h: 1, most_gpu_h: 10}"};
  return list;
}

YamlNode read_job_file(const YamlNode& name, const ListedJobs& listed) {
  const std::string file = beside(name.pos, read_text(name, fmt::format("jobs.{}", listed.key)));
  if (!std::filesystem::is_regular_file(file))
    throw InputError(name.pos, fmt::format("jobs.{}: there is no file {}", listed.key, file));
  const std::vector<std::string> columns = names_of(listed.columns);
  const CsvTable table(file, columns, listed.required());
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  list.pos = name.pos;
  for (const CsvRow& row : table.rows()) {
    YamlNode& job = list.items.emplace_back();
    job.kind = YamlNode::Kind::mapping;
    job.pos = row.front().pos;
    for (const std::string& column : columns)
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

/// @throws InputError: not a list of at least one job, too many jobs, or a job that is wrong
template <class ListedJob>
std::vector<ListedJob> read_listed_jobs(const YamlNode& list, const ListedJobs& listed,
                                        const Keys<ListedJob>& keys) {
  if (list.kind != YamlNode::Kind::sequence || list.items.empty() || list.items.size() > most_jobs)
    throw InputError(list.pos,
                     fmt::format("jobs.{}: expected a CSV file, or a list of 1 to 100000 jobs such as {}",
                                 listed.key, listed.example));
  const std::string path = fmt::format("jobs.{}", listed.key);
  std::vector<ListedJob> jobs;
  for (const YamlNode& item : list.items) read_part(keys, YamlMap(item, path), jobs.emplace_back());
  return jobs;
}

}  // namespace

YamlNode with_trace_read(const YamlNode& jobs) {
  YamlNode result = jobs;
  for (auto& [key, value] : result.entries)
    for (const ListedJobs* listed : {&trace_list(), &workload_list()})
      if (key == listed->key && value.kind == YamlNode::Kind::scalar) value = read_job_file(value, *listed);
  return result;
}

std::vector<KeyText> traced_job_columns() { return texts_of(traced_job_keys(most_gpus_of_all)); }
std::vector<KeyText> workload_job_columns() { return texts_of(workload_job_keys(most_gpus_of_all)); }

std::vector<TracedJob> read_traced_jobs(const YamlNode& list, std::uint32_t most_gpus) {
  std::vector<TracedJob> jobs = read_listed_jobs(list, trace_list(), traced_job_keys(most_gpus));
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const TracedJob& a, const TracedJob& b) { return a.arrival_s < b.arrival_s; });
  return jobs;
}

std::vector<WorkloadJob> read_workload_jobs(const YamlNode& list, std::uint32_t most_gpus) {
  return read_listed_jobs(list, workload_list(), workload_job_keys(most_gpus));
}

}  // namespace convoy::schedule
