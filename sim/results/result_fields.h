// SPDX-License-Identifier: MIT
#pragma once

#include "sim/results/result.h"

// The fields of results in their order, once for all that writes or reads them: `archive` is results.json's
// writer (field_writer.h), its reader (field_reader.h), or a column each of results.csv (columns.h); what
// passes between processes and stands in stores is results.json's writing too, but for tables (sim/run/wire.h), which
// stored_reader.h reads in this order. A member of RunResult that is not here is in none of them, which
// tests/run/test_wire.cpp notices. What archives understand:
//
//   field(name, value)                a number, truth or text that is always there
//   gain(name, value)                 a number, or an optional one (null), that may be below zero; always there
//   nullable(name, optional)          always there; null where there is no value
//   truth(name, value)                a truth, only where it is one
//   optional(name, optional)          a number, only where there is one
//   optional(name, optional, fields)  an object, only where there is one
//   optional_block(name, optional, fields)    the same, a name a line
//   object(name, value, fields)       an object in one line
//   list(name, values, fields)        objects, one a line
//   table(name, rows, fields)         the same, of many rows alike; where results are stored, by column
//   list_where(there, name, values, fields)   the name itself only where `there`; the reader goes by the file
//   blocks(name, values, fields)      objects, a name a line
//   count(name, values)               how many there are: tables only, JSON has the list itself
//   range(name, bounds)               [lowest, highest]
//   texts(name, texts)                in one line
//   map(name, pairs)                  text -> text, a line each
//   point(name, pairs)                dotted path -> YAML value, in one line
//   yaml(name, node)                  a YAML value, in one line
//   memory(name, array)               bytes by class of memory
//   null(name)                        never has a value
//
// and, for documents that are no results (sim/planning/plan_fields.h), results.json's writer and its reader:
//
//   constant(name, text)              always the same; another text is an error of the reader
//   block(name, value, fields)        an object, a name a line
//   nullable_block(name, optional, fields)    the same, or null
//   part(name, there, fields)         more fields of this object, of which `name` is the first, or none of them
//   known(name, value)                a number or a range; null where it is infinite
//   scaled(name, value, unit)         a number in a unit
//   optional_text(name, text)         only where it is not empty
//   nullable_text(name, text)         null where it is empty
//   choice(name, value, all)          an enumerator, by to_string()
//   counts(name, pairs)               text -> whole number, in one line
//   lines(name, texts)                a text a line
//   nullable_object(name, optional, fields)   an object in one line, or null
//   nullable_range(name, optional)    [lowest, highest], or null
//   nullable_point(name, optional)    a point, or null
//   optional_yaml(name, optional)     a YAML value, only where there is one
//   numbers(name, numbers)            in one line
//   named_numbers(name, pairs)        name -> number, in one line; null where there is none
//   points(name, lists of pairs)      points, one a line
//   pairs(name, terms)                of each term its name -> [first, second], null where there is none
//   cells(pairs)                      columns of a table of the user's, under their own names
//   in_unit(name, unit, value)        a number under "name_unit"
//
// field_schema.h makes the JSON Schema of documents of the same fields (`convoy show schema results`).

