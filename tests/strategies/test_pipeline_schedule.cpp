// SPDX-License-Identifier: MIT
// The estimate of a whole schedule against the replay of its plan. Seeds are printed where a case fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "sim/lowering/stages.h"
#include "sim/replay/replay.h"
#include "strategies/pipeline/pipeline_partition.h"
#include "strategies/pipeline/pipeline_plan.h"
#include "strategies/pipeline/pipeline_schedule.h"
#include "tests/strategies/pipeline_problem.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// On hosts each of which has a cable to each other, so that no two messages share one, and which issue
/// operations to devices of different speeds more or less slowly than these run them.
struct IssuedPipeline : PipelineProblem {
  IssuedPipeline(unsigned seed, bool branched) : PipelineProblem(seed, branched, false) {
    cost = CostModel(Software(TrainingOptions{}));
    machine = build_machine(
        read_cluster(parse_yaml(
            fmt::format(
                "{{name: lab, nodes: [{{name: n, count: {}, server: box, speed_spread: 0.3}}], fabric: "
                "{{kind: full_mesh, bandwidth: {}MB/s, latency: {}us}}, {}}}",
                shape.slots.size(), pick(20, 2000), pick(0, 100), lab::ideal_servers()),
            "cluster")),
        0);
    static constexpr double factors[] = {0, 0.1, 1, 10, 100};
    for (DeviceType& type : machine.device_types) type.issue_factor = factors[pick(0, 4)];
    if (shape.schedule != PipelineSchedule::gpipe && shape.recompute == Recompute::except_last)
      shape.recompute = Recompute::always;
  }

  std::vector<StageChoice> random_cut() {
    std::vector<std::uint32_t> firsts(units.size() - 1);
    for (std::uint32_t u = 0; u < firsts.size(); ++u) firsts[u] = u + 1;
    std::shuffle(firsts.begin(), firsts.end(), random);
    firsts.resize(shape.stages - 1);
    std::sort(firsts.begin(), firsts.end());
    std::vector<StageChoice> stages{{0, 1}};
    for (const std::uint32_t u : firsts) stages.push_back({u, 1});
    return stages;
  }

  double simulated_s(const std::vector<StageChoice>& choices) const {
    std::vector<std::uint32_t> first;
    for (const StageChoice& choice : choices) first.push_back(choice.first_unit);
    Annotation annotation = annotate_pipeline(
        {graph, machine, cost, {}}, shape, choices,
        cut_into_stages(graph, units, first, shape.recompute != Recompute::never), summed_after_backward());
    const Plan plan = lower(graph, machine, cost, std::move(annotation)).plan;
    return replay(plan, machine, cost, ReplayOptions()).step_time_s;
  }
};

std::vector<MicroBatchPass> listed(PassOrder order) {
  std::vector<MicroBatchPass> passes;
  for (; order.passed() < order.size(); order.pass()) passes.push_back(order.next());
  return passes;
}

}  // namespace

TEST_CASE(
    "a slot's passes: each of its micro-batches forward and then backward, no more under way than it may "
    "hold, "
    "and as many in common with fewer micro-batches as it says [law]") {
  int steady = 0;
  for (unsigned seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](std::int64_t least, std::int64_t most) {
      return std::uniform_int_distribution(least, most)(random);
    };
    PipelineShape shape;
    shape.slots.resize(static_cast<std::size_t>(pick(1, 8)));
    shape.stages = static_cast<std::uint32_t>(pick(1, 2));
    shape.micro_batches = pick(1, 40);
    shape.schedule = static_cast<PipelineSchedule>(pick(0, 2));
    const auto all_slots = static_cast<std::int64_t>(shape.slots.size());
    const auto before = static_cast<std::uint32_t>(pick(0, all_slots - 1));
    const auto slots = static_cast<std::uint32_t>(pick(1, all_slots - before));
    const auto slot = static_cast<std::uint32_t>(pick(0, slots - 1));
    const auto order_of = [&](std::int64_t micro_batches) {
      return PassOrder(shape, before, slots, slot, micro_batches);
    };
    const std::vector<MicroBatchPass> passes = listed(order_of(shape.micro_batches));
    std::set<std::int64_t> begun, under_way, own;
    for (std::int64_t m = slot; m < shape.micro_batches; m += slots) own.insert(m);
    for (const MicroBatchPass& pass : passes) {
      if (pass.backward)
        CHECK(under_way.erase(pass.micro_batch) == 1);
      else
        CHECK((begun.insert(pass.micro_batch).second && under_way.insert(pass.micro_batch).second));
      CHECK(static_cast<std::int64_t>(under_way.size()) <= in_flight(shape, before, slots));
    }
    CHECK(begun == own);
    CHECK(under_way.empty());

    const std::int64_t fewer = shape.micro_batches - slots;  // so that the slot has one less
    if (fewer <= slot) continue;
    const std::vector<MicroBatchPass> shorter = listed(order_of(fewer));
    const auto differs =
        std::mismatch(shorter.begin(), shorter.end() - 1, passes.begin(), passes.end()).first;
    const std::int64_t in_common = order_of(shape.micro_batches).in_common_with(fewer);
    CHECK(in_common == differs - shorter.begin());
    PassOrder order = order_of(shape.micro_batches);
    for (std::int64_t pass = 0; pass < in_common; ++pass) order.pass();
    CHECK(listed(order.with(fewer)) == std::vector(differs, shorter.end()));
    if (in_common > static_cast<std::int64_t>(own.size())) ++steady;
  }
  CHECK(steady > 50);
}

