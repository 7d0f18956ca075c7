// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <random>
#include <tuple>

#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"
#include "tests/support/working_file.h"

using namespace convoy;

namespace {

const char* const plan =
    "{constraints: {deadline: 1h}, servers: ['aws-p3.*', 'aws-g4dn.*', gcp-a2-highgpu-1g], nodes: [1, 2, 4], "
    "batch_per_device: [16, 64, 256]}";

const Change* find(const std::vector<Change>& changes, const std::string& kind,
                   const std::string& server = "") {
  for (const Change& change : changes)
    if (change.kind == kind && (server.empty() || change.server == server)) return &change;
  return nullptr;
}

}  // namespace

TEST_CASE(
    "sensitivity: a price raised until the choice flips flips where it was said, and at the ratio of costs") {
  const PlanSpec spec = plans::spec_of("{epochs: 30}", plan);
  Trials trials = plans::trials_of(spec);
  Planner planner(trials);
  const Scenario now = scenario_of(spec);
  const std::optional<std::size_t> choice = planner.best(now);
  REQUIRE(choice);
  const CandidateResultOfPlan chosen = result_of(planner, *choice, now);
  REQUIRE(chosen.order.size() == 1);
  const std::string server = chosen.order.front().first;
  const double price = *load_server(server, {}).host.price_usd_per_h;
  const std::optional<std::size_t> rivals = [&] {
    Scenario without_it = now;
    without_it.without.insert(server);
    return planner.best(without_it);
  }();
  REQUIRE(rivals);
  const std::vector<Change> changes = sensitivity_of(planner, now, *choice, {*rivals});
  const std::string rival_server = result_of(planner, *rivals, now).order.front().first;
  const Change* cheaper = find(changes, "price", rival_server);
  REQUIRE(cheaper);
  CHECK(cheaper->value == approx(*load_server(rival_server, {}).host.price_usd_per_h *
                                 chosen.figures.cost_usd / planner.figures(*rivals, now).cost_usd)
                              .epsilon(1e-6));
  const Change* flip = find(changes, "price", server);
  REQUIRE(flip);
  REQUIRE(flip->choice);

  // All candidates of that server get dearer alike, so it flips where the best of the others costs as much.
  Scenario others = now;
  others.without.insert(server);
  const double rival = planner.figures(*planner.best(others), now).cost_usd;
  CHECK(flip->value == approx(price * rival / chosen.figures.cost_usd).epsilon(1e-6));

  Scenario below = now, above = now;
  below.price_factor[server] = flip->value / price * (1 - 1e-5);
  above.price_factor[server] = flip->value / price * (1 + 1e-5);
  CHECK(planner.best(below) == choice);
  const std::optional<std::size_t> next = planner.best(above);
  REQUIRE(next);
  CHECK(next != choice);
  CHECK(result_of(planner, *next, above).order == flip->choice->order);
}

TEST_CASE("sensitivity: a price is followed from where the server is rented") {
  const WorkingFile prices("prices.csv",
                           "server,provider,region,market,usd_per_hour,from\n"
                           "aws-p3.2xlarge,aws,us-east-1,on_demand,9,2025\n"
                           "aws-p3.2xlarge,aws,us-west-2,on_demand,3,2025\n"
                           "aws-p3.8xlarge,aws,us-west-2,on_demand,90,2025\n");
  PlanSpec spec =
      plans::spec_of("{epochs: 30}",
                     "{servers: [aws-p3.2xlarge, aws-p3.8xlarge], batch_per_device: [64], region: "
                     "[us-east-1, us-west-2]}");
  spec.user_prices = std::make_shared<const PriceTable>(PriceTable::read(prices.name));
  Trials trials = plans::trials_of(spec);
  Planner planner(trials);
  const Scenario now = scenario_of(spec);
  const std::optional<std::size_t> choice = planner.best(now);
  REQUIRE(choice);
  REQUIRE(trials.space().candidates[*choice].region == "us-west-2");
  const std::vector<Change> changes = sensitivity_of(planner, now, *choice, {});
  const Change* rise = find(changes, "price", "aws-p3.2xlarge");
  REQUIRE(rise);
  Scenario then = now;
  then.price_factor["aws-p3.2xlarge"] = rise->value / 3 * (1 - 1e-5);
  CHECK(planner.best(then) == choice);
  then.price_factor["aws-p3.2xlarge"] = rise->value / 3 * (1 + 1e-5);
  CHECK(planner.best(then) != choice);
}

