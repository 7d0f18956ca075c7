// SPDX-License-Identifier: MIT
// What is written of an answer.
#include <doctest/doctest.h>

#include <sstream>

#include "sim/base/input_error.h"
#include "sim/planning/plan_report.h"
#include "sim/planning/read_plan_json.h"
#include "sim/planning/write_plan.h"
#include "tests/planning/plan_text.h"

using namespace convoy;
using plans::answer_of;

TEST_CASE("planner: an answer that was written and read back makes the same page and table") {
  for (const char* plan : {"{servers: [aws-p3.2xlarge, aws-g4dn.xlarge], nodes: [1, 2], batch_per_device: "
                           "[64], market: [on_demand, spot], "
                           "constraints: {deadline: 50h, budget: 900USD, max_devices: 64, providers: [aws]}}",
                           "{servers: [aws-p3.2xlarge], batch_per_device: [64], constraints: {deadline: 1s}, "
                           "objective: energy}"}) {
    const PlanAnswer answer = answer_of(plans::spec_of("{epochs: 30}", plan), false);
    std::stringstream json;
    write_json(answer, json);
    const PlanAnswer back = read_plan_answer(json, "plan.json");
    std::ostringstream page, page_back;
    write_report(answer, page);
    write_report(back, page_back);
    CHECK(page_back.str() == page.str());
    CHECK(table(back) == table(answer));
    if (answer.choice) {
      CHECK(page.str().find(answer.choice->prices.front().until) != std::string::npos);  // the price's date
      for (const CandidateResultOfPlan& candidate : answer.front) CHECK_FALSE(candidate.reason.empty());
    }
  }
  std::istringstream other("{\"schema\": \"convoy.results/1\"}"), cut("{\"schema\": \"convoy.pl");
  CHECK_THROWS_WITH_AS(read_plan_answer(other, "plan.json"),
                       "plan.json: is no plan of `convoy plan`: its schema is another one", InputError);
  CHECK_THROWS_AS(read_plan_answer(cut, "plan.json"), InputError);
}

TEST_CASE("planner: the strategy's text names the algorithm that auto came to") {
  const PlanAnswer answer = answer_of(
      plans::spec_of("{epochs: 30}", "{servers: [aws-p3.8xlarge], nodes: [2], batch_per_device: [64]}"),
      false);
  REQUIRE(answer.choice);
  CHECK(answer.choice->label.starts_with("auto all-reduce ("));
  CHECK(answer.choice->label.ends_with(")"));
}
