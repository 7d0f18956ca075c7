// SPDX-License-Identifier: MIT
// Bounds of candidates against what their simulations come to.
#include <doctest/doctest.h>
#include <pthread.h>
#include <unistd.h>

#include <sstream>
#include <utility>
#include <vector>

#include "sim/planning/answer.h"
#include "sim/planning/interval.h"
#include "sim/planning/planner.h"
#include "sim/planning/write_plan.h"
#include "sim/run/out_of_resources.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"

using namespace convoy;
using plans::answer_of;

TEST_CASE("planner: on a front whose neighbours are a few percent apart no bound loses one") {
  // Each machine more is a little quicker and a little dearer, so that all counts are on the front; there are
  // more of them than are simulated at a time.
  std::string counts = "8";
  for (int nodes = 9; nodes <= 40; ++nodes) counts += fmt::format(", {}", nodes);
  const PlanSpec spec = plans::spec_of(
      "{epochs: 30}",
      fmt::format("{{objective: front, servers: [aws-p3.2xlarge], nodes: [{}], batch_per_device: [64], "
                  "strategies: [{{kind: data_parallel, sync: all_reduce, algorithm: ring}}]}}",
                  counts));
  const PlanAnswer quick = answer_of(spec, false), slow = answer_of(spec, true);
  REQUIRE(slow.front.size() > 24);
  REQUIRE(quick.front.size() == slow.front.size());
  for (std::size_t i = 0; i < slow.front.size(); ++i) CHECK(quick.front[i].devices == slow.front[i].devices);
}

namespace {

struct Bounded {
  Trial before, after;
  double bound_step_s;  ///< of the plan
  std::uint64_t devices;
};

/// A plan's setups before and after their simulation.
/// @param least_s if not nullptr, gets the time of the choice among them all
std::vector<Bounded> simulated_setups(const PlanSpec& spec, double* least_s = nullptr) {
  Trials trials = plans::trials_of(spec);
  std::vector<Bounded> all;
  for (std::size_t s = 0; s < trials.space().setups.size(); ++s)
    all.push_back({trials.trial(s), {}, 0, static_cast<std::uint64_t>(trials.setup(s).devices)});
  Planner planner(trials);
  const Scenario scenario = scenario_of(spec);
  planner.simulate_all(scenario);
  if (least_s) {
    const std::optional<std::size_t> choice = planner.best(scenario);
    REQUIRE(choice);
    *least_s = result_of(planner, *choice, scenario).figures.time_s;
  }
  for (std::size_t s = 0; s < all.size(); ++s) {
    all[s].after = trials.trial(s);
    all[s].bound_step_s = trials.details(s).bound_step_s;
  }
  std::erase_if(all, [](const Bounded& setup) { return setup.after.state != TrialState::simulated; });
  return all;
}

std::vector<Bounded> simulated_setups(const std::string& strategies) {
  return simulated_setups(plans::spec_of(
      "{epochs: 30}",
      fmt::format("{{objective: cost, servers: [aws-p3.2xlarge, aws-g4dn.12xlarge], nodes: [1, 3], "
                  "batch_per_device: [8, 64], precision: [fp32, fp16], strategies: [{}]}}",
                  strategies)));
}

}  // namespace

TEST_CASE("planner: no simulation comes to less than the bound before it") {
  const std::vector<Bounded> setups = simulated_setups(
      "{kind: single}, {kind: data_parallel, sync: all_reduce, algorithm: [ring, tree]}, {kind: "
      "data_parallel, sync: "
      "all_reduce, zero: 2}, {kind: data_parallel, sync: all_reduce, micro_batches: 4}, {kind: pipeline, "
      "micro_batches: 2, stages: 2}");
  REQUIRE(setups.size() > 20);
  for (const Bounded& setup : setups) {
    CAPTURE(setup.devices);
    CHECK(setup.before.step_s <= setup.after.step_s * (1 + 1e-9));
    CHECK(setup.before.energy_j <= setup.after.energy_j * (1 + 1e-9));
  }
}

