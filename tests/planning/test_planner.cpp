// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>

#include "sim/planning/write_plan.h"
#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"
#include "tests/support/working_file.h"

using namespace convoy;
using plans::answer_of, plans::found, plans::input_bound;

namespace {

const std::vector<std::string> some_servers{"aws-p2.xlarge",     "aws-p2.8xlarge",    "aws-p3.2xlarge",
                                            "aws-p3.8xlarge",    "aws-p3.16xlarge",   "aws-g4dn.xlarge",
                                            "aws-g4dn.12xlarge", "gcp-a2-highgpu-1g", "gcp-a2-highgpu-8g"};
const std::vector<std::string> some_strategies{
    "{kind: data_parallel, sync: all_reduce, algorithm: [ring, tree]}",
    "{kind: data_parallel, sync: all_reduce, zero: 2}",
    "{kind: data_parallel, sync: all_reduce, micro_batches: 4}",
    "{kind: data_parallel, sync: parameter_server, servers: 1, placement: colocated}",
    "{kind: single}",
    "{kind: pipeline, micro_batches: 2, stages: 2}"};
/// The first four are those that a loop over all candidates works out below.
const std::vector<std::string> all_objectives{"cost", "time", "energy", "front", "carbon"};

struct Space {
  std::string goal, plan;
};

Space random_space(unsigned seed, const std::string& objective) {
  std::mt19937 random(seed);
  const auto pick = [&](const std::vector<std::string>& from) {
    return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random)];
  };
  const auto between = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<>(std::log(low), std::log(high))(random));
  };
  std::string constraints;
  const auto add = [&](const std::string& text) { constraints += (constraints.empty() ? "" : ", ") + text; };
  if (random() % 2) add(fmt::format("deadline: {:.0f}s", between(50, 5000)));
  if (random() % 3 == 0) add(fmt::format("budget: {:.2f}USD", between(0.1, 20)));
  if (random() % 2) add(fmt::format("max_devices: {}", 4 << random() % 4));
  if (random() % 3 == 0) add(fmt::format("max_global_batch: {}", 64 << random() % 6));
  Space space;
  space.goal =
      random() % 2 ? "{epochs: 30}" : fmt::format("{{noise_scale: {:.0f}, epochs: 20}}", between(50, 5000));
  if (random() % 3 == 0) space.goal.insert(1, "start_up: 60s, ");
  space.plan = fmt::format(
      "{{objective: {}, constraints: {{{}}}, servers: [{}, {}, {}], nodes: [1, 2, {}], batch_per_device: [8, "
      "64, {}], "
      "precision: [fp32{}], strategies: [{}, {}]{}}}",
      objective, constraints, pick(some_servers), pick(some_servers), pick(some_servers), 3 + random() % 4,
      256 << random() % 4, random() % 2 ? ", fp16" : "", pick(some_strategies), some_strategies[0],
      random() % 4 == 0 ? ", mixtures: true" : "");
  return space;
}

}  // namespace

TEST_CASE("planner: with bounds the same answer as with every candidate simulated, on 5 random spaces") {
  std::int64_t with_bounds = 0, exhaustive = 0, chosen = 0;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const std::string objective = all_objectives[seed % all_objectives.size()];
    const Space space = random_space(seed, objective);
    CAPTURE(seed);
    CAPTURE(space.goal);
    CAPTURE(space.plan);
    const PlanSpec spec = plans::spec_of(space.goal, space.plan);
    const PlanAnswer quick = answer_of(spec, false), slow = answer_of(spec, true);
    CHECK(found(quick) == found(slow));
    const auto sum = [](const PlanAnswer& answer) {
      std::int64_t all = answer.simulated;
      for (const auto& [reason, count] : answer.pruned) all += count;
      return all;
    };
    CHECK(sum(quick) == quick.candidates);
    CHECK(sum(slow) == slow.candidates);
    for (const PlanAnswer& answer : {quick, slow}) {
      CHECK(answer.simulated <= answer.planned);
      CHECK(answer.planned <= answer.candidates);
    }
    CHECK(quick.planned <= slow.planned);
    with_bounds += quick.simulated;
    exhaustive += slow.simulated;
    chosen += quick.choice.has_value();
  }
  CHECK(with_bounds < exhaustive);
  CHECK(chosen >= 2);
}

