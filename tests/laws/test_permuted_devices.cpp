// SPDX-License-Identifier: MIT
// Devices of different speeds in another order, where the strategy gives all of them the same to do: what
// each does moves with it. Seeds are printed where a case fails.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "tests/laws/random_experiment.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

std::string hosts_of(const std::vector<double>& speeds) {
  std::string nodes;
  for (std::size_t i = 0; i < speeds.size(); ++i)
    nodes += fmt::format("{{name: n{}-, count: 1, server: box, speed: {}}},", i, speeds[i]);
  return fmt::format(
      "{{name: lab, nodes: [{}], fabric: {{kind: switch, bandwidth: 1GB/s, latency: 5us}}, {}}}", nodes,
      lab::ideal_servers());
}

/// @param place of each device in the other order
void check_moved(const std::string& model, const std::vector<double>& speeds,
                 const std::vector<std::size_t>& place, const std::string& strategy, std::int64_t batch) {
  std::vector<double> moved(speeds.size());
  for (std::size_t d = 0; d < speeds.size(); ++d) moved[place[d]] = speeds[d];
  const lab::Experiment here(model, hosts_of(speeds), strategy, batch),
      there(model, hosts_of(moved), strategy, batch);
  const ReplayResult a = here.run(), b = there.run();
  CHECK(a.step_time_s == approx(b.step_time_s).epsilon(1e-9));
  for (std::size_t d = 0; d < speeds.size(); ++d) {
    CAPTURE(d);
    CHECK(a.endpoints[d].compute_s == approx(b.endpoints[place[d]].compute_s).epsilon(1e-9));
    CHECK(a.endpoints[d].sent_bytes == approx(b.endpoints[place[d]].sent_bytes).epsilon(1e-9));
    CHECK(a.endpoints[d].peak_memory_bytes == approx(b.endpoints[place[d]].peak_memory_bytes).epsilon(1e-9));
  }
}

std::vector<std::size_t> shuffled(lab::Dice& dice, std::size_t count) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < count; ++i) order.push_back(i);
  for (std::size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(dice.between(0, static_cast<int>(i) - 1))]);
  return order;
}

}  // namespace

TEST_CASE("permuted devices: hybrids that share images alone") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const auto n = static_cast<std::size_t>(dice.between(2, 6));
    std::vector<double> speeds;
    for (std::size_t d = 0; d < n; ++d) speeds.push_back(0.3 + 0.1 * dice.between(0, 20));
    check_moved(lab::random_model(dice), speeds, shuffled(dice, n), "{kind: hybrid, conv: batch, fc: batch}",
                dice.between(1, 8));
  }
}

TEST_CASE("permuted devices: pipelines side by side") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const auto stages = static_cast<std::size_t>(dice.between(2, 3)),
               pipelines = static_cast<std::size_t>(dice.between(2, 3));
    std::vector<double> speeds;
    std::vector<std::size_t> place;
    for (const std::size_t to : shuffled(dice, pipelines))
      for (std::size_t s = 0; s < stages; ++s) {
        speeds.push_back(0.3 + 0.1 * dice.between(0, 20));
        place.push_back(to * stages + s);
      }
    const int micro_batches = dice.between(1, 4);
    check_moved(
        lab::custom_model(dice.between(3, 9), 100'000), speeds, place,
        fmt::format(
            "{{kind: pipeline, stages: {}, replicas: {}, micro_batches: {}, schedule: {}, neighbours: "
            "stages, partition: {}}}",
            stages, pipelines, micro_batches, dice.one_of<std::string>({"naive", "gpipe", "1f1b"}),
            dice.one_of<std::string>({"even", "balanced", "optimal"})),
        static_cast<std::int64_t>(micro_batches) * static_cast<std::int64_t>(stages));
  }
}
