// SPDX-License-Identifier: MIT
#include "sim/results/write_json.h"

#include "sim/results/json_writer.h"

namespace convoy {
namespace {

using Style = JsonWriter::Style;

void optional_field(JsonWriter& json, std::string_view name, const std::optional<double>& number) {
  json.key(name);
  number ? json.value(*number) : json.null();
}

void write_device(JsonWriter& json, const DeviceResult& device) {
  json.begin_object(Style::compact);
  json.field("name", device.name);
  json.field("busy_s", device.busy_s);
  json.field("sent_bytes", device.sent_bytes);
  json.field("received_bytes", device.received_bytes);
  json.field("peak_memory_bytes", device.peak_memory_bytes);
  json.key("memory");
  json.begin_object();
  for (std::size_t c = 0; c < memory_class_count; ++c) json.field(memory_class_names[c], device.memory[c]);
  json.end_object();
  json.field("energy_j", device.energy_j);
  json.end_object();
}

void write_link(JsonWriter& json, const LinkResult& link) {
  json.begin_object(Style::compact);
  json.field("name", link.name);
  json.field("bytes", link.bytes);
  json.field("utilization", link.utilization);
  json.end_object();
}

void write_bottleneck(JsonWriter& json, const Bottleneck& bottleneck) {
  json.begin_object(Style::compact);
  json.field("kind", bottleneck.kind);
  json.field("name", bottleneck.name);
  json.field("utilization", bottleneck.utilization);
  json.field("text", bottleneck.text);
  json.end_object();
}

void write_phases(JsonWriter& json, const RunResult& run) {
  if (run.phases.empty()) return;
  json.key("reconfigurations");
  json.begin_array();
  for (const ReconfigurationResult& change : run.reconfigurations) {
    json.begin_object(Style::compact);
    json.field("at_step", change.at_step);
    json.field("from", change.from);
    json.field("to", change.to);
    json.field("pause_s", change.pause_s);
    json.field("first_step", change.first_step);
    json.end_object();
  }
  json.end_array();
  json.key("phases");
  json.begin_array();
  for (const PhaseResult& phase : run.phases) {
    json.begin_object(Style::compact);
    json.field("first_step", phase.first_step);
    json.field("devices", phase.devices);
    json.field("start_s", phase.start_s);
    json.field("step_time_s", phase.step_time_s);
    json.field("throughput_images_per_s", phase.throughput_images_per_s);
    json.field("least_images", phase.least_images);
    json.field("most_images", phase.most_images);
    json.field("peak_memory_bytes", phase.peak_memory_bytes);
    json.end_object();
  }
  json.end_array();
}

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
  }
  if (run.partition) {
    json.key("partition");
    write_partition(json, *run.partition);
  }
  json.end_object();
}

void write_schedules(JsonWriter& json, const std::vector<ScheduleResult>& schedules) {
  json.key("schedules");
  json.begin_array();
  for (const ScheduleResult& schedule : schedules) {
    json.begin_object(Style::compact);
    json.field("policy", schedule.policy);
    json.field("seed", static_cast<std::int64_t>(schedule.seed));
    json.field("jobs", schedule.jobs);
    json.field("mean_interval_s", schedule.mean_interval_s);
    json.field("mean_completion_s", schedule.mean_completion_s);
    json.field("makespan_s", schedule.makespan_s);
    json.field("busy_share", schedule.busy_share);
    json.field("changes", schedule.changes);
    json.end_object();
  }
  json.end_array();
}

void write_manifest(JsonWriter& json, const Manifest& manifest) {
  json.begin_object();
  json.field("version", manifest.version);
  json.field("simgrid", manifest.simgrid);
  json.field("network_model", manifest.network_model);
  json.field("config_sha256", manifest.config_sha256);
  json.key("set");
  json.begin_array(Style::compact);
  for (const std::string& setting : manifest.set) json.value(std::string_view(setting));
  json.end_array();
  json.key("inputs");
  json.begin_object();
  for (const auto& [file, sha256] : manifest.inputs) json.field(file, sha256);
  json.end_object();
  json.end_object();
}

}  // namespace

void write_json(const Results& results, std::ostream& out) {
  JsonWriter json(out);
  json.begin_object();
  json.field("schema", "convoy.results/1");
  json.field("experiment", results.experiment);
  json.key("runs");
  json.begin_array();
  for (const RunResult& run : results.runs) write_run(json, run);
  json.end_array();
  if (!results.schedules.empty()) write_schedules(json, results.schedules);
  json.key("manifest");
  write_manifest(json, results.manifest);
  json.end_object();
  json.raw("\n");
}

}  // namespace convoy
