// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "sim/base/input_error.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/run/variability.h"
#include "tests/support/approx.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

/// A point with `variability:`, prepared, with its undisturbed result.
struct Varied {
  PreparedRun run;
  RunResult result;
  VariabilityResult varying;
};

Varied varied(const std::string& variability, const std::string& cluster, std::int64_t parameters,
              const std::string& training = "{batch_per_device: 10, dataset: {samples: 200000}}",
              const std::string& keys = "") {
  const std::string text = fmt::format(
      "experiment: e\nmodel: {}\ntraining: {}\ncluster: {}\nstrategy: {{kind: data_parallel, sync: "
      "all_reduce, overlap: false{}}}\nvariability: {}\n",
      lab::custom_model(1, parameters), training, cluster, keys, variability);
  const Point point = read_point(parse_yaml(text, "e.yaml"));
  Preparer preparer;
  PreparedRun run = preparer.prepare(point, nullptr);
  RunResult result = simulate(run, false).result;
  VariabilityResult varying = vary(*run.variability, run, result);
  return {std::move(run), std::move(result), std::move(varying)};
}

std::string variability_error(
    const std::string& variability,
    const std::string& training = "{batch_per_device: 10, dataset: {samples: 2000}}") {
  try {
    varied(variability, lab::star(2, "1GB/s", "0us"), 1000, training);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

double normal_share(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

}  // namespace

TEST_CASE("variability: the slower of two jittering devices takes as long as the closed form says") {
  // Next to nothing to send: the step is the maximum of two log-normal times of mean t, 2 t Phi(s / sqrt 2).
  for (const double jitter : {0.02, 0.1, 0.3}) {
    CAPTURE(jitter);
    const Varied found =
        varied(fmt::format("{{runs: 4000, jitter: {}}}", jitter), lab::star(2, "1000GB/s", "0us"), 1);
    const double sigma = std::sqrt(std::log1p(jitter * jitter));
    const double expected = 2 * found.result.step_time_s * normal_share(sigma / std::sqrt(2.0));
    // The mean of 4000 draws is off by less than four of its deviations.
    CHECK(std::abs(found.varying.step_time_s - expected) <
          4 * jitter * found.result.step_time_s / std::sqrt(4000.0));
    CHECK(found.varying.step_time_interval_s[0] < found.varying.step_time_s);
    CHECK(found.varying.step_time_interval_s[1] > found.varying.step_time_s);
    // Four of five: P(max < x) = Phi(z)^2.
    const double z =
        (std::log(found.varying.step_time_interval_s[1] / found.result.step_time_s) + sigma * sigma / 2) /
        sigma;
    CHECK(normal_share(z) * normal_share(z) == approx(0.9).epsilon(0.02));
    CHECK(*found.varying.epoch_time_s == approx(10'000 * found.varying.step_time_s));
  }
}

TEST_CASE("variability: between two averages of local SGD chance evens out, over an epoch it does not") {
  constexpr double jitter = 0.1;
  constexpr int every = 4;
  const auto of = [&](double deviation, const std::string& keys) {
    return varied(fmt::format("{{runs: 4000, jitter: {}}}", deviation), lab::star(2, "1000GB/s", "0us"), 1,
                  "{batch_per_device: 10, dataset: {samples: 200000}}", keys);
  };
  const Varied found = of(jitter, fmt::format(", sync_every: {}", every));
  const double sigma = std::sqrt(std::log1p(jitter * jitter / every));
  const double expected = 2 * found.result.step_time_s * normal_share(sigma / std::sqrt(2.0));
  CHECK(std::abs(found.varying.step_time_s - expected) <
        4 * jitter / std::sqrt(every) * found.result.step_time_s / std::sqrt(4000.0));
  // 2,500 periods of 4 steps vary as 2,500 steps of 4 times the length do.
  const Varied summed = of(jitter / 2, "");
  const auto reaches_s = [](const Varied& one) {
    return one.varying.epoch_time_interval_s->at(1) - *one.varying.epoch_time_s;
  };
  CHECK(reaches_s(found) == approx(std::sqrt(every) * reaches_s(summed)).epsilon(0.01));
}

TEST_CASE("variability: a link that is degraded now and then is that mixture of two steps") {
  // 5 MB between two hosts, all of it over n0's NIC: with half of its bandwidth sending takes twice as long.
  const Varied always = varied("{runs: 2, links: [{link: 'n0.nic.up', bandwidth: 50%}]}",
                               lab::star(2, "1GB/s", "0us"), 1'250'000);
  const double send_s = 5e6 / 1e9;
  CHECK(always.varying.step_time_s == approx(always.result.step_time_s + send_s).epsilon(1e-6));
  CHECK(always.varying.step_time_interval_s[0] == always.varying.step_time_interval_s[1]);
  const Varied often = varied("{runs: 2000, links: [{link: 'n0.nic.up', bandwidth: 50%, chance: 30%}]}",
                              lab::star(2, "1GB/s", "0us"), 1'250'000);
  const double mean = often.result.step_time_s + 0.3 * send_s;
  CHECK(std::abs(often.varying.step_time_s - mean) < 4 * std::sqrt(0.3 * 0.7 / 2000) * send_s);
}

TEST_CASE("variability: a link that degrades in the middle of a step slows what is left of its bytes") {
  // Computing takes 3 ms and update nothing; then 5 MB cross n0's NIC in 5 ms. With 40 % from 5 ms on, 3 of
  // them are left and take 7.5 ms.
  const std::string cluster = lab::star(2, "1GB/s", "0us");
  const auto step_s = [&](const std::string& links, std::int64_t runs = 1) {
    return varied(fmt::format("{{runs: {}, links: [{}]}}", runs, links), cluster, 1'250'000)
        .varying.step_time_s;
  };
  const double whole_s = varied("{runs: 1}", cluster, 1'250'000).result.step_time_s;
  REQUIRE(whole_s == approx(8e-3).epsilon(1e-9));
  CHECK(step_s("{link: n0.nic.up, bandwidth: 40%, at: 5ms}") == approx(12.5e-3).epsilon(1e-9));
  // At the step's beginning: as if it were so always. After its end: nothing.
  CHECK(step_s("{link: n0.nic.up, bandwidth: 40%, at: 0s}") ==
        approx(step_s("{link: n0.nic.up, bandwidth: 40%}")).epsilon(1e-9));
  CHECK(step_s("{link: n0.nic.up, bandwidth: 40%, at: 1s}") == approx(whole_s).epsilon(1e-12));
  // Twice: half of what it had at 5 ms, a quarter from 7 ms on: 1 MB, then 2 MB in 8 ms.
  CHECK(step_s("{link: n0.nic.up, bandwidth: 50%, at: 5ms}, {link: n0.nic.up, bandwidth: 25%, at: 7ms}") ==
        approx(15e-3).epsilon(1e-9));
  const double mean_s = whole_s + 0.3 * 4.5e-3;
  CHECK(std::abs(step_s("{link: n0.nic.up, bandwidth: 40%, at: 5ms, chance: 30%}", 2000) - mean_s) <
        4 * std::sqrt(0.3 * 0.7 / 2000) * 4.5e-3);
}

TEST_CASE("variability: a host that stops in the middle of a step holds up those that wait for it") {
  const std::string cluster = lab::star(2, "1GB/s", "0us");
  const auto step_s = [&](const std::string& stops, std::int64_t runs = 1) {
    return varied(fmt::format("{{runs: {}, stops: [{}]}}", runs, stops), cluster, 1'250'000)
        .varying.step_time_s;
  };
  // 1 of 3 ms is computed when n1 stops for 20 ms. Its messages, from 3 to 8 ms, go on without it; the update
  // that follows them waits until it is back.
  CHECK(step_s("{host: n1, at: 1ms, for: 20ms}") == approx(28e-3).epsilon(1e-9));
  CHECK(step_s("{host: n1, at: 4ms, for: 3ms}") == approx(8e-3).epsilon(1e-9));
  CHECK(step_s("{host: n1, at: 4ms, for: 20ms}") == approx(24e-3).epsilon(1e-9));
  // Both at once cost what one costs, one after the other what the later one adds.
  CHECK(step_s("{host: n1, at: 1ms, for: 20ms}, {host: n0, at: 1ms, for: 20ms}") ==
        approx(28e-3).epsilon(1e-9));
  CHECK(step_s("{host: n1, at: 1ms, for: 2ms}, {host: n1, at: 4ms, for: 1ms}") ==
        approx(11e-3).epsilon(1e-9));
  const double mean_s = 8e-3 + 0.2 * 20e-3;
  CHECK(std::abs(step_s("{host: n1, at: 1ms, for: 20ms, chance: 20%}", 2000) - mean_s) <
        4 * std::sqrt(0.2 * 0.8 / 2000) * 20e-3);
}

TEST_CASE(
    "variability: on one real device a stop takes as long as it is, whatever the host still has to issue") {
  for (const char* training : {"{batch_per_device: 2}", "{batch_per_device: 64}"}) {
    CAPTURE(training);
    const std::string text = fmt::format(
        "experiment: e\nmodel: resnet18\ntraining: {}\ncluster: {{server: aws-p3.2xlarge, nodes: 1}}\n"
        "strategy: {{kind: single}}\nvariability: {{runs: 1, stops: [{{host: n0, at: 2ms, for: "
        "30ms}}]}}\n",
        training);
    Preparer preparer;
    const PreparedRun run = preparer.prepare(read_point(parse_yaml(text, "e.yaml")), nullptr);
    const RunResult result = simulate(run, false).result;
    CHECK(vary(*run.variability, run, result).step_time_s ==
          approx(result.step_time_s + 30e-3).epsilon(1e-9));
  }
}

TEST_CASE(
    "variability: epochs with failures converge to the closed form, and given ones add what they cost") {
  const Varied drawn = varied(
      "{runs: 3000, failures: {per_host_day: 500, wait: 30s, restart: 10s, checkpoint: {time: 1s, every: "
      "20s}}}",
      lab::star(2, "1GB/s", "0us"), 1'250'000);
  REQUIRE(drawn.varying.expected_epoch_time_s);
  CHECK(drawn.varying.failures > 0.5);
  CHECK(*drawn.varying.epoch_time_s == approx(*drawn.varying.expected_epoch_time_s).epsilon(0.03));
  CHECK(drawn.varying.epoch_time_interval_s->at(0) < *drawn.varying.epoch_time_s);
  // n1 fails after 50 s of training: 10 s since the last checkpoint, 30 s wait, 10 s restart.
  const Varied given = varied(
      "{runs: 3, failures: {at: [{host: n1, at: 50s}], wait: 30s, restart: 10s, checkpoint: {time: 0s, "
      "every: 20s}}}",
      lab::star(2, "1GB/s", "0us"), 1'250'000);
  const double work_s = 10'000 * given.result.step_time_s;
  REQUIRE(work_s > 50);
  CHECK(*given.varying.epoch_time_s == approx(work_s + 50).epsilon(1e-9));
  CHECK(given.varying.failures == 1);
}

TEST_CASE("variability: without a data set there is no epoch, and no interval of one") {
  const Varied found =
      varied("{runs: 3, jitter: 0.1}", lab::star(2, "1GB/s", "0us"), 1000, "{batch_per_device: 10}");
  CHECK(!found.varying.epoch_time_s);
  CHECK(!found.varying.epoch_time_interval_s);
}

TEST_CASE("variability: the same seed draws the same, another seed something else") {
  const std::string cluster = lab::star(4, "1GB/s", "0us");
  const Varied one = varied("{runs: 5, jitter: 10%}", cluster, 1000),
               same = varied("{runs: 5, jitter: 10%}", cluster, 1000),
               other = varied("{runs: 5, jitter: 10%, seed: 2}", cluster, 1000);
  CHECK(one.varying == same.varying);
  CHECK_FALSE(one.varying == other.varying);
}

TEST_CASE("variability: what is wrong is said with its place") {
  CHECK(variability_error("{jiter: 5%}").find("variability.jiter: unknown key (did you mean 'jitter'?)") !=
        std::string::npos);
  CHECK(variability_error("{jitter: 150%}").find("e.yaml:6:") == 0);
  CHECK(variability_error("{runs: 0}").find("variability.runs: 0 is out of range") != std::string::npos);
  CHECK(variability_error("{links: []}").find("expected a list such as") != std::string::npos);
  CHECK(variability_error("{links: [{link: n9.nic, bandwidth: 50%}]}")
            .find("variability.links: the cluster has no link 'n9.nic'") != std::string::npos);
  CHECK(variability_error("{stops: []}").find("expected a list such as [{host: n0, at: 100ms, for: 2s}]") !=
        std::string::npos);
  CHECK(variability_error("{stops: [{host: n1, at: 1ms}]}")
            .find("variability.stops[0]: key 'for' is missing") != std::string::npos);
  CHECK(variability_error("{stops: [{host: n1, at: 1ms, duration: 1s}]}")
            .find("variability.stops[0].duration: unknown key; known here: at, chance, for, host") !=
        std::string::npos);
  CHECK(variability_error("{stops: [{host: n1, at: 1, for: 1s}]}")
            .find("variability.stops[0].at: '1' lacks its unit") != std::string::npos);
  CHECK(
      variability_error("{stops: [{host: n11, at: 1ms, for: 1s}]}")
          .find("variability.stops: the cluster has no host 'n11' (did you mean 'n1'?); its first is 'n0'") !=
      std::string::npos);
  CHECK(variability_error("{failures: {wait: 5s}}").find("give per_host_day, at, or both") !=
        std::string::npos);
  CHECK(variability_error("{failures: {at: [{host: n7, at: 1h}], checkpoint: {time: 1s, every: 1h}}}")
            .find("the cluster has no host 'n7'") != std::string::npos);
  CHECK(variability_error("{failures: {per_host_day: 1, checkpoint: {time: 1s, every: 1h}}}",
                          "{batch_per_device: 10}")
            .find("give training.dataset") != std::string::npos);
  // Two hosts of which one fails every 43 ms never get through 2 s: there would be no end to drawing failures.
  CHECK(variability_error("{failures: {per_host_day: 1e6, checkpoint: {time: 1s, every: 1s}}}",
                          "{batch_per_device: 10, dataset: {samples: 200000}}")
            .find("variability.failures: a host fails every 43.2 ms, and from one checkpoint to the next "
                  "training needs 2 s without a failure") != std::string::npos);
}

TEST_CASE("variability: a time in a step needs steps that follow one another") {
  const auto refusal = [](const std::string& strategy, const std::string& variability) -> std::string {
    const std::string text = fmt::format(
        "experiment: e\nmodel: {}\ntraining: {{batch_per_device: 8}}\ncluster: {}\nstrategy: "
        "{}\nvariability: {}\n",
        lab::custom_model(2, 1000), lab::star(2, "1GB/s", "0us"), strategy, variability);
    try {
      Preparer().prepare(read_point(parse_yaml(text, "e.yaml")), nullptr);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  const std::string stop = "{stops: [{host: n0, at: 1ms, for: 1ms}]}",
                    link = "{links: [{link: n0.nic.up, bandwidth: 50%, at: 1ms}]}";
  for (const char* strategy :
       {"{kind: data_parallel, sync: parameter_server, mode: async}",
        "{kind: pipeline, stages: 2, schedule: 1f1b, weights: stash, micro_batches: 4}"}) {
    CAPTURE(strategy);
    CHECK(refusal(strategy, stop)
              .find("e.yaml:6:30: variability.stops: is a time in a step, and the steps of this "
                    "strategy (") == 0);
    CHECK(refusal(strategy, link).find("variability.links.at: is a time in a step") != std::string::npos);
    CHECK(refusal(strategy, "{links: [{link: n0.nic.up, bandwidth: 50%}]}") == "none");
  }
  CHECK(refusal("{kind: pipeline, stages: 2, micro_batches: 4}", stop) == "none");
}