TEST_CASE(
    "planner: candidates without a price, or of which nothing is known beforehand, are searched alike") {
  // A pipeline has no bound before it is planned, and a server of nobody's has no price.
  const PlanSpec spec = plans::spec_of(
      "{epochs: 30}",
      "{objective: time, servers: [aws-p3.2xlarge, aws-g4dn.12xlarge, dgx1-v100], nodes: [1, 2], "
      "batch_per_device: [16, 64], strategies: [{kind: data_parallel, sync: all_reduce}, {kind: pipeline, "
      "micro_batches: 2, stages: 2}]}");
  const PlanAnswer quick = answer_of(spec, false), slow = answer_of(spec, true);
  CHECK(found(quick) == found(slow));
  CHECK(quick.simulated < slow.simulated);
  const auto unpriced = [](const CandidateResultOfPlan& candidate) { return candidate.prices.empty(); };
  CHECK(std::any_of(quick.front.begin(), quick.front.end(), unpriced) +
            std::any_of(quick.runners_up.begin(), quick.runners_up.end(), unpriced) >
        0);
}

TEST_CASE("planner: progress counts each candidate once, planned or simulated") {
  PlanOptions options;
  options.jobs = 2;
  std::map<std::string, std::size_t> last;
  options.progress = [&](const std::string& what, std::size_t done, std::size_t all) {
    CAPTURE(what);
    CHECK(done <= all);
    CHECK((done == 1 || done == last[what] + 1));
    last[what] = done;
  };
  make_plan(plans::spec_of("{epochs: 30}",
                           "{objective: cost, servers: [aws-p3.2xlarge, aws-g4dn.xlarge], nodes: [1, 2], "
                           "batch_per_device: [64]}"),
            options);
  CHECK(last.contains("planning candidates"));
  CHECK(last.contains("simulating candidates"));
}

