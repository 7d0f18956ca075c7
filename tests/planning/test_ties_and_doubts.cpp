// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/costs/residuals.h"
#include "tests/planning/plan_text.h"

using namespace convoy;
using plans::answer_of, plans::found, plans::input_bound;

TEST_CASE("planner: a tie is a difference of what is asked for, not of the costs beside it") {
  const std::string servers =
      "servers: [aws-p3.2xlarge, aws-g4dn.xlarge, aws-p2.xlarge, aws-p4d.24xlarge], batch_per_device: 32";
  int ties = 0, clear = 0;
  for (const PlanObjective objective :
       {PlanObjective::cost, PlanObjective::time, PlanObjective::energy, PlanObjective::carbon}) {
    const PlanAnswer answer = answer_of(
        plans::spec_of("{epochs: 30}", fmt::format("{{objective: {}, {}}}", to_string(objective), servers)),
        false);
    REQUIRE(answer.choice);
    const CandidateResultOfPlan& choice = *answer.choice;
    const double above = choice.time_interval.second / choice.figures.time_s - 1;
    for (const CandidateResultOfPlan& runner : answer.runners_up) {
      CAPTURE(runner.reason);
      const double ratio = value_of(objective, runner.figures) / value_of(objective, choice.figures);
      const double below = ratio * (1 - runner.time_interval.first / runner.figures.time_s);
      // Two independent errors reach further than the larger of them and less far than both together.
      if (ratio - 1 > above + below) CHECK_FALSE(runner.tie);
      if (ratio - 1 <= std::max(above, below)) CHECK(runner.tie);
      ++(runner.tie ? ties : clear);
    }
  }
  MESSAGE(ties << " ties, " << clear << " clear");
  CHECK(clear > 0);
}

namespace {

std::string tied_plan(const std::string& objective, const std::string& nodes, const std::string& batches,
                      const std::string& strategies) {
  return fmt::format(
      "{{objective: {}, servers: [aws-p3.2xlarge, aws-g4dn.xlarge], nodes: [{}], batch_per_device: [{}], "
      "precision: [fp32, fp16], strategies: [{}]}}",
      objective, nodes, batches, strategies);
}

}  // namespace

TEST_CASE(
    "planner: of candidates that tie the choice has no doubt, then takes the least time, machines, batch") {
  int tied = 0;
  for (const std::string objective : {"cost", "time", "front"}) {
    CAPTURE(objective);
    const PlanSpec spec = plans::spec_of(
        "{epochs: 30}",
        tied_plan(objective, "1, 2, 4, 8", "128, 1024, 2048", "{kind: data_parallel, sync: all_reduce}"),
        input_bound);
    Trials trials = plans::trials_of(spec, 2);
    Planner planner(trials);
    const Scenario scenario = scenario_of(spec);
    planner.simulate_all(scenario);
    const std::optional<std::size_t> choice = planner.best(scenario);
    REQUIRE(choice);
    const auto shown = [&](std::size_t c) { return result_of(planner, c, scenario); };
    const CandidateResultOfPlan best = shown(*choice);
    const auto differ = [](double a, double b) { return std::abs(a - b) > 1e-9 * b; };
    for (std::size_t c = 0; c < trials.space().candidates.size(); ++c) {
      if (c == *choice || !planner.simulated(c)) continue;
      const CandidateResultOfPlan other = shown(c);
      const double least = value_of(spec.objective, best.figures),
                   value = value_of(spec.objective, other.figures);
      if (differ(value, least)) {
        CHECK(value > least);
        continue;
      }
      ++tied;
      const auto rank = [&](const CandidateResultOfPlan& one) {
        const double time_s =
            differ(one.figures.time_s, best.figures.time_s) ? one.figures.time_s : best.figures.time_s;
        return std::tuple(!one.doubts.empty(), time_s, one.order.front().second, one.global_batch);
      };
      CHECK(rank(best) <= rank(other));
    }
    const PlanAnswer quick = answer_of(spec, false);
    REQUIRE(quick.choice);
    CHECK(quick.choice->figures.time_s == best.figures.time_s);
    CHECK(quick.choice->figures.cost_usd == best.figures.cost_usd);
    CHECK(quick.choice->order == best.order);
    CHECK(quick.choice->global_batch == best.global_batch);
    if (objective == "front") CHECK(found(quick) == found(answer_of(spec, true)));
  }
  MESSAGE(tied << " ties");
  CHECK(tied >= 10);
}

