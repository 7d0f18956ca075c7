// SPDX-License-Identifier: MIT
#include "sim/studies/claims/network_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "sim/base/data_path.h"
#include "sim/studies/claims/configs.h"
#include "strategies/pardnn/networks/networks.h"
#include "strategies/partition/paging.h"
#include "strategies/partition/report.h"

namespace convoy::inline studies {
namespace {

struct NetworkPoint {
  YamlNode file;
  std::map<std::string, double, std::less<>> numbers;  ///< what is set, by the last part of its path
};

struct NetworkStudy {
  std::vector<NetworkPoint> points;
  std::vector<std::uint32_t> parts;
  const PartitionMethod* placer = nullptr;  ///< whose batches and makespans are sought
  std::vector<const PartitionMethod*> rivals;
  std::vector<long> batches_alone;
  long most = 1;
  PartLink link;
  double memory_bytes = 0, host_bandwidth_Bpus = 0;
};

NetworkPoint read_network_point(YamlMap map) {
  NetworkPoint point{load_yaml(data_path("configs") + "/" + map.text("of") + ".yaml"), {}};
  if (map.has("set")) {
    YamlMap set = map.map("set");
    for (const std::string& path : set.keys()) {
      point.numbers[path.substr(path.find_last_of('.') + 1)] = set.number(path, 0);
      set_path(point.file, path, set.node(path));
    }
  }
  map.finish();
  return point;
}

/// @param name "rivals", for messages. @throws InputError
const PartitionMethod* read_method(const YamlNode& node, const std::string& name) {
  const PartitionMethod* method = find_partition_method(read_text(node, name));
  if (!method)
    throw InputError(node.pos,
                     fmt::format("{}: there is no method '{}' (docs/partition.md)", name, node.scalar));
  return method;
}

NetworkStudy read_network_study(YamlMap& map) {
  constexpr double us_per_s = 1e6;
  constexpr std::int64_t most_parts = 1024, most_samples = 1'000'000;
  NetworkStudy study;
  for (const YamlMap& point : map.maps("operation_networks"))
    study.points.push_back(read_network_point(point));
  for (const YamlNode& item : map.node("parts").items)
    study.parts.push_back(
        static_cast<std::uint32_t>(read_integer(item, map.path_of("parts"), 1, most_parts)));
  study.placer = read_method(map.node("placer"), map.path_of("placer"));
  for (const YamlNode& item : map.node("rivals").items)
    study.rivals.push_back(read_method(item, map.path_of("rivals")));
  for (const YamlNode& item : map.node("batches_alone").items)
    study.batches_alone.push_back(read_integer(item, map.path_of("batches_alone"), 1, most_samples));
  study.most = map.integer("most", 1, most_samples);
  study.link = {map.quantity("latency", Dimension::time) * us_per_s,
                map.quantity("bandwidth", Dimension::bandwidth, true) / us_per_s};
  study.memory_bytes = map.quantity("memory", Dimension::bytes, true);
  study.host_bandwidth_Bpus = map.quantity("host_bandwidth", Dimension::bandwidth, true) / us_per_s;
  return study;
}

/// A network placed with one batch.
class PlacedNetwork {
 public:
  PlacedNetwork(const OperationNetworkFile& file, const NetworkStudy& study, std::uint32_t parts, long batch,
                bool refine)
      : dag_(file.dag(static_cast<double>(batch))), task_{dag_, parts, study.link, study.memory_bytes,
                                                          1,    refine} {}
  PartitionReport report(const PartitionMethod& method) const {
    return report_partition(task_, std::string(method.name), method.run(task_));
  }
  const Dag& dag() const { return dag_; }

