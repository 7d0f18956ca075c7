// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/all_reduce.h"

#include "sim/lowering/gradient_sync.h"
#include "strategies/replicas.h"

namespace convoy {
namespace {

class AllReduce : public Strategy {
 public:
  AllReduce(GradientSync sync, Shares shares, std::int64_t micro_batches)
      : sync_(std::move(sync)), shares_(shares), micro_batches_(micro_batches) {}

  std::string label() const override { return label_of(sync_); }

  std::string_view refuses_recomputation() const override { return {}; }

  Plan steady_plan(const StrategyInput& input) const override {
    return plan_replicas(input, sync_, share_batch(input, shares_), micro_batches_);
  }

 private:
  GradientSync sync_;
  Shares shares_;
  std::int64_t micro_batches_;
};

}  // namespace

std::unique_ptr<Strategy> read_all_reduce(YamlMap& map) {
  GradientSync sync = read_gradient_sync(map);
  const auto shares = static_cast<Shares>(map.choice_or("shares", shares_names, 0));
  return std::make_unique<AllReduce>(std::move(sync), shares,
                                     map.integer_or("micro_batches", 1, 1, 1'000'000));
}

}  // namespace convoy
