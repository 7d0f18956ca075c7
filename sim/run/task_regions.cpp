// SPDX-License-Identifier: MIT
#include "sim/run/task_regions.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "sim/plan/weight_versions.h"

namespace convoy::inline runs {
namespace {

using prove::Box;
using Part = TensorParts::Part;
using Parts = TensorParts::Parts;
using Tensor = TensorParts::Tensor;
using Act = OpMeaning::Act;
using Style = JsonWriter::Style;

constexpr std::array<std::string_view, 5> tensor_names{"images", "output", "output_gradient", "parameters",
                                                       "parameter_gradients"};
constexpr std::array<std::string_view, Box::axes> axis_names{"images", "channels", "rows", "columns",
                                                             "inputs"};
constexpr std::array<std::string_view, OpMeaning::act_count> act_names{
    "compute", "fill", "empty",  "compress", "decompress", "serve",
    "collect", "add",  "factor", "mean",     "slow"};
/// What acts on a bucket read and write of it; of other acts nothing.
constexpr std::array<std::pair<std::string_view, std::string_view>, OpMeaning::act_count> of_bucket{{
    {"", ""},                                        // compute
    {"parameter_gradients", "sent"},                 // fill
    {"sent", "parameter_gradients"},                 // empty
    {"parameter_gradients", "sent"},                 // compress
    {"sent", "parameter_gradients"},                 // decompress
    {"parameter_gradients", "parameters"},           // serve
    {"parameter_gradients", "parameter_gradients"},  // collect
    {"", ""},                                        // add
    {"sent", "sent"},                                // factor
    {"parameters", "parameters"},                    // mean
    {"parameters", "parameters"},                    // slow
}};
constexpr std::array<std::string_view, 14> carried_names{
    "results", "sum",      "scatter", "gather_parameters", "gather_gradients", "push",     "pull",
    "collect", "hand_out", "parts",   "sum_factors",       "average",          "exchange", "agree"};
constexpr std::array<std::string_view, 7> coding_names{"none",  "half",  "largest", "levels",
                                                       "signs", "votes", "low_rank"};

/// Those that devices work on between them, which all micro-batches have equally many of; 1 where each device has
/// whole layers, of which no part is written.
std::int64_t images_of_micro_batch(const Meaning& meaning) {
  if (meaning.positions.empty()) return 1;
  for (const OpMeaning& means : meaning.operations)
    if (means.images.count > 0) return static_cast<std::int64_t>(means.images.count);
  return 1;
}

void integer(JsonWriter& json, std::string_view name, std::uint64_t number) {
  json.field(name, static_cast<std::int64_t>(number));
}

}  // namespace

TaskRegions::TaskRegions(const Plan& plan, const TrainingGraph& graph)
    : plan_(plan),
      meaning_(*plan.meaning),
      graph_(graph),
      tensors_(graph, images_of_micro_batch(*plan.meaning), !plan.meaning->image_views.empty()) {
  if (plan.endless()) doubled_ = doubled_versions(plan, graph);
}

Box TaskRegions::in_layout(std::uint32_t layout, std::uint32_t position, const Box& whole) const {
  if (layout == no_meaning) return whole;
  const PartLayout& of = meaning_.layouts.at(layout);
  return prove::in_region(of.size() == 1 ? of.front() : of.at(position), whole);
}

std::optional<std::uint64_t> TaskRegions::version_of(std::uint32_t role, const OpMeaning& means) {
  if (role_ != role) {
    role_ = role;
    updates_.clear(), at_first_pass_.clear();
  }
  if (means.act != Act::compute || means.operation == no_meaning) return std::nullopt;
  const Operation& operation = graph_.operations[means.operation];
  const std::uint32_t layer = graph_.model.parameter_owner(operation.layer);
  if (operation.part != OperationPart::layer || graph_.model.layers[layer].parameters.empty())
    return std::nullopt;
  if (operation.phase == Phase::update) return updates_[layer]++;
  if (!plan_.endless()) return updates_[layer];
  if (const auto late = doubled_[role].find(means.micro_batch); late != doubled_[role].end())
    return late->second;
  return at_first_pass_.try_emplace(means.micro_batch, updates_).first->second[layer];
}

// JSON.

std::vector<std::uint32_t> TaskRegions::positions_of(const std::vector<EndpointId>& endpoints) const {
  std::vector<std::uint32_t> positions;
  for (const EndpointId e : endpoints)
    if (e < meaning_.positions.size()) positions.push_back(meaning_.positions[e]);
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

void TaskRegions::write_box(JsonWriter& json, const Box& box, const Box& whole) const {
  json.begin_object(Style::compact);
  for (std::size_t axis = 0; axis < Box::axes; ++axis) {
    if (box.of[axis] == whole.of[axis]) continue;
    json.key(axis_names[axis]);
    json.begin_array();
    for (const IndexRange& range : box.of[axis]) {
      json.begin_array();
      json.value(range.begin);
      json.value(range.end);
      json.end_array();
    }
    json.end_array();
  }
  json.end_object();
}

template <class BoxOf>
void TaskRegions::write_boxes(JsonWriter& json, std::string_view name,
                              const std::vector<std::uint32_t>& positions, const Box& whole,
                              BoxOf box_of) const {
  std::vector<Box> boxes;
  for (const std::uint32_t position : positions) boxes.push_back(box_of(position));
  if (boxes.empty()) return;
  const bool are_equal =
      std::all_of(boxes.begin(), boxes.end(), [&](const Box& box) { return box == boxes.front(); });
  if (are_equal && boxes.front() == whole) return;
  json.key(name);
  if (are_equal) return write_box(json, boxes.front(), whole);
  json.begin_object(Style::compact);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    json.key(std::to_string(positions[i]));
    write_box(json, boxes[i], whole);
  }
  json.end_object();
}

void TaskRegions::write_tensor(JsonWriter& json, const Part& part) const {
  json.field("tensor", tensor_names[static_cast<std::size_t>(part.tensor)]);
  if (part.tensor != Tensor::images) integer(json, "layer", part.layer);
}

template <class PartsOf>
void TaskRegions::write_parts(JsonWriter& json, std::string_view name,
                              const std::vector<std::uint32_t>& positions, PartsOf parts_of,
                              std::optional<std::uint64_t> version, bool adds) const {
  std::vector<Parts> all;
  for (const std::uint32_t position : positions) all.push_back(parts_of(position));
  json.key(name);
  json.begin_array(Style::compact);
  for (std::size_t i = 0; i < all.front().size(); ++i) {
    const Part& first = all.front()[i];
    json.begin_object();
    write_tensor(json, first);
    if (version && tensors_.is_of_parameters(first.tensor)) integer(json, "version", *version);
    if (adds) json.field("adds", true);
    std::size_t next = 0;
    write_boxes(json, "part", positions, tensors_.whole(first),
                [&](std::uint32_t) { return all[next++][i].box; });
    json.end_object();
  }
  json.end_array();
}

void TaskRegions::write_of_bucket(JsonWriter& json, std::string_view name, std::string_view tensor,
                                  std::uint32_t bucket) const {
  json.key(name);
  json.begin_array(Style::compact);
  json.begin_object();
  json.field("tensor", tensor);
  integer(json, "bucket", bucket);
  json.end_object();
  json.end_array();
}

void TaskRegions::write_images(JsonWriter& json, std::int64_t micro_batch, const ImageRange& images) const {
  json.field("micro_batch", micro_batch);
  json.key("images");
  json.begin_array(Style::compact);
  json.value(images.first);
  json.value(images.count);
  json.end_array();
}

void TaskRegions::write_endpoint(JsonWriter& json, EndpointId e) const {
  if (e < meaning_.lanes.size() && meaning_.lanes[e] > 0) integer(json, "lane", meaning_.lanes[e]);
  if (e < meaning_.positions.size()) integer(json, "position", meaning_.positions[e]);
  if (e < meaning_.has_images.size()) json.field("has_images", static_cast<bool>(meaning_.has_images[e]));
}

void TaskRegions::write_graph(JsonWriter& json) const {
  const auto list = [&](std::string_view name, std::size_t count, const auto& fields) {
    json.key(name);
    json.begin_array();
    for (std::size_t i = 0; i < count; ++i) {
      json.begin_object(Style::compact);
      fields(i);
      json.end_object();
    }
    json.end_array();
  };
  json.begin_object();
  if (!meaning_.positions.empty()) json.field("images", tensors_.maps().images());
  json.key("image");
  json.begin_object(Style::compact);
  for (const Box::Axis axis : {Box::channels, Box::rows, Box::columns})
    json.field(axis_names[axis], count(tensors_.maps().image_tensor()[axis]));
  json.end_object();
  list("layers", graph_.model.layers.size(), [&](std::size_t l) {
    const Box work = tensors_.maps().work(l);
    json.field("name", graph_.model.layers[l].name);
    for (const Box::Axis axis : {Box::channels, Box::rows, Box::columns, Box::inputs})
      json.field(axis_names[axis], count(work[axis]));
  });
  list("parameters", graph_.parameters.size(), [&](std::size_t p) {
    json.field("name", graph_.parameters[p].name);
    integer(json, "layer", graph_.parameters[p].layer);
    json.field("elements", graph_.parameters[p].elements);
  });
  list("operations", graph_.operations.size(), [&](std::size_t i) {
    const Operation& operation = graph_.operations[i];
    json.field("name", operation.name);
    json.field("phase", to_string(operation.phase));
    integer(json, "layer", operation.layer);
    if (operation.part == OperationPart::gradient_sum) json.field("adds_up", true);
  });
  list("buckets", meaning_.buckets.size(), [&](std::size_t b) {
    const BucketMeaning& bucket = meaning_.buckets[b];
    json.key("parameters");
    json.begin_array(Style::compact);
    for (const std::size_t parameter : bucket.parameters) json.value(static_cast<std::int64_t>(parameter));
    json.end_array();
    if (bucket.zero > 0) integer(json, "zero", static_cast<std::uint64_t>(bucket.zero));
    if (bucket.coding != BucketMeaning::Coding::none)
      json.field("coding", coding_names[static_cast<std::size_t>(bucket.coding)]);
  });
  if (!meaning_.image_views.empty()) {
    std::vector<EndpointId> devices(meaning_.positions.size());
    std::iota(devices.begin(), devices.end(), EndpointId{0});
    const std::vector<std::uint32_t> positions = positions_of(devices);
    list("image_parts", meaning_.image_views.size(), [&](std::size_t v) {
      const ImageView& view = meaning_.image_views[v];
      const Box all = tensors_.maps().tensor(view.layer);
      write_boxes(json, "part", positions, tensors_.maps().image_tensor(), [&](std::uint32_t position) {
        Parts parts;
        tensors_.add_output(static_cast<LayerIndex>(view.layer), in_layout(view.layout, position, all),
                            parts);
        return parts.front().box;
      });
    });
  }
  json.end_object();
}

void TaskRegions::write_nothing(JsonWriter& json) {
  for (const char* name : {"reads", "writes"}) {
    json.key(name);
    json.begin_array(Style::compact);
    json.end_array();
  }
}

void TaskRegions::write_operation(JsonWriter& json, std::uint32_t role, const OpMeaning& means) {
  const bool computes = means.act == Act::compute;
  if (computes && means.operation == no_meaning) return write_nothing(json);
  std::vector<std::uint32_t> positions = positions_of(plan_.roles[role].members);
  if (positions.empty()) positions.push_back(0);
  const std::optional<std::uint64_t> version = version_of(role, means);
  const bool of_layer = means.layer != no_meaning;
  const std::uint32_t layer = of_layer                        ? means.layer
                              : means.operation != no_meaning ? graph_.operations[means.operation].layer
                                                              : 0;
  const Box all = of_layer ? tensors_.maps().tensor(layer) : tensors_.maps().work(layer);
  const auto part = [&](std::uint32_t position) { return in_layout(means.layout, position, all); };
  json.key("does");
  json.begin_object(Style::compact);
  json.field("act", act_names[static_cast<std::size_t>(means.act)]);
  if (means.operation != no_meaning) integer(json, "operation", means.operation);
  if (means.bucket != no_meaning) integer(json, "bucket", means.bucket);
  if (means.images.count > 0) write_images(json, means.micro_batch, means.images);
  if (means.is_dropped) json.field("is_dropped", true);
  if (means.forgets != no_meaning) integer(json, "forgets", means.forgets);
  if (computes) write_boxes(json, "part", positions, all, part);
  json.end_object();
  switch (means.act) {
    case Act::compute: {
      const Operation& operation = graph_.operations[means.operation];
      const bool is_update = operation.phase == Phase::update;
      const bool is_part_of_sum = std::any_of(
          positions.begin(), positions.end(),
          [&](std::uint32_t position) { return part(position)[Box::inputs] != all[Box::inputs]; });
      const bool adds = operation.phase == Phase::forward ? is_part_of_sum : !is_update;
      write_parts(
          json, "reads", positions,
          [&](std::uint32_t position) { return tensors_.reads(means.operation, part(position)); }, version,
          false);
      write_parts(
          json, "writes", positions,
          [&](std::uint32_t position) { return tensors_.writes(means.operation, part(position)); },
          version ? *version + is_update : version, adds);
      return;
    }
    case Act::add: {
      const auto added = [&](std::uint32_t position) {
        Parts parts;
        if (of_layer)
          tensors_.add_gradient(static_cast<LayerIndex>(layer), part(position), parts);
        else
          tensors_.add_parameters(layer, Tensor::parameter_gradients, part(position), parts);
        return parts;
      };
      write_parts(json, "reads", positions, added, std::nullopt, false);
      write_parts(json, "writes", positions, added, std::nullopt, true);
      return;
    }
    default: {
      const auto& [reads, writes] = of_bucket.at(static_cast<std::size_t>(means.act));
      write_of_bucket(json, "reads", reads, means.bucket);
      write_of_bucket(json, "writes", writes, means.bucket);
    }
  }
}

void TaskRegions::write_carried(JsonWriter& json, const Communication& comm) const {
  const CommMeaning& carries = meaning_.communications[comm.meaning];
  json.begin_object(Style::compact);
  json.field("kind", carried_names[static_cast<std::size_t>(carries.kind)]);
  if (carries.bucket != no_meaning) integer(json, "bucket", carries.bucket);
  if (carries.together > 1) integer(json, "together", carries.together);
  if (carries.updates) json.field("updates", true);
  if (!carries.results.empty()) {
    write_images(json, carries.micro_batch, carries.images);
    std::vector<EndpointId> endpoints;
    for (const std::vector<EndpointId>& group : plan_.patterns[comm.pattern].groups)
      endpoints.insert(endpoints.end(), group.begin(), group.end());
    std::vector<std::uint32_t> positions = positions_of(endpoints);
    if (positions.empty()) positions.push_back(0);
    json.key("results");
    json.begin_array();
    for (const CommMeaning::Result& result : carries.results) {
      const Box all = tensors_.whole(result);
      const auto parts_at = [&](std::uint32_t layout, std::uint32_t position) {
        return tensors_.parts_of(result, in_layout(layout, position, all));
      };
      const Parts of_all = tensors_.parts_of(result, all);
      for (std::size_t i = 0; i < of_all.size(); ++i) {
        json.begin_object();
        write_tensor(json, of_all[i]);
        if (result.operation != no_meaning) integer(json, "made_by", result.operation);
        for (const auto& [name, layout] : {std::pair{"from", result.from}, std::pair{"to", result.to}})
          write_boxes(
              json, name, positions, tensors_.whole(of_all[i]),
              [&, layout = layout](std::uint32_t position) { return parts_at(layout, position)[i].box; });
        json.end_object();
      }
    }
    json.end_array();
  }
  json.end_object();
}

}  // namespace convoy::runs
