// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "sim/lowering/placed_plan.h"
#include "sim/plan/validate.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

constexpr double latency_s = 5e-6, bandwidth_Bps = 10e9;

PlanOp op_of(const std::string& name, double seconds) {
  PlanOp op{name, {}, 1, {}, {}};
  op.work.kind = KernelKind::elementwise;
  op.work.seconds_per_image = seconds;
  return op;
}

/// Every device hands on to the next one what it makes of a micro-batch.
struct Chain {
  std::vector<double> step_s, message_bytes;  ///< by device; the last one sends nothing
  double update_s, tensor_bytes;
  std::uint32_t micro_batches, replicas;
  bool after_sends;  ///< devices wait until a message is delivered

  explicit Chain(unsigned seed) {
    std::mt19937 dice(seed);
    const auto draw = [&](double from, double to) {
      return std::uniform_real_distribution<>(from, to)(dice);
    };
    const int devices = std::uniform_int_distribution<>(2, 5)(dice);
    for (int d = 0; d < devices; ++d) {
      step_s.push_back(draw(1e-3, 4e-3));
      if (d + 1 < devices) message_bytes.push_back(draw(1e5, 9e6));  // at most 0.9 ms on the way
    }
    update_s = draw(0, 1e-3);
    tensor_bytes = draw(1, 1e6);
    micro_batches = std::uniform_int_distribution<std::uint32_t>(1, 6)(dice);
    replicas = std::uniform_int_distribution<std::uint32_t>(1, 3)(dice);
    after_sends = seed % 2 == 0;
  }

  PlacedWork work() const {
    PlacedWork work{1, micro_batches, {}, {}, replicas, static_cast<std::uint32_t>(step_s.size())};
    for (std::uint32_t d = 0; d < step_s.size(); ++d) {
      PlacedDevice device{"device", {d}, {}, 0, {{}}, {}, {op_of("update", update_s)}};
      PlacedStep& step = device.steps.front();
      step.after_sends = after_sends;
      step.ops = {op_of("part", step_s[d] / 2), op_of("rest", step_s[d] / 2)};
      device.tensors.push_back({{MemoryClass::activations, tensor_bytes}, {0, 1}});
      if (d > 0) step.receives.push_back(d - 1);
      if (d < message_bytes.size()) {
        step.sends.push_back(d);
        work.messages.push_back({"output", {{d, d + 1, message_bytes[d]}}});
      }
      work.devices.push_back(std::move(device));
    }
    return work;
  }

  double way_s(std::size_t d) const { return latency_s + message_bytes[d] / bandwidth_Bps; }

  /// Device by device and micro-batch by micro-batch.
  double expected_s() const {
    double last_s = 0;
    std::vector<double> arrived_s(micro_batches, 0.0);
    for (std::size_t d = 0; d < step_s.size(); ++d) {
      double free_s = 0;
      for (double& at_s : arrived_s) {
        const double end_s = std::max(free_s, at_s) + step_s[d];
        at_s = d < message_bytes.size() ? end_s + way_s(d) : end_s;
        free_s = after_sends ? at_s : end_s;
        last_s = std::max(last_s, end_s);
      }
      // Nobody waits for a message before the update.
      last_s =
          std::max(last_s, (after_sends && d < message_bytes.size() ? free_s - way_s(d) : free_s) + update_s);
    }
    return last_s;
  }
};

}  // namespace

TEST_CASE(
    "placed work in a chain, and several side by side: the time, bytes and memory of a recurrence over "
    "devices and micro-batches") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const Chain chain(seed);
    const lab::Experiment machine(
        lab::custom_model(1, 1),
        lab::star(static_cast<int>(chain.replicas * chain.step_s.size()), "10GB/s", "5us"),
        "{kind: data_parallel, sync: all_reduce}", 1);
    const Plan plan = plan_placed(chain.work(), machine.graph(), machine.machine(), machine.cost(), {});
    validate(plan, machine.machine());
    const ReplayResult result = replay(plan, machine.machine(), machine.cost(), {});
    CHECK(result.step_time_s == approx(chain.expected_s()).epsilon(1e-9));
    double bytes = 0;
    for (const double message : chain.message_bytes) bytes += message * chain.micro_batches * chain.replicas;
    CHECK(result.comm_bytes == approx(bytes).epsilon(1e-9));
    for (std::size_t d = 0; d < chain.replicas * chain.step_s.size(); ++d)
      CHECK(result.endpoints[d].peak_memory_bytes == approx(chain.tensor_bytes).epsilon(1e-9));
    CHECK(plan.images == chain.micro_batches * chain.replicas);
  }
}
