// SPDX-License-Identifier: MIT
#include "strategies/hybrid/hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "strategies/hybrid/hybrid_floor.h"
#include "strategies/hybrid/layouts.h"
#include "strategies/hybrid/shard_layers.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

const std::vector<std::string> scheme_names{"a", "b", "c"};

/// @param of "": all of them, or " of a stage"
void check_replicas(const HybridOptions& options, std::int64_t devices, std::string_view of) {
  if (devices % options.replicas != 0)
    throw InputError(options.replicas_pos,
                     fmt::format("{}.replicas: {} devices{} do not divide into {} groups", options.path,
                                 devices, of, options.replicas));
}

class Hybrid : public Annotator {
 public:
  explicit Hybrid(HybridOptions options) : options_(std::move(options)) {}

  std::string label() const override { return label_of(options_); }

  std::string_view refuses_recomputation() const override {
    if (options_.scheme == HybridScheme::all_at_once) return {};
    return "schemes b and c run layers forward and back part by part";
  }

  const GradientSync* sums() const override { return &options_.sync; }

  std::optional<StepFloor> floor(const BatchSpec& batch, CostTable& table) const override {
    return floor_of_hybrid(options_, batch, table);
  }

  Annotation annotate(const StrategyInput& input) const override {
    const auto all = static_cast<std::int64_t>(input.machine.devices.size());
    check_replicas(options_, all, "");
    const std::int64_t images = images_of_micro_batch(input, all);
    HybridPipeline one{std::vector<std::uint32_t>(input.graph.model.layers.size(), 0),
                       {std::vector<EndpointId>(static_cast<std::size_t>(all))},
                       {{}},
                       options_.micro_batches,
                       images};
    std::iota(one.devices[0].begin(), one.devices[0].end(), EndpointId{0});
    for (std::int64_t m = 0; m < options_.micro_batches; ++m)
      for (const bool backward : {false, true})
        one.passes[0].push_back({backward, m, static_cast<double>(one.images),
                                 options_.micro_batches > 1 ? fmt::format(" #{}", m) : "",
                                 backward && m + 1 == options_.micro_batches});
    return annotate_hybrid(input, options_, one);
  }

 private:
  std::int64_t images_of_micro_batch(const StrategyInput& input, std::int64_t devices) const {
    const std::string replicas = fmt::format("{} replicas", options_.replicas);
    const std::int64_t images = input.batch.divided(
        devices, options_.replicas * options_.micro_batches,
        options_.micro_batches == 1
            ? replicas
            : fmt::format("{}{} micro-batches", options_.replicas > 1 ? replicas + " of " : "",
                          options_.micro_batches));
    check_plan_size(input, options_.micro_batches);
    return images * options_.replicas;
  }

  HybridOptions options_;
};

/// Images of the layers that are not split by images, in the parts that the scheme says.
TailParts tail_parts(const HybridOptions& options, const Model& model,
                     const std::vector<LayerSharding>& shardings, const Shards& images) {
  TailParts tail;
  for (std::size_t i = 0; i < shardings.size(); ++i) {
    tail.is_tail.push_back(shardings[i].output.over != Sharding::Over::batch);
    for (const LayerIndex input : model.layers[i].inputs)
      if (input != image_input && !tail.is_tail[i] && tail.is_tail[static_cast<std::size_t>(input)])
        throw InputError(options.scheme_pos,
                         fmt::format("{}.scheme: layer '{}' is split by images and reads '{}', which is "
                                     "not; schemes b and c need all such layers before the others",
                                     options.path, model.layers[i].name,
                                     model.layers[static_cast<std::size_t>(input)].name));
  }
  const std::size_t devices = images.counts.size();
  const bool one = options.scheme == HybridScheme::one_device_a_part;
  // Scheme c: as many parts as devices, with an image of each at least; fewer images than devices go together.
  const std::size_t parts =
      one ? devices : std::clamp<std::size_t>(static_cast<std::size_t>(images.counts.back()), 1, devices);
  for (std::size_t j = 0; j < parts; ++j) {
    ImagePart part;
    part.images.counts.assign(devices, 0);
    for (std::size_t d = 0; d < devices; ++d) {
      if (!one)
        part.images.counts[d] = even_images(images.counts[d], parts).counts[j];
      else if (d == j)
        part.images.counts[d] = images.counts[d];
      part.images.size += part.images.counts[d];
    }
    if (part.images.size == 0) continue;  // scheme b: that device has no images to send
    part.loss = even_images(part.images.size, devices);
    tail.parts.push_back(std::move(part));
  }
  return tail;
}

/// Gradients of parameters that several layers use are added up whole.
void refuse_split_shared(const Model& model, const std::vector<LayerSharding>& shardings,
                         const SourcePos& pos) {
  for (std::size_t i = 0; i < shardings.size(); ++i) {
    if (!model.layers[i].shares()) continue;
    const auto owner = static_cast<std::size_t>(model.layers[i].weights_of);
    if (shardings[i].splits_weights || shardings[owner].splits_weights)
      throw InputError(
          pos, fmt::format("strategy: '{}' uses the parameters of '{}', and parameters that layers share "
                           "cannot be split; give both a layout that splits no channels",
                           model.layers[i].name, model.layers[owner].name));
  }
}

