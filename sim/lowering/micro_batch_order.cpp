// SPDX-License-Identifier: MIT
#include "sim/lowering/micro_batch_order.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace convoy::inline lowering {
namespace {

constexpr double not_yet = -1;

class Scheduler {
 public:
  Scheduler(const std::vector<std::vector<OrderedStep>>& steps, std::uint32_t micro_batches)
      : steps_(steps), devices_(steps.size()) {
    for (std::uint32_t d = 0; d < steps.size(); ++d) {
      devices_[d].next.assign(micro_batches, 0);
      devices_[d].end_s.assign(micro_batches, std::vector<double>(steps[d].size(), not_yet));
      devices_[d].followers.resize(steps[d].size());
      left_ += steps[d].size() * micro_batches;
    }
    for (std::uint32_t d = 0; d < steps.size(); ++d)
      for (std::uint32_t s = 0; s < steps[d].size(); ++s)
        for (const OrderedStep::Source& source : steps[d][s].waits_for) {
          auto& followers = devices_[source.device].followers[source.step];
          if (followers.empty() || followers.back() != std::pair{d, s}) followers.push_back({d, s});
        }
    for (std::uint32_t d = 0; d < steps.size(); ++d)
      for (std::uint32_t m = 0; m < micro_batches; ++m) look_at(d, m);
  }

  std::vector<std::vector<ScheduledStep>> run() {
    for (; left_ > 0; --left_) {
      std::optional<Key> best;
      for (std::uint32_t d = 0; d < devices_.size(); ++d)
        if (const std::optional<Key> first = devices_[d].first(d); first && (!best || *first < *best))
          best = first;
      if (!best) throw std::logic_error("micro-batches wait for each other");
      const auto [begin_s, forward, m, d] = *best;
      schedule(d, m, begin_s);
    }
    std::vector<std::vector<ScheduledStep>> order;
    for (Device& device : devices_) order.push_back(std::move(device.order));
    return order;
  }

 private:
  using Key =
      std::tuple<double, bool, std::uint32_t, std::uint32_t>;  ///< begin, forward, micro-batch, device
  template <class... Parts>
  using Queue = std::priority_queue<std::tuple<Parts...>, std::vector<std::tuple<Parts...>>, std::greater<>>;

  struct Device {
    IssueQueue queue;
    std::vector<std::uint32_t> next;         ///< by micro-batch
    std::vector<std::vector<double>> end_s;  ///< by micro-batch and step
    /// By step: device and number of those that wait for it.
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> followers;
    std::vector<ScheduledStep> order;
    // Next steps whose messages have been sent: those for which the device is not ready, and those that are not
    // there yet when it is.
    Queue<bool, std::uint32_t> there;           ///< forward, micro-batch
    Queue<double, bool, std::uint32_t> coming;  ///< when it is there, forward, micro-batch

    /// The step that can begin first.
    std::optional<Key> first(std::uint32_t d) {
      for (; !coming.empty() && std::get<0>(coming.top()) <= queue.end_s(); coming.pop())
        there.push({std::get<1>(coming.top()), std::get<2>(coming.top())});
      if (!there.empty()) return Key{queue.end_s(), std::get<0>(there.top()), std::get<1>(there.top()), d};
      if (coming.empty()) return std::nullopt;
      const auto [begin_s, forward, m] = coming.top();
      return Key{begin_s, forward, m, d};
    }
  };

  /// Adds the next step of a micro-batch to those that can begin, unless it waits for one that is not scheduled.
  void look_at(std::uint32_t d, std::uint32_t m) {
    Device& device = devices_[d];
    if (device.next[m] == steps_[d].size()) return;
    const OrderedStep& step = steps_[d][device.next[m]];
    double there_s = 0;
    for (const OrderedStep::Source& source : step.waits_for) {
      const double end_s = devices_[source.device].end_s[m][source.step];
      if (end_s == not_yet) return;
      there_s = std::max(there_s, end_s + source.delay_s);
    }
    device.coming.push({there_s, step.forward, m});
  }

  void schedule(std::uint32_t d, std::uint32_t m, double begin_s) {
    Device& device = devices_[d];
    device.there.empty() ? device.coming.pop() : device.there.pop();
    const std::uint32_t step = device.next[m]++;
    device.queue.wait_until(begin_s);
    device.queue.run(steps_[d][step].time);
    device.end_s[m][step] = device.queue.end_s();
    device.order.push_back({m, step});
    look_at(d, m);
    for (const auto& [follower, number] : device.followers[step])
      if (follower != d && devices_[follower].next[m] == number) look_at(follower, m);
  }

  const std::vector<std::vector<OrderedStep>>& steps_;
  std::vector<Device> devices_;
  std::size_t left_ = 0;
};

}  // namespace

std::vector<std::vector<ScheduledStep>> order_micro_batches(
    const std::vector<std::vector<OrderedStep>>& steps, std::uint32_t micro_batches) {
  return Scheduler(steps, micro_batches).run();
}

}  // namespace convoy::lowering
