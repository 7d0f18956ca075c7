// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "sim/planning/whole_runs.h"
#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"

using namespace convoy;

TEST_CASE("whole runs: teams count the same, and another team lies four times of five within their spread") {
  // By hand: logs of the teams' means are 0.3, 0 and -0.3: mean 0, standard deviation 0.3, of another team
  // 0.3 sqrt(4/3). Steps lie within a factor of e^0.1 of what is predicted.
  const auto run = [](const char* team, double log_ratio) {
    return WholeRun{"s", team, "r", std::exp(log_ratio), 1, std::exp(-0.1), std::exp(0.1)};
  };
  const std::vector<WholeRun> runs{run("a", 0.2), run("a", 0.4), run("b", 0), run("c", -0.3)};
  const WholeRunSpread spread = whole_run_spread(runs);
  CHECK(spread.teams == 3);
  CHECK(spread.runs == 4);
  CHECK(std::abs(spread.bias) < 1e-12);
  CHECK(spread.reach == approx(1.28155 * 0.3 * std::sqrt(4.0 / 3)));
  CHECK(spread.step_reach == approx(0.1));
  // A step as sure as those of the runs adds nothing, a wider one what it is wider.
  CHECK(spread.around({std::exp(-0.1), std::exp(0.1)}).second == approx(std::exp(spread.reach)));
  CHECK(spread.around({1, 1}).second == approx(std::exp(spread.reach)));
  CHECK(spread.around({std::exp(-0.5), 1}).first ==
        approx(std::exp(-std::sqrt(spread.reach * spread.reach + 0.25 - 0.01))));
  CHECK(spread.around({0, 1}).first < 1e-8);
  CHECK_THROWS_WITH_AS(whole_run_spread(runs, "a"), doctest::Contains("at least three teams"), InputError);
}

TEST_CASE("whole runs: of the published ones, each team left out, about four of five lie inside") {
  // A second implementation, with the spread by hand from the table's rows.
  const std::vector<WholeRun>& runs = whole_runs();
  REQUIRE(runs.size() == 22);
  int inside = 0;
  for (const WholeRun& left : runs) {
    std::map<std::string, std::pair<double, int>> sums;
    for (const WholeRun& run : runs)
      if (run.team != left.team) {
        sums[run.team].first += std::log(run.measured / run.predicted);
        ++sums[run.team].second;
      }
    double sum = 0, squares = 0;
    for (const auto& [team, of_team] : sums) {
      const double mean = of_team.first / of_team.second;
      sum += mean, squares += mean * mean;
    }
    const auto n = static_cast<double>(sums.size());
    const double bias = sum / n, deviation = std::sqrt((squares - n * bias * bias) / (n - 1) * (1 + 1 / n));
    const WholeRunSpread spread = whole_run_spread(runs, left.team);
    CHECK(spread.bias == approx(bias));
    CHECK(spread.reach == approx(1.28155 * deviation));
    const auto [low, high] = spread.around({left.low / left.predicted, left.high / left.predicted});
    CHECK(low < high);
    const double ratio = left.measured / left.predicted;
    inside += low <= ratio && ratio <= high ? 1 : 0;
  }
  CHECK(inside >= 16);  // 73 %
  CHECK(inside <= 19);  // 86 %
}

TEST_CASE("whole runs: the team of a row") {
  CHECK(team_of("DellEMC 2xC4140") == "Dell");
  CHECK(team_of("Dell 2xXE8545x4A100-SXM-40GB") == "Dell");
  CHECK(team_of("fast.ai and DIUx, 4 x p3.16xlarge") == "fast.ai and DIUx");
  for (const WholeRun& run : whole_runs()) CHECK(team_of(run.run) == run.team);
}

TEST_CASE("whole runs: a plan's intervals are wider than those of its steps, and shifted") {
  const PlanAnswer answer = plans::answer_of(
      plans::spec_of("{epochs: 3}", "{servers: [aws-p3.2xlarge], batch_per_device: [32]}"), false);
  REQUIRE(answer.choice);
  const CandidateResultOfPlan& choice = *answer.choice;
  const WholeRunSpread spread = whole_run_spread(whole_runs());
  const auto [low, high] = choice.run_time_interval;
  CHECK(high / choice.figures.time_s >= std::exp(spread.bias + spread.reach) * (1 - 1e-9));
  CHECK(low / choice.figures.time_s <= std::exp(spread.bias - spread.reach) * (1 + 1e-9));
  CHECK(choice.time_interval.second < high);
  // The price of this machine is as old as the newest of its table: the cost is as sure as the time.
  CHECK(choice.run_cost_interval.second / choice.figures.cost_usd == approx(high / choice.figures.time_s));
}
