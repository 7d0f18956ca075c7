// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace {

std::string plan_text(const std::string& constraints) {
  return "experiment: p\nmodel: alexnet\ntraining: {dataset: {samples: 1281167}}\ngoal: {epochs: 10}\n"
         "plan: {constraints: {" +
         constraints +
         "}, servers: [aws-p3.2xlarge, aws-p3.16xlarge], nodes: [1, 2], batch_per_device: [64, 128]}\n";
}

}  // namespace

TEST_CASE("plan: the order in words, and as JSON of schema convoy.plan/1") {
  const Workplace place;
  place.file("plan.yaml", plan_text("deadline: 48h"));
  const Finished words = place.convoy({"plan", "plan.yaml"});
  CAPTURE(words.err);
  REQUIRE(words.exit_code == 0);
  CHECK(words.out.find("rent 1 aws-p3.2xlarge on demand for ") != std::string::npos);
  CHECK(words.out.find("what would change it") != std::string::npos);
  const Finished json = place.convoy({"plan", "plan.yaml", "--json"});
  REQUIRE(json.exit_code == 0);
  CHECK(json.out == place.read("runs/p/plan.json"));
  const nlohmann::json plan = nlohmann::json::parse(json.out);
  CHECK(plan["schema"] == "convoy.plan/1");
  CHECK(plan["choice"]["servers"] == nlohmann::json{{"aws-p3.2xlarge", 1}});
  CHECK(plan["choice"]["strategy"]["kind"] == "data_parallel");
  CHECK(plan["choice"]["cost_usd"].get<double>() ==
        doctest::Approx(plan["choice"]["usd_per_h"].get<double>() *
                        plan["choice"]["time_to_train_s"].get<double>() / 3600));
  std::int64_t all = plan["simulated"];
  for (const auto& [reason, count] : plan["pruned"].items()) all += count.get<std::int64_t>();
  CHECK(plan["candidates"] == all);
}

TEST_CASE("plan: nothing meets the constraints: exit 1, no choice, the nearest constraint") {
  const Workplace place;
  place.file("plan.yaml", plan_text("deadline: 1s"));
  const Finished json = place.convoy({"plan", "plan.yaml", "--json"});
  CHECK(json.exit_code == 1);
  const nlohmann::json plan = nlohmann::json::parse(json.out);
  CHECK(plan["choice"].is_null());
  CHECK(plan["nearest_constraint"]["name"] == "deadline");
  CHECK(json.err.find("nearest is deadline") != std::string::npos);
}

TEST_CASE("plan: check counts its candidates, run says where to go, wrong files end with 2") {
  const Workplace place;
  place.file("plan.yaml", plan_text("deadline: 1h"));
  CHECK(place.convoy({"check", "plan.yaml"}).out == "p: 8 candidates of 2 kinds of servers\n");
  const Finished run = place.convoy({"run", "plan.yaml"});
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("use `convoy plan FILE`") != std::string::npos);
  const Finished both = place.convoy({"plan", "plan.yaml", "--set", "goal.target=resnet50-imagenet-75.9"});
  CHECK(both.exit_code == 2);
  const Finished outside =
      place.convoy({"plan", "plan.yaml", "--set", "goal={target: resnet50-imagenet-75.9}", "--set",
                    "plan.batch_per_device=[8, 16]"});
  CHECK(outside.exit_code == 2);
  CHECK(outside.err.find(
            "epochs for global batches of 1632 to 67840; those of all candidates, 8 to 256, lie outside") !=
        std::string::npos);
}
