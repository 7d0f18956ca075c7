// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "sim/planning/convergence.h"
#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"

using namespace convoy;

TEST_CASE("convergence: the table's own points, and straight in the logarithm of the batch between them") {
  const ConvergenceTable table = load_goal("resnet50-imagenet-75.9", {});
  // github:mlcommons/logging rcps_resnet.json, rounds 1.0.0 to 2.0.0
  CHECK(table.optimizer == "lars");
  CHECK(table.at(1632, false)->epochs == 35.0);
  CHECK(table.at(4096, false)->epochs == 40.0);
  CHECK(table.at(67840, false)->epochs == approx(85.857));
  CHECK(table.at(67840, false)->least == 85);
  CHECK(table.at(67840, false)->most == 87);
  // Two rows of one batch: 16 runs of 44.75 and 10 of 45.4.
  CHECK(table.at(13056, false)->epochs == approx((16 * 44.75 + 10 * 45.4) / 26));
  // The geometric mean of two batches has the mean of their epochs.
  CHECK(table.at(std::sqrt(4096.0 * 8192.0), false)->epochs == approx(41.0));
  CHECK(*table.samples == 1281167);
}

TEST_CASE("convergence: a batch needs no more epochs than a larger one") {
  // By hand: 38.4 at 2048 lies above the 35.2 of 3264, and 86.1 at 64480 above the 84.5 of 65536.
  const ConvergenceTable table = load_goal("resnet50-imagenet-75.9", {});
  CHECK(table.at(2048, false)->epochs == 35.2);
  CHECK(table.at(2048, false)->least == 34);
  CHECK(table.at(2048, false)->most == 37);
  CHECK(table.at(64480, false)->epochs == 84.5);
  CHECK(table.at(std::sqrt(1632.0 * 2048.0), false)->epochs == approx(35.1));
  CHECK(table.at(3000, false)->epochs == approx(35.2));
}

TEST_CASE("convergence: the envelope is the least of all larger batches, by brute force over random tables") {
  const unsigned seed = 20'261;
  CAPTURE(seed);
  std::mt19937 dice(seed);
  std::uniform_real_distribution<double> drawn(20, 90);
  for (int round = 0; round < 200; ++round) {
    ConvergenceTable table;
    double batch = 16;
    for (int i = 0, rows = 1 + round % 9; i < rows; ++i) {
      const double epochs = drawn(dice);
      table.points.push_back({batch, {epochs, epochs - 1, epochs + 2}, 1, ""});
      batch = std::ceil(batch * (1 + drawn(dice) / 60));
    }
    CAPTURE(round);
    double before = 0;
    for (const ConvergencePoint& point : table.points) {
      double least = INFINITY;
      for (const ConvergencePoint& other : table.points)
        if (other.batch >= point.batch) least = std::min(least, other.needed.epochs);
      CHECK(table.at(point.batch, false)->epochs == least);
      CHECK(table.at(point.batch, false)->most == least + 2);
    }
    for (double b = 1; b <= table.largest(); b = std::ceil(b * 1.07)) {
      const EpochsNeeded needed = *table.at(b, true);
      CAPTURE(b);
      CHECK(needed.epochs >= before - 1e-9);
      CHECK(needed.least <= needed.epochs);
      CHECK(needed.most >= needed.epochs);
      before = needed.epochs;
    }
    CHECK_FALSE(table.at(table.largest() + 1, true));
  }
}

TEST_CASE("convergence: below the table on request, continuously and growing, and nothing above it") {
  const ConvergenceTable table = load_goal("resnet50-imagenet-75.9", {});
  CHECK_FALSE(table.at(1631, false));
  CHECK_FALSE(table.at(67841, false));
  CHECK_FALSE(table.at(67841, true));
  CHECK_FALSE(table.at(2'097'152, true));
  CHECK(table.at(1631.999, true)->epochs == approx(35.0).epsilon(1e-4));
  CHECK(table.at(256, true)->epochs < 35);
  CHECK(table.at(256, true)->epochs > 30);
  CHECK(table.at(256, true)->most == 37);  // the noise scale may be wrong: no more than with 1632
}

