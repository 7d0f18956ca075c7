// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/costs/issue_queue.h"
#include "sim/costs/residuals.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

double end_of(int count, double issue_s, double device_s) {
  IssueQueue queue;
  for (int i = 0; i < count; ++i) queue.run(issue_s, device_s);
  return queue.end_s();
}

}  // namespace

TEST_CASE("equal operations: the device waits for the host, or the host is ahead") {
  // Issue-bound: the last is issued after n issues, and runs.
  CHECK(end_of(10, 5e-6, 2e-6) == approx(10 * 5e-6 + 2e-6).epsilon(1e-14));
  // Device-bound: the first is issued, and all run without a pause.
  CHECK(end_of(10, 2e-6, 5e-6) == approx(2e-6 + 10 * 5e-6).epsilon(1e-14));
  // The bend: both forms are the same.
  CHECK(end_of(10, 3e-6, 3e-6) == approx(11 * 3e-6).epsilon(1e-14));
  CHECK(end_of(10, 0, 4e-6) == approx(10 * 4e-6).epsilon(1e-14));
}

TEST_CASE("what the host does of its own before it issues delays the step by as much") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    CAPTURE(seed);
    std::uniform_real_distribution<double> time(0, 1);
    const double begin_s = time(random);
    IssueQueue at_once, later(begin_s);
    const auto count = 1 + random() % 20;
    for (unsigned i = 0; i < count; ++i) {
      const double issue_s = time(random), device_s = 0.1 + time(random);
      at_once.run(issue_s, device_s);
      later.run(issue_s, device_s);
    }
    CHECK(later.end_s() == approx(at_once.end_s() + begin_s).epsilon(1e-12));
    CHECK(later.issued_s() == approx(at_once.issued_s() + begin_s).epsilon(1e-12));
  }
}

TEST_CASE("small operations after large ones are hidden until the host has lost its lead") {
  // 4 of 100 us let the host get ahead by 4 x 90 us; then 100 of 1 us are issued every 10 us.
  IssueQueue queue;
  for (int i = 0; i < 4; ++i) queue.run(10e-6, 100e-6);
  for (int i = 0; i < 100; ++i) queue.run(10e-6, 1e-6);
  CHECK(queue.end_s() == approx(104 * 10e-6 + 1e-6).epsilon(1e-14));
}

TEST_CASE("a stretch ends when the operations one by one do, wherever the device comes to it") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    CAPTURE(seed);
    std::uniform_real_distribution<double> time(0, 1);
    const double begun_s = time(random) < 0.3 ? 0 : time(random);
    IssuedStretch stretch(begun_s);
    std::vector<std::pair<double, double>> operations;
    const int count = static_cast<int>(random() % 20);
    for (int i = 0; i < count; ++i) {
      operations.emplace_back(time(random) < 0.2 ? 0 : time(random), time(random) < 0.2 ? 0 : time(random));
      stretch.add(operations.back().first, operations.back().second);
    }
    const double slowness = 0.5 + time(random), start_s = 3 * time(random);
    double issued_s = begun_s, end_s = start_s;
    for (const auto& [issue_s, device_s] : operations) {
      issued_s += issue_s;
      if (device_s > 0) end_s = std::max(end_s, issued_s) + device_s * slowness;
    }
    REQUIRE(stretch.end_s(start_s, slowness) == approx(end_s).epsilon(1e-12));
    REQUIRE(stretch.issued_s() == approx(issued_s).epsilon(1e-12));
  }
}