TEST_CASE("sensitivity: a deadline tightened or loosened flips the choice where it was said") {
  const PlanSpec spec = plans::spec_of("{epochs: 30}", plan);
  Trials trials = plans::trials_of(spec);
  Planner planner(trials);
  const Scenario free = [&] {
    Scenario scenario = scenario_of(spec);
    scenario.constraints.deadline_s.reset();
    return scenario;
  }();
  const std::vector<std::size_t> front = planner.front(free);
  REQUIRE(front.size() >= 2);
  // A deadline between two points of the front: the quicker one is chosen, until the deadline allows the
  // next.
  const double quick_s = planner.figures(front[0], free).time_s,
               slow_s = planner.figures(front[1], free).time_s;
  Scenario tight = free;
  tight.constraints.deadline_s = std::sqrt(quick_s * slow_s);
  const std::optional<std::size_t> choice = planner.best(tight);
  REQUIRE(choice == front[0]);
  const std::vector<Change> changes = sensitivity_of(planner, tight, *choice, {});
  const Change* longer = nullptr;
  for (const Change& change : changes)
    if (change.kind == "deadline" && change.value > quick_s) longer = &change;
  REQUIRE(longer);
  CHECK(longer->value == approx(slow_s));
  Scenario before = free;
  before.constraints.deadline_s = longer->value * (1 - 1e-6);
  CHECK(planner.best(before) == choice);
  before.constraints.deadline_s = longer->value;
  CHECK(planner.best(before) == front[1]);
}

TEST_CASE("sensitivity: with links as slow as it says another choice is the best") {
  const PlanSpec spec =
      plans::spec_of("{epochs: 30}",
                     "{objective: time, servers: [aws-p3.2xlarge, aws-p3.16xlarge], nodes: [1, 2, 4, 8], "
                     "batch_per_device: [64]}");
  Trials trials = plans::trials_of(spec);
  Planner planner(trials);
  const Scenario now = scenario_of(spec);
  const std::optional<std::size_t> choice = planner.best(now);
  REQUIRE(choice);
  const std::vector<Change> changes = sensitivity_of(planner, now, *choice, {});
  for (const Change& change : changes) {
    if (change.kind != "bandwidth") continue;
    CAPTURE(change.value);
    Trials then = trials.with_bandwidth(change.value);
    CHECK(Planner(then).best(now) != choice);
    const double nearer = change.value > 1 ? change.value / 1.03 : change.value * 1.03;
    Trials before = trials.with_bandwidth(nearer);
    CHECK(Planner(before).best(now) == choice);
  }
}