TEST_CASE("planner: no simulation on images from files comes to less than the bound before it") {
  const char* const strategies =
      "{kind: single}, {kind: data_parallel, sync: all_reduce, algorithm: ring}, {kind: data_parallel, sync: "
      "all_reduce, zero: 2}, {kind: data_parallel, sync: all_reduce, micro_batches: 4}, "
      "{kind: data_parallel, sync: parameter_server, servers: 1}, "
      "{kind: data_parallel, sync: parameter_server, mode: async}, "
      "{kind: data_parallel, sync: parameter_server, backup_workers: 1}, "
      "{kind: pipeline, stages: 2, micro_batches: 2}";
  int by_input = 0, all = 0;
  for (const char* input : {"{kind: jpeg, library: pil}", "{kind: jpeg, library: pillow_simd, prefetch: 0}",
                            "{kind: jpeg, library: dali_gpu, cached: true}",
                            "{kind: jpeg, library: tf_data, storage: {bandwidth: 200MB/s}, prefetch: 3}"}) {
    CAPTURE(input);
    const PlanSpec spec = plans::spec_of(
        "{epochs: 30}",
        fmt::format("{{objective: cost, servers: [aws-p3.2xlarge, aws-g4dn.12xlarge], nodes: [1, 3], "
                    "batch_per_device: [64], strategies: [{}]}}",
                    strategies),
        fmt::format("{{dataset: {{samples: 100000}}, input: {}}}", input));
    for (const Bounded& setup : simulated_setups(spec)) {
      CAPTURE(setup.devices);
      CHECK(setup.before.step_s <= setup.after.step_s * (1 + 2e-3));  // random steps: as above
      CHECK(setup.before.energy_j <= setup.after.energy_j * (1 + 2e-3));
      // To the last digits, so that ties may be decided by it.
      CHECK(setup.before.input_step_s <= setup.after.step_s * (1 + 1e-13));
      CHECK(setup.after.input_step_s <= setup.after.step_s * (1 + 1e-13));
      CHECK(setup.bound_step_s <= setup.after.step_s * (1 + 1e-6));
      CHECK(setup.after.input_step_s >= setup.before.input_step_s);
      by_input += setup.before.input_step_s > 0.999 * setup.after.step_s, ++all;
    }
  }
  CHECK(all > 80);
  CHECK(by_input >= 8);
}

TEST_CASE("planner: of what waits for its images alike few candidates are simulated, and the answer stays") {
  const auto spec_for = [](const std::string& objective) {
    return plans::spec_of(
        "{epochs: 90}",
        fmt::format(
            "{{objective: {}, servers: [aws-p3.2xlarge, aws-g4dn.12xlarge, gcp-a2-highgpu-1g], nodes: [1, 2, "
            "3], batch_per_device: [16, 32, 64, 128], precision: [fp32, fp16], strategies: [{{kind: "
            "data_parallel, sync: all_reduce}}]}}",
            objective),
        "{dataset: {samples: 4000000}, input: {kind: jpeg, library: pil}}");
  };
  for (const std::string objective : {"cost", "time", "front"}) {
    CAPTURE(objective);
    const PlanSpec spec = spec_for(objective);
    const PlanAnswer quick = answer_of(spec, false, 1), other_jobs = answer_of(spec, false, 3),
                     slow = answer_of(spec, true);
    const auto text_of = [](PlanAnswer answer, bool counts) {
      if (!counts) answer.planned = answer.simulated = 0, answer.pruned.clear();
      std::ostringstream out;
      write_json(answer, out);
      return out.str();
    };
    CHECK(text_of(quick, false) == text_of(slow, false));
    CHECK(text_of(quick, true) == text_of(other_jobs, true));
    REQUIRE(slow.simulated == 72);
    CHECK(quick.simulated <= 24);  // as many as when this was written, with those of all questions about it
    CHECK(quick.planned <= 56);
  }
}

TEST_CASE("planner: no mixture whose workers have no common step comes to less than the bound before it") {
  const char* const servers = "{kind: data_parallel, sync: parameter_server, sharding: even, ";
  for (const std::string own :
       {"aws-g4dn.12xlarge",
        "{name: odd, devices: [{device: t4, count: 1}, {device: v100-sxm2-16gb, count: "
        "1}], interconnect: {kind: pcie, bandwidth: 12GB/s, latency: 5us}, "
        "fabric: {kind: switch, bandwidth: 10Gbps, latency: 50us, protocol: tcp}, "
        "host_power: 300W, vcpus: 32}"}) {
    CAPTURE(own);
    const PlanSpec spec = plans::spec_of(
        "{epochs: 30}",
        fmt::format("{{objective: time, servers: [aws-p3.2xlarge, {}], nodes: [1, 2], mixtures: true, "
                    "batch_per_device: [64], strategies: [{}mode: sync}}, {}mode: async}}, {}mode: ssp, "
                    "staleness: 3}}, {}backup_workers: 1}}, {{kind: data_parallel, sync: all_reduce}}]}}",
                    own, servers, servers, servers, servers));
    double least_s = 0;
    const std::vector<Bounded> setups = simulated_setups(spec, &least_s);
    REQUIRE(setups.size() > 8);
    for (const Bounded& setup : setups) {
      CAPTURE(setup.devices);
      // The long run of random steps is known to a part in a thousand or two.
      CHECK(setup.before.step_s <= setup.after.step_s * (1 + 2e-3));
      CHECK(setup.before.energy_j <= setup.after.energy_j * (1 + 2e-3));
    }
    const PlanAnswer quick = answer_of(spec, false);
    REQUIRE(quick.choice.has_value());
    CHECK(quick.choice->figures.time_s == least_s);
  }
}

TEST_CASE("planner: the bound of one data-parallel device is what its simulation comes to") {
  int alone = 0;
  for (const Bounded& setup : simulated_setups("{kind: data_parallel, sync: all_reduce}")) {
    if (setup.devices > 1) continue;
    ++alone;
    CHECK(setup.before.step_s == approx(setup.after.step_s).epsilon(1e-6));
    CHECK(setup.before.energy_j == approx(setup.after.energy_j).epsilon(1e-6));
  }
  CHECK(alone == 4);
}

