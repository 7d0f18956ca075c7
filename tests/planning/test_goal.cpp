// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

Goal goal_of(const std::string& text) { return plans::spec_of(text, "{servers: [aws-p3.2xlarge]}").goal; }
std::string goal_error(const std::string& text) {
  return plans::error_of(text, "{servers: [aws-p3.2xlarge]}");
}

}  // namespace

TEST_CASE("goal: epochs, images, a noise scale") {
  CHECK(goal_of("{epochs: 90}").epochs(1e6)->epochs == 90);
  CHECK(goal_of("{samples: 2500000}").epochs(7)->epochs == 25);
  const Goal noise = goal_of("{noise_scale: 1000, epochs: 30}");
  CHECK(noise.epochs(1)->epochs == approx(30.03));
  CHECK(noise.epochs(1000)->epochs == approx(60));
}

TEST_CASE("goal: what is done beside training") {
  const Goal goal =
      goal_of("{epochs: 10, start_up: 5min, evaluation: {time: 10s, every: 4}, checkpoint: {time: 2s}}");
  // Start-up once; evaluations after epochs 4, 8 and at the end; a checkpoint after each of ten epochs.
  CHECK(goal.beside_s(10) == approx(300 + 3 * 10 + 10 * 2));
  CHECK(goal_of("{epochs: 10}").beside_s(10) == 0);
}

TEST_CASE("goal: errors") {
  CHECK(goal_error("{}") ==
        ":4:7: goal: says nothing to reach: give target: NAME, table: FILE, epochs, samples, or noise_scale "
        "with epochs");
  CHECK(goal_error("{epoch: 3}").find(":4:8: goal.epoch: unknown key (did you mean 'epochs'?)") !=
        std::string::npos);
  CHECK(
      goal_error("{epochs: 3, extrapolate: true}").find("goal.extrapolate: goes with target or table only") !=
      std::string::npos);
  CHECK(goal_error("{epochs: 9, samples: 10}").find("'samples' is given too") != std::string::npos);
  CHECK(goal_error("{noise_scale: 10}").find("epochs") != std::string::npos);
  CHECK(goal_error("{epochs: 9, evaluate: 3}").find("evaluate") != std::string::npos);
  CHECK(plans::error_of("{epochs: 9}", "{servers: [aws-p3.2xlarge]}", "{}").find("training.dataset") !=
        std::string::npos);
}

TEST_CASE("goal: a table of another network or data set is doubted") {
  const std::string samples = "the epochs are of 1281167 images each, the data set has 100000";
  const Goal goal = goal_of("{target: resnet50-imagenet-75.9}");  // with plan_text.h's data set
  CHECK(goal.doubts("resnet50") == std::vector<std::string>{samples});
  CHECK(goal.doubts("") == std::vector<std::string>{samples});  // a network of the user's own
  CHECK(goal.doubts("resnet18") ==
        std::vector<std::string>{"the epochs are those of resnet50, trained is resnet18", samples});
  CHECK(goal_of("{epochs: 9}").doubts("resnet18").empty());
}

TEST_CASE("goal: epochs that do not follow the batch are doubted beyond 8192 images") {
  for (const char* fixed : {"{epochs: 9}", "{samples: 1e6}"}) {
    CHECK_FALSE(goal_of(fixed).batch_doubt(8192));
    CHECK(goal_of(fixed).batch_doubt(8193));
  }
  CHECK_FALSE(goal_of("{target: resnet50-imagenet-75.9}").batch_doubt(65536));
  CHECK_FALSE(goal_of("{noise_scale: 8000, epochs: 30}").batch_doubt(65536));
}
