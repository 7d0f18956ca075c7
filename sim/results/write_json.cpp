// SPDX-License-Identifier: MIT
#include "sim/results/write_json.h"

#include "sim/results/json_writer.h"
#include "sim/results/result_fields.h"

namespace convoy {
namespace {

using Style = JsonWriter::Style;

/// The writing archive of result_fields.h.
class FieldWriter {
 public:
  explicit FieldWriter(JsonWriter& json) : json_(json) {}

  template <class T>
  void field(std::string_view name, const T& value) {
    json_.field(name, value);
  }
  void field(std::string_view name, std::uint64_t value) {
    json_.field(name, static_cast<std::int64_t>(value));
  }

<<<<<<< HEAD
void write_staleness(JsonWriter& json, const Staleness& staleness) {
  json.key("staleness");
  json.begin_object(Style::compact);
  json.field("mean", staleness.mean);
  json.field("max", staleness.max);
  json.end_object();
}

void write_stage(JsonWriter& json, const StageResult& stage) {
  json.begin_object(Style::compact);
  json.field("device", stage.device);
  json.key("replicas");
  json.begin_array();
  for (const std::string& name : stage.replicas) json.value(std::string_view(name));
  json.end_array();
  json.key("layers");
  json.begin_array();
  for (const std::string& name : stage.layers) json.value(std::string_view(name));
  json.end_array();
  json.field("compute_s", stage.compute_s);
  json.field("peak_memory_bytes", stage.peak_memory_bytes);
  json.field("weight_versions", stage.weight_versions);
  write_staleness(json, stage.staleness);
  json.end_object();
}

void write_partition(JsonWriter& json, const PartitionSummary& partition) {
  json.begin_object(Style::compact);
  json.field("method", partition.method);
  json.field("connectivity_bytes", partition.connectivity_bytes);
  json.field("cut_bytes", partition.cut_bytes);
  json.field("load_imbalance", partition.load_imbalance);
  json.key("partition_s");  // a clock's reading would make results differ from run to run
  json.null();
  json.end_object();
}

void write_run(JsonWriter& json, const RunResult& run) {
  json.begin_object();
  json.field("id", run.id);
  json.key("point");
  json.begin_object(Style::compact);
  for (const auto& [path, value] : run.point) json.field(path, value);
  json.end_object();
  json.field("model", run.model);
  json.field("cluster", run.cluster);
  json.field("strategy", run.strategy);
  json.field("devices", run.devices);
  json.field("global_batch", run.global_batch);
  json.field("step_time_s", run.step_time_s);
  json.field("throughput_images_per_s", run.throughput_images_per_s);
  optional_field(json, "epoch_time_s", run.epoch_time_s);
  optional_field(json, "cost_usd_per_epoch", run.cost_usd_per_epoch);
  json.field("energy_j", run.energy_j);
  json.field("compute_s", run.compute_s);
  json.field("exposed_comm_s", run.exposed_comm_s);
  json.field("idle_s", run.idle_s);
  json.field("comm_bytes", run.comm_bytes);
  json.field("load_imbalance", run.load_imbalance);
  json.field("peak_memory_bytes", run.peak_memory_bytes);
  json.field("fits", run.fits);
  json.key("bottleneck");
  write_bottleneck(json, run.bottleneck);
  json.key("per_device");
  json.begin_array();
  for (const DeviceResult& device : run.per_device) write_device(json, device);
  json.end_array();
  json.key("per_link");
  json.begin_array();
  for (const LinkResult& link : run.per_link) write_link(json, link);
  json.end_array();
  write_phases(json, run);
  if (run.staleness) write_staleness(json, *run.staleness);
  if (run.bubble_fraction) json.field("bubble_fraction", *run.bubble_fraction);
  if (!run.stages.empty()) {
    json.key("stages");
    json.begin_array();
    for (const StageResult& stage : run.stages) write_stage(json, stage);
    json.end_array();
=======
  void nullable(std::string_view name, const std::optional<double>& number) {
    number ? json_.field(name, *number) : null(name);
  }
  void optional(std::string_view name, const std::optional<double>& number) {
    if (number) json_.field(name, *number);
>>>>>>> c2bf17cc0ff3a10e066920101bf0142da6bc0f42
  }
  template <class T, class Fields>
  void optional(std::string_view name, const std::optional<T>& value, Fields fields) {
    if (value) object(name, *value, fields);
  }

  template <class T, class Fields>
  void object(std::string_view name, const T& value, Fields fields) {
    json_.key(name);
    line(value, fields);
  }
  template <class T, class Fields>
  void list(std::string_view name, const std::vector<T>& values, Fields fields) {
    json_.key(name);
    json_.begin_array();
    for (const T& value : values) line(value, fields);
    json_.end_array();
  }
  template <class T, class Fields>
  void list_where(bool there, std::string_view name, const std::vector<T>& values, Fields fields) {
    if (there) list(name, values, fields);
  }
  template <class T, class Fields>
  void blocks(std::string_view name, const std::vector<T>& values, Fields fields) {
    json_.key(name);
    json_.begin_array();
    for (const T& value : values) {
      json_.begin_object();
      fields(*this, value);
      json_.end_object();
    }
    json_.end_array();
  }

  void texts(std::string_view name, const std::vector<std::string>& texts) {
    json_.key(name);
    json_.begin_array(Style::compact);
    for (const std::string& text : texts) json_.value(std::string_view(text));
    json_.end_array();
  }
  void map(std::string_view name, const std::vector<std::pair<std::string, std::string>>& pairs) {
    json_.key(name);
    json_.begin_object();
    for (const auto& [key, text] : pairs) json_.field(key, text);
    json_.end_object();
  }
  void point(std::string_view name, const std::vector<std::pair<std::string, YamlNode>>& point) {
    json_.key(name);
    json_.begin_object(Style::compact);
    for (const auto& [path, value] : point) json_.field(path, value);
    json_.end_object();
  }
  void memory(std::string_view name, const std::array<double, memory_class_count>& bytes) {
    json_.key(name);
    json_.begin_object();
    for (std::size_t c = 0; c < memory_class_count; ++c) json_.field(memory_class_names[c], bytes[c]);
    json_.end_object();
  }
  void null(std::string_view name) {
    json_.key(name);
    json_.null();
  }

 private:
  template <class T, class Fields>
  void line(const T& value, Fields fields) {
    json_.begin_object(Style::compact);
    fields(*this, value);
    json_.end_object();
  }

  JsonWriter& json_;
};

}  // namespace

void write_json(const Results& results, std::ostream& out) {
  JsonWriter json(out);
  FieldWriter archive(json);
  json.begin_object();
  json.field("schema", results_schema);
  json.field("experiment", results.experiment);
  archive.blocks("runs", results.runs, run_fields);
  archive.list_where(!results.schedules.empty(), "schedules", results.schedules, schedule_fields);
  json.key("manifest");
  json.begin_object();
  manifest_fields(archive, results.manifest);
  json.end_object();
  json.end_object();
  json.raw("\n");
}

}  // namespace convoy
