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
      : steps_(steps), micro_batches_(micro_batches), queues_(steps.size()), under_way_(steps.size()) {
    for (const std::vector<OrderedStep>& of_device : steps) {
      next_.emplace_back(micro_batches, 0u);
      begin_s_.emplace_back(micro_batches, std::vector<double>(of_device.size(), not_yet));
      arrival_s_.push_back(begin_s_.back());
      missing_.emplace_back(of_device.size(), 0u);
      left_ += of_device.size() * micro_batches;
    }
    for (const std::vector<OrderedStep>& of_device : steps)
      for (const OrderedStep& step : of_device)
        for (const OrderedStep::Message& message : step.sends) ++missing_[message.device][message.step];
    for (const std::vector<std::uint32_t>& of_device : missing_)
      waits_.emplace_back(micro_batches, of_device);
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
      schedule(d, m, begin_s);
    }
    return std::move(order_);
  }

 private:
  using Key = std::tuple<double, bool, std::uint32_t, std::uint32_t>;
  struct UnderWay {
    std::uint32_t device, step, micro_batch;  ///< that it goes to
    double arrival_s;
  };

  /// When the next step of a micro-batch can begin; nothing while it waits for one that is not scheduled.
  std::optional<Key> key(std::uint32_t d, std::uint32_t m) const {
    const std::uint32_t s = next_[d][m];
    if (s == steps_[d].size() || waits_[d][m][s] > 0) return std::nullopt;
    double begin_s = std::max(queues_[d].end_s(), arrival_s_[d][m][s]);
    if (steps_[d][s].after_sends)
      for (const UnderWay& message : under_way_[d]) {
        const double delivered_s = this->delivered_s(message);
        if (delivered_s == not_yet) return std::nullopt;
        begin_s = std::max(begin_s, delivered_s);
      }
    return Key{begin_s, steps_[d][s].forward, m, d};
  }

  /// A receiver that waits for its own messages first takes others when it is about to begin.
  double delivered_s(const UnderWay& message) const {
    return steps_[message.device][message.step].after_sends
               ? begin_s_[message.device][message.micro_batch][message.step]
               : message.arrival_s;
  }

  void schedule(std::uint32_t d, std::uint32_t m, double begin_s) {
    const std::uint32_t s = next_[d][m]++;
    const OrderedStep& step = steps_[d][s];
    queues_[d].wait_until(begin_s);
    queues_[d].run(step.time);
    begin_s_[d][m][s] = begin_s;
    if (step.after_sends) under_way_[d].clear();
    for (const OrderedStep::Message& message : step.sends) {
      const double arrival_s = queues_[d].end_s() + message.delay_s;
      double& last_s = arrival_s_[message.device][m][message.step];
      last_s = std::max(last_s, arrival_s);
      --waits_[message.device][m][message.step];
      under_way_[d].push_back({message.device, message.step, m, arrival_s});
    }
    order_[d].push_back({m, s});
  }

  const std::vector<std::vector<OrderedStep>>& steps_;
  std::uint32_t micro_batches_;
  std::vector<IssueQueue> queues_;                           ///< by device
  std::vector<std::vector<UnderWay>> under_way_;             ///< by sender, as far as it may have to wait
  std::vector<std::vector<std::uint32_t>> next_;             ///< by device and micro-batch
  std::vector<std::vector<std::vector<double>>> begin_s_;    ///< by device, micro-batch and step
  std::vector<std::vector<std::vector<double>>> arrival_s_;  ///< the same: of its last message so far
  std::vector<std::vector<std::uint32_t>> missing_;  ///< by device and step: messages that it waits for
  std::vector<std::vector<std::vector<std::uint32_t>>>
      waits_;  ///< the same by micro-batch: that have not been sent
  std::vector<std::vector<ScheduledStep>> order_;
  std::size_t left_ = 0;
};

}  // namespace

std::vector<std::vector<ScheduledStep>> order_micro_batches(
    const std::vector<std::vector<OrderedStep>>& steps, std::uint32_t micro_batches) {
  return Scheduler(steps, micro_batches).run();
}

}  // namespace convoy::lowering