const Keys<HybridOptions>& hybrid_keys() {
  using Options = HybridOptions;
  static const Keys<Options> keys = [] {
    Keys<Options> table = keys_of_part<Options>(layout_keys(), &Options::rules);
    table.push_back(
        integer_key<Options>("replicas", 1, 1'000'000,
                             "groups of devices that share the batch; the layouts are inside each",
                             &Options::replicas)
            .at(&Options::replicas_pos));
    table.push_back(integer_key<Options>(
        "micro_batches", 1, 100'000, "parts of the batch whose gradients are accumulated before the update",
        &Options::micro_batches));
    table.push_back(choice_key<Options>("scheme", scheme_names,
                                        "layers behind those split by images: all images at once, a device's "
                                        "at a time, or a part of each device's at a time",
                                        &Options::scheme)
                        .at(&Options::scheme_pos));
    append_keys(table, keys_of_part<Options>(gradient_sync_keys(), &Options::sync));
    return table;
  }();
  return keys;
}

}  // namespace

HybridOptions read_hybrid_options(YamlMap& map) {
  HybridOptions options;
  options.path = map.path();
  options.sync.path = options.path;
  options.pos = map.pos();
  read_keys(hybrid_keys(), map, options);
  check_gradient_sync(map, options.sync);
  if (options.sync.zero >= 2 && options.scheme != HybridScheme::all_at_once)
    map.fail(
        "zero",
        "2 and 3 free what a layer needs after each pass, and schemes b and c have many; use zero: 1, or "
        "scheme: a");
  if (options.rules.empty()) map.fail("says of no layer how it is shared out; give conv, fc or groups");
  return options;
}

StrategyEntry hybrid_entry() {
  return {
      "hybrid",
      "each layer split by images, channels, rows or not at all; tensors exchanged where the split changes",
      texts_of(hybrid_keys()), &read_hybrid,
      "[{conv: batch, fc: [filter, pairs]}, {conv: [height, pairs], fc: [replicated, pairs]}, "
      "{conv: {height: $rows, width: $columns}, fc: [replicated, pairs]}, {conv: batch, fc: pairs, zero: [1, "
      "2, "
      "3]}]"};
}

std::unique_ptr<Strategy> read_hybrid(YamlMap& map) {
  return std::make_unique<Hybrid>(read_hybrid_options(map));
}

std::string label_of(const HybridOptions& options) {
  std::string text = "hybrid";
  for (const LayoutRule& rule : options.rules)
    text += fmt::format("{} {}", &rule == options.rules.data() ? ":" : ",", rule.text);
  if (options.scheme != HybridScheme::all_at_once)
    text += fmt::format(", scheme {}", scheme_names[static_cast<std::size_t>(options.scheme)]);
  if (options.replicas > 1) text += fmt::format(", {} replicas", options.replicas);
  if (options.micro_batches > 1) text += fmt::format(", {} micro-batches", options.micro_batches);
  if (options.sync.zero > 0) text += fmt::format(", ZeRO-{}", options.sync.zero);
  text += label_of(options.sync.compression);
  if (!options.sync.overlap) text += ", no overlap";
  return text;
}

Annotation annotate_hybrid(const StrategyInput& input, const HybridOptions& options,
                           const HybridPipeline& pipeline) {
  const Model& model = input.graph.model;
  const auto all = static_cast<std::int64_t>(pipeline.devices.front().size());
  const bool alone = pipeline.devices.size() == 1;
  if (!alone) check_replicas(options, all, " of a stage");
  if (pipeline.images % options.replicas != 0)
    throw InputError(
        input.batch.pos,
        fmt::format("training: a micro-batch of {} images does not divide by {} replicas of each "
                    "stage",
                    pipeline.images, options.replicas));
  const std::int64_t devices = all / options.replicas;
  const std::vector<DecidedLayout> layouts = decide_layouts(model, options.rules, options.pos);
  const Shards images = even_images(pipeline.images / options.replicas, static_cast<std::size_t>(devices));
  std::vector<LayerSharding> shardings = shard_layers(model, layouts, images);
  refuse_split_shared(model, shardings, options.pos);
  const bool by_images = std::any_of(shardings.begin(), shardings.end(), [](const LayerSharding& s) {
    return s.output.over == Sharding::Over::batch;
  });
  if (by_images && images.size < devices)
    throw InputError(input.batch.pos, fmt::format("training: a group's {} of {} leaves some of its {} "
                                                  "devices without an image; at least {} is needed",
                                                  pipeline.micro_batches > 1 ? "micro-batch" : "batch",
                                                  images.size, devices, devices));
  std::optional<TailParts> tail;
  if (options.scheme != HybridScheme::all_at_once && devices > 1)
    tail = tail_parts(options, model, shardings, images);
  GraphSchedule schedule =
      schedule_graph(input.graph, shardings, images, tail,
                     alone ? std::vector<std::uint32_t>{} : pipeline.stage_of_layer, pipeline.recomputes);
  GroupStages stages{pipeline.stage_of_layer, {}, pipeline.passes, pipeline.micro_batches};
  for (const std::vector<EndpointId>& of_stage : pipeline.devices) {
    stages.groups.emplace_back();
    for (std::int64_t r = 0; r < options.replicas; ++r)
      stages.groups.back().emplace_back(of_stage.begin() + r * devices, of_stage.begin() + (r + 1) * devices);
  }
  return {
      SplitLayers{std::move(stages), std::make_unique<const std::vector<LayerSharding>>(std::move(shardings)),
                  std::move(schedule), options.pos, input.meaning},
      options.sync};
}

}  // namespace convoy::strategies