TEST_CASE(
    "sensitivity: between two scenarios the best of the rivals is the best of all, and rivals are few") {
  std::size_t rivals_seen = 0, nearer_seen = 0, all_seen = 0, changes = 0;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const char* const objectives[] = {"cost", "front", "cost", "energy"};
    const PlanSpec spec = plans::spec_of(
        "{epochs: 30}",
        fmt::format(
            "{{objective: {}, servers: [aws-p3.2xlarge, aws-p3.8xlarge, aws-g4dn.xlarge, gcp-a2-highgpu-1g], "
            "nodes: [1, 2, {}], batch_per_device: [16, 128], constraints: {{deadline: {}s}}}}",
            objectives[seed % 4], 3 + random() % 4, 400 + random() % 4000));
    Trials trials = plans::trials_of(spec, 2);
    Planner planner(trials);
    const Scenario now = scenario_of(spec);
    const std::optional<std::size_t> choice = planner.best(now);
    if (!choice) continue;
    const std::string server = trials.setup(trials.space().candidates[*choice].setup).order.front().first;
    const auto dearer = [&](double factor) {
      Scenario then = now;
      then.price_factor[server] = factor;
      return then;
    };
    const auto longer = [&](double factor) {
      Scenario then = now;
      then.evaluation_s = factor;
      return then;
    };
    const auto slower = [&](double factor) {
      Scenario then = now;
      then.input = input_from_files();
      then.input->library.core_images_per_s = 1e5 / factor;
      return then;
    };
    const auto check = [&](const auto& at, double reach) {
      const auto among = planner.rivals(at(1), at(reach));
      for (double factor = 1; factor <= reach; factor *= std::pow(reach, 0.125) * (1 - 1e-12)) {
        CAPTURE(factor);
        rivals_seen += among->size(), all_seen += trials.space().candidates.size();
        Scenario few = at(factor);
        few.among = among;
        const std::optional<std::size_t> best = planner.best(few);
        CHECK(best == planner.best(at(factor)));
        changes += best != choice;
        // Of these, those between two scenarios that are nearer to each other.
        Scenario before = at(std::sqrt(factor)), after = at(std::sqrt(factor * reach));
        before.among = after.among = among;
        few.among = planner.rivals(before, after);
        nearer_seen += few.among->size();
        CHECK(planner.best(few) == best);
      }
    };
    check(dearer, 1.1);
    CHECK(planner.rivals(dearer(1), dearer(1))->size() <= planner.rivals(dearer(1), dearer(16))->size());
    check(dearer, 16);
    check(longer, 1000);
    check(slower, 1e4);
  }
  CHECK(changes > 10);
  CHECK(rivals_seen < all_seen);
  CHECK(nearer_seen < rivals_seen);
}

TEST_CASE("sensitivity: on no links a candidate comes to less than its least on any") {
  const PlanSpec spec = plans::spec_of(
      "{epochs: 30}",
      "{servers: [aws-p3.2xlarge, aws-g4dn.12xlarge], nodes: [1, 3], batch_per_device: [16, 64], strategies: "
      "[{kind: data_parallel, sync: all_reduce, algorithm: [ring, tree]}, {kind: data_parallel, sync: "
      "parameter_server, servers: 1}]}");
  Trials trials = plans::trials_of(spec);
  const Scenario scenario = scenario_of(spec);
  const auto least = Planner(trials).least_on_any_links(scenario);
  REQUIRE(least.size() == trials.space().candidates.size());
  for (const double bandwidth : {0.1, 1.0, 30.0}) {
    CAPTURE(bandwidth);
    Trials changed = trials.with_bandwidth(bandwidth);
    Planner planner(changed);
    planner.simulate_all(scenario);
    for (const auto& [value, c] : least)
      if (planner.simulated(c)) CHECK(value <= planner.figures(c, scenario).cost_usd);
  }
}

namespace {

/// What of a candidate a user rents and runs, by which those of two plans are compared.
auto identity(const CandidateResultOfPlan& candidate) {
  return std::tuple(candidate.order, candidate.market, candidate.region, candidate.precision,
                    candidate.batch_per_device, to_flow(candidate.strategy));
}

/// The choice of a plan by itself, with every candidate simulated.
auto choice_of(const std::string& goal, const std::string& wanted, const std::string& training) {
  const PlanSpec spec = plans::spec_of(goal, wanted, training);
  Trials trials = plans::trials_of(spec);
  Planner planner(trials);
  const Scenario scenario = scenario_of(spec);
  planner.simulate_all(scenario);
  const std::optional<std::size_t> best = planner.best(scenario);
  return best ? std::optional(identity(result_of(planner, *best, scenario))) : std::nullopt;
}

}  // namespace