TEST_CASE("planner: the choice is the least of all that keep the constraints, by a loop over all of them") {
  int doubted_seen = 0;
  for (unsigned seed = 101; seed <= 104; ++seed) {
    const std::string objective = all_objectives[seed % 4];
    const Space space = random_space(seed, objective);
    CAPTURE(seed);
    CAPTURE(space.plan);
    const PlanSpec spec = plans::spec_of(space.goal, space.plan);
    Trials trials = plans::trials_of(spec, 2);
    Planner planner(trials);
    planner.simulate_all({});
    struct Seen {
      double value, low, high;
    };
    std::vector<Seen> sure, doubted;
    const Estimates estimates(trials);
    for (std::size_t c = 0; c < trials.space().candidates.size(); ++c) {
      const Candidate& candidate = trials.space().candidates[c];
      const Setup& setup = trials.setup(candidate.setup);
      const Trial& trial = trials.trial(candidate.setup);
      if (trial.state != TrialState::simulated || candidate.prices.empty()) continue;
      const double epochs = spec.goal.epochs(static_cast<double>(setup.global_batch))->epochs;
      const double images_per_s = static_cast<double>(setup.global_batch) / trial.step_s;
      const double time_s = epochs * 100000 / images_per_s + spec.goal.beside_s(epochs);
      double usd = 0;
      for (std::size_t k = 0; k < setup.order.size(); ++k)
        usd += candidate.prices[k].usd_per_hour * static_cast<double>(setup.order[k].second) * time_s / 3600;
      const PlanConstraints& limits = spec.constraints;
      if (limits.deadline_s && time_s > *limits.deadline_s) continue;
      if (limits.budget_usd && usd > *limits.budget_usd) continue;
      if (limits.max_devices && setup.devices > *limits.max_devices) continue;
      if (limits.max_global_batch && setup.global_batch > *limits.max_global_batch) continue;
      const double energy_j = epochs * 100000 / static_cast<double>(setup.global_batch) * trial.energy_j;
      const double value = objective == "cost"     ? usd
                           : objective == "time"   ? time_s
                           : objective == "energy" ? energy_j
                                                   : time_s * usd;
      if (objective == "energy" && spec.goal.beside_s(epochs) > 0)
        continue;  // idle power is not counted here
      const EpochsNeeded needed = *spec.goal.epochs(static_cast<double>(setup.global_batch));
      planner.simulate_in_full({c});
      const TrialDetails& details = trials.details(candidate.setup);
      (estimates.facts().doubts(c).empty() ? sure : doubted)
          .push_back({value, 1 - std::hypot(1 - details.step_low, 1 - needed.least / needed.epochs),
                      1 + std::hypot(details.step_high - 1, needed.most / needed.epochs - 1)});
    }
    // The least of all; but of those with a doubt only where none without one comes within the 80 % interval.
    const auto least_of = [](const std::vector<Seen>& all) {
      return std::min_element(all.begin(), all.end(),
                              [](const Seen& a, const Seen& b) { return a.value < b.value; });
    };
    std::optional<double> least;
    if (!sure.empty()) least = least_of(sure)->value;
    if (!doubted.empty()) {
      const Seen& best = *least_of(doubted);
      const bool tie = least && *least - best.value <= std::hypot(*least * (1 - least_of(sure)->low),
                                                                  best.value * (best.high - 1));
      if (!least || (best.value < *least && !tie)) least = best.value;
      doubted_seen += 1;
    }
    const PlanAnswer answer = answer_of(spec, false);
    if (objective == "energy" && spec.goal.beside_s(30) > 0) continue;
    REQUIRE(answer.choice.has_value() == least.has_value());
    if (least) CHECK(value_of(spec.objective, answer.choice->figures) == approx(*least).epsilon(1e-9));
  }
  CHECK(doubted_seen > 0);
}

TEST_CASE("planner: cost is price x hosts x time to the cent, and no constraint is broken") {
  const PlanSpec spec = plans::spec_of("{epochs: 30}",
                                       "{constraints: {deadline: 900s, max_devices: 16, max_global_batch: "
                                       "2048}, servers: ['aws-p3.*', 'aws-g4dn.*'], "
                                       "nodes: {max: 16}, precision: [fp32, fp16]}");
  const PlanAnswer answer = answer_of(spec, false);
  REQUIRE(answer.choice);
  std::vector<CandidateResultOfPlan> shown = answer.front;
  shown.insert(shown.end(), answer.runners_up.begin(), answer.runners_up.end());
  shown.push_back(*answer.choice);
  for (const CandidateResultOfPlan& candidate : shown) {
    double usd_per_h = 0;
    for (const auto& [name, count] : candidate.order)
      usd_per_h += *load_server(name, {}).host.price_usd_per_h * static_cast<double>(count);
    CHECK(candidate.figures.time_s ==
          approx(30 * 1e5 * candidate.step_time_s / static_cast<double>(candidate.global_batch))
              .epsilon(1e-12));
    CHECK(std::abs(candidate.figures.cost_usd - usd_per_h * candidate.figures.time_s / 3600) < 0.005);
    CHECK(candidate.figures.time_s <= 900);
    CHECK(candidate.devices <= 16);
    CHECK(candidate.global_batch <= 2048);
  }
}

TEST_CASE("planner: an answer does not depend on the number of jobs") {
  const PlanSpec spec =
      plans::spec_of("{epochs: 30}",
                     "{servers: ['aws-p3.*'], nodes: [1, 2, 4], batch_per_device: [16, 64], "
                     "strategies: [{kind: data_parallel, sync: all_reduce, "
                     "algorithm: [ring, tree]}, {kind: pipeline}]}");
  std::ostringstream one, three;
  write_json(answer_of(spec, false, 1), one);
  write_json(answer_of(spec, false, 3), three);
  CHECK(one.str() == three.str());
}

