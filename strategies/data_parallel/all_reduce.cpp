// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/all_reduce.h"

#include <fmt/format.h>

#include "sim/base/names.h"
#include "sim/lowering/gradient_sync.h"
#include "strategies/framework_habits.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

struct AllReduceOptions {
  GradientSync sync;
  Shares shares = Shares::equal;
  CollectiveLaunches launches = CollectiveLaunches::by_framework;
  double cycle_s = 0;
  std::int64_t micro_batches = 1;
  Averaging averaging;
  std::int64_t local_from = 0;  ///< the step
};

/// The keys beside those of GradientSync.
const Keys<AllReduceOptions>& own_keys() {
  using Options = AllReduceOptions;
  static const Keys<Options> keys{
      shares_key<Options>(&Options::shares),
      integer_key<Options>("micro_batches", 1, 1'000'000,
                           "parts of a device's share, accumulated before sending", &Options::micro_batches),
      integer_key<Options>("sync_every", 1, 1'000'000,
                           "local SGD: each device updates its own parameters, and these are averaged after "
                           "every so many steps; 1: gradients are summed in every step",
                           [](Options& o) -> std::int64_t& { return o.averaging.every; }),
      integer_key<Options>(
          "local_from", 0, 1'000'000'000,
          "with sync_every, the step from which on parameters are averaged; before it gradients are "
          "summed in every step (post-local SGD)",
          &Options::local_from),
      flag_key<Options>("sum_in_hosts",
                        "with sync_every, the devices of a host sum their gradients in every step",
                        [](Options& o) -> bool& { return o.averaging.sums_in_hosts; }),
      custom_key<Options>("slow_momentum", "0", forms::number(0, 1),
                          "with sync_every, the momentum with which averages of parameters follow each other "
                          "(SlowMo, BMUF); below 1",
                          [](YamlMap& map, Options& options) {
                            if (!map.find("slow_momentum")) return;
                            options.averaging.slow_momentum = map.number("slow_momentum", 0, 1);
                            if (options.averaging.slow_momentum >= 1)
                              map.fail("slow_momentum", "must be below 1");
                          }),
      choice_key<Options>("launches", texts_of_names(collective_launches_names),
                          "who launches a collective on the devices of a host: one process, with NCCL on all "
                          "of them together (as built into TensorFlow 1.15 and 2.2) or on each for itself, "
                          "or a process a device (Horovod, PyTorch); by_framework: on one host tensorflow1 "
                          "together, tensorflow apart, all else per_process",
                          &Options::launches),
      quantity_key<Options>(
          "cycle", "no cycles", Dimension::time,
          "the interval at which each device's process looks which gradients are complete, agrees with the "
          "others and sends these together (Horovod's cycle time); left out, a message is sent when it is full",
          &Options::cycle_s, [](const Options&) { return 0.0; }),
      like_key<Options>("all_reduce")};
  return keys;
}

class AllReduce : public Annotator {
 public:
  explicit AllReduce(AllReduceOptions options) : options_(std::move(options)) {}

  std::string label() const override {
    const Averaging& averaging = options_.averaging;
    if (!averaging.active()) return label_of(options_.sync);
    return fmt::format(
        "{} every {} steps{}{}{}", label_of(options_.sync), averaging.every,
        options_.local_from > 0 ? fmt::format(" from step {} on", options_.local_from) : "",
        averaging.sums_in_hosts ? ", gradients summed in hosts" : "",
        averaging.slow_momentum > 0 ? fmt::format(", slow momentum {:.4g}", averaging.slow_momentum) : "");
  }

  /// Post-local SGD: steps of the same devices, first with sums of gradients.
  std::vector<RunPhase> phases(const StrategyInput& input) const override {
    std::vector<RunPhase> phases = Strategy::phases(input);
    if (options_.local_from == 0) return phases;
    AllReduceOptions summing = options_;
    summing.averaging = {};
    summing.local_from = 0;
    std::vector<std::int64_t> images(input.machine.devices.size(), 0);
    for (const ReplicaClass& replicas : share_batch(input, options_.shares))
      for (const EndpointId device : replicas.devices) images[device] = replicas.images;
    phases.insert(phases.begin(), AllReduce(std::move(summing)).phases(input).front());
    phases.back().at_step = options_.local_from;
    for (RunPhase& phase : phases) phase.report.images_by_device = images;
    return phases;
  }