TEST_CASE("operations in one price, in parts or one by one, end a queue at the same time") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    CAPTURE(seed);
    std::uniform_real_distribution<double> time(0, 1);
    const auto or_nothing = [&] { return time(random) < 0.3 ? 0.0 : time(random); };
    std::vector<std::pair<double, double>> operations;  // of issuing, of running
    const auto count = 1 + random() % 20;
    for (unsigned i = 0; i < count; ++i) {
      const double issue_s = or_nothing();
      operations.emplace_back(issue_s, or_nothing());
    }
    std::vector<QueuedTime> parts;
    for (const auto& [issue_s, device_s] : operations)
      parts.push_back(QueuedTime::operation(issue_s, device_s));
    const std::size_t begin = random() % count, end = begin + random() % (count - begin + 1);
    for (const bool last_first : {false, true}) {
      CAPTURE(last_first);
      // What came before: the device may be ahead of its host or behind it.
      const double issued_s = 2 * time(random), waits_until_s = 4 * time(random);
      double host_s = issued_s, device_ends_s = waits_until_s;
      QueuedTime composed;
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t at = last_first ? begin + end - 1 - i : i;
        host_s += operations[at].first;
        if (operations[at].second > 0)
          device_ends_s = std::max(device_ends_s, host_s) + operations[at].second;
        composed.then(parts[at]);
      }
      const QueuedSequence sequence(
          parts, last_first ? QueuedSequence::Order::descending : QueuedSequence::Order::ascending);
      for (const QueuedTime& price : {composed, sequence.of(begin, end)}) {
        IssueQueue queue;
        queue.run(issued_s, 0);
        queue.wait_until(waits_until_s);
        queue.run(price);
        REQUIRE(queue.end_s() == approx(device_ends_s).epsilon(1e-12));
        REQUIRE(queue.issued_s() == approx(host_s).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE(
    "a framework that waits for the end of every update lets the device idle after it, and after nothing "
    "else") {
  DeviceType d;
  d.peak_flops = {{Precision::fp32, 10e12}};
  d.memory_bandwidth_Bps = 100e9;
  d.issue_factor = 1.5;  // a host half as slow again as the typical one
  Work update;
  update.kind = KernelKind::update;
  update.phase = Phase::update;
  update.bytes_fixed = 1e6;
  const Software plain(Precision::fp32);
  Software waits(Precision::fp32);
  waits.costs.wait_update_s = 60e-6;
  CHECK(operation_time_s(update, 8, waits, d) - operation_time_s(update, 8, plain, d) ==
        approx(90e-6).epsilon(1e-12));
  Work other = update;
  other.phase = Phase::forward;
  other.kind = KernelKind::elementwise;
  CHECK(operation_time_s(other, 8, waits, d) == operation_time_s(other, 8, plain, d));
}

TEST_CASE(
    "an update takes the launches and the passes of its kernels, where the framework's software counts") {
  DeviceType d;
  d.peak_flops = {{Precision::fp32, 10e12}};
  d.memory_bandwidth_Bps = 100e9;
  d.launch_overhead_s = 6e-6;
  Work update;
  update.kind = KernelKind::update;
  update.phase = Phase::update;
  update.bytes_fixed = 5 * 4 * 1e6;  // momentum, a million parameters, each value once
  update.launches = 2.5F;            // five kernels
  update.traffic = 12.0F / 5;        // twelve values a parameter
  const Software software(Precision::fp32);
  CHECK(operation_time_s(update, 1, software, d) == approx(6e-6 + 20e6 / 100e9).epsilon(1e-12));
  CHECK(launches(update, software, d) == 1);
  d.issue_factor = 1;
  CHECK(operation_time_s(update, 1, software, d) == approx(15e-6 + 48e6 / 100e9).epsilon(1e-6));
  CHECK(launches(update, software, d) == 2.5);
}

TEST_CASE("a framework's updates that are one kernel for many tensors take the host no longer") {
  for (const Framework framework : {Framework::pytorch, Framework::pytorch1}) {
    TrainingOptions options;
    options.framework = framework;
    options.optimizer = Optimizer::momentum;
    const double own_s = Software(options).costs.issue_update_s;
    CHECK(own_s == software_costs(framework, options.execution, options.layout).issue_update_s);
    options.update = UpdateMode::fused;
    CHECK(Software(options).costs.issue_update_s <= own_s);
    options.update = UpdateMode::per_tensor;
    CHECK(Software(options).costs.issue_update_s == own_s);
  }
}

TEST_CASE("a prepared graph launches eager execution's kernels, and takes the host less for each") {
  for (std::size_t f = 0; f < framework_count; ++f)
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      CAPTURE(framework_names[f]);
      const auto framework = static_cast<Framework>(f);
      const SoftwareCosts eager = software_costs(framework, ExecutionMode::eager, layout);
      const SoftwareCosts graph = software_costs(framework, ExecutionMode::graph, layout);
      CHECK(graph.convolution == eager.convolution);
      CHECK(graph.normalization == eager.normalization);
      CHECK(graph.elementwise == eager.elementwise);
      CHECK(graph.issue_forward_s <= eager.issue_forward_s);
      CHECK(graph.issue_backward_s <= eager.issue_backward_s);
      CHECK(graph.issue_update_s <= eager.issue_update_s);
    }
}

TEST_CASE(
    "a host that is not known leaves all of a step open that is issued, and nothing of one that is "
    "computed") {
  DeviceType d;
  d.issue_factor = 1;
  constexpr double operations = 100, kernel_s = 1e-5;
  for (const double issue_s : {1e-7, 1e-3}) {  // the device waits for nothing, or at every operation
    const double spread = unknown_host_spread(d, [&](const DeviceType& device) {
      IssueQueue queue;
      for (int i = 0; i < operations; ++i) queue.run(issue_s * device.issue_factor, kernel_s);
      return queue.end_s();
    });
    CAPTURE(issue_s);
    if (issue_s < kernel_s)
      CHECK(spread < 1e-3);
    else
      CHECK(spread == approx(unknown_spread(Unknown::hosts)).epsilon(1e-3));
  }
  // Where both take as long, a slower host costs all of its slowness and a quicker one gains nothing.
  const double at_the_bend = unknown_host_spread(d, [&](const DeviceType& device) {
    return std::max(operations * kernel_s * device.issue_factor, operations * kernel_s);
  });
  CHECK(at_the_bend == approx(unknown_spread(Unknown::hosts) / 2).epsilon(1e-12));
  d.issue_factor = 0;
  CHECK(unknown_host_spread(d, [](const DeviceType&) { return 1.0; }) == 0);
}
