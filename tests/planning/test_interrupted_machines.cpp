// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>

#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"

using namespace convoy;

TEST_CASE(
    "planner: spot machines cost what a run with interruptions is expected to, and carbon is that of the "
    "region") {
  const PlanSpec spec = plans::spec_of("{epochs: 3000, start_up: 60s, checkpoint: {time: 2s, every: 10}}",
                                       "{servers: [aws-p3.2xlarge], nodes: [4], batch_per_device: [256], "
                                       "market: [spot], interruptions: trace}");
  const PlanAnswer answer = answer_of(spec, false);
  REQUIRE(answer.choice);
  const CandidateResultOfPlan& choice = *answer.choice;
  const std::optional<SpotRisk> rate =
      find_spot_risk(interruption_rates(), "aws-p3.2xlarge", choice.region, RiskKind::trace);
  REQUIRE(rate);
  const double work_s = 3000 * 1e5 / 1024 * choice.step_time_s;
  const RunEstimate expected = expected_run({rate->per_host_h / 3600, rate->lost_at_once},
                                            {2, work_s / 300, rate->wait_h * 3600, 60}, 4, work_s);
  CHECK(choice.figures.time_s == approx(60 + expected.time_s).epsilon(1e-9));
  CHECK(choice.figures.interruptions == approx(expected.events).epsilon(1e-9));
  CHECK(choice.figures.cost_usd ==
        approx(choice.prices[0].usd_per_hour * (4 * 60 + expected.paid_host_s) / 3600).epsilon(1e-9));
  const GridRegion* grid = find_grid_region("aws", choice.region);
  REQUIRE(grid);
  CHECK(choice.figures.carbon_kg == approx(grid->carbon_kg(choice.figures.energy_j)));
}

namespace {

/// The candidates of a plan's choice and front, by what they do when machines are taken away.
std::map<std::string, CandidateResultOfPlan> by_reaction(const PlanSpec& spec) {
  std::map<std::string, CandidateResultOfPlan> found;
  for (const CandidateResultOfPlan& result : plans::results_of_all(spec))
    found.emplace(std::string(to_string(result.reaction)), result);
  return found;
}

}  // namespace

TEST_CASE("planner: going on with fewer machines is a candidate beside waiting, by its closed form") {
  const PlanSpec spec = plans::spec_of("{epochs: 3000, start_up: 60s, checkpoint: {time: 2s, every: 10}}",
                                       "{servers: [aws-p3.2xlarge], nodes: [4], batch_per_device: [256], "
                                       "market: [spot], interruptions: trace, "
                                       "on_interruption: [wait, continue]}");
  const std::map<std::string, CandidateResultOfPlan> found = by_reaction(spec);
  REQUIRE(found.size() == 2);
  const CandidateResultOfPlan& on = found.at("continue");
  const std::optional<SpotRisk> rate =
      find_spot_risk(interruption_rates(), "aws-p3.2xlarge", on.region, RiskKind::trace);
  REQUIRE(rate);
  const double work_s = 3000 * 1e5 / 1024 * on.step_time_s, checkpoints_s = 300 * 2;
  const RunEstimate expected = expected_elastic_run({rate->per_host_h / 3600, rate->lost_at_once},
                                                    {60, rate->wait_h * 3600}, 4, work_s);
  CHECK(on.figures.time_s == approx(60 + checkpoints_s + expected.time_s).epsilon(1e-9));
  CHECK(on.figures.cost_usd ==
        approx(on.prices[0].usd_per_hour * (4 * (60 + checkpoints_s) + expected.paid_host_s) / 3600)
            .epsilon(1e-9));
  CHECK(found.at("wait").figures.time_s != on.figures.time_s);
  // One machine, or states that are sharded, cannot go on.
  CHECK(by_reaction(plans::spec_of("{epochs: 30}",
                                   "{servers: [aws-p3.2xlarge], nodes: [1], batch_per_device: "
                                   "[256], market: [spot], on_interruption: [continue]}"))
            .contains("wait"));
}

TEST_CASE(
    "planner: failures of hosts on demand lengthen a run as the closed form says, in proportion to devices") {
  const auto plan = [](const std::string& failures) {
    return by_reaction(plans::spec_of("{epochs: 3000, start_up: 60s, checkpoint: {time: 2s, every: 10}}",
                                      "{servers: [aws-p3.8xlarge], nodes: [4], batch_per_device: [256]" +
                                          failures + "}"))
        .at("wait");
  };
  const CandidateResultOfPlan without = plan(""), with = plan(", failures: {repair: 1h}");
  CHECK_FALSE(without.interruptible);
  CHECK(with.interruptible);
  const double a_day = failure_rate_of("v100-sxm2-16gb").per_host_day * 4 / 8;  // four devices of eight
  const double work_s = 3000 * 1e5 / 4096 * with.step_time_s;
  const RunEstimate expected = expected_run({a_day / 86400, 1}, {2, work_s / 300, 3600, 60}, 4, work_s);
  CHECK(with.figures.time_s == approx(60 + expected.time_s).epsilon(1e-9));
  CHECK(with.figures.interruptions == approx(expected.events).epsilon(1e-9));
  CHECK(with.figures.time_s > without.figures.time_s);
  // However few they are: they are not none.
  CandidateResultOfPlan rare = with;
  for (const auto& [events, words] :
       {std::pair{0.00146, "; 0.0015 interruptions expected (0 to 2 at 80 %), each waited out"},
        {3e-6, "; 3e-06 interruptions expected (0 to 2 at 80 %), each waited out"},
        {1.5, "; 1.50 interruptions expected (0 to 2 at 80 %), each waited out"}}) {
    rare.figures.interruptions = events;
    rare.interruptions_interval = {0, 2};
    CHECK(order_text(rare).ends_with(words));
  }
}

TEST_CASE("planner: machines of an interrupted run draw idle power while they wait and are paid for") {
  const ServerSpec server = load_server("aws-p3.2xlarge", {});
  double idle_w = server.host.host_power_w;
  for (const auto& [device, count] : server.devices) idle_w += device.idle_power_w * count;
  REQUIRE(idle_w > 30);
  const std::string goal = "{epochs: 3000, start_up: 60s, checkpoint: {time: 2s, every: 10}}";
  const auto plan = [&](const std::string& more) {
    return by_reaction(
        plans::spec_of(goal, "{servers: [aws-p3.2xlarge], nodes: [4], batch_per_device: [256]" + more + "}"));
  };
  const std::string spot = ", market: [spot], interruptions: trace";
  const CandidateResultOfPlan calm = plan("").at("wait");
  const double work_s = 3000 * 1e5 / 1024 * calm.step_time_s;
  // Start-up and 300 checkpoints beside training.
  const double work_j = calm.figures.energy_j - (60 + 300 * 2) * 4 * idle_w;
  const auto interrupted = plan(spot + ", on_interruption: [wait, continue]");
  REQUIRE(interrupted.size() == 2);
  for (const auto& [reaction, candidate] : interrupted) {
    CAPTURE(reaction);
    // What is paid for is drawn from: all but the hosts that are away.
    const double paid_host_s = candidate.figures.cost_usd / candidate.prices[0].usd_per_hour * 3600;
    CHECK(paid_host_s > 4 * (60 + work_s));
    CHECK(candidate.figures.energy_j == approx(work_j + (paid_host_s - 4 * work_s) * idle_w).epsilon(1e-9));
  }
}