TEST_CASE(
    "a chain's estimated schedule is what its replay takes, where no messages meet, whatever hosts take to "
    "issue") {
  int issued = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    IssuedPipeline problem(seed, false);
    const std::vector<StageChoice> cut = problem.random_cut();
    const PipelineCosts costs = problem.costs();
    const double step_s = schedule_s(costs, cut);
    CHECK(step_s == approx(problem.simulated_s(cut)).epsilon(1e-9));
    for (DeviceType& type : problem.machine.device_types) type.issue_factor = 0;
    if (schedule_s(problem.costs(), cut) < 0.98 * step_s) ++issued;
  }
  CHECK(issued > 30);
}

TEST_CASE("the optimal cut is by its estimate no slower than the even, the balanced and the least step's") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    const IssuedPipeline problem(seed, seed % 2 == 0);
    const PipelineCosts costs = problem.costs();
    StagePrices prices(costs);
    const std::vector<StageChoice> optimal = partition_pipeline(StageCut::optimal, costs).stages;
    for (const std::vector<StageChoice>& other :
         {partition_pipeline(StageCut::even, costs).stages,
          partition_pipeline(StageCut::balanced, costs).stages, least_step_partition(prices)})
      if (costs.fits(other) || !costs.fits(optimal))
        CHECK(schedule_s(costs, optimal) <= schedule_s(costs, other) * (1 + 1e-8));
  }
}

TEST_CASE(
    "a chain's schedule of 700 micro-batches, of which 512 are gone through, is within 1 % of its replay") {
  // The pace is that of 128 micro-batches, in which a cycle of a few of them need not fit a whole number of times.
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    IssuedPipeline problem(seed, false);
    problem.shape.micro_batches = 700;
    const std::vector<StageChoice> cut = problem.random_cut();
    CHECK(schedule_s(problem.costs(), cut) == approx(problem.simulated_s(cut)).epsilon(0.01));
  }
}

TEST_CASE(
    "no replay of a pipeline is shorter than the least schedule of its cut, which some come near to [law]") {
  int near = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    IssuedPipeline problem(seed, seed % 2 == 0);
    const std::vector<StageChoice> cut = problem.random_cut();
    const double least_s = least_schedule_s(problem.costs(), cut), simulated_s = problem.simulated_s(cut);
    CHECK(least_s <= simulated_s * (1 + 1e-9));
    if (least_s > 0.8 * simulated_s) ++near;
  }
  CHECK(near > 0);
}

TEST_CASE("no cut one of whose stages begins a unit earlier or later is better than the optimal one [law]") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    const IssuedPipeline problem(seed, seed % 2 == 0);
    const PipelineCosts costs = problem.costs();
    const std::vector<StageChoice> optimal = partition_pipeline(StageCut::optimal, costs).stages;
    for (std::size_t s = 1; s < optimal.size(); ++s)
      for (const bool later : {false, true}) {
        std::vector<StageChoice> other = optimal;
        later ? ++other[s].first_unit : --other[s].first_unit;
        const std::uint32_t next = s + 1 < other.size() ? other[s + 1].first_unit : costs.unit_count();
        if (other[s].first_unit <= other[s - 1].first_unit || other[s].first_unit >= next) continue;
        if (costs.may_begin(other) && (costs.fits(other) || !costs.fits(optimal)))
          CHECK(schedule_s(costs, other) >= schedule_s(costs, optimal) * (1 - 1e-8));
      }
  }
}
