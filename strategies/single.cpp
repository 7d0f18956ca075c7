// SPDX-License-Identifier: MIT
#include "strategies/single.h"

#include <fmt/format.h>

#include "sim/base/quantity.h"
#include "strategies/cost_table.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

struct SingleOptions {
  std::int64_t micro_batches = 1;
};

const Keys<SingleOptions>& single_keys() {
  static const Keys<SingleOptions> keys{integer_key<SingleOptions>(
      "micro_batches", 1, 1'000'000, "parts of the batch whose gradients are accumulated before the update",
      &SingleOptions::micro_batches)};
  return keys;
}

class Single : public Annotator {
 public:
  explicit Single(std::int64_t micro_batches) : micro_batches_(micro_batches) {}

  std::string label() const override {
    return micro_batches_ == 1 ? "single device"
                               : fmt::format("single device, {} micro-batches", micro_batches_);
  }

  std::string_view refuses_recomputation() const override { return {}; }

  /// All micro-batches one after the other, and the update.
  std::optional<StepFloor> floor(const BatchSpec& batch, CostTable& table) const override {
    const std::int64_t images = batch.over(1);
    if (images % micro_batches_ != 0) return std::nullopt;
    const CostTable::Passes passes = table.quickest(static_cast<double>(images / micro_batches_));
    const double both_s =
        micro_batches_ == 1 ? passes.issued_s : static_cast<double>(micro_batches_) * passes.both_s();
    const double step_s = both_s + passes.update_s;
    return StepFloor{step_s, images, fmt::format("at least {} a step for computing", format_time(step_s))};
  }

  Annotation annotate(const StrategyInput& input) const override {
    input.batch.divided(1, micro_batches_, fmt::format("{} micro-batches", micro_batches_));
    return annotate_replicas(input, {}, {{input.machine.devices[0].type, input.batch.over(1), {0}}},
                             micro_batches_);
  }

 private:
  std::int64_t micro_batches_;
};

std::unique_ptr<Strategy> read_single(YamlMap& map) {
  SingleOptions options;
  read_keys(single_keys(), map, options);
  return std::make_unique<Single>(options.micro_batches);
}

}  // namespace

StrategyEntry single_entry() {
  return {"single", "one device does everything", texts_of(single_keys()), &read_single,
          "[{micro_batches: [1, 2, 4, 8, 16]}]"};
}

}  // namespace convoy::strategies
