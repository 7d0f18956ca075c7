// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>

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
  CHECK(goal_error("{samples: 30, optimizer: lars}")
            .find(":4:32: goal.optimizer: goes with target or table only; 'samples' has no rows of runs") !=
        std::string::npos);
  CHECK(goal_error("{target: resnet50-imagenet-75.9, optimizer: adam}")
            .find(":4:51: goal.optimizer: no rows with 'adam'") != std::string::npos);
  CHECK(goal_error("{epochs: 9, samples: 10}").find("'samples' is given too") != std::string::npos);
  CHECK(goal_error("{noise_scale: 10}").find("epochs") != std::string::npos);
  CHECK(goal_error("{epochs: 9, evaluate: 3}").find("evaluate") != std::string::npos);
  CHECK(plans::error_of("{epochs: 9}", "{servers: [aws-p3.2xlarge]}", "{}").find("training.dataset") !=
        std::string::npos);
}

TEST_CASE("goal: a table of another network, optimizer or data set is doubted, and scaled to the data set") {
  const Goal goal = goal_of("{target: resnet50-imagenet-75}");  // with plan_text.h's data set
  const std::string samples =
      "the epochs are of 1281167 images each, the data set has 100000: they are scaled by 12.8, so that as "
      "many "
      "images are seen";
  const std::string optimizer =
      "the epochs are those of runs with adascale, and this plan trains with momentum";
  const auto momentum = Optimizer::momentum;
  CHECK(goal.doubts("resnet50", momentum) == std::vector<std::string>{optimizer, samples});
  CHECK(goal.doubts("", momentum).size() == 2);  // a network of the user's own
  CHECK(goal.doubts("resnet18", momentum) ==
        std::vector<std::string>{"the epochs are those of resnet50, and this plan trains resnet18", optimizer,
                                 samples});
  CHECK(goal.epochs(1600)->epochs == approx(62 * 12.81167));
  CHECK(goal.evidence(1600).grade == Grade::assumed);
  CHECK(goal_of("{epochs: 9}").doubts("resnet18", momentum).empty());
  // Asked for, an optimizer is not doubted; nor is SGD, whose rows are taken unasked, where it is trained.
  for (const char* asked : {"", ", optimizer: lars", ", optimizer: sgd"})
    CHECK(goal_of(fmt::format("{{target: resnet50-imagenet-75.9{}}}", asked)).doubts("resnet50", momentum) ==
          std::vector<std::string>{samples});
  const Goal adam = plans::spec_of("{target: resnet50-imagenet-75.9}", "{servers: [aws-p3.2xlarge]}",
                                   "{optimizer: adam, dataset: {samples: 1281167}}")
                        .goal;
  CHECK(adam.text() == "ResNet-50 v1.5 on ImageNet to 75.9 % top-1 with lamb");
  CHECK(adam.doubts("resnet50", Optimizer::adam) ==
        std::vector<std::string>{"the epochs are those of runs with lamb, and this plan trains with adam; "
                                 "goal.optimizer can be lars, sgd"});
}

TEST_CASE("goal: what is known of the epochs of a batch is said") {
  const Goal goal = plans::spec_of("{target: resnet50-imagenet-75.9, optimizer: lars}",
                                   "{servers: [aws-p3.2xlarge]}", "{dataset: {samples: 1281167}}")
                        .goal;
  CHECK(goal.text() == "ResNet-50 v1.5 on ImageNet to 75.9 % top-1 with lars");
  CHECK(goal.evidence(4096).grade == Grade::measured);
  CHECK(goal.evidence(4096).text == "with lars");
  CHECK(goal.evidence(2048).text ==
        "with lars, as with a larger batch: runs with 2048 images a step took 38.4, with other "
        "hyperparameters");
  CHECK(goal.evidence(256).grade == Grade::assumed);
  CHECK(goal.evidence(256).text == "with lars, extrapolated from the 35 of 1632 images a step");
  CHECK(*goal.batch_doubt(256) == "the epochs are extrapolated: the goal's runs begin at 1632 images a step");
  CHECK_FALSE(goal.batch_doubt(1632));
  CHECK_FALSE(goal.epochs(67841));
  CHECK_FALSE(goal_of("{target: resnet50-imagenet-75.9, optimizer: lars, extrapolate: false}").epochs(1024));
  // Without 64480, whose runs took more epochs than those with 65536; 2048 is a power of two anyway.
  const std::vector<double> batches = goal.batches();
  CHECK(batches.size() == 10);
  CHECK(std::find(batches.begin(), batches.end(), 64480.0) == batches.end());
}

TEST_CASE("goal: epochs that do not follow the batch are doubted beyond 8192 images") {
  for (const char* fixed : {"{epochs: 9}", "{samples: 1e6}"}) {
    CHECK_FALSE(goal_of(fixed).batch_doubt(8192));
    CHECK(goal_of(fixed).batch_doubt(8193));
  }
  CHECK_FALSE(goal_of("{target: resnet50-imagenet-75.9}").batch_doubt(65536));
  CHECK_FALSE(goal_of("{noise_scale: 8000, epochs: 30}").batch_doubt(65536));
}
