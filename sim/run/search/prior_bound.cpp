// SPDX-License-Identifier: MIT
#include "sim/run/search/prior_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/costs/issue_queue.h"
#include "sim/lowering/buckets.h"
#include "sim/run/energy.h"
#include "sim/run/evaluate.h"
#include "sim/run/search/node_chain.h"
#include "sim/run/search/split_time.h"

namespace convoy::inline search {
namespace {

const std::string& text_of(const YamlNode& mapping, std::string_view key) {
  static const std::string none;
  const YamlNode* value = mapping.find(key);
  return value && value->kind == YamlNode::Kind::scalar ? value->scalar : none;
}

/// Nothing where the key is not there, or is no whole number.
std::optional<std::int64_t> number_of(const YamlNode& mapping, std::string_view key) {
  const std::string& text = text_of(mapping, key);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// What a step cannot go below, and of how many images it is.
struct Floor {
  double step_s, images;
  std::string text;
};

std::int64_t device_count(const CostTable& table) {
  return static_cast<std::int64_t>(table.run().machine.devices.size());
}

std::optional<Floor> floor_of_single(const YamlNode& candidate, const BatchSpec& batch, CostTable& table) {
  const std::int64_t images = batch.global ? *batch.global : *batch.per_device;
  const std::int64_t parts = number_of(candidate, "micro_batches").value_or(1);
  if (images % parts != 0) return std::nullopt;
  const CostTable::Passes passes = table.quickest(static_cast<double>(images / parts));
  const double step_s = parts == 1 ? passes.issued_s + passes.update_s
                                   : static_cast<double>(parts) * passes.both_s() + passes.update_s;
  return Floor{step_s, static_cast<double>(images),
               fmt::format("at least {} a step for computing", format_time(step_s))};
}

/// Whether tensors are placed whole on servers that are among the cluster's nodes.
bool has_whole_tensors_on_nodes(const YamlNode& candidate) {
  return text_of(candidate, "sync") == "parameter_server" && text_of(candidate, "sharding") != "even" &&
         text_of(candidate, "placement") != "dedicated";
}

std::optional<Floor> floor_of_replicas(const YamlNode& candidate, const BatchSpec& batch, CostTable& table) {
  const std::string& sync = text_of(candidate, "sync");
  if (candidate.find("backup_workers") || text_of(candidate, "shares") == "speed" || candidate.find("mode"))
    return std::nullopt;
  const std::int64_t devices = device_count(table);
  if (batch.global && *batch.global % devices != 0) return std::nullopt;
  const std::int64_t share = batch.global ? *batch.global / devices : *batch.per_device;
  const std::int64_t parts = number_of(candidate, "micro_batches").value_or(1);
  if (share % parts != 0) return std::nullopt;
  const bool whole = sync == "all_reduce" && !candidate.find("zero");
  double step_s = 0;  // every kind of device has a replica
  for (const CostTable::Passes& passes : table.of_kinds(static_cast<double>(share / parts))) {
    const double both_s =
        parts == 1 ? passes.issued_s : static_cast<double>(parts) * std::max(passes.both_s(), passes.host_s);
    step_s = std::max(step_s, both_s + (whole ? passes.update_s : 0));
  }
  if (has_whole_tensors_on_nodes(candidate))
    if (const double spread_s = table.spread_largest_tensor_s(); spread_s > step_s)
      return Floor{spread_s, static_cast<double>(share * devices),
                   fmt::format("at least {} a step for the server of the largest tensor to send it to all "
                               "other nodes",
                               format_time(spread_s))};
  return Floor{step_s, static_cast<double>(share * devices),
               fmt::format("at least {} a step for computing alone", format_time(step_s))};
}

/// Images of all devices in a step.
std::int64_t images_of(const BatchSpec& batch, const CostTable& table) {
  return batch.global ? *batch.global : *batch.per_device * device_count(table);
}

/// Whether a hybrid splits layers that it names one by one by rows and columns.
bool has_grid_in_groups(const YamlNode& hybrid) {
  const YamlNode* groups = hybrid.find("groups");
  return groups && std::any_of(groups->items.begin(), groups->items.end(), [](const YamlNode& group) {
           const YamlNode* layout = group.find("layout");
           return layout && layout->kind == YamlNode::Kind::mapping;
         });
}

/// How each layer is split by a hybrid on so many devices; nothing where a key may change what they compute.
std::optional<CostTable::Split> split_of(const YamlNode& hybrid, std::int64_t devices) {
  const std::string& scheme = text_of(hybrid, "scheme");
  if ((!scheme.empty() && scheme != "a") || has_grid_in_groups(hybrid)) return std::nullopt;
  const std::int64_t groups = number_of(hybrid, "replicas").value_or(1);
  if (groups < 1 || devices % groups != 0) return std::nullopt;
  CostTable::Split split{devices / groups};
  if (const YamlNode* conv = hybrid.find("conv"); conv && conv->kind == YamlNode::Kind::mapping) {
    split.grid = {number_of(*conv, "height").value_or(0), number_of(*conv, "width").value_or(0)};
    if (split.grid->h < 1 || split.grid->w < 1 || split.devices % split.grid->h != 0 ||
        split.devices / split.grid->h != split.grid->w)
      return std::nullopt;  // cannot run
  }
  return split;
}

std::optional<Floor> floor_of_hybrid(const YamlNode& candidate, const BatchSpec& batch, CostTable& table) {
  const std::int64_t devices = device_count(table), images = images_of(batch, table);
  const std::optional<CostTable::Split> split = split_of(candidate, devices);
  const std::int64_t parts = number_of(candidate, "micro_batches").value_or(1);
  if (!split || images % (devices / split->devices * parts) != 0) return std::nullopt;
  const CostTable::Passes passes =
      table.quickest(static_cast<double>(images / (devices / split->devices * parts)), *split);
  const double step_s =
      parts == 1 ? passes.issued_s : static_cast<double>(parts) * std::max(passes.both_s(), passes.host_s);
  return Floor{
      step_s, static_cast<double>(images),
      fmt::format("at least {} a step for computing, however layers are split", format_time(step_s))};
}

/// What a device of a stage does with a micro-batch, were its stage the whole network (at least; nothing is
/// known of some hybrids); nothing where the pipeline cannot run.
/// @param images of all devices in a step  @param stages of the pipeline
struct Stretched {
  CostTable::Passes passes;
  std::int64_t slots;  ///< devices, or groups of them, that a pipeline has: as many as stages, or more
};
std::optional<Stretched> on_stages(const YamlNode& candidate, std::int64_t images, std::int64_t stages,
                                   CostTable& table) {
  const std::int64_t devices = device_count(table);
  const std::int64_t parts = number_of(candidate, "micro_batches").value_or(1);
  const YamlNode* inner = candidate.find("inner");
  const bool hybrid = inner && text_of(*inner, "kind") == "hybrid";
  const std::int64_t pipelines = number_of(candidate, "replicas").value_or(inner ? devices / stages : 1);
  if (pipelines < 1 || devices % pipelines != 0) return std::nullopt;
  const std::int64_t slots = devices / pipelines;  // of a pipeline
  if (stages > slots || (inner && stages != slots) || (stages < slots && stages * parts < devices))
    return std::nullopt;  // cannot run
  if (hybrid) {
    const std::optional<CostTable::Split> split = split_of(*inner, pipelines);
    if (images % parts != 0) return std::nullopt;  // cannot run
    const std::int64_t share =
        split ? images / parts / (pipelines / split->devices) : 0;  // of a group, at least
    if (share == 0) return Stretched{{}, slots};
    return Stretched{table.quickest(static_cast<double>(share), *split), slots};
  }
  if (images % (pipelines * parts) != 0) return std::nullopt;
  return Stretched{table.quickest(static_cast<double>(images / (pipelines * parts))), slots};
}

/// Of a pipeline with so many stages.
std::optional<double> floor_of_stages(const YamlNode& candidate, std::int64_t images, std::int64_t stages,
                                      CostTable& table) {
  const std::optional<Stretched> on = on_stages(candidate, images, stages, table);
  if (!on) return std::nullopt;
  const CostTable::Passes& passes = on->passes;
  const std::int64_t parts = number_of(candidate, "micro_batches").value_or(1);
  const double longer_s = std::max(passes.forward_s, passes.backward_s);
  const auto m = static_cast<double>(parts), s = static_cast<double>(stages);
  double more_s = 0;  // than one micro-batch takes to go forward and back
  if (stages == on->slots)
    more_s = (m - 1) * longer_s / s;
  else if (on->slots - stages + 1 < parts)
    more_s = longer_s / s;
  const double step_s =
      std::max(passes.both_s() + more_s, m * passes.both_s() / static_cast<double>(on->slots));
  return text_of(candidate, "schedule") == "naive" ? std::max(step_s, m * passes.both_s()) : step_s;
}

std::optional<Floor> floor_of_pipeline(const YamlNode& candidate, const BatchSpec& batch, CostTable& table) {
  const std::string& weights = text_of(candidate, "weights");
  const YamlNode* replicas_node = candidate.find("replicas");
  const bool listed = replicas_node && replicas_node->kind == YamlNode::Kind::sequence;
  if ((!weights.empty() && weights != "flush") || candidate.find("begins") || listed) return std::nullopt;
  if (const YamlNode* inner = candidate.find("inner");
      inner && text_of(*inner, "kind") != "data_parallel" && text_of(*inner, "kind") != "hybrid")
    return std::nullopt;
  const std::int64_t images = images_of(batch, table);
  const std::int64_t slots =
      device_count(table) / std::max<std::int64_t>(1, number_of(candidate, "replicas").value_or(1));
  std::optional<double> step_s;
  if (text_of(candidate, "stages") != "auto") {
    step_s = floor_of_stages(candidate, images, number_of(candidate, "stages").value_or(slots), table);
  } else {
    for (std::int64_t stages = 1; stages <= slots; ++stages)
      if (slots % stages == 0)
        if (const std::optional<double> one = floor_of_stages(candidate, images, stages, table))
          step_s = std::min(step_s.value_or(*one), *one);
  }
  if (!step_s) return std::nullopt;
  return Floor{
      *step_s, static_cast<double>(images),
      fmt::format("at least {} a step to fill and drain the pipeline and compute", format_time(*step_s))};
}

std::optional<Floor> floor_of_placement(const YamlNode& candidate, const BatchSpec& batch, CostTable& table) {
  const std::int64_t parts = number_of(candidate, "parts").value_or(device_count(table));
  const std::int64_t images = batch.global ? *batch.global : *batch.per_device * parts;
  const double step_s = table.quickest(static_cast<double>(images)).chain_s;
  return Floor{
      step_s, static_cast<double>(images),
      fmt::format("at least {} a step for operations that wait for each other", format_time(step_s))};
}

std::optional<Floor> floor_of_nodes(const YamlNode& candidate, const BatchSpec& batch, CostTable& table) {
  const std::int64_t parts = number_of(candidate, "parts").value_or(device_count(table));
  const std::int64_t images = batch.global ? *batch.global : *batch.per_device * parts;
  const std::int64_t micro_batches = number_of(candidate, "micro_batches").value_or(1);
  if (parts < 1 || images % micro_batches != 0) return std::nullopt;
  const double step_s =
      node_chain_s(table.run(), static_cast<double>(images / micro_batches), parts, table.kinds());
  return Floor{step_s, static_cast<double>(images),
               fmt::format("at least {} a step for layers that wait for each other", format_time(step_s))};
}

std::optional<Floor> floor_of(const YamlNode& candidate, const BatchSpec& batch, CostTable& table) {
  const std::string& kind = text_of(candidate, "kind");
  if (kind == "single") return floor_of_single(candidate, batch, table);
  if (kind == "data_parallel") return floor_of_replicas(candidate, batch, table);
  if (kind == "pipeline") return floor_of_pipeline(candidate, batch, table);
  if (kind == "hybrid") return floor_of_hybrid(candidate, batch, table);
  if (kind == "pardnn") return floor_of_placement(candidate, batch, table);
  if (kind == "hypergraph") return floor_of_nodes(candidate, batch, table);
  return std::nullopt;
}

/// Of one device, or of each of several that split all layers among them.
CostTable::Passes passes_of(const PreparedRun& run, double images, const DeviceType& type, double speed,
                            const CostTable::Split& split) {
  const std::vector<Operation>& operations = run.graph->operations;
  CostTable::Passes passes;
  IssueQueue queue;
  std::vector<double> ends_s(operations.size(), 0.0);
  for (std::size_t o = 0; o < operations.size(); ++o) {
    const Operation& operation = operations[o];
    if (operation.again) continue;  // what recomputation adds only makes steps longer
    const bool update = operation.phase == Phase::update;
    if (update && split.devices > 1) continue;
    const double time_s = (split.devices > 1 ? least_split_time_s(*run.graph, operation, images,
                                                                  split.devices, split.grid, run.cost, type)
                                             : run.cost.time_s(operation.work, update ? 1 : images, type)) /
                          speed;
    if (update) {
      passes.update_s += time_s;
      continue;
    }
    (operation.phase == Phase::forward ? passes.forward_s : passes.backward_s) += time_s;
    queue.run(run.cost.issue_s(operation.work, images, type), time_s);
    for (const OpId input : operation.inputs) ends_s[o] = std::max(ends_s[o], ends_s[input]);
    ends_s[o] += time_s;
    passes.chain_s = std::max(passes.chain_s, ends_s[o]);
  }
  passes.issued_s = queue.end_s();
  passes.host_s = queue.issued_s();
  return passes;
}

}  // namespace

CostTable::CostTable(const PreparedRun& run) : run_(run) {
  for (const Device& device : run.machine.devices) kinds_.emplace(device.type, device.speed);
}

const std::vector<CostTable::Passes>& CostTable::of_kinds(double images, const Split& split) {
  const auto [row, fresh] = rows_.try_emplace({images, split.devices, split.grid ? split.grid->h : 0});
  if (!fresh) return row->second;
  for (const auto& [type, speed] : kinds_)
    row->second.push_back(passes_of(run_, images, run_.machine.device_types[type], speed, split));
  return row->second;
}

double CostTable::spread_largest_tensor_s() {
  if (spread_s_) return *spread_s_;
  double largest_bytes = 0, widest_Bps = 0;
  for (const Bucket& tensor : bucket_per_tensor(*run_.graph))
    largest_bytes = std::max(largest_bytes, tensor.bytes);
  std::vector<LinkId> out, in;
  for (EndpointId e = 0; e < run_.machine.endpoint_count(); ++e) {
    if (!run_.machine.router->halves(e, out, in)) return *(spread_s_ = 0);
    double narrowest_Bps = std::numeric_limits<double>::infinity();
    for (const LinkId link : out)
      narrowest_Bps = std::min(narrowest_Bps, run_.machine.links[link].bandwidth_Bps);
    widest_Bps = std::max(widest_Bps, narrowest_Bps);
  }
  const auto others = static_cast<double>(run_.machine.hosts.size() - 1);
  return *(spread_s_ = others * largest_bytes / widest_Bps);
}

CostTable::Passes CostTable::quickest(double images, const Split& split) {
  const std::vector<Passes>& kinds = of_kinds(images, split);
  Passes least = kinds.front();
  for (const Passes& kind : kinds)
    for (double Passes::*number : {&Passes::forward_s, &Passes::backward_s, &Passes::update_s,
                                   &Passes::issued_s, &Passes::host_s, &Passes::chain_s})
      least.*number = std::min(least.*number, kind.*number);
  return least;
}

std::optional<Assessment> prior_bound(const YamlNode& candidate, const std::string& label,
                                      const BatchSpec& batch, CostTable& table) {
  const std::optional<Floor> floor = floor_of(candidate, batch, table);
  if (!floor) return std::nullopt;
  const PreparedRun& run = table.run();
  Assessment assessment;
  assessment.label = label;
  assessment.images = floor->images;
  assessment.step_bound_s = floor->step_s;
  assessment.bound_text = floor->text;
  std::vector<double> idle_w;
  for (const Device& device : run.machine.devices)
    idle_w.push_back(run.machine.device_types[device.type].idle_power_w);
  assessment.energy_bound_j =
      step_energy_j(run.machine, floor->step_s, idle_w, [](std::size_t) { return 0.0; });
  assessment.price_usd_per_h = price_usd_per_h(run.machine);
  if (run.samples) assessment.samples = static_cast<double>(*run.samples);
  return assessment;
}

}  // namespace convoy::search