 private:
  Dag dag_;
  PartitionTask task_;
};

/// `start` times the largest power of two with which the batch fits, up to `most` on one device.
long largest_network_batch(const OperationNetworkFile& file, const NetworkStudy& study, std::uint32_t parts,
                           long start) {
  // Whether the memory suffices hardly depends on the refinement, which takes most of the time.
  const auto fits = [&](long batch) {
    return PlacedNetwork(file, study, parts, batch, false).report(*study.placer).fits;
  };
  long batch = start;
  while (batch > 0 && !fits(batch)) batch /= 2;
  if (batch == start)
    while (2 * batch <= study.most * parts && fits(2 * batch)) batch *= 2;
  return batch;
}

Record record_of(const OperationNetworkFile& file, const NetworkPoint& point, std::uint32_t parts,
                 const PartitionReport& report) {
  Record record;
  record.texts = {{"network", file.name}, {"method", report.method}};
  record.numbers = point.numbers;
  record.numbers["parts"] = parts;
  record.numbers["makespan_us"] = report.schedule_makespan_us;
  record.numbers["fits"] = report.fits ? 1 : 0;
  return record;
}

double samples_per_s(long batch, const PartitionReport& report) {
  return report.fits ? 1e6 * static_cast<double>(batch) / report.schedule_makespan_us : 0;
}

/// Adds the records of the placer and its rivals with a quarter of the largest batch, where memory is less of a
/// constraint.
void add_quarter(const OperationNetworkFile& file, const NetworkPoint& point, const NetworkStudy& study,
                 std::uint32_t parts, long largest, std::vector<Record>& records) {
  const long batch = std::max(1L, largest / 4);
  const PlacedNetwork network(file, study, parts, batch, true);
  const PartitionReport report = network.report(*study.placer);
  double& best_samples_per_s = records.front().numbers["best_samples_per_s"];
  best_samples_per_s = std::max(best_samples_per_s, samples_per_s(batch, report));
  records.front().numbers["quarter_makespan_us"] = report.schedule_makespan_us;
  records.front().numbers["quarter_fits"] = report.fits ? 1 : 0;
  if (parts > 1)
    for (const PartitionMethod* rival : study.rivals)
      records.push_back(record_of(file, point, parts, network.report(*rival)));
}

std::vector<Record> records_of_network(const NetworkPoint& point, const NetworkStudy& study,
                                       std::uint32_t parts) {
  const OperationNetworkFile file = read_operation_network(point.file);
  const long alone = largest_network_batch(file, study, 1, study.most);
  const long batch =
      parts == 1 ? alone : largest_network_batch(file, study, parts, std::max(1L, alone) * parts);
  const PlacedNetwork network(file, study, parts, std::max(1L, batch), true);
  const PartitionReport report = network.report(*study.placer);
  std::vector<Record> records{record_of(file, point, parts, report)};
  const PagedRun paged = run_paged(network.dag(), study.memory_bytes, study.host_bandwidth_Bpus);
  std::map<std::string, double, std::less<>>& numbers = records.front().numbers;
  numbers["batch"] = static_cast<double>(batch);
  numbers["best_samples_per_s"] = samples_per_s(batch, report);
  numbers["unified_makespan_us"] = paged.makespan_us;
  numbers["fullest_share"] =
      *std::max_element(report.peak_memory_bytes.begin(), report.peak_memory_bytes.end()) /
      study.memory_bytes;
  add_quarter(file, point, study, parts, batch, records);
  if (parts > 1) return records;
  for (const long fewer : study.batches_alone) {
    Record& record = records.emplace_back(record_of(file, point, parts, report));
    record.texts["method"] = "fewer samples";
    record.numbers["batch"] = static_cast<double>(fewer);
    record.numbers["makespan_us"] = file.dag(static_cast<double>(fewer)).total_time_us();
  }
  return records;
}

}  // namespace

std::vector<Record> network_records(YamlMap& map, std::size_t jobs) {
  const NetworkStudy study = read_network_study(map);
  const std::size_t count = study.points.size() * study.parts.size();
  std::vector<Record> records;
  for (const std::string& answer : answers_of_workers(count, jobs, [&](std::size_t i) {
         return to_json(records_of_network(study.points[i / study.parts.size()], study,
                                           study.parts[i % study.parts.size()]));
       }))
    for (Record& record : records_from_json(answer)) records.push_back(std::move(record));
  return records;
}

}  // namespace convoy::studies
