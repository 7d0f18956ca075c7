// SPDX-License-Identifier: MIT
#include "strategies/hybrid/hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "strategies/hybrid/hybrid_plan.h"
#include "strategies/hybrid/layouts.h"

namespace convoy {
namespace {

constexpr double default_bucket_bytes =
    25.0 * 1024 * 1024;  // PyTorch DistributedDataParallel, bucket_cap_mb=25

/// Krizhevsky, arXiv:1404.5997, section 4: how the layers behind the batch-split ones get their input.
enum class Scheme : std::uint8_t { all_at_once, one_device_a_part, all_devices_a_part };
const std::vector<std::string> scheme_names{"a", "b", "c"};

struct HybridOptions {
  std::vector<LayoutRule> rules;
  std::int64_t replicas;
  SourcePos replicas_pos;
  Scheme scheme;
  SourcePos scheme_pos;
  HybridCommunication communication;
};

class Hybrid : public Strategy {
 public:
  explicit Hybrid(HybridOptions options) : options_(std::move(options)) {}

  std::string label() const override {
    std::string text = "hybrid";
    for (const LayoutRule& rule : options_.rules)
      text += fmt::format("{} {}", &rule == options_.rules.data() ? ":" : ",", rule.text);
    if (options_.scheme != Scheme::all_at_once)
      text += fmt::format(", scheme {}", scheme_names[static_cast<std::size_t>(options_.scheme)]);
    if (options_.replicas > 1) text += fmt::format(", {} replicas", options_.replicas);
    if (!options_.communication.overlap) text += ", no overlap";
    return text;
  }

  Plan steady_plan(const StrategyInput& input) const override {
    const Model& model = input.graph.model;
    const auto all = static_cast<std::int64_t>(input.machine.devices.size());
    if (all % options_.replicas != 0)
      throw InputError(options_.replicas_pos,
                       fmt::format("strategy.replicas: {} devices do not divide into {} "
                                   "groups",
                                   all, options_.replicas));
    const std::int64_t devices = all / options_.replicas;
    const std::vector<DecidedLayout> layouts =
        decide_layouts(model, options_.rules, options_.communication.pos);
    const Cut images = even_images(images_of_group(input, all), static_cast<std::size_t>(devices));
    const std::vector<LayerSpread> spreads = spread_layers(model, layouts, images);
    const bool by_images = std::any_of(spreads.begin(), spreads.end(),
                                       [](const LayerSpread& s) { return s.layout == LayerLayout::batch; });
    if (by_images && images.size < devices)
      throw InputError(input.batch.pos, fmt::format("training: a group's batch of {} leaves some of its {} "
                                                    "devices without an image; at least {} is needed",
                                                    images.size, devices, devices));
    std::optional<TailParts> tail;
    if (options_.scheme != Scheme::all_at_once && devices > 1) tail = tail_parts(model, spreads, images);
    const HybridSchedule schedule = schedule_hybrid(input.graph, spreads, images, tail);
    return plan_hybrid(input, static_cast<std::size_t>(options_.replicas), spreads, schedule,
                       options_.communication);
  }

 private:
  std::int64_t images_of_group(const StrategyInput& input, std::int64_t devices) const {
    const std::int64_t batch = input.batch.global ? *input.batch.global : *input.batch.per_device * devices;
    if (batch % options_.replicas != 0)
      throw InputError(input.batch.pos, fmt::format("training: a global batch of {} does not divide by {} "
                                                    "replicas",
                                                    batch, options_.replicas));
    return batch / options_.replicas;
  }

  TailParts tail_parts(const Model& model, const std::vector<LayerSpread>& spreads, const Cut& images) const {
    TailParts tail;
    for (std::size_t i = 0; i < spreads.size(); ++i) {
      tail.is_tail.push_back(spreads[i].layout != LayerLayout::batch);
      for (const LayerIndex input : model.layers[i].inputs)
        if (input != image_input && !tail.is_tail[i] && tail.is_tail[static_cast<std::size_t>(input)])
          throw InputError(
              options_.scheme_pos,
              fmt::format("strategy.scheme: layer '{}' is split by images and reads '{}', which is "
                          "not; schemes b and c need all such layers before the others",
                          model.layers[i].name, model.layers[static_cast<std::size_t>(input)].name));
    }
    const std::size_t devices = images.counts.size();
    const bool one = options_.scheme == Scheme::one_device_a_part;
    // Scheme c: as many parts as devices, with an image of each at least.
    const std::size_t parts =
        one ? devices : std::min(devices, static_cast<std::size_t>(images.counts.back()));
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
      part.loss = even_images(part.images.size, devices);
      tail.parts.push_back(std::move(part));
    }
    return tail;
  }

  HybridOptions options_;
};

}  // namespace

std::unique_ptr<Strategy> read_hybrid(YamlMap& map) {
  HybridOptions options{};
  options.rules = read_layout_rules(map);
  options.replicas = map.integer_or("replicas", 1, 1, 1'000'000);
  options.replicas_pos = map.pos("replicas");
  options.scheme = static_cast<Scheme>(map.choice_or("scheme", scheme_names, 0));
  options.scheme_pos = map.pos("scheme");
  HybridCommunication& how = options.communication;
  how.algorithm =
      static_cast<AllReduceAlgorithm>(map.choice_or("algorithm", all_reduce_algorithm_names(), 0));
  how.rings = static_cast<RingOrder>(map.choice_or("rings", {"mesh", "in_order"}, 0));
  how.overlap = map.flag_or("overlap", true);
  how.bucket_bytes =
      map.quantity_or("bucket", Dimension::bytes,
                      how.overlap ? default_bucket_bytes : std::numeric_limits<double>::infinity(), true);
  how.fidelity = static_cast<Fidelity>(map.choice_or("fidelity", {"auto", "chunk", "fluid"}, 0));
  how.pos = map.pos();
  return std::make_unique<Hybrid>(std::move(options));
}

}  // namespace convoy
