// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/all_reduce.h"

#include "sim/base/names.h"
#include "sim/lowering/gradient_sync.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

struct AllReduceOptions {
  GradientSync sync;
  Shares shares = Shares::equal;
  CollectiveLaunches launches = CollectiveLaunches::by_framework;
  std::int64_t micro_batches = 1;
};

/// The keys beside those of GradientSync.
const Keys<AllReduceOptions>& own_keys() {
  using Options = AllReduceOptions;
  static const Keys<Options> keys{
      shares_key<Options>(&Options::shares),
      integer_key<Options>("micro_batches", 1, 1'000'000,
                           "parts of a device's share, accumulated before sending", &Options::micro_batches),
      choice_key<Options>("launches", texts_of_names(collective_launches_names),
                          "who launches a collective on the devices of a host: one process, with NCCL on all "
                          "of them together (as built into TensorFlow 1.15 and 2.2) or on each for itself, "
                          "or a process a device (Horovod, PyTorch); by_framework: on one host tensorflow1 "
                          "together, tensorflow apart, all else per_process",
                          &Options::launches)};
  return keys;
}

class AllReduce : public Strategy {
 public:
  explicit AllReduce(AllReduceOptions options) : options_(std::move(options)) {}

  std::string label() const override { return label_of(options_.sync); }

  std::string_view refuses_recomputation() const override { return {}; }

  const GradientSync* sums() const override { return &options_.sync; }

  std::optional<StepFloor> floor(const BatchSpec& batch, CostTable& table) const override {
    if (options_.shares == Shares::speed) return std::nullopt;
    return floor_of_replicas(batch, table, options_.micro_batches, options_.sync.zero == 0);
  }

  ReportedPlan steady_plan(const StrategyInput& input) const override {
    return {plan_replicas(input, options_.sync, share_batch(input, options_.shares), options_.micro_batches)};
  }

 private:
  AllReduceOptions options_;
};

}  // namespace

std::unique_ptr<Strategy> read_all_reduce(YamlMap& map) {
  AllReduceOptions options;
  read_keys(own_keys(), map, options);
  options.sync = read_gradient_sync(map);
  options.sync.launches = options.launches;
  return std::make_unique<AllReduce>(std::move(options));
}

std::vector<KeyText> all_reduce_key_texts() {
  std::vector<KeyText> texts = texts_of(own_keys());
  const std::vector<KeyText> sync = texts_of(gradient_sync_keys());
  texts.insert(texts.end(), sync.begin(), sync.end());
  return texts;
}

}  // namespace convoy::strategies
