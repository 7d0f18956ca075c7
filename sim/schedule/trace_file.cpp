// SPDX-License-Identifier: MIT
#include "sim/schedule/trace_file.h"

#include <algorithm>
#include <filesystem>

#include "sim/base/csv.h"
#include "sim/base/named_file.h"
#include "sim/base/yaml_map.h"

namespace convoy {
namespace {

constexpr std::size_t most_jobs = 100'000;

YamlNode read_trace_file(const YamlNode& name) {
  const std::string file = beside(name.pos, read_text(name, "jobs.trace"));
  if (!std::filesystem::is_regular_file(file))
    throw InputError(name.pos, "jobs.trace: there is no file " + file);
  const CsvTable table(file, {"arrival_s", "gpus", "length_s", "model", "deadline_s"}, {"arrival_s", "gpus", "length_s"});
  YamlNode list;
  list.kind = YamlNode::Kind::sequence;
  list.pos = name.pos;
  for (const CsvRow& row : table.rows()) {
    YamlNode& job = list.items.emplace_back();
    job.kind = YamlNode::Kind::mapping;
    job.pos = row.front().pos;
    for (const char* column : {"arrival_s", "gpus", "length_s", "model", "deadline_s"})
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

}  // namespace

YamlNode with_trace_read(const YamlNode& jobs) {
  YamlNode result = jobs;
  for (auto& [key, value] : result.entries)
    if (key == "trace" && value.kind == YamlNode::Kind::scalar) {
      YamlNode list = read_trace_file(value);
      value = std::move(list);
    }
  return result;
}

std::vector<TracedJob> read_traced_jobs(const YamlNode& list) {
  if (list.kind != YamlNode::Kind::sequence || list.items.empty() || list.items.size() > most_jobs)
    throw InputError(list.pos, "jobs.trace: expected a CSV file, or a list of 1 to 100000 jobs such as "
                               "{arrival_s: 0, gpus: 4, length_s: 600}");
  std::vector<TracedJob> jobs;
  for (const YamlNode& item : list.items) {
    YamlMap map(item, "jobs.trace");
    TracedJob& job = jobs.emplace_back();
    job.arrival_s = map.number("arrival_s", 0);
    job.asked = static_cast<std::uint32_t>(map.integer("gpus", 1, most_jobs));
    job.length_s = map.number("length_s", 1e-9);
    job.model = map.text_or("model", "");
    if (map.has("deadline_s")) job.deadline_s = map.number("deadline_s", job.arrival_s);
    map.finish();
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const TracedJob& a, const TracedJob& b) { return a.arrival_s < b.arrival_s; });
  return jobs;
}

}  // namespace convoy