TEST_CASE(
    "planner: workers without a common step that wait for images alike: the best is found, by however "
    "little") {
  const PlanSpec spec = plans::spec_of(
      "{epochs: 90}",
      "{objective: cost, servers: [aws-p4d.24xlarge], nodes: [1], precision: [fp32, fp16], batch_per_device: "
      "[16], strategies: [{kind: data_parallel, sync: parameter_server, servers: 1, mode: async}]}",
      "{dataset: {samples: 100000}, input: {kind: jpeg, library: tf_data, storage: {bandwidth: 200MB/s}}}",
      "resnet18");
  Trials trials = plans::trials_of(spec);
  Planner(trials).simulate_all(scenario_of(spec));
  for (std::size_t s = 0; s < trials.space().setups.size(); ++s) {
    REQUIRE(trials.trial(s).state == TrialState::simulated);
    CHECK(trials.details(s).bound_step_s <= trials.trial(s).step_s);
    CHECK(trials.details(s).bound_step_s >= 0.99 * trials.trial(s).step_s);
  }
  Trials others = plans::trials_of(spec);
  CHECK(Planner(others).least(scenario_of(spec)) == Planner(trials).least(scenario_of(spec)));
}

TEST_CASE("planner: a candidate's step, and what is found out later, are those of its whole run") {
  const PlanSpec spec = plans::spec_of(
      "{epochs: 30}",
      "{objective: cost, servers: [aws-p3.2xlarge, aws-g4dn.12xlarge], nodes: [1, 3], batch_per_device: [64], "
      "strategies: [{kind: data_parallel, sync: all_reduce, algorithm: auto}, {kind: pipeline, stages: 2, "
      "micro_batches: 2}]}",
      "{dataset: {samples: 100000}, input: {kind: jpeg, library: tf_data}}");
  Trials trials = plans::trials_of(spec, 2);
  Planner(trials).simulate_all(scenario_of(spec));
  std::vector<std::size_t> simulated;
  for (std::size_t s = 0; s < trials.space().setups.size(); ++s)
    if (trials.trial(s).state == TrialState::simulated) simulated.push_back(s);
  REQUIRE(simulated.size() > 4);
  trials.simulate_in_full(simulated);
  Preparer preparer;
  int own = 0, chosen = 0;
  for (const std::size_t s : simulated) {
    CAPTURE(s);
    const PreparedRun run = preparer.prepare(point_of(spec, trials.setup(s)), nullptr);
    const RunResult result = simulate(run, false).result;
    const Trial& trial = trials.trial(s);
    const TrialDetails& details = trials.details(s);
    CHECK(trial.step_s == result.step_time_s);
    CHECK(trial.energy_j == result.energy_j);
    CHECK(trial.peak_memory_bytes == result.peak_memory_bytes);
    CHECK(details.bottleneck == result.bottleneck.text);
    CHECK(std::pair(details.step_low, details.step_high) == step_interval(result));
    CHECK(details.own_interval == result.interval.has_value());
    CHECK(details.label.starts_with(result.strategy));
    for (const std::string& algorithm : result.algorithms) {
      CHECK(details.label.find(algorithm) != std::string::npos);
      ++chosen;
    }
    own += details.own_interval;
  }
  CHECK(own > 4);
  CHECK(chosen > 0);
}

TEST_CASE("planner: why a setup cannot run is known before it is planned") {
  const PlanSpec spec = plans::spec_of(
      "{epochs: 30}",
      "{objective: cost, servers: [aws-p2.xlarge, aws-p3.2xlarge], nodes: [1], batch_per_device: [64], "
      "precision: [fp32, fp16]}");
  Trials trials = plans::trials_of(spec);
  int cannot_run = 0, can_run = 0;
  for (std::size_t s = 0; s < trials.space().setups.size(); ++s) {
    if (trials.trial(s).state == TrialState::cannot_run) {
      ++cannot_run;
      CHECK(trials.message(s) == "training.precision: device 'k80' cannot run fp16; it runs fp32");
    } else {
      ++can_run;
      CHECK(trials.message(s).empty());
    }
    CHECK(trials.details(s).message.empty());
  }
  CHECK(cannot_run > 0);
  CHECK(can_run > 2 * cannot_run);
}

TEST_CASE("planner: a candidate whose interval this machine cannot find out is named") {
  const PlanSpec spec = plans::spec_of(
      "{epochs: 30}", "{objective: cost, servers: [aws-p3.2xlarge], nodes: [2], batch_per_device: [64]}");
  Trials trials = plans::trials_of(spec);
  Planner(trials).simulate_all(scenario_of(spec));
  Trials copy = trials;  // with processes of its own
  static bool no_room;
  no_room = true;
  ::pthread_atfork(nullptr, nullptr, [] {
    if (no_room) ::_exit(9);
  });
  CHECK_THROWS_WITH_AS(
      copy.simulate_in_full({0}),
      "the interval of 2 aws-p3.2xlarge, 64 images a device: the simulating process ended with exit "
      "code 9",
      OutOfResources);
  no_room = false;
  CHECK_NOTHROW(trials.simulate_in_full({0}));
  CHECK(trials.details(0).own_interval);
}