TEST_CASE("convergence: rows of one optimizer are not another's") {
  const ConvergenceTable sgd = load_goal("resnet50-imagenet-75.9", {}, {"sgd", {}});
  CHECK(sgd.smallest() == 2048);
  CHECK(sgd.largest() == 8192);
  CHECK(sgd.at(3264, false)->epochs == 90);
  CHECK(sgd.optimizers == std::vector<std::string>{"lars", "sgd", "lamb"});
  CHECK(load_goal("resnet50-imagenet-75.9", {}, {"lamb", {}}).at(32768, true)->epochs == 90);
  CHECK_THROWS_WITH_AS(load_goal("resnet50-imagenet-75.9", {}, {"lar", {"plan.yaml", 4, 9}}),
                       "plan.yaml:4:9: goal.optimizer: no rows with 'lar' (did you mean 'lars'?); "
                       "resnet50-imagenet-75.9 has those of lars, sgd, lamb",
                       InputError);
  CHECK_THROWS_WITH_AS(load_goal("ssd-openimages-0.34", {}, {"sgd", {"plan.yaml", 4, 9}}),
                       "plan.yaml:4:9: goal.optimizer: the rows of ssd-openimages-0.34 do not say theirs",
                       InputError);
}

TEST_CASE(
    "convergence: where no optimizer is asked for, the rows are those of the one nearest to training's") {
  const auto taken = [](const std::string& optimizers, std::optional<Optimizer> trained) {
    std::string text = "batch,epochs,optimizer\n";
    for (std::size_t at = 0; at < optimizers.size();) {
      const std::size_t end = std::min(optimizers.find(' ', at), optimizers.size());
      text += "64,10," + optimizers.substr(at, end - at) + "\n";
      at = end + 1;
    }
    const plans::WrittenTable table(text);
    return read_convergence(table.file, {"", {}, trained}).optimizer;
  };
  CHECK(taken("lars adam sgd momentum", Optimizer::momentum) == "momentum");
  CHECK(taken("lars adam sgd", Optimizer::momentum) == "sgd");
  CHECK(taken("adam lars", Optimizer::momentum) == "lars");
  CHECK(taken("lars momentum sgd", Optimizer::sgd) == "sgd");
  CHECK(taken("lars momentum", Optimizer::sgd) == "momentum");
  CHECK(taken("sgd lamb adamw", Optimizer::adam) == "adamw");
  CHECK(taken("sgd lamb", Optimizer::adam) == "lamb");
  // None of them is near.
  CHECK(taken("adascale sgd", Optimizer::adam) == "adascale");
  CHECK(taken("adascale lamb", Optimizer::momentum) == "adascale");
  CHECK(taken("lars sgd", std::nullopt) == "lars");
  // One that is asked for is taken, whatever is near.
  CHECK(load_goal("resnet50-imagenet-75.9", {}, {"lamb", {}, Optimizer::sgd}).optimizer == "lamb");
}

TEST_CASE("convergence: a noise scale is found again in a table made from it") {
  const NoiseScale made{31.5, 12345};
  std::vector<ConvergencePoint> points;
  for (const double batch : {64.0, 300.0, 2048.0, 20000.0, 65536.0})
    points.push_back({batch, {made.at(batch), 0, 0}, 1, ""});
  const std::optional<NoiseScale> fit = fit_noise_scale(points);
  REQUIRE(fit);
  CHECK(fit->epochs == approx(31.5).epsilon(1e-9));
  CHECK(fit->noise_scale_images == approx(12345).epsilon(1e-9));
  CHECK_FALSE(fit_noise_scale({points.front()}));
  CHECK_FALSE(fit_noise_scale({{1, {5, 5, 5}, 1, ""}, {2, {4, 4, 4}, 1, ""}}));
}

TEST_CASE("convergence: MLPerf's table of ResNet-50 follows a noise scale within 12 %") {
  const ConvergenceTable table = load_goal("resnet50-imagenet-75.9", {});
  const std::optional<NoiseScale> fit = fit_noise_scale(table.points);
  REQUIRE(fit);
  for (const ConvergencePoint& point : table.points) {
    CAPTURE(point.batch);
    CHECK(std::abs(fit->at(point.batch) / point.needed.epochs - 1) < 0.12);
  }
}

TEST_CASE("convergence: what is wrong with a table or a name is said") {
  CHECK_THROWS_WITH_AS(load_goal("resnet50-imagenet-75.8", {}),
                       doctest::Contains("did you mean 'resnet50-imagenet-75.9'"), InputError);
  const std::string file =
      std::filesystem::temp_directory_path() / fmt::format("convoy-goal-{}.csv", ::getpid());
  std::ofstream(file) << "batch,epochs,least,most\n64,10,11,12\n";
  CHECK_THROWS_WITH_AS(read_convergence(file),
                       doctest::Contains(":2:1: epochs: must lie between least and most"), InputError);
  std::ofstream(file) << "batch,epochs\n128,12\n64,10\n";
  const ConvergenceTable table = read_convergence(file);
  CHECK(table.smallest() == 64);
  CHECK(table.at(128, false)->epochs == 12);
  std::filesystem::remove(file);
}
