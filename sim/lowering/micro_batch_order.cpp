// SPDX-License-Identifier: MIT
#include "sim/lowering/micro_batch_order.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace convoy::inline lowering {
namespace {

constexpr double not_yet = -1;

class Scheduler {
 public:
  Scheduler(const std::vector<std::vector<OrderedStep>>& steps, std::uint32_t micro_batches)
      : steps_(steps), queues_(steps.size()), under_way_(steps.size()), candidates_(steps.size()) {
    std::vector<std::vector<std::uint32_t>> messages;  // by device and step: that it waits for
    for (const std::vector<OrderedStep>& of_device : steps) {
      messages.emplace_back(of_device.size(), 0u);
      next_.emplace_back(micro_batches, 0u);
      begin_s_.emplace_back(micro_batches, std::vector<double>(of_device.size(), not_yet));
      left_ += of_device.size() * micro_batches;
    }
    for (const std::vector<OrderedStep>& of_device : steps)
      for (const OrderedStep& step : of_device)
        for (const OrderedStep::Message& message : step.sends) ++messages[message.device][message.step];
    arrival_s_ = begin_s_;
    for (const std::vector<std::uint32_t>& of_device : messages)
      missing_.emplace_back(micro_batches, of_device);
    for (std::uint32_t d = 0; d < steps.size(); ++d)
      for (std::uint32_t m = 0; m < micro_batches; ++m) offer_next(d, m);
    order_.resize(steps.size());
  }

  std::vector<std::vector<ScheduledStep>> run() {
    for (; left_ > 0; --left_) {
      std::optional<Key> best;
      for (std::uint32_t d = 0; d < steps_.size(); ++d)
        for (const bool after_sends : {false, true})
          if (const std::optional<Key> key = first(d, after_sends); key && (!best || *key < *best))
            best = key;
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
  /// Next steps of a device, by micro-batch, whose messages have been sent.
  struct Candidates {
    std::set<std::pair<bool, std::uint32_t>> ready;           ///< forward, micro-batch
    std::set<std::tuple<double, bool, std::uint32_t>> later;  ///< the same, behind the arrival
  };

  void offer_next(std::uint32_t d, std::uint32_t m) {
    const std::uint32_t s = next_[d][m];
    if (s == steps_[d].size() || missing_[d][m][s] > 0) return;
    candidates_[d][steps_[d][s].after_sends].later.insert({arrival_s_[d][m][s], steps_[d][s].forward, m});
  }

  /// The first of a device's candidates that wait for what it has sent (or do not), and when it can begin;
  /// nothing while they wait for a step that is not scheduled.
  std::optional<Key> first(std::uint32_t d, bool after_sends) {
    auto& [ready, later] = candidates_[d][after_sends];
    if (ready.empty() && later.empty()) return std::nullopt;
    double free_s = queues_[d].end_s();
    if (after_sends)
      for (const UnderWay& message : under_way_[d]) {
        const double delivered_s = this->delivered_s(message);
        if (delivered_s == not_yet) return std::nullopt;
        free_s = std::max(free_s, delivered_s);
      }
    while (!later.empty() && std::get<0>(*later.begin()) <= free_s) {
      const auto [arrival_s, forward, m] = *later.begin();
      ready.insert({forward, m});
      later.erase(later.begin());
    }
    if (!ready.empty()) return Key{free_s, ready.begin()->first, ready.begin()->second, d};
    const auto [arrival_s, forward, m] = *later.begin();
    return Key{arrival_s, forward, m, d};
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
    auto& [ready, later] = candidates_[d][step.after_sends];
    if (ready.erase({step.forward, m}) == 0) later.erase({arrival_s_[d][m][s], step.forward, m});
    queues_[d].wait_until(begin_s);
    queues_[d].run(step.time);
    begin_s_[d][m][s] = begin_s;
    if (step.after_sends) under_way_[d].clear();
    offer_next(d, m);
    for (const OrderedStep::Message& message : step.sends) {
      const double arrival_s = queues_[d].end_s() + message.delay_s;
      double& last_s = arrival_s_[message.device][m][message.step];
      last_s = std::max(last_s, arrival_s);
      under_way_[d].push_back({message.device, message.step, m, arrival_s});
      if (--missing_[message.device][m][message.step] == 0 && next_[message.device][m] == message.step)
        offer_next(message.device, m);
    }
    order_[d].push_back({m, s});
  }

  const std::vector<std::vector<OrderedStep>>& steps_;
  std::vector<IssueQueue> queues_;                ///< by device
  std::vector<std::vector<UnderWay>> under_way_;  ///< by sender, since it last waited for all it had sent
  std::vector<std::array<Candidates, 2>>
      candidates_;                                ///< by device; those that wait for what it has sent last
  std::vector<std::vector<std::uint32_t>> next_;  ///< by device and micro-batch
  // By device, micro-batch and step:
  std::vector<std::vector<std::vector<double>>> begin_s_;
  std::vector<std::vector<std::vector<double>>> arrival_s_;       ///< of its last message so far
  std::vector<std::vector<std::vector<std::uint32_t>>> missing_;  ///< its messages that have not been sent
  std::vector<std::vector<ScheduledStep>> order_;
  std::size_t left_ = 0;
};

}  // namespace

std::vector<std::vector<ScheduledStep>> order_micro_batches(
    const std::vector<std::vector<OrderedStep>>& steps, std::uint32_t micro_batches) {
  return Scheduler(steps, micro_batches).run();
}

}  // namespace convoy::lowering