namespace convoy::inline results {

inline constexpr auto device_fields = [](auto& archive, auto& device) {
  archive.field("name", device.name);
  archive.field("count", device.count);
  archive.field("busy_s", device.busy_s);
  archive.field("sent_bytes", device.sent_bytes);
  archive.field("received_bytes", device.received_bytes);
  archive.field("peak_memory_bytes", device.peak_memory_bytes);
  archive.memory("memory", device.memory);
  archive.field("energy_j", device.energy_j);
};

inline constexpr auto link_fields = [](auto& archive, auto& link) {
  archive.field("name", link.name);
  archive.field("count", link.count);
  archive.field("bytes", link.bytes);
  archive.field("utilization", link.utilization);
};

inline constexpr auto bottleneck_fields = [](auto& archive, auto& bottleneck) {
  archive.field("kind", bottleneck.kind);
  archive.field("name", bottleneck.name);
  archive.field("utilization", bottleneck.utilization);
  archive.field("text", bottleneck.text);
};

inline constexpr auto reconfiguration_fields = [](auto& archive, auto& change) {
  archive.field("at_step", change.at_step);
  archive.field("from", change.from);
  archive.field("to", change.to);
  archive.field("pause_s", change.pause_s);
  archive.range("pause_interval_s", change.pause_interval_s);
  archive.field("first_step", change.first_step);
};

inline constexpr auto phase_fields = [](auto& archive, auto& phase) {
  archive.field("first_step", phase.first_step);
  archive.field("devices", phase.devices);
  archive.field("start_s", phase.start_s);
  archive.field("step_time_s", phase.step_time_s);
  archive.field("throughput_images_per_s", phase.throughput_images_per_s);
  archive.field("least_images", phase.least_images);
  archive.field("most_images", phase.most_images);
  archive.field("peak_memory_bytes", phase.peak_memory_bytes);
};

inline constexpr auto staleness_fields = [](auto& archive, auto& staleness) {
  archive.field("mean", staleness.mean);
  archive.field("max", staleness.max);
};

inline constexpr auto stage_fields = [](auto& archive, auto& stage) {
  archive.field("device", stage.device);
  archive.texts("replicas", stage.replicas);
  archive.texts("layers", stage.layers);
  archive.field("compute_s", stage.compute_s);
  archive.field("peak_memory_bytes", stage.peak_memory_bytes);
  archive.field("weight_versions", stage.weight_versions);
  archive.object("staleness", stage.staleness, staleness_fields);
};

inline constexpr auto partition_fields = [](auto& archive, auto& partition) {
  archive.field("method", partition.method);
  archive.field("connectivity_bytes", partition.connectivity_bytes);
  archive.field("cut_bytes", partition.cut_bytes);
  archive.field("load_imbalance", partition.load_imbalance);
  archive.null("partition_s");  // a clock's reading would make results differ from run to run
};

/// How a candidate of a search stands against the best one, and why: of `kind: auto`, and of plans.
inline constexpr auto why_not_fields = [](auto& archive, auto& candidate) {
  archive.field("outcome", candidate.outcome);
  archive.nullable("value", candidate.value);
  archive.nullable("bound", candidate.bound);
  archive.field("tie", candidate.tie);
  archive.field("reason", candidate.reason);
};

inline constexpr auto candidate_fields = [](auto& archive, auto& candidate) {
  archive.field("strategy", candidate.strategy);
  archive.yaml("candidate", candidate.candidate);
  why_not_fields(archive, candidate);
};

inline constexpr auto search_fields = [](auto& archive, auto& search) {
  archive.field("objective", search.objective);
  archive.field("planned", search.planned);
  archive.field("simulated", search.simulated);
  archive.field("pruned_by_cost_table", search.pruned_by_cost_table);
  archive.field("proven", search.proven);
  archive.count("candidates", search.ranking);
  archive.list("ranking", search.ranking, candidate_fields);
};

inline constexpr auto layout_fields = [](auto& archive, auto& group) {
  archive.field("layout", group.layout);
  archive.texts("layers", group.layers);
  archive.field("parameter_bytes", group.parameter_bytes);
  archive.field("exchange_bytes", group.exchange_bytes);
  archive.field("gradient_bytes", group.gradient_bytes);
};

inline constexpr auto software_fields = [](auto& archive, auto& software) {
  archive.field("framework", software.framework);
  archive.field("execution", software.execution);
  archive.field("layout", software.layout);
  archive.field("precision", software.precision);
  archive.field("update", software.update);
  archive.field("transport", software.transport);
  archive.truth("transport_assumed", software.transport_assumed);
  archive.field("launches", software.launches);
  archive.field("input", software.input);
};

inline constexpr auto interval_fields = [](auto& archive, auto& interval) {
  archive.field("level", interval.level);
  archive.range("step_time_s", interval.step_time_s);
  archive.range("throughput_images_per_s", interval.throughput_images_per_s);
  archive.range("peak_memory_bytes", interval.peak_memory_bytes);
  archive.range("energy_j", interval.energy_j);
};

inline constexpr auto counterfactual_fields = [](auto& archive, auto& counterfactual) {
  archive.field("change", counterfactual.change);
  archive.field("step_time_s", counterfactual.step_time_s);
  archive.gain("gain_s", counterfactual.gain_s);
  archive.gain("gain_usd_per_epoch", counterfactual.gain_usd_per_epoch);
  archive.field("global_batch", counterfactual.global_batch);
  archive.field("peak_memory_bytes", counterfactual.peak_memory_bytes);
  archive.field("fits", counterfactual.fits);
};

inline constexpr auto refused_change_fields = [](auto& archive, auto& refused) {
  archive.field("change", refused.change);
  archive.field("reason", refused.reason);
};

inline constexpr auto variability_fields = [](auto& archive, auto& varying) {
  archive.field("runs", varying.runs);
  archive.field("level", varying.level);
  archive.field("step_time_s", varying.step_time_s);
  archive.range("step_time_interval_s", varying.step_time_interval_s);
  archive.nullable("epoch_time_s", varying.epoch_time_s);
  archive.nullable_range("epoch_time_interval_s", varying.epoch_time_interval_s);
  archive.nullable("expected_epoch_time_s", varying.expected_epoch_time_s);
  archive.nullable("cost_usd_per_epoch", varying.cost_usd_per_epoch);
  archive.field("failures", varying.failures);
};

inline constexpr auto learning_fields = [](auto& archive, auto& point) {
  archive.field("step", point.step);
  archive.field("time_s", point.time_s);
  archive.field("loss", point.loss);
  archive.field("accuracy", point.accuracy);
};

/// A run without its position in a sweep.
inline constexpr auto run_body_fields = [](auto& archive, auto& run) {
  archive.field("model", run.model);
  archive.field("cluster", run.cluster);
  archive.field("servers", run.servers);
  archive.field("device_type", run.device_type);
  archive.field("strategy", run.strategy);
  archive.texts("algorithms", run.algorithms);
  archive.field("devices", run.devices);
  archive.field("global_batch", run.global_batch);
  archive.field("step_time_s", run.step_time_s);
  archive.field("throughput_images_per_s", run.throughput_images_per_s);
  archive.nullable("epoch_time_s", run.epoch_time_s);
  archive.nullable("cost_usd_per_epoch", run.cost_usd_per_epoch);
  archive.field("energy_j", run.energy_j);
  archive.field("compute_s", run.compute_s);
  archive.field("issue_wait_s", run.issue_wait_s);
  archive.field("exposed_comm_s", run.exposed_comm_s);
  archive.field("idle_s", run.idle_s);
  archive.field("comm_bytes", run.comm_bytes);
  archive.field("load_imbalance", run.load_imbalance);
  archive.field("peak_memory_bytes", run.peak_memory_bytes);
  archive.field("process_memory_bytes", run.process_memory_bytes);
  archive.field("device_memory_bytes", run.device_memory_bytes);
  archive.field("fits", run.fits);
  archive.object("software", run.software, software_fields);
  archive.texts("warnings", run.warnings);
  archive.optional("interval", run.interval, interval_fields);
  archive.object("bottleneck", run.bottleneck, bottleneck_fields);
  archive.table("per_device", run.per_device, device_fields);
  archive.table("per_link", run.per_link, link_fields);
  archive.list_where(!run.phases.empty(), "reconfigurations", run.reconfigurations, reconfiguration_fields);
  archive.list_where(!run.phases.empty(), "phases", run.phases, phase_fields);
  archive.optional("staleness", run.staleness, staleness_fields);
  archive.optional("bubble_fraction", run.bubble_fraction);
  archive.list_where(!run.stages.empty(), "stages", run.stages, stage_fields);
  archive.optional("partition", run.partition, partition_fields);
  archive.optional_block("auto", run.search, search_fields);
  archive.list_where(!run.layouts.empty(), "layouts", run.layouts, layout_fields);
  archive.optional("variability", run.variability, variability_fields);
  archive.list_where(!run.counterfactuals.empty(), "counterfactuals", run.counterfactuals,
                     counterfactual_fields);
  archive.list_where(!run.refused_changes.empty(), "refused_changes", run.refused_changes,
                     refused_change_fields);
  archive.list_where(!run.learning.empty(), "learning", run.learning, learning_fields);
};

inline constexpr auto run_fields = [](auto& archive, auto& run) {
  archive.field("id", run.id);
  archive.point("point", run.point);
  run_body_fields(archive, run);
};

inline constexpr auto failed_fields = [](auto& archive, auto& failed) {
  archive.field("id", failed.id);
  archive.point("point", failed.point);
  archive.field("kind", failed.kind);
  archive.field("reason", failed.reason);
};

inline constexpr auto schedule_fields = [](auto& archive, auto& schedule) {
  archive.field("policy", schedule.policy);
  archive.field("seed", schedule.seed);
  archive.field("jobs", schedule.jobs);
  archive.field("mean_interval_s", schedule.mean_interval_s);
  archive.field("mean_completion_s", schedule.mean_completion_s);
  archive.field("makespan_s", schedule.makespan_s);
  archive.field("busy_share", schedule.busy_share);
  archive.field("changes", schedule.changes);
  archive.optional("deadlines_met", schedule.deadlines_met);
  archive.optional("scattered_share", schedule.scattered_share);
  archive.optional("sharing_loss", schedule.sharing_loss);
};

/// Queues as stores keep them.
inline constexpr auto kept_schedules_fields = [](auto& archive, auto& results) {
  archive.list("schedules", results.schedules, schedule_fields);
};

inline constexpr auto program_fields = [](auto& archive, auto& manifest) {
  archive.field("version", manifest.version);
  archive.field("simgrid", manifest.simgrid);
};

inline constexpr auto input_files_fields = [](auto& archive, auto& manifest) {
  archive.field("config_sha256", manifest.config_sha256);
  archive.texts("set", manifest.set);
  archive.map("inputs", manifest.inputs);
};

inline constexpr auto manifest_fields = [](auto& archive, auto& manifest) {
  program_fields(archive, manifest);
  archive.field("network_model", manifest.network_model);
  input_files_fields(archive, manifest);
};

inline constexpr std::string_view results_schema = "convoy.results/1";

/// results.json. Its reader takes the runs one by one and has no need of this.
inline constexpr auto results_fields = [](auto& archive, const auto& results) {
  const auto done = static_cast<std::int64_t>(results.runs.size());
  archive.constant("schema", results_schema);
  archive.field("experiment", results.experiment);
  archive.field("points", results.points.value_or(done + static_cast<std::int64_t>(results.failed.size())));
  archive.field("done", done);
  archive.list("failed", results.failed, failed_fields);
  archive.blocks("runs", results.runs, run_fields);
  archive.list_where(!results.schedules.empty(), "schedules", results.schedules, schedule_fields);
  archive.block("manifest", results.manifest, manifest_fields);
};

}  // namespace convoy::results