TEST_CASE("planner: a method whose epochs are not known is out where they follow a table, else a doubt") {
  for (const std::string goal : {"{epochs: 30}", "{noise_scale: 2000, epochs: 30}"})
    for (const std::string method :
         {"sync: all_reduce, sync_every: 8", "sync: gossip", "sync: all_reduce, compression: sign",
          "sync: all_reduce, compression: {kind: powersgd, rank: 2}",
          "sync: all_reduce, compression: {kind: top_k, ratio: 0.01}", "sync: all_reduce",
          "sync: all_reduce, compression: fp16"}) {
      CAPTURE(goal);
      CAPTURE(method);
      const PlanSpec spec = plans::spec_of(
          goal,
          "{servers: [aws-p3.2xlarge], nodes: [2], batch_per_device: [128], strategies: [{kind: "
          "data_parallel, " +
              method + "}]}");
      Trials trials = plans::trials_of(spec, 1);
      Planner planner(trials);
      const Scenario scenario = scenario_of(spec);
      const bool same = method == "sync: all_reduce" || method.ends_with("fp16");
      REQUIRE(!trials.space().candidates.empty());
      for (std::size_t c = 0; c < trials.space().candidates.size(); ++c) {
        const std::vector<std::string> doubts = planner.estimates().facts().doubts(c);
        CHECK(std::any_of(doubts.begin(), doubts.end(), [](const std::string& doubt) {
                return doubt.ends_with("may need more epochs; how many is not known");
              }) == !same);
        CHECK((planner.estimates().out(c, scenario) == "method") == (!same && goal != "{epochs: 30}"));
      }
    }
}

TEST_CASE("planner: a device that nobody measured is a doubt") {
  const PlanSpec spec = plans::spec_of(
      "{epochs: 30}",
      "{servers: [aws-p3.2xlarge, aws-g4dn.xlarge, gcp-g2-standard-8, aws-g3.4xlarge], nodes: [1], "
      "batch_per_device: [128], strategies: [{kind: single}]}");
  Trials trials = plans::trials_of(spec, 2);
  Planner planner(trials);
  const Scenario scenario = scenario_of(spec);
  planner.simulate_all(scenario);
  int doubted = 0;
  REQUIRE(trials.space().candidates.size() >= 4);
  for (std::size_t c = 0; c < trials.space().candidates.size(); ++c) {
    const CandidateResultOfPlan shown = result_of(planner, c, scenario);
    const DeviceType device = load_server(shown.order.front().first, {}).devices.front().first;
    CAPTURE(device.name);
    const bool doubts = std::any_of(shown.doubts.begin(), shown.doubts.end(), [&](const std::string& doubt) {
      return doubt.find("nobody measured ") == 0 && doubt.find(device.name) != std::string::npos;
    });
    CHECK(doubts == !device_is_seen(device));
    doubted += doubts;
  }
  CHECK(doubted > 0);
}

TEST_CASE("planner: what hangs on an assumed network between hosts has a doubt, and loses a tie by it") {
  const PlanSpec spec =
      plans::spec_of("{epochs: 30}",
                     "{servers: [aws-p3.2xlarge, azure-nc24r, azure-nc6, gcp-n1-standard-8-k80, "
                     "lambda-gpu_1x_a6000], nodes: [1, 2, 4], "
                     "batch_per_device: [128], strategies: [{kind: data_parallel, sync: all_reduce}]}",
                     input_bound);
  Trials trials = plans::trials_of(spec, 2);
  Planner planner(trials);
  const Scenario scenario = scenario_of(spec);
  planner.simulate_all(scenario);
  int doubted = 0, trusted = 0;
  for (std::size_t c = 0; c < trials.space().candidates.size(); ++c) {
    const CandidateResultOfPlan shown = result_of(planner, c, scenario);
    const std::string server = shown.order.front().first;
    CAPTURE(server);
    const bool doubts = std::any_of(shown.doubts.begin(), shown.doubts.end(), [](const std::string& doubt) {
      return doubt.find("the protocol between hosts is assumed") == 0;
    });
    const Source* source = find_source(load_server(server, {}).sources, "fabric.protocol");
    REQUIRE(source);
    const bool several = shown.order.front().second > 1;
    CHECK(doubts == (several && source->grade == Grade::assumed));
    (doubts ? doubted : trusted) += several;
  }
  CHECK(doubted > 0);
  CHECK(trusted > 0);
  // As many more machines take so much less time for the same cost: only the doubt speaks for one.
  const PlanSpec tied = plans::spec_of(
      "{epochs: 30}", tied_plan("cost", "1, 2, 4, 8", "1024", "{kind: data_parallel, sync: all_reduce}"),
      input_bound);
  const PlanAnswer answer = answer_of(tied, false);
  REQUIRE(answer.choice);
  CHECK(answer.choice->order.front().second == 1);
  CHECK(answer.choice->doubts.empty());
}