  std::string_view refuses_recomputation() const override { return {}; }

  const GradientSync* sums() const override { return &options_.sync; }

  std::string trains_otherwise() const override {
    if (options_.averaging.active())
      return fmt::format(
          "local SGD that averages after every {} steps may need more epochs; how many is not known",
          options_.averaging.every);
    const Compression& compression = options_.sync.compression;
    if (compression.kind == Compression::Kind::none || compression.kind == Compression::Kind::fp16) return {};
    return fmt::format("training with compression: {} may need more epochs; how many is not known",
                       kind_of(compression));
  }

  std::optional<StepFloor> floor(const BatchSpec& batch, CostTable& table) const override {
    if (options_.shares == Shares::speed) return std::nullopt;
    return floor_of_replicas(batch, table, options_.micro_batches, options_.sync.zero == 0);
  }

  Annotation annotate(const StrategyInput& input) const override {
    const std::vector<ReplicaClass> replicas = share_batch(input, options_.shares);
    if (!options_.averaging.active())
      return annotate_replicas(input, options_.sync, replicas, options_.micro_batches);
    Annotation annotation =
        annotate_replicas(input, options_.sync, replicas, options_.micro_batches, options_.averaging);
    annotation.report.notes.push_back(
        fmt::format("a step{} is the mean of {}, after which the devices' parameters are averaged; {}",
                    options_.local_from > 0 ? fmt::format(" from number {} on", options_.local_from) : "",
                    options_.averaging.every, trains_otherwise()));
    return annotation;
  }

 private:
  AllReduceOptions options_;
};

/// @throws InputError where what was read does not go together
void check_cycle(const YamlMap& map, const AllReduceOptions& options) {
  constexpr double least_s = 1e-6;  // nobody looks more often, and cycles of a step are counted
  if (options.cycle_s == 0) return;
  if (options.cycle_s < least_s) map.fail("cycle", "must be 1us at least");
  if (options.sync.zero > 0)
    map.fail("cycle", "goes with zero: 0, whose gradients are summed whole on every device");
  if (options.averaging.active())
    map.fail("cycle", "goes with sync_every: 1, where gradients are summed in every step");
  if (options.launches != CollectiveLaunches::by_framework &&
      options.launches != CollectiveLaunches::per_process)
    map.fail("launches", "with cycle, each device has a process: leave it out, or use per_process");
}

/// @throws InputError where what was read does not go together
void check_averaging(const YamlMap& map, const AllReduceOptions& options) {
  for (const char* key : {"sum_in_hosts", "slow_momentum", "local_from"})
    if (map.has(key) && !options.averaging.active())
      map.fail(key, "goes with sync_every above 1, where parameters are averaged; leave it out");
  if (!options.averaging.active()) return;
  if (options.sync.zero > 0)
    map.fail("zero", "goes with sync_every: 1: with local steps every device needs states of its own");
  if (options.sync.compression.kind != Compression::Kind::none)
    map.fail("compression", "goes with sync_every: 1: parameters are averaged as they are");
}

}  // namespace

std::unique_ptr<Strategy> read_all_reduce(YamlMap& map) {
  AllReduceOptions options;
  read_keys(own_keys(), map, options);
  options.sync = read_gradient_sync(map);
  options.sync.launches = options.launches;
  options.sync.cycle_s = options.cycle_s;
  check_cycle(map, options);
  check_averaging(map, options);
  return std::make_unique<AllReduce>(std::move(options));
}

std::vector<KeyText> all_reduce_key_texts() {
  std::vector<KeyText> texts = texts_of(own_keys());
  const std::vector<KeyText> sync = texts_of(gradient_sync_keys());
  texts.insert(texts.end(), sync.begin(), sync.end());
  return texts;
}

}  // namespace convoy::strategies
