// SPDX-License-Identifier: MIT
// Compute times that are drawn step by step: what the draws depend on, and how far they move a figure.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sim/lowering/service_rule.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// Asynchronous workers: each on a host of its own or several on one, over a transport that keeps messages in order or not.
struct Workers {
  std::vector<double> speeds;  ///< by host
  std::string jitter, network, server, strategy, model;
  std::int64_t batch = 0;
  bool in_order = false;

  explicit Workers(std::mt19937& random) {
    const auto one_of = [&](const auto&... options) {
      const std::string list[] = {options...};
      return list[random() % sizeof...(options)];
    };
    for (std::size_t hosts = 2 + random() % 4; hosts > 0; --hosts)
      speeds.push_back(random() % 2 ? 1.0 : 0.5 + 0.01 * static_cast<double>(random() % 51));
    jitter = one_of("1%", "3%", "10%");
    network = fmt::format("{{kind: switch, bandwidth: {:.2f}Gbps, latency: {}}}",
                          0.5 + 0.05 * static_cast<double>(random() % 100), one_of("0us", "20us"));
    server = fmt::format("{{devices: [{{device: ideal, count: {}}}], interconnect: {{kind: none}}}}",
                         one_of("1", "1", "2", "3"));
    strategy =
        fmt::format("{{kind: data_parallel, sync: parameter_server, mode: async, servers: {}, overlap: {}}}",
                    1 + random() % 3, one_of("true", "false"));
    model = lab::custom_model(1 + static_cast<int>(random() % 6), 500'000);
    batch = 1 + static_cast<std::int64_t>(random() % 30);
    in_order = random() % 4 != 0;
  }

  /// @param faster factor on the speed of all devices
  lab::Experiment experiment(double faster = 1) const {
    std::string nodes;
    for (std::size_t h = 0; h < speeds.size(); ++h)
      nodes += fmt::format("{{name: n{}x, count: 1, server: box, speed: {:.17g}}}, ", h, speeds[h] * faster);
    lab::Experiment result(
        model,
        fmt::format(
            "{{name: lab, nodes: [{}], step_jitter: {}, fabric: {}, servers: {{box: {}}}, devices: {{ideal: "
            "{{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0, "
            "launch_overhead: 0us}}}}}}",
            nodes, jitter, network, server),
        strategy, batch);
    if (!in_order) result.plan() = shared_fairly(std::move(result.plan()));
    return result;
  }

  /// Each has its link to itself, and servers take one message after the other.
  bool take_turns() const { return in_order && server.find("count: 1}") != std::string::npos; }

  std::string text() const {
    return fmt::format("{} {} {} {} {} {}", jitter, network, server, strategy, batch, in_order);
  }
};

/// Of one long course of events: the mean step, and half of its 95 % interval as a share of it, over ten stretches of it.
struct LongRun {
  double step_s = 0, doubt = 0;
};

LongRun long_run(const lab::Experiment& experiment, std::uint64_t steps) {
  const Service& service = *experiment.plan().service();
  ServiceLog log;
  log.steps_wanted = steps;
  replay(experiment.plan(), experiment.machine(), experiment.cost(), {.fold = false, .service_log = &log});
  constexpr std::size_t stretches = 10;
  const double from_s = 0.1 * log.events.back().time_s, each_s = 0.9 * log.events.back().time_s / stretches;
  std::vector<double> images(stretches, 0.0);
  std::vector<double> of_client(experiment.machine().endpoint_count(), 0.0);
  for (const Service::Client& client : service.clients) of_client[client.device] = client.images;
  for (const ServiceLog::Event& event : log.events)
    if (event.kind == ServiceLog::Event::Kind::begin && event.time_s >= from_s)
      images[std::min(stretches - 1, static_cast<std::size_t>((event.time_s - from_s) / each_s))] +=
          of_client[event.client];
  const double mean = std::accumulate(images.begin(), images.end(), 0.0) / stretches;
  double variance = 0;
  for (const double of_stretch : images)
    variance += (of_stretch - mean) * (of_stretch - mean) / (stretches - 1);
  constexpr double student_t = 2.262;  // 97.5 %, 10 stretches less the mean
  return {experiment.plan().images * each_s / mean, student_t * std::sqrt(variance / stretches) / mean};
}

/// How well the mean is known: to 1 %, or as the result says.
double said(const ReplayResult& result) { return std::max(0.01, result.doubt); }

}  // namespace

TEST_CASE("random draws: a step moves by no more than what is changed, where no messages share a link") {
  // Where they do, it is decided by rounding which of two is there first, and all that follows is another course of events:
  // it may then be another one of the steps that are possible, within what is said.
  std::mt19937 random(3);
  int exact = 0;
  constexpr int draws = 12;
  for (int i = 0; i < draws; ++i) {
    const Workers workers(random);
    CAPTURE(workers.text());
    const ReplayResult result = workers.experiment().run();
    const ReplayResult moved = workers.experiment(1 + 1e-12).run();
    const double change = std::abs(moved.step_time_s / result.step_time_s - 1);
    if (workers.take_turns())
      CHECK(change < 1e-6);
    else
      CHECK(change <= said(result) + said(moved));
    exact += workers.take_turns();
  }
  CHECK(exact >= draws / 3);
}

TEST_CASE("random draws: other draws seldom move a step by more than what is said") {
  constexpr std::uint32_t seeds = 4;
  constexpr int draws = 12;
  std::mt19937 random(5);
  int moved = 0, far = 0;
  for (int i = 0; i < draws; ++i) {
    const Workers workers(random);
    CAPTURE(workers.text());
    lab::Experiment experiment = workers.experiment();
    std::vector<ReplayResult> results;
    for (std::uint32_t seed = 0; seed < seeds; ++seed) {
      results.push_back(experiment.run());
      for (Service::Client& client : experiment.plan().service()->clients) client.sequence += 1000;
    }
    const double mean_s =
        std::accumulate(results.begin(), results.end(), 0.0,
                        [](double sum, const ReplayResult& r) { return sum + r.step_time_s / seeds; });
    for (const ReplayResult& result : results) {
      const double error = std::abs(result.step_time_s / mean_s - 1);
      moved += error > 1e-4;
      far += error > said(result);
    }
  }
  CAPTURE(moved);
  CAPTURE(far);
  CHECK(moved > draws * static_cast<int>(seeds) / 3);  // else there was nothing to see
  CHECK(far <= 0.1 * moved);
}

TEST_CASE("random draws: the mean over short measurements is that of one long course of events") {
  // What matters most: whether those that begin anywhere see what would last, or what only began so.
  std::mt19937 random(7);
  int far = 0, known = 0, repeated = 0;
  for (int i = 0; i < 12; ++i) {
    const Workers workers(random);
    CAPTURE(workers.text());
    const lab::Experiment experiment = workers.experiment();
    const LongRun lasting = long_run(experiment, (1 << 17) / experiment.plan().service()->exchanges.size());
    const ReplayResult result = experiment.run();
    const double error = std::abs(result.step_time_s / lasting.step_s - 1);
    if (lasting.doubt > 0.02) continue;
    ++known;
    far += error > said(result) + lasting.doubt;
    repeated += result.doubt > 0;
  }
  CHECK(known >= 9);
  CHECK(repeated >= 6);
  CHECK(far <= 1);
}
