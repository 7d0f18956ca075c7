// SPDX-License-Identifier: MIT
// What a plan says of what it assumes, its scenarios, and machines of one's own: each against another plan or run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>

#include "sim/planning/plan_report.h"
#include "sim/planning/read_plan_json.h"
#include "sim/planning/write_plan.h"
#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"
#include "tests/support/working_file.h"

using namespace convoy;
using plans::answer_of;

namespace {

const std::string box =
    "{name: our-box, devices: [{device: rtx-3090, count: 4}], interconnect: {kind: pcie, bandwidth: 12GB/s, "
    "latency: "
    "5us}, fabric: {kind: switch, bandwidth: 10Gbps, latency: 50us, protocol: tcp}, host_power: 300W, vcpus: "
    "32}";

std::string json_of(const CandidateResultOfPlan& candidate) {
  PlanAnswer answer;
  answer.choice = candidate;
  std::ostringstream out;
  write_json(answer, out);
  return out.str();
}

const Change* change_of(const PlanAnswer& answer, const std::string& kind) {
  const auto found = std::find_if(answer.sensitivity.begin(), answer.sensitivity.end(),
                                  [&](const Change& change) { return change.kind == kind; });
  return found == answer.sensitivity.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE(
    "plan: a server written out takes the step that an experiment on it takes, and costs its electricity") {
  const PlanSpec spec =
      plans::spec_of("{epochs: 3}", "{servers: [" + box +
                                        "], nodes: [2], batch_per_device: [64], electricity: 0.15USD/kWh}");
  const PlanAnswer answer = answer_of(spec, false);
  REQUIRE(answer.choice);
  CHECK(answer.choice->order == Order{{"our-box", 2}});
  CHECK(answer.choice->figures.cost_usd == approx(0.15 * answer.choice->figures.energy_j / 3.6e6));
  CHECK(plans::spec_of("{epochs: 3}", "{servers: [" + box + "], electricity: 0.15 USD/kWh}")
            .electricity_usd_per_j == spec.electricity_usd_per_j);
  const Experiment experiment =
      Experiment::parse("experiment: e\nmodel: " + plans::small_model() +
                            "\ntraining: {batch_per_device: 64, precision: fp32}\nstrategy: {kind: "
                            "data_parallel, sync: all_reduce, algorithm: "
                            "auto}\ncluster: {server: our-box, nodes: 2, servers: {our-box: " +
                            box + "}}\n",
                        "box.yaml", {"cluster.servers.our-box.title=ours"});
  YamlNode tree = experiment.resolved(0);
  YamlNode own = *tree.find("cluster")->find("servers")->find("our-box");
  std::erase_if(own.entries, [](const auto& entry) { return entry.first == "name"; });
  set_path(tree, "cluster.servers.our-box", own);
  Preparer preparer;
  const RunResult run = simulate(preparer.prepare(read_point(tree), nullptr), false).result;
  CHECK(answer.choice->step_time_s == run.step_time_s);
  // A price of its own comes on top; without electricity and price there is none.
  const std::string priced = box.substr(0, box.size() - 1) + ", price: 2USD/h}";
  const PlanAnswer both =
      answer_of(plans::spec_of("{epochs: 3}", "{servers: [" + priced +
                                                  "], nodes: [2], batch_per_device: [64], electricity: "
                                                  "0.15USD/kWh}"),
                false);
  CHECK(both.choice->figures.cost_usd ==
        approx(2 * 2 * both.choice->figures.time_s / 3600 + 0.15 * both.choice->figures.energy_j / 3.6e6));
  CHECK_THROWS_AS(answer_of(plans::spec_of("{epochs: 3}", "{servers: [" + box + "]}"), false), InputError);
  // Rented machines have it in their price.
  const auto rented = [](const std::string& more) {
    return answer_of(plans::spec_of("{epochs: 3}",
                                    "{servers: [aws-p3.2xlarge], batch_per_device: [64]" + more + "}"),
                     false)
        .choice->figures.cost_usd;
  };
  CHECK(rented(", electricity: 9USD/kWh") == rented(""));
}

TEST_CASE("plan: carbon needs no price, of one's own machines neither") {
  const PlanAnswer answer = answer_of(
      plans::spec_of("{epochs: 3}", "{objective: carbon, servers: [" + box +
                                        "], batch_per_device: [64], region: [us-east-1, eu-west-1]}"),
      false);
  REQUIRE(answer.choice);
  CHECK(std::isinf(answer.choice->figures.cost_usd));
  CHECK(std::isfinite(answer.choice->figures.carbon_kg));
}

TEST_CASE("plan: servers written out that are wrong are told at their place") {
  CHECK(plans::error_of("{epochs: 3}", "{servers: [{devices: []}]}").find("key 'name' is missing") !=
        std::string::npos);
  CHECK(plans::error_of("{epochs: 3}", "{servers: [{name: aws-p3.2xlarge}]}").find("is another server") !=
        std::string::npos);
  CHECK(plans::error_of("{epochs: 3}", "{electricity: 0.15}").find("is no price such as 0.15USD/kWh") !=
        std::string::npos);
  CHECK(plans::error_of("{epochs: 3}", "{scenarios: [{name: a, set: {cluster.nodes: 3}}]}")
            .find("a scenario sets model, or parts of training, goal or plan") != std::string::npos);
}

TEST_CASE("plan: the choice of each scenario is that of the plan with its values, run by itself") {
  const std::string plan =
      "servers: [aws-p3.2xlarge, aws-p3.8xlarge, aws-g4dn.12xlarge], nodes: [1, 2], batch_per_device: [16, "
      "64]";
  struct Variant {
    std::string set, goal, plan;
  };
  const std::vector<Variant> variants{
      {"plan.constraints.deadline: 20min", "{epochs: 30}", plan + ", constraints: {deadline: 20min}"},
      {"plan.market: [spot]", "{epochs: 30}", plan + ", market: [spot]"},
      {"goal.epochs: 90", "{epochs: 90}", plan},
      {"plan.objective: time", "{epochs: 30}", plan + ", objective: time"},
      {"plan.constraints.deadline: 1s", "{epochs: 30}", plan + ", constraints: {deadline: 1s}"}};
  std::string scenarios;
  for (const Variant& variant : variants)
    scenarios += fmt::format("{{name: '{0}', set: {{{0}}}}}, ", variant.set);
  const PlanAnswer answer =
      answer_of(plans::spec_of("{epochs: 30}", "{" + plan + ", scenarios: [" + scenarios + "]}"), false);
  REQUIRE(answer.scenarios.size() == variants.size());
  for (std::size_t i = 0; i < variants.size(); ++i) {
    CAPTURE(variants[i].set);
    // By brute force: every candidate simulated.
    const PlanAnswer alone = answer_of(plans::spec_of(variants[i].goal, "{" + variants[i].plan + "}"), true);
    CHECK(answer.scenarios[i].choice.has_value() == alone.choice.has_value());
    if (alone.choice) CHECK(json_of(*answer.scenarios[i].choice) == json_of(*alone.choice));
  }
  CHECK_FALSE(answer.scenarios.back().choice);
  std::stringstream json;
  write_json(answer, json);
  const PlanAnswer back = read_plan_answer(json, "plan.json");
  std::ostringstream page, page_back;
  write_report(answer, page);
  write_report(back, page_back);
  CHECK(page_back.str() == page.str());
  CHECK(page.str().find("<h2>Scenarios</h2>") != std::string::npos);
  CHECK(table(back) == table(answer));
}

TEST_CASE("plan: a page has no heading with nothing under it") {
  std::ostringstream page;
  write_report(PlanAnswer{}, page);
  CHECK(page.str().find("<h2") == std::string::npos);
}

TEST_CASE("plan: evaluations and input at which another choice is the best, by plans that have them") {
  // The choice has the quicker device, the others more cores for the price, and a lower one.
  const std::string plan =
      "{servers: [gcp-a2-highgpu-1g, gcp-n1-standard-8-k80, aws-p2.xlarge], nodes: [1], batch_per_device: "
      "[16]}";
  const auto answer_with = [&](const std::string& goal, const std::string& training, bool exhaustive) {
    return answer_of(plans::spec_of(goal, plan, training, "resnet50"), exhaustive);
  };
  const std::string samples = "dataset: {samples: 100000}";
  const PlanAnswer answer = answer_with("{epochs: 30}", "{" + samples + "}", false);
  REQUIRE(answer.choice);
  const auto with_evaluation = [&](double time_s) {
    return answer_with(fmt::format("{{epochs: 30, evaluation: {{time: {}s}}}}", time_s), "{" + samples + "}",
                       true)
        .choice->order;
  };
  const Change* evaluation = change_of(answer, "evaluation");
  REQUIRE(evaluation);
  CHECK(with_evaluation(evaluation->value) == evaluation->choice->order);
  CHECK(with_evaluation(evaluation->value) != answer.choice->order);
  CHECK(with_evaluation(evaluation->value / 1.05) == answer.choice->order);
  const auto with_input = [&](double rate) {
    return answer_with("{epochs: 30}",
                       fmt::format("{{{}, input: {{kind: jpeg, library: pil, core_images_per_s: {}, "
                                   "cached: true}}}}",
                                   samples, rate),
                       true)
        .choice->order;
  };
  const Change* input = change_of(answer, "input");
  REQUIRE(input);
  CHECK(with_input(0.95 * input->value) == input->choice->order);
  CHECK(with_input(0.95 * input->value) != answer.choice->order);
  CHECK(with_input(1.1 * input->value) == answer.choice->order);
}

TEST_CASE("plan: it says what it assumes, with a grade, and what it leaves out") {
  const PlanAnswer answer = answer_of(
      plans::spec_of("{epochs: 30}", "{servers: [aws-p3.8xlarge], nodes: [2], batch_per_device: [64]}"),
      false);
  const auto assumed = [&](const std::string& what) {
    const auto found = std::find_if(answer.assumes.begin(), answer.assumes.end(),
                                    [&](const Assumption& each) { return each.what == what; });
    REQUIRE_MESSAGE(found != answer.assumes.end(), what);
    return *found;
  };
  CHECK(assumed("input").grade == Grade::unstated);
  CHECK(assumed("evaluation").grade == Grade::unstated);
  CHECK(assumed("epochs").grade == Grade::given);
  CHECK(assumed("speed of v100-sxm2-16gb").grade == Grade::fitted);
  CHECK(assumed("price of aws-p3.8xlarge").value.find("listed until " + answer.choice->prices[0].until) !=
        std::string::npos);
  CHECK(assumed("price of aws-p3.8xlarge").would_change.find("listed") == std::string::npos);
  for (const Assumption& each : answer.assumes) CHECK_FALSE(each.would_change.empty());
  // A minute after each of 30 epochs: half an hour of eight machines' time.
  const PlanAnswer evaluated =
      answer_of(plans::spec_of("{epochs: 30, evaluation: {time: 60s}}",
                               "{servers: [aws-p3.8xlarge], nodes: [2], batch_per_device: [64]}"),
                false);
  CHECK(
      assumed("evaluation")
          .would_change.find(fmt::format("{} and {} instead of", hours_text(evaluated.choice->figures.time_s),
                                         usd_text(evaluated.choice->figures.cost_usd))) != std::string::npos);
  CHECK(answer.not_included.size() >= 6);
  CHECK(table(answer).find("\nassumes\n") != std::string::npos);
}

TEST_CASE("plan: what is not included says what it would take, as the plan that has it does") {
  const auto with = [](const std::string& goal, const std::string& more) {
    return answer_of(
        plans::spec_of(goal, "{servers: [aws-p3.8xlarge], nodes: [2], batch_per_device: [64]" + more + "}"),
        false);
  };
  const auto has = [](const PlanAnswer& answer, const std::string& text) {
    return std::find(answer.not_included.begin(), answer.not_included.end(), text) !=
           answer.not_included.end();
  };
  const PlanAnswer answer = with("{epochs: 30}", "");
  const Figures& figures = answer.choice->figures;
  // Of 30 epochs half a one; of ten, five.
  const auto of_failure = [](const Figures& of, double share, const std::string& epochs) {
    return fmt::format(
        "hosts that fail (plan.failures): each loses {} and {} where there is a checkpoint after every "
        "{}, half of the run where there is none",
        hours_text(share * of.time_s), usd_text(share * of.cost_usd), epochs);
  };
  CHECK(has(answer, of_failure(figures, 0.5 / 30, "epoch")));
  const PlanAnswer seldom = with("{epochs: 30, checkpoint: {time: 1s, every: 10}}", "");
  CHECK(has(seldom, of_failure(seldom.choice->figures, 5.0 / 30, "10 epochs")));
  const PlanAnswer failing = with("{epochs: 30}", ", failures: {repair: 10min}");
  for (const std::string& text : failing.not_included) CHECK_FALSE(text.starts_with("hosts that fail"));
  // 10 USD a month, of 730.5 hours.
  CHECK(has(answer, fmt::format("storage of the data set and of checkpoints: 100 GB at 0.10 USD per GB and "
                                "month cost {} in this time",
                                usd_text(10 * figures.time_s / 3600 / 730.5))));
  CHECK(has(answer, "egress of the data set and of the trained model: 100 GB at 0.10 USD per GB cost " +
                        usd_text(10)));
  // Twice the epochs are the run twice.
  const PlanAnswer twice = with("{epochs: 60}", "");
  CHECK(has(answer, fmt::format("runs that are repeated, since the goal is reached once: each is {} and {}",
                                hours_text(twice.choice->figures.time_s - figures.time_s),
                                usd_text(twice.choice->figures.cost_usd - figures.cost_usd))));
  const PlanAnswer later = with("{epochs: 30, start_up: 1min}", "");
  CHECK(has(answer, "start-up (goal.start_up): each minute costs " +
                        usd_text(later.choice->figures.cost_usd - figures.cost_usd)));
  CHECK(later.not_included.size() == answer.not_included.size() - 1);
}

TEST_CASE("plan: a price says when it was seen, as far as the table knows, and how new others are") {
  // A month or a year that is known is told; the newest row of the table need have no last day either.
  const auto said = [](const std::string& days, const std::string& of_other) {
    const WorkingFile prices("prices.csv",
                             "server,provider,region,market,usd_per_hour,from,until\n"
                             "aws-p3.8xlarge,aws,us-east-1,on_demand,9," +
                                 days + "\naws-p2.xlarge,aws,us-east-1,on_demand,1," + of_other + "\n");
    PlanSpec spec =
        plans::spec_of("{epochs: 30}", "{servers: [aws-p3.8xlarge], nodes: [1], batch_per_device: [64]}");
    spec.user_prices = std::make_shared<const PriceTable>(PriceTable::read(prices.name));
    const PlanAnswer answer = answer_of(spec, false);
    const auto found = std::find_if(answer.assumes.begin(), answer.assumes.end(), [](const Assumption& each) {
      return each.what == "price of aws-p3.8xlarge";
    });
    REQUIRE(found != answer.assumes.end());
    return found->value;
  };
  CHECK(said("2025-09,", "2024,2026-07-20") ==
        "9 USD/h, seen listed in 2025-09 (newest price of the table: 2026-07-20)");
  CHECK(said("2025,", "2024,2024-07-20") == "9 USD/h, seen listed in 2025 (newest price of the table: 2025)");
  CHECK(said("2025-09-03,", "2026-01,") ==
        "9 USD/h, seen listed on 2025-09-03 (newest price of the table: 2026-01)");
  CHECK(said("2025-09,2026-07-20", "2024,") ==
        "9 USD/h, listed until 2026-07-20 (newest price of the table: 2026-07-20)");
}

TEST_CASE("plan: machines of one's own have one price in all regions, and electricity on top of it") {
  const std::string own = "{name: lab-x, base: workstation-2-rtx-3090, price: 0USD/h}";
  const auto with = [&](const std::string& more) {
    return answer_of(plans::spec_of("{epochs: 3}", "{servers: [" + own +
                                                       ", aws-p3.2xlarge], batch_per_device: [64], "
                                                       "electricity: 0.3USD/kWh" +
                                                       more + "}"),
                     false);
  };
  const PlanAnswer somewhere = with(""), there = with(", region: [us-east-1]");
  REQUIRE(there.choice);
  CHECK(there.choice->order == Order{{"lab-x", 1}});
  CHECK(there.choice->figures.cost_usd == approx(0.3 * there.choice->figures.energy_j / 3.6e6));
  CHECK(there.choice->figures.cost_usd == approx(somewhere.choice->figures.cost_usd));
  CHECK(order_text(*there.choice).starts_with("use 1 lab-x for "));
  CHECK(order_text(there.runners_up.front()).starts_with("rent 1 aws-p3.2xlarge on demand for "));
}

TEST_CASE("plan: a rented base's price is not that of a machine of one's own") {
  const auto cost = [](const std::string& servers, const std::string& more) {
    return answer_of(plans::spec_of("{epochs: 3}",
                                    "{servers: [" + servers + "], batch_per_device: [64]" + more + "}"),
                     false)
        .choice;
  };
  const auto own = cost("{name: mine, base: aws-p3.2xlarge}", ", electricity: 0.3USD/kWh");
  CHECK(own->figures.cost_usd == approx(0.3 * own->figures.energy_j / 3.6e6));
  CHECK_THROWS_AS(cost("{name: mine, base: aws-p3.2xlarge}", ""), InputError);
  // Of two kinds side by side each pays its own: between what either part pays alone and both.
  const PlanAnswer mixed = answer_of(
      plans::spec_of(
          "{epochs: 3}",
          "{servers: [{name: aws-mine, base: aws-p3.2xlarge}, aws-p3.2xlarge], nodes: [1], mixtures: "
          "true, batch_per_device: [64], electricity: 3USD/kWh, objective: time}"),
      true);
  std::vector<CandidateResultOfPlan> all = mixed.runners_up;
  all.push_back(*mixed.choice);
  const auto both =
      std::find_if(all.begin(), all.end(), [](const auto& each) { return each.order.size() == 2; });
  REQUIRE(both != all.end());
  CHECK(both->usd_per_h > 0);
  CHECK(both->figures.cost_usd ==
        approx(both->usd_per_h * both->figures.time_s / 3600 + 3 * both->figures.energy_j / 3.6e6 / 2));
}

TEST_CASE("plan: with input from files, it tells the figures of the plan that has them") {
  const std::string plan = "{servers: [aws-p4d.24xlarge], nodes: [1], batch_per_device: [256]}";
  const std::string samples = "dataset: {samples: 1281167}";
  const PlanAnswer answer =
      answer_of(plans::spec_of("{epochs: 90}", plan, "{" + samples + ", input: null}", "alexnet"), false);
  const PlanAnswer with = answer_of(
      plans::spec_of("{epochs: 90}", plan,
                     "{" + samples + ", input: {kind: jpeg, library: pil, cached: true}}", "alexnet"),
      false);
  const auto said = [](const PlanAnswer& of) {
    return *std::find_if(of.assumes.begin(), of.assumes.end(),
                         [](const Assumption& each) { return each.what == "input"; });
  };
  CHECK(said(answer).grade == Grade::unstated);
  CHECK(with.choice->figures.time_s > 1.2 * answer.choice->figures.time_s);
  CHECK(said(answer).would_change.find(
            fmt::format("{} and {} instead of", hours_text(with.choice->figures.time_s),
                        usd_text(with.choice->figures.cost_usd))) != std::string::npos);
  CHECK(said(with).value == "jpeg by pil");
  const auto synthetic = plans::spec_of("{epochs: 3}", plan, "{" + samples + ", input: {kind: synthetic}}");
  CHECK(said(answer_of(synthetic, false)).value.starts_with("synthetic"));
  const auto exactly = plans::spec_of(
      "{epochs: 3}", plan,
      "{" + samples + ", input: {kind: jpeg, library: pil, core_images_per_s: 90, cached: true}}");
  CHECK(said(answer_of(exactly, false)).would_change == "its loader's rate is given exactly");
}

TEST_CASE("plan: what an epoch, an idle hour and electricity cost is that of plans with more of them") {
  const auto with = [](const std::string& goal, double usd_per_kwh) {
    return answer_of(
        plans::spec_of(
            goal, fmt::format("{{servers: [{}], nodes: [2], batch_per_device: [64], electricity: {}USD/kWh}}",
                              box, usd_per_kwh)),
        false);
  };
  const auto said = [](const PlanAnswer& of, const std::string& what) {
    const auto found = std::find_if(of.assumes.begin(), of.assumes.end(),
                                    [&](const Assumption& each) { return each.what == what; });
    REQUIRE_MESSAGE(found != of.assumes.end(), what);
    return *found;
  };
  const PlanAnswer answer = with("{epochs: 30, start_up: 2h}", 30),
                   longer = with("{epochs: 31, start_up: 2h}", 30),
                   later = with("{epochs: 30, start_up: 3h}", 30),
                   dearer = with("{epochs: 30, start_up: 2h}", 60);
  const Figures &figures = answer.choice->figures, &one_more = longer.choice->figures;
  CHECK(said(answer, "epochs").would_change == fmt::format("one more is {} and {}",
                                                           hours_text(one_more.time_s - figures.time_s),
                                                           usd_text(one_more.cost_usd - figures.cost_usd)));
  const std::string hour = usd_text(later.choice->figures.cost_usd - figures.cost_usd);
  CHECK(std::find(answer.not_included.begin(), answer.not_included.end(),
                  "staging the data set onto the machines: each hour costs " + hour) !=
        answer.not_included.end());
  CHECK(said(answer, "electricity").value == "30 USD/kWh");
  CHECK(said(answer, "electricity")
            .would_change.find(usd_text(dearer.choice->figures.cost_usd - figures.cost_usd)) !=
        std::string::npos);
  CHECK(said(answer, "network of our-box").grade == Grade::given);
}

TEST_CASE("plan: speeds that an anchor gives and networks without a source are told as such") {
  const PlanAnswer answer = answer_of(
      plans::spec_of("{epochs: 3}", "{servers: [aws-p3.2xlarge], nodes: [1], batch_per_device: [64]}",
                     "{dataset: {samples: 100000}, anchor: {images_per_s: 5000, batch: 64}}"),
      false);
  const auto speed = std::find_if(answer.assumes.begin(), answer.assumes.end(),
                                  [](const Assumption& each) { return each.what.starts_with("speed of"); });
  CHECK(speed->grade == Grade::given);
  CHECK(speed->value == "as training.anchor measured it");
}

TEST_CASE("plan: scenarios that are wrong are told by their name, before anything is simulated") {
  const auto error = [](const std::string& scenarios) {
    return plans::error_of("{epochs: 3}", "{servers: [aws-p3.2xlarge], scenarios: [" + scenarios + "]}");
  };
  CHECK(error("{name: a, set: {plan.scenarios: []}}").find("a scenario has no scenarios of its own") !=
        std::string::npos);
  CHECK(error("{name: a, set: {goal.epochs: 4}}, {name: a, set: {goal.epochs: 5}}")
            .find("'a' is another scenario's name") != std::string::npos);
  CHECK(error("{name: tiny, set: {goal.epochs: many}}").starts_with(":5:47: plan.scenarios 'tiny': "));
  const PlanSpec late = plans::spec_of(
      "{epochs: 3}",
      "{servers: [aws-p3.2xlarge], scenarios: [{name: none, set: {plan.servers: [dgx1-v100]}}]}");
  PlanOptions options;
  options.jobs = 1;
  bool simulated = false;
  options.progress = [&](const std::string& what, std::size_t, std::size_t) {
    simulated = simulated || what != "measuring servers";
  };
  std::string said;
  try {
    make_plan(late, options);
  } catch (const InputError& wrong) {
    said = wrong.what();
  }
  CHECK(said.find("plan.scenarios 'none': ") != std::string::npos);
  CHECK_FALSE(simulated);
}
