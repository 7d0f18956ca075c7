// SPDX-License-Identifier: MIT
// What is said of a candidate does not depend on which others there are: of each of a wide plan there is a plan of it alone.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// The figures of a candidate, by name.
std::map<std::string, double> figures_of(const CandidateResultOfPlan& result) {
  const Figures& figures = result.figures;
  std::map<std::string, double> all{{"step_time_s", result.step_time_s},
                                    {"peak_memory_bytes", result.peak_memory_bytes},
                                    {"usd_per_h", result.usd_per_h},
                                    {"idle_usd_per_h", result.idle_usd_per_h},
                                    {"time_s", figures.time_s},
                                    {"cost_usd", figures.cost_usd},
                                    {"energy_j", figures.energy_j},
                                    {"carbon_kg", figures.carbon_kg},
                                    {"interruptions", figures.interruptions},
                                    {"run_time_low", result.run_time_interval.first},
                                    {"run_time_high", result.run_time_interval.second},
                                    {"run_cost_low", result.run_cost_interval.first},
                                    {"run_cost_high", result.run_cost_interval.second},
                                    {"interruptions_low", result.interruptions_interval.first},
                                    {"interruptions_high", result.interruptions_interval.second}};
  for (std::size_t k = 0; k < result.prices.size(); ++k)
    all.emplace(fmt::format("price of kind {}", k), result.prices[k].usd_per_hour);
  return all;
}

/// All candidates of a plan, by what tells them apart.
std::map<std::string, CandidateResultOfPlan> all_of(const PlanSpec& spec) {
  std::map<std::string, CandidateResultOfPlan> found;
  for (const CandidateResultOfPlan& result : plans::results_of_all(spec)) {
    std::string name =
        fmt::format("{} {} {} {} {} {}", to_string(result.market), result.region, to_string(result.precision),
                    result.batch_per_device, result.label, to_string(result.reaction));
    for (const auto& [server, count] : result.order) name += fmt::format(" {}x{}", count, server);
    found.emplace(std::move(name), result);
  }
  return found;
}

}  // namespace

TEST_CASE("planner: a candidate's figures are those of a plan of it alone") {
  const std::string goal = "{epochs: 300, start_up: 60s, checkpoint: {time: 2s, every: 100}}";
  const PlanSpec wide = plans::spec_of(
      goal,
      "{servers: [aws-p3.2xlarge, aws-p3.8xlarge, aws-g4dn.12xlarge], nodes: [1, 2, 4], batch_per_device: "
      "[64, "
      "256], precision: [fp32, fp16], market: [on_demand, spot], region: [us-east-1, us-west-2, eu-west-1], "
      "interruptions: trace, strategies: [{kind: data_parallel, sync: all_reduce, algorithm: [ring, "
      "tree]}]}");
  const std::map<std::string, CandidateResultOfPlan> all = all_of(wide);
  REQUIRE(all.size() > 200);
  std::size_t number = 0, alone_spot = 0;
  for (const auto& [name, result] : all) {
    if (result.prices.empty() || ++number % 7 != 0) continue;
    CAPTURE(name);
    const auto& [server, count] = result.order.front();
    const PlanSpec narrow = plans::spec_of(
        goal,
        fmt::format("{{servers: [{}], nodes: [{}], batch_per_device: [{}], precision: [{}], market: [{}], "
                    "region: [{}], interruptions: trace, strategies: [{}]}}",
                    server, count, result.batch_per_device, to_string(result.precision),
                    to_string(result.market), result.region, to_flow(result.strategy)));
    const std::map<std::string, CandidateResultOfPlan> few = all_of(narrow);
    const auto alone = few.find(name);
    REQUIRE(alone != few.end());
    alone_spot += result.market == Market::spot;
    const std::map<std::string, double> one = figures_of(alone->second), other = figures_of(result);
    REQUIRE(one.size() == other.size());
    for (const auto& [figure, value] : one) {
      CAPTURE(figure);
      if (std::isfinite(value))
        CHECK(value == approx(other.at(figure)).epsilon(1e-12));
      else
        CHECK(value == other.at(figure));
    }
    CHECK(alone->second.doubts == result.doubts);
    CHECK(alone->second.bottleneck == result.bottleneck);
  }
  CHECK(alone_spot > 3);
}
