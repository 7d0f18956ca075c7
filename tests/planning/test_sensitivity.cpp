// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <memory>

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
    Trials then = trials.with({change.value, 1, false});
    CHECK(Planner(then).best(now) != choice);
    const double nearer = change.value > 1 ? change.value / 1.03 : change.value * 1.03;
    Trials before = trials.with({nearer, 1, false});
    CHECK(Planner(before).best(now) == choice);
  }
}
