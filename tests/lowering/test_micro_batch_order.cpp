// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <tuple>

#include "sim/lowering/micro_batch_order.h"

using namespace convoy;

namespace {

using OrderOfDevice = std::vector<ScheduledStep>;

/// Work of a master that sends to all others and waits for what comes back, or of devices in a row that hand
/// on what they make and send something back later.
std::vector<std::vector<OrderedStep>> random_steps(std::mt19937& dice) {
  const auto draw = [&](double from, double to) { return std::uniform_real_distribution<>(from, to)(dice); };
  const auto devices = std::uniform_int_distribution<std::uint32_t>(2, 5)(dice);
  const bool waits = dice() % 2, in_a_row = dice() % 2;
  std::vector<std::vector<OrderedStep>> steps(devices);
  const auto add = [&](std::uint32_t d, bool forward, bool after_sends) {
    steps[d].push_back({QueuedTime::operation(0, draw(0.5, 3)), forward, after_sends, {}});
    return static_cast<std::uint32_t>(steps[d].size() - 1);
  };
  const auto send = [&](std::uint32_t from, std::uint32_t step, std::uint32_t to, std::uint32_t at) {
    steps[from][step].sends.push_back({to, at, draw(0, 4)});
  };
  if (in_a_row) {
    std::vector<std::uint32_t> forward(devices);
    for (std::uint32_t d = 0; d < devices; ++d) forward[d] = add(d, true, false);
    for (std::uint32_t d = devices; d-- > 0;) {
      const std::uint32_t backward = add(d, false, false);
      if (d + 1 < devices) send(d + 1, static_cast<std::uint32_t>(steps[d + 1].size() - 1), d, backward);
      if (d + 1 < devices) send(d, forward[d], d + 1, forward[d + 1]);
    }
    return steps;
  }
  add(0, true, false);
  for (int layer = 0; layer < 3; ++layer) {
    const auto out = static_cast<std::uint32_t>(steps[0].size() - 1);
    add(0, layer < 2, waits);
    const std::uint32_t back = add(0, layer < 2, false);
    for (std::uint32_t d = 1; d < devices; ++d) {
      const std::uint32_t own = add(d, layer < 2, true);
      send(0, out, d, own);
      send(d, own, 0, back);
    }
  }
  return steps;
}

/// The rule, looked for among all steps of all micro-batches again and again.
std::vector<OrderOfDevice> by_rule(const std::vector<std::vector<OrderedStep>>& steps,
                                   std::uint32_t micro_batches) {
  struct Sent {
    std::uint32_t from, to, at, micro_batch;
    double arrival_s;
    bool waited_for = false;
  };
  std::vector<Sent> sent;
  std::vector<double> free_s(steps.size(), 0);
  std::vector<OrderOfDevice> order(steps.size());
  std::vector<std::vector<std::vector<std::optional<double>>>> begun(
      steps.size(), std::vector<std::vector<std::optional<double>>>(micro_batches));
  const auto expected = [&](std::uint32_t d, std::uint32_t s) {
    std::size_t count = 0;
    for (const std::vector<OrderedStep>& of_device : steps)
      for (const OrderedStep& step : of_device)
        for (const OrderedStep::Message& message : step.sends)
          count += message.device == d && message.step == s;
    return count;
  };
  std::size_t left = 0;
  for (const std::vector<OrderedStep>& of_device : steps) left += of_device.size() * micro_batches;
  for (; left > 0; --left) {
    std::optional<std::tuple<double, bool, std::uint32_t, std::uint32_t>> best;
    for (std::uint32_t d = 0; d < steps.size(); ++d)
      for (std::uint32_t m = 0; m < micro_batches; ++m) {
        const auto s = static_cast<std::uint32_t>(begun[d][m].size());
        if (s == steps[d].size()) continue;
        double begin_s = free_s[d];
        std::size_t come = 0;
        bool blocked = false;
        for (const Sent& message : sent) {
          if (message.to == d && message.at == s && message.micro_batch == m) {
            ++come;
            begin_s = std::max(begin_s, message.arrival_s);
          }
          if (!steps[d][s].after_sends || message.from != d || message.waited_for) continue;
          if (!steps[message.to][message.at].after_sends)
            begin_s = std::max(begin_s, message.arrival_s);
          else if (begun[message.to][message.micro_batch].size() <= message.at)
            blocked = true;
          else
            begin_s = std::max(begin_s, *begun[message.to][message.micro_batch][message.at]);
        }
        if (blocked || come < expected(d, s)) continue;
        const std::tuple key{begin_s, steps[d][s].forward, m, d};
        if (!best || key < *best) best = key;
      }
    REQUIRE(best);
    const auto [begin_s, forward, m, d] = *best;
    const auto s = static_cast<std::uint32_t>(begun[d][m].size());
    begun[d][m].emplace_back(begin_s);
    free_s[d] = begin_s + steps[d][s].time.device_s;
    order[d].push_back({m, s});
    if (steps[d][s].after_sends)
      for (Sent& message : sent) message.waited_for |= message.from == d;
    for (const OrderedStep::Message& message : steps[d][s].sends)
      sent.push_back({d, message.device, message.step, m, free_s[d] + message.delay_s});
  }
  return order;
}

/// Whether devices that follow their orders come to their ends, each message being taken when its receiver has
/// begun (or, where it waits for nothing that it has sent, at any time).
bool comes_to_an_end(const std::vector<std::vector<OrderedStep>>& steps,
                     const std::vector<OrderOfDevice>& order) {
  struct Sent {
    std::uint32_t from, to, at, micro_batch;
  };
  std::vector<std::size_t> done(order.size(), 0);
  const auto is_begun = [&](const Sent& message) {
    const OrderOfDevice& of = order[message.to];
    const std::size_t reached = std::min(done[message.to] + 1, of.size());
    return std::any_of(
        of.begin(), of.begin() + static_cast<std::ptrdiff_t>(reached),
        [&](const ScheduledStep& s) { return s.step == message.at && s.micro_batch == message.micro_batch; });
  };
  std::vector<Sent> sent;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t d = 0; d < order.size(); ++d) {
      if (done[d] == order[d].size()) continue;
      const ScheduledStep next = order[d][done[d]];
      const OrderedStep& step = steps[d][next.step];
      std::size_t missing = 0;
      for (const std::vector<OrderedStep>& of_device : steps)
        for (const OrderedStep& other : of_device)
          for (const OrderedStep::Message& m : other.sends) missing += m.device == d && m.step == next.step;
      bool blocked = false;
      for (const Sent& message : sent) {
        missing -= message.to == d && message.at == next.step && message.micro_batch == next.micro_batch;
        blocked |= step.after_sends && message.from == d && steps[message.to][message.at].after_sends &&
                   !is_begun(message);
      }
      if (missing > 0 || blocked) continue;
      ++done[d];
      moved = true;
      for (const OrderedStep::Message& m : step.sends)
        sent.push_back({d, m.device, m.step, next.micro_batch});
    }
  }
  for (std::size_t d = 0; d < order.size(); ++d)
    if (done[d] < order[d].size()) return false;
  return true;
}

}  // namespace

TEST_CASE(
    "micro-batches: the step that can begin first, by a search among all of them, and nobody is stuck") {
  int overtaken = 0;  // orders in which a micro-batch passes another one
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    const std::vector<std::vector<OrderedStep>> steps = random_steps(dice);
    const auto micro_batches = std::uniform_int_distribution<std::uint32_t>(1, 5)(dice);
    const std::vector<OrderOfDevice> order = order_micro_batches(steps, micro_batches);
    const std::vector<OrderOfDevice> expected = by_rule(steps, micro_batches);
    REQUIRE(order.size() == expected.size());
    for (std::size_t d = 0; d < order.size(); ++d) {
      REQUIRE(order[d].size() == expected[d].size());
      for (std::size_t i = 0; i < order[d].size(); ++i) {
        CHECK(order[d][i].step == expected[d][i].step);
        CHECK(order[d][i].micro_batch == expected[d][i].micro_batch);
        overtaken += i > 0 && order[d][i].micro_batch < order[d][i - 1].micro_batch;
      }
    }
    CHECK(comes_to_an_end(steps, order));
  }
  CHECK(overtaken > 200);
}
