// SPDX-License-Identifier: MIT
// Partitions against exhaustive search.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "strategies/pipeline/pipeline_partition.h"
#include "tests/strategies/pipeline_problem.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// All ways to cut n units into stages and to give them the slots.
void for_all_cuts(const PipelineCosts& costs,
                  const std::function<void(const std::vector<StageChoice>&)>& visit) {
  std::vector<StageChoice> stages;
  const std::function<void(std::uint32_t, std::uint32_t)> extend = [&](std::uint32_t unit,
                                                                       std::uint32_t slots) {
    const auto left = costs.shape().stages - static_cast<std::uint32_t>(stages.size());
    if (left == 0) {
      if (unit == costs.unit_count() && slots == costs.slot_count()) visit(stages);
      return;
    }
    for (std::uint32_t next = unit + 1; next <= costs.unit_count(); ++next)
      for (std::uint32_t more = 1; slots + more <= costs.slot_count(); ++more) {
        stages.push_back({unit, more});
        extend(next, slots + more);
        stages.pop_back();
      }
  };
  extend(0, 0);
}

/// Every replica of a stage needs a micro-batch; without flush equally many, or one for each update.
bool may_take(const PipelineShape& shape, std::uint32_t slots) {
  if (shape.weights == Weights::flush) return slots <= shape.micro_batches;
  return shape.micro_batches == 1 || shape.micro_batches % slots == 0;
}

/// PipelineCosts::step_s where each stage takes its neighbours to have as many slots as stages have on average, since
/// the search does not know them yet.
double searched_step_s(const PipelineCosts& costs, const std::vector<StageChoice>& stages) {
  double sum_s = 0, interval_s = 0;
  std::uint32_t end = costs.unit_count(), before = costs.slot_count();
  for (auto stage = stages.rbegin(); stage != stages.rend(); end = stage++->first_unit) {
    before -= stage->slots;
    const PipelineCosts::StageCost cost = costs.stage(stage->first_unit, end, before, stage->slots);
    interval_s =
        std::max({interval_s, cost.interval_s, costs.round_trip_s(cost, sum_s, before, stage->slots)});
    sum_s += cost.sum_s();
  }
  return costs.step_s(sum_s, interval_s);
}

void check_optimal(const PipelineProblem& problem) {
  const PipelineCosts costs = problem.costs();
  double best = std::numeric_limits<double>::infinity(), best_that_fits = best;
  std::size_t cuts = 0;
  for_all_cuts(costs, [&](const std::vector<StageChoice>& stages) {
    for (const StageChoice& stage : stages)
      if (!may_take(costs.shape(), stage.slots)) return;
    for (std::size_t s = 0; s < costs.shape().stage_slots.size(); ++s)
      if (stages[s].slots != costs.shape().stage_slots[s]) return;
    ++cuts;
    const double step_s = searched_step_s(costs, stages);
    best = std::min(best, step_s);
    if (costs.fits(stages)) best_that_fits = std::min(best_that_fits, step_s);
  });
  StagePrices prices(costs);
  const std::vector<StageChoice> found = least_step_partition(prices);
  if (cuts == 0) {
    CHECK(found.empty());
    return;
  }
  REQUIRE(found.size() == costs.shape().stages);
  const bool some_fit = best_that_fits < std::numeric_limits<double>::infinity();
  CHECK(costs.fits(found) == some_fit);
  CHECK(searched_step_s(costs, found) == approx(some_fit ? best_that_fits : best).epsilon(1e-9));
}

}  // namespace

TEST_CASE("the least step equals exhaustive search on chains of up to 12 layers") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    check_optimal(PipelineProblem(seed, false, false));
  }
}

TEST_CASE("the least step equals exhaustive search on small branched graphs") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    check_optimal(PipelineProblem(seed, true, false));
  }
}

TEST_CASE("the least step equals exhaustive search where stages may take several devices") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    check_optimal(PipelineProblem(seed, seed % 2 == 0, true));
  }
}

TEST_CASE(
    "the least step equals exhaustive search without flush, on chains and branched graphs, with and without "
    "replicas") {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    check_optimal(PipelineProblem(seed, seed % 2 == 0, seed % 3 != 0, true));
  }
}