TEST_CASE(
    "sensitivity: at the evaluation time and rate of a core that it names the named choice wins, right before "
    "it the former one, by plans that have them") {
  const std::vector<std::string> servers{"aws-p2.xlarge",   "aws-p3.2xlarge",    "aws-p3.8xlarge",
                                         "aws-p3.16xlarge", "aws-g4dn.12xlarge", "gcp-a2-highgpu-1g"};
  int evaluations = 0, inputs = 0;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<std::string> some = servers;
    std::shuffle(some.begin(), some.end(), random);
    const std::string plan_of = fmt::format(
        "{{objective: {}, constraints: {{deadline: {}min}}, servers: [{}, {}, {}], nodes: [1, 2, {}], "
        "batch_per_device: [{}, 256]}}",
        random() % 4 ? "cost" : "front", 10 << random() % 6, some[0], some[1], some[2], 3 + random() % 4,
        16 << random() % 3);
    const double given_s = random() % 2 ? static_cast<double>(random() % 20) : 0;
    CAPTURE(plan_of);
    CAPTURE(given_s);
    const auto goal = [](double evaluation_s) {
      return fmt::format("{{epochs: 30, evaluation: {{time: {}s}}}}", evaluation_s);
    };
    const std::string samples = "dataset: {samples: 100000}";
    const PlanSpec spec = plans::spec_of(goal(given_s), plan_of, "{" + samples + "}");
    Trials trials = plans::trials_of(spec);
    Planner planner(trials);
    const Scenario now = scenario_of(spec);
    const std::optional<std::size_t> choice = planner.best(now);
    if (!choice) continue;
    const auto former = identity(result_of(planner, *choice, now));
    const std::vector<Change> changes = sensitivity_of(planner, now, *choice, {});
    const auto check = [&](const Change& change, double at, double before, const auto& replanned) {
      CAPTURE(change.value);
      const auto then = replanned(at);
      CHECK(then.has_value() == change.choice.has_value());
      if (then && change.choice) CHECK(*then == identity(*change.choice));
      CHECK(then != former);
      CHECK(replanned(before) == former);
    };
    if (const Change* change = find(changes, "evaluation")) {
      ++evaluations;
      check(*change, change->value, change->value * (1 - 1e-6),
            [&](double more_s) { return choice_of(goal(given_s + more_s), plan_of, "{" + samples + "}"); });
    }
    if (const Change* change = find(changes, "input")) {
      ++inputs;
      // The interval of a step that waits for images is estimated here, and comes from the run in a plan of its own:
      // where a limit of time decides, both turn within a thousandth of each other.
      check(*change, change->value * (1 - 1e-3), change->value * (1 + 1e-3), [&](double rate) {
        return choice_of(goal(given_s), plan_of,
                         fmt::format("{{{}, input: {{kind: jpeg, library: pil, cached: true, "
                                     "core_images_per_s: {}}}}}",
                                     samples, rate));
      });
    }
  }
  MESSAGE(evaluations << " evaluation times, " << inputs << " rates");
  CHECK(evaluations >= 4);
  CHECK(inputs >= 4);
}

TEST_CASE("sensitivity: an evaluation that the goal has already is told apart from what is added to it") {
  const auto texts = [](const std::string& goal) {
    const PlanSpec spec = plans::spec_of(goal, plan);
    Trials trials = plans::trials_of(spec);
    Planner planner(trials);
    const Scenario now = scenario_of(spec);
    std::string all;
    for (const Change& change : sensitivity_of(planner, now, *planner.best(now), {}))
      all += change.text + '\n';
    return all;
  };
  CHECK(texts("{epochs: 30}").find("an evaluation after every epoch takes ") != std::string::npos);
  const std::string added = texts("{epochs: 30, evaluation: {time: 1s}}");
  CHECK(added.find("an evaluation after every epoch takes ") == std::string::npos);
  CHECK(added.find(" or more of evaluation are added after every epoch") != std::string::npos);
}
