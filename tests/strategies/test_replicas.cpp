// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "sim/base/input_error.h"
#include "strategies/replicas.h"
#include "tests/support/hand.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

TrainingGraph toy_graph() {
  return build_training_graph(read_model(parse_yaml(lab::custom_model(2, 1000), "model")), {});
}

/// Images by device.
std::vector<std::int64_t> shared_out(const Machine& machine, std::int64_t global, Shares shares) {
  const TrainingGraph graph = toy_graph();
  const CostModel cost(Precision::fp32);
  const BatchSpec batch{std::nullopt, global, {"experiment.yaml", 4, 17}};
  std::vector<std::int64_t> images(machine.devices.size(), 0);
  for (const ReplicaClass& replica : share_batch({graph, machine, cost, batch}, shares))
    for (const EndpointId d : replica.devices) {
      CHECK(images[d] == 0);
      CHECK(machine.devices[d].type == replica.device_type);
      images[d] = replica.images;
    }
  return images;
}

std::string error_of(std::uint32_t devices, std::int64_t global, Shares shares) {
  try {
    shared_out(hand::devices(devices), global, shares);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// Whole parts first, then one more each to those with the largest remainders (ties: the earlier).
std::vector<std::int64_t> largest_remainder(const std::vector<double>& speed, std::int64_t global) {
  double total = 0;
  for (const double s : speed) total += s;
  std::vector<std::int64_t> images;
  for (const double s : speed)
    images.push_back(static_cast<std::int64_t>(std::floor(static_cast<double>(global) * s / total)));
  const std::vector<std::int64_t> whole = images;
  while (std::accumulate(images.begin(), images.end(), std::int64_t{0}) < global) {
    std::size_t best = speed.size();
    const auto remainder = [&](std::size_t i) {
      return static_cast<double>(global) * speed[i] / total - static_cast<double>(whole[i]);
    };
    for (std::size_t i = 0; i < speed.size(); ++i)
      if (images[i] == whole[i] && (best == speed.size() || remainder(i) > remainder(best))) best = i;
    ++images[best];
  }
  return images;
}

}  // namespace

TEST_CASE("equal shares are equal, whatever the speeds") {
  Machine machine = hand::devices(4);
  machine.devices[1].speed = 0.1;
  CHECK(shared_out(machine, 64, Shares::equal) == std::vector<std::int64_t>{16, 16, 16, 16});
}

TEST_CASE("devices of one type and share are one class, in the order of their first device") {
  Machine machine = hand::devices(5);
  machine.device_types.push_back(machine.device_types[0]);
  machine.devices[1].type = machine.devices[3].type = 1;
  const TrainingGraph graph = toy_graph();
  const CostModel cost(Precision::fp32);
  const std::vector<ReplicaClass> classes =
      share_batch({graph, machine, cost, {8, std::nullopt, {"e", 1, 1}}}, Shares::equal);
  REQUIRE(classes.size() == 2);
  CHECK(classes[0].devices == std::vector<EndpointId>{0, 2, 4});
  CHECK(classes[0].images == 8);
  CHECK(classes[1].devices == std::vector<EndpointId>{1, 3});
}

TEST_CASE("shares by speed: whole images in proportion, the rest by largest remainder") {
  Machine machine = hand::devices(3);
  machine.devices[1].speed = 2;
  machine.devices[2].speed = 4;
  CHECK(shared_out(machine, 70, Shares::speed) == std::vector<std::int64_t>{10, 20, 40});
  // 10.286, 20.571, 41.143: one over for the second.
  CHECK(shared_out(machine, 72, Shares::speed) == std::vector<std::int64_t>{10, 21, 41});
}

TEST_CASE("a device type's own speed counts as the device's") {
  Machine machine = hand::devices(2);
  machine.device_types.push_back(machine.device_types[0]);
  machine.device_types[1].peak_flops[Precision::fp32] = 3e12;
  machine.devices[1].type = 1;
  CHECK(shared_out(machine, 40, Shares::speed) == std::vector<std::int64_t>{10, 30});
  machine.devices[0].speed = 3;
  CHECK(shared_out(machine, 40, Shares::speed) == std::vector<std::int64_t>{20, 20});
}

TEST_CASE("random speeds: shares are those of a slow largest-remainder method, and add up to the batch") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Machine machine = hand::devices(1 + static_cast<std::uint32_t>(random() % 12));
    std::vector<double> speed;
    for (Device& device : machine.devices) {
      device.speed = std::uniform_real_distribution(0.5, 2.0)(random);
      speed.push_back(device.speed);
    }
    const auto global = static_cast<std::int64_t>(machine.devices.size() * 4 + random() % 500);
    const std::vector<std::int64_t> images = shared_out(machine, global, Shares::speed);
    CHECK(images == largest_remainder(speed, global));
    CHECK(std::accumulate(images.begin(), images.end(), std::int64_t{0}) == global);
  }
}

TEST_CASE("however slow, a device gets an image, and the others give it up") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Machine machine = hand::devices(2 + static_cast<std::uint32_t>(random() % 10));
    for (Device& device : machine.devices) device.speed = std::pow(10.0, -static_cast<double>(random() % 4));
    const auto global = static_cast<std::int64_t>(machine.devices.size() + random() % 20);
    const std::vector<std::int64_t> images = shared_out(machine, global, Shares::speed);
    CHECK(*std::min_element(images.begin(), images.end()) >= 1);
    CHECK(std::accumulate(images.begin(), images.end(), std::int64_t{0}) == global);
  }
}

TEST_CASE("batches that cannot be shared out are errors at their place") {
  CHECK(error_of(4, 63, Shares::equal) ==
        "experiment.yaml:4:17: training.global_batch: 63 cannot be divided into 4 equal shares; 60 or 64 "
        "can, or "
        "strategy.shares: speed");
  CHECK(error_of(4, 63, Shares::speed) == "no error");
  for (const Shares shares : {Shares::equal, Shares::speed})
    CHECK(error_of(4, 3, shares) ==
          "experiment.yaml:4:17: training: a global batch of 3 leaves some of 4 devices without an image; at "
          "least 4 "
          "is needed");
}

TEST_CASE("plans of more operations than can be planned are refused with the most that can") {
  for (const char* strategy :
       {"{kind: single, micro_batches: 1000000}",
        "{kind: data_parallel, sync: all_reduce, micro_batches: 1000000}",
        "{kind: hybrid, groups: [{layers: 'body*', layout: batch}], micro_batches: 100000}"}) {
    CAPTURE(strategy);
    std::string error = "no error";
    try {
      lab::Experiment(lab::custom_model(20, 1000), lab::star(2, "1GB/s", "0us"), strategy, 8'000'000);
    } catch (const InputError& input) {
      error = input.what();
    }
    // Forward, data gradient, weight gradient and update of 20 layers.
    CHECK(error.find(
              " micro-batches of 80 operations each; at most 4000000 operations are planned: use at most "
              "50000 micro_batches") != std::string::npos);
  }
}