TEST_CASE("the least step equals exhaustive search where the replicas of each stage are given") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    PipelineProblem problem(seed, seed % 2 == 0, true, seed % 4 > 1);
    for_all_cuts(problem.costs(), [&](const std::vector<StageChoice>& stages) {
      if (problem.pick(0, 3) != 0 && !problem.shape.stage_slots.empty()) return;
      std::vector<std::uint32_t> slots;
      for (const StageChoice& stage : stages) slots.push_back(stage.slots);
      if (std::all_of(slots.begin(), slots.end(), [&](auto n) { return may_take(problem.shape, n); }))
        problem.shape.stage_slots = slots;
    });
    check_optimal(problem);
  }
}

TEST_CASE("balanced has the smallest slowest stage of all cuts, and of those with it the shortest messages") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const PipelineProblem problem(seed, seed % 2 == 0, false);
    const PipelineCosts costs = problem.costs();
    const auto slowest_and_messages = [&](const std::vector<StageChoice>& stages) {
      std::pair<double, double> result{0, 0};
      for (std::uint32_t s = 0; s < stages.size(); ++s) {
        const std::uint32_t end = s + 1 < stages.size() ? stages[s + 1].first_unit : costs.unit_count();
        const auto cost = costs.stage(stages[s].first_unit, end, s, 1);
        result.first = std::max(result.first, cost.busy_s());
        result.second += cost.messages_s;
      }
      return result;
    };
    std::pair<double, double> best{std::numeric_limits<double>::infinity(), 0};
    for_all_cuts(costs, [&](const std::vector<StageChoice>& stages) {
      best = std::min(best, slowest_and_messages(stages));
    });
    const auto found = slowest_and_messages(partition_pipeline(StageCut::balanced, costs).stages);
    CHECK(found.first == best.first);
    CHECK(found.second == approx(best.second).epsilon(1e-12));
  }
}

TEST_CASE("even gives 11 units to 4 stages as 3, 3, 3, 2") {
  PipelineProblem problem(1, false, false);
  problem.model = read_model(parse_yaml(lab::custom_model(11, 1), "model"));
  problem.graph = build_training_graph(problem.model, {});
  problem.units = find_units(problem.graph);
  problem.shape.stages = 4;
  problem.shape.slots = {{0}, {0}, {0}, {0}};
  CHECK(partition_pipeline(StageCut::even, problem.costs()).stages ==
        std::vector<StageChoice>{{0, 1}, {3, 1}, {6, 1}, {9, 1}});
}

TEST_CASE("the table of stages' prices has what each stage costs where it stands") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const PipelineProblem problem(seed, seed % 3 == 0, true, seed % 2 == 0);
    const PipelineCosts costs = problem.costs();
    StagePrices prices(costs);
    for (const int time : {1, 2})
      for (std::uint32_t before = 0; before < costs.slot_count(); ++before)
        for (std::uint32_t slots = 1; before + slots <= costs.slot_count(); ++slots) {
          if (!may_take(costs.shape(), slots)) continue;
          for (std::uint32_t end = 1; end <= costs.unit_count(); ++end)
            for (std::uint32_t begin = 0; begin < end; ++begin) {
              CAPTURE(time);
              const StagePrices::Site& site = prices.site(before, slots);
              const PipelineCosts::StageCost cost = costs.stage(begin, end, before, slots);
              const StagePrices::Price price = prices.price(site, begin, end);
              CHECK(price.sum_s == cost.sum_s());
              CHECK(price.interval_s == cost.interval_s);
              CHECK(price.compute_s == cost.compute_s);
              CHECK(prices.fits(site, begin, end) == cost.fits);
            }
        }
  }
}

TEST_CASE("stages are priced once under all bounds, and once for all places that are equal") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    PipelineProblem problem(seed, false, false);
    for (Device& device : problem.machine.devices) device.speed = 1;
    const PipelineCosts costs = problem.costs();
    StagePrices prices(costs);
    least_step_partition(prices);
    // With equal devices on a star it matters only whether a stage is the first, the last or between.
    const std::size_t units = costs.unit_count(), places = std::min<std::size_t>(3, costs.slot_count());
    CHECK(prices.count_priced() <= places * units * (units + 1) / 2);
  }
}
