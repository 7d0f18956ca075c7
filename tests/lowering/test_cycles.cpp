// SPDX-License-Identifier: MIT
// Sums of gradients in cycles, as of Horovod, against closed forms.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "sim/base/input_error.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

constexpr int cycled_layers = 4;
constexpr double cycle_latency_s = 20e-6, cycle_network_Bps = 1e9;
// Of four images on the ideal device: forward 0.4 ms a layer, backward 0.4 ms of data and of weight gradient.
constexpr double layer_kernel_s = 0.4e-3;
constexpr std::int64_t cycled_parameters = 50'000;

lab::Experiment in_cycles(const std::string& keys, int nodes = 4) {
  return {lab::custom_model(cycled_layers, cycled_parameters), lab::star(nodes, "1GB/s", "20us"),
          "{kind: data_parallel, sync: all_reduce" + keys + "}", 4};
}

double cycled_ring_s(int nodes, double bytes) {
  return 2 * (nodes - 1) * (cycle_latency_s + bytes / nodes / cycle_network_Bps);
}
/// Up a binomial tree and down again: one word of 64 bits.
double agreement_s(int nodes) {
  return 2 * std::ceil(std::log2(nodes)) * (cycle_latency_s + 8 / cycle_network_Bps);
}

}  // namespace

TEST_CASE("a cycle longer than backward sends all gradients in one message, half a cycle after the last") {
  const double backward_end_s = cycled_layers * 3 * layer_kernel_s,
               bytes = 4.0 * cycled_layers * cycled_parameters;
  for (const int nodes : {2, 3, 4, 8})
    for (const double cycle_s : {0.02, 0.1}) {
      CAPTURE(nodes);
      const lab::Experiment it = in_cycles(fmt::format(", cycle: {}ms", cycle_s * 1e3), nodes);
      const ReplayResult run = it.run();
      CHECK(run.step_time_s ==
            approx(backward_end_s + cycle_s / 2 + agreement_s(nodes) + cycled_ring_s(nodes, bytes))
                .epsilon(1e-9));
      CHECK(it.run(false).step_time_s == approx(run.step_time_s).epsilon(1e-9));
      CHECK(it.plan().communications.size() == 2);
    }
}

TEST_CASE("a short cycle sends a layer's gradients while the layers before it compute") {
  // A layer's gradient is complete every 0.8 ms; its message takes 0.4 ms on two nodes, and fits in between.
  const int nodes = 2;
  const double cycle_s = 0.1e-3, backward_end_s = cycled_layers * 3 * layer_kernel_s;
  const double message_s = cycled_ring_s(nodes, 4.0 * cycled_parameters);
  REQUIRE(message_s < 2 * layer_kernel_s);
  const lab::Experiment it = in_cycles(", cycle: 100us", nodes);
  CHECK(it.run().step_time_s ==
        approx(backward_end_s + cycle_s / 2 + agreement_s(nodes) + message_s).epsilon(1e-9));
  CHECK(it.plan().communications.size() == 2 * cycled_layers);
  CHECK(it.plan().roles[0].streams.back() == "agreement");
}

TEST_CASE("messages of one cycle share an agreement, and without overlap there is one cycle at most") {
  const auto count = [](const std::string& keys) { return in_cycles(keys).plan().communications.size(); };
  CHECK(count(", cycle: 100ms, bucket: 1B") == 1 + cycled_layers);
  CHECK(count(", cycle: 100us, bucket: 1B, overlap: false") == 1 + cycled_layers);
  CHECK(count(", cycle: 100us, bucket: 1GB, overlap: false") == 2);
  CHECK(in_cycles(", cycle: 1ms", 1).plan().communications.empty());
  CHECK(in_cycles(", cycle: 5ms").strategy().label() == "ring all-reduce, in cycles of 5 ms");
}

TEST_CASE("micro-batches are accumulated before a cycle looks at their gradients") {
  const double backward_end_s = cycled_layers * 3 * layer_kernel_s;
  CHECK(in_cycles(", cycle: 20ms, micro_batches: 2").run().step_time_s ==
        approx(backward_end_s + 10e-3 + agreement_s(4) +
               cycled_ring_s(4, 4.0 * cycled_layers * cycled_parameters))
            .epsilon(1e-9));
}

TEST_CASE("what does not go with cycles is told at its place") {
  CHECK_THROWS_WITH_AS(
      read_strategy(parse_yaml("{kind: data_parallel, sync: all_reduce, cycle: 1ns}", "s.yaml")),
      "s.yaml:1:48: strategy.cycle: must be 1us at least", InputError);
  const auto said = [](const std::string& keys) {
    try {
      read_strategy(parse_yaml("{kind: data_parallel, sync: all_reduce, cycle: 5ms" + keys + "}", "s.yaml"));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(said("") == "no error");
  CHECK(said(", launches: per_process") == "no error");
  CHECK(said(", zero: 1") ==
        "s.yaml:1:48: strategy.cycle: goes with zero: 0, whose gradients are summed whole on every device");
  CHECK(said(", sync_every: 2") ==
        "s.yaml:1:48: strategy.cycle: goes with sync_every: 1, where gradients are summed in every step");
  CHECK(said(", launches: together") ==
        "s.yaml:1:63: strategy.launches: with cycle, each device has a process: leave it out, or use "
        "per_process");
}