TEST_CASE("planner: where nothing meets the constraints, the nearest one is named") {
  const std::string servers = "servers: ['aws-p3.*'], nodes: [1, 2], batch_per_device: 64";
  const PlanAnswer late = answer_of(
      plans::spec_of("{epochs: 30}", fmt::format("{{constraints: {{deadline: 1s}}, {}}}", servers)), false);
  CHECK_FALSE(late.choice);
  REQUIRE(late.nearest);
  CHECK(late.nearest->name == "deadline");
  REQUIRE(late.nearest->candidate);
  CHECK(late.nearest->candidate->figures.time_s > 1);
  const PlanAnswer dear = answer_of(
      plans::spec_of("{epochs: 30}",
                     fmt::format("{{constraints: {{budget: 0.0001USD, deadline: 100d}}, {}}}", servers)),
      false);
  REQUIRE(dear.nearest);
  CHECK(dear.nearest->name == "budget");
  const PlanAnswer small = answer_of(
      plans::spec_of("{epochs: 30}", fmt::format("{{constraints: {{max_global_batch: 8}}, {}}}", servers)),
      false);
  REQUIRE(small.nearest);
  CHECK(small.nearest->name == "max_global_batch");
}

TEST_CASE("planner: the order of a plan's lists changes nothing") {
  const auto answer = [](const std::string& servers, const std::string& nodes, const std::string& batches,
                         const std::string& regions, const std::string& strategies) {
    return found(answer_of(
        plans::spec_of("{epochs: 30}",
                       fmt::format("{{servers: [{}], nodes: [{}], batch_per_device: [{}], region: [{}], "
                                   "market: [on_demand, spot], strategies: [{}]}}",
                                   servers, nodes, batches, regions, strategies),
                       input_bound),
        false));
  };
  const std::string ring = "{kind: data_parallel, sync: all_reduce, algorithm: [ring, tree]}",
                    zero = "{kind: data_parallel, sync: all_reduce, zero: 1}", alone = "{kind: single}";
  const std::string before = answer("aws-p3.2xlarge, aws-g4dn.xlarge", "1, 2", "64, 128",
                                    "us-east-1, us-west-2", ring + ", " + zero + ", " + alone);
  CHECK(before ==
        answer("aws-g4dn.xlarge, aws-p3.2xlarge", "2, 1", "128, 64", "us-west-2, us-east-1",
               alone + ", " + zero + ", {kind: data_parallel, sync: all_reduce, algorithm: [tree, ring]}"));
}

TEST_CASE("planner: several kinds of servers are priced in one region, or not at all") {
  const auto mixed = [](const std::string& rows) {
    const WorkingFile prices("prices.csv", "server,provider,region,market,usd_per_hour,from\n" + rows);
    PlanSpec spec =
        plans::spec_of("{epochs: 30}",
                       "{objective: time, servers: [aws-p3.2xlarge, aws-p3.8xlarge], batch_per_device: "
                       "[64], mixtures: true}");
    spec.user_prices = std::make_shared<const PriceTable>(PriceTable::read(prices.name));
    Trials trials = plans::trials_of(spec);
    for (const Candidate& candidate : trials.space().candidates)
      if (trials.setup(candidate.setup).order.size() == 2) return candidate;
    throw std::logic_error("no mixture");
  };
  // The larger one is listed elsewhere first, and dearer there.
  const std::string both =
      "aws-p3.8xlarge,aws,us-west-2,on_demand,99,2025\n"
      "aws-p3.2xlarge,aws,us-east-1,on_demand,3,2025\n"
      "aws-p3.2xlarge,aws,us-west-2,on_demand,4,2025\n";
  const Candidate one = mixed(both + "aws-p3.8xlarge,aws,us-east-1,on_demand,12,2025\n");
  CHECK(one.region == "us-east-1");
  REQUIRE(one.prices.size() == 2);
  CHECK(one.prices[0].usd_per_hour == 3);
  CHECK(one.prices[1].usd_per_hour == 12);
  CHECK(mixed(both).prices.empty());
}
