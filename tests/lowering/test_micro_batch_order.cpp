// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <tuple>

#include "sim/lowering/micro_batch_order.h"

using namespace convoy;

namespace {

using Steps = std::vector<std::vector<OrderedStep>>;
using Order = std::vector<std::vector<ScheduledStep>>;

/// The rule as it is written: every next step of every micro-batch is looked at, again and again.
Order by_looking_at_all(const Steps& steps, std::uint32_t micro_batches) {
  struct Device {
    IssueQueue queue;
    std::vector<std::vector<double>> end_s;  ///< by micro-batch, of the steps that are scheduled
  };
  std::vector<Device> devices(steps.size());
  for (Device& device : devices) device.end_s.resize(micro_batches);
  Order order(steps.size());
  while (true) {
    std::optional<std::tuple<double, bool, std::uint32_t, std::uint32_t>> best;
    for (std::uint32_t d = 0; d < steps.size(); ++d)
      for (std::uint32_t m = 0; m < micro_batches; ++m) {
        if (devices[d].end_s[m].size() == steps[d].size()) continue;
        const OrderedStep& step = steps[d][devices[d].end_s[m].size()];
        double begin_s = devices[d].queue.end_s();
        bool there = true;
        for (const OrderedStep::Source& source : step.waits_for) {
          const std::vector<double>& end_s = devices[source.device].end_s[m];
          there = there && source.step < end_s.size();
          if (there) begin_s = std::max(begin_s, end_s[source.step] + source.delay_s);
        }
        if (!there) continue;
        const std::tuple candidate{begin_s, step.forward, m, d};
        if (!best || candidate < *best) best = candidate;
      }
    if (!best) return order;
    const auto [begin_s, forward, m, d] = *best;
    devices[d].queue.wait_until(begin_s);
    const auto step = static_cast<std::uint32_t>(devices[d].end_s[m].size());
    devices[d].queue.run(steps[d][step].time);
    devices[d].end_s[m].push_back(devices[d].queue.end_s());
    order[d].push_back({m, step});
  }
}

/// Steps that wait for earlier ones of other devices, with few different times, so that many begin together.
Steps random_steps(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  const unsigned devices = 1 + below(4);
  Steps steps(devices);
  for (unsigned n = 0, all = devices * (1 + below(4)); n < all; ++n) {
    const unsigned d = below(devices);
    OrderedStep step;
    step.time = QueuedTime::operation(below(3) * 0.25, below(4));
    step.forward = below(2) == 0;
    for (std::uint32_t other = 0; other < devices; ++other)
      if (other != d && !steps[other].empty() && below(3) == 0) {
        step.waits_for.push_back({other, below(static_cast<unsigned>(steps[other].size())), below(3) * 0.5});
        if (below(4) == 0) step.waits_for.push_back(step.waits_for.back());
      }
    steps[d].push_back(std::move(step));
  }
  return steps;
}

}  // namespace

TEST_CASE("order of micro-batches: that of looking at all steps each time") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const Steps steps = random_steps(random);
    const auto micro_batches = static_cast<std::uint32_t>(1 + random() % 9);
    const Order order = order_micro_batches(steps, micro_batches),
                wanted = by_looking_at_all(steps, micro_batches);
    REQUIRE(order.size() == wanted.size());
    for (std::size_t d = 0; d < order.size(); ++d) {
      REQUIRE(order[d].size() == wanted[d].size());
      for (std::size_t i = 0; i < order[d].size(); ++i) {
        CHECK(order[d][i].micro_batch == wanted[d][i].micro_batch);
        CHECK(order[d][i].step == wanted[d][i].step);
      }
    }
  }
}
