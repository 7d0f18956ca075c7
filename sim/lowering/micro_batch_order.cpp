// SPDX-License-Identifier: MIT
#include "sim/lowering/micro_batch_order.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <tuple>

namespace convoy::inline lowering {
namespace {

constexpr double not_yet = -1;

class Scheduler {
 public:
  Scheduler(const std::vector<std::vector<OrderedStep>>& steps, std::uint32_t micro_batches)
      : steps_(steps), micro_batches_(micro_batches), queues_(steps.size()) {
    for (const std::vector<OrderedStep>& of_device : steps) {
      next_.emplace_back(micro_batches, 0u);
      end_s_.emplace_back(micro_batches, std::vector<double>(of_device.size(), not_yet));
      left_ += of_device.size() * micro_batches;
    }
    order_.resize(steps.size());
  }

  std::vector<std::vector<ScheduledStep>> run() {
    for (; left_ > 0; --left_) {
      std::optional<Key> best;
      for (std::uint32_t d = 0; d < steps_.size(); ++d)
        for (std::uint32_t m = 0; m < micro_batches_; ++m) {
          const std::optional<Key> candidate = key(d, m);
          if (candidate && (!best || *candidate < *best)) best = candidate;
        }
      if (!best) throw std::logic_error("micro-batches wait for each other");
      const auto [begin_s, forward, m, d] = *best;
      const std::uint32_t step = next_[d][m]++;
      queues_[d].wait_until(begin_s);
      queues_[d].run(steps_[d][step].time);
      end_s_[d][m][step] = queues_[d].end_s();
      order_[d].push_back({m, step});
    }
    return std::move(order_);
  }

 private:
  using Key = std::tuple<double, bool, std::uint32_t, std::uint32_t>;

  /// When the next step of a micro-batch can begin; nothing while it waits for one that is not scheduled.
  std::optional<Key> key(std::uint32_t d, std::uint32_t m) const {
    if (next_[d][m] == steps_[d].size()) return std::nullopt;
    const OrderedStep& step = steps_[d][next_[d][m]];
    double begin_s = queues_[d].end_s();
    for (const OrderedStep::Source& source : step.waits_for) {
      const double end_s = end_s_[source.device][m][source.step];
      if (end_s == not_yet) return std::nullopt;
      begin_s = std::max(begin_s, end_s + source.delay_s);
    }
    return Key{begin_s, step.forward, m, d};
  }

  const std::vector<std::vector<OrderedStep>>& steps_;
  std::uint32_t micro_batches_;
  std::vector<IssueQueue> queues_;                       ///< by device
  std::vector<std::vector<std::uint32_t>> next_;         ///< by device and micro-batch
  std::vector<std::vector<std::vector<double>>> end_s_;  ///< by device, micro-batch and step
  std::vector<std::vector<ScheduledStep>> order_;
  std::size_t left_ = 0;
};

}  // namespace

std::vector<std::vector<ScheduledStep>> order_micro_batches(
    const std::vector<std::vector<OrderedStep>>& steps, std::uint32_t micro_batches) {
  return Scheduler(steps, micro_batches).run();
}

}  // namespace convoy::lowering
