// SPDX-License-Identifier: MIT
// What is written of an answer.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/input_error.h"
#include "sim/page/html.h"
#include "sim/page/svg.h"
#include "sim/planning/plan_report.h"
#include "sim/planning/read_plan_json.h"
#include "sim/planning/write_plan.h"
#include "tests/planning/plan_text.h"
#include "tests/support/approx.h"

using namespace convoy;
using plans::answer_of;

namespace {

/// The same names and texts in the same places, and numbers up to the rounding of their units.
void check_same(const nlohmann::json& a, const nlohmann::json& b) {
  const nlohmann::json flat_a = a.flatten(), flat_b = b.flatten();
  REQUIRE(flat_a.size() == flat_b.size());
  for (const auto& [path, value] : flat_a.items()) {
    CAPTURE(path);
    REQUIRE(flat_b.contains(path));
    if (value.is_number())
      CHECK(value.get<double>() == approx(flat_b[path].get<double>()).epsilon(1e-14));
    else
      CHECK(value == flat_b[path]);
  }
}

}  // namespace

TEST_CASE("planner: an answer that was written and read back makes the same page and table") {
  for (const char* plan : {"{servers: [aws-p3.2xlarge, aws-g4dn.xlarge], nodes: [1, 2], batch_per_device: "
                           "[64], market: [on_demand, spot], "
                           "constraints: {deadline: 50h, budget: 900USD, max_devices: 64, providers: [aws]}}",
                           "{servers: [aws-p3.2xlarge], batch_per_device: [64], constraints: {deadline: 1s}, "
                           "objective: energy}"}) {
    const PlanAnswer answer = answer_of(plans::spec_of("{epochs: 30}", plan), false);
    std::stringstream json;
    write_json(answer, json);
    const PlanAnswer back = read_plan_answer(json, "plan.json");
    std::ostringstream page, page_back;
    write_report(answer, page);
    write_report(back, page_back);
    CHECK(page_back.str() == page.str());
    CHECK(table(back) == table(answer));
    std::ostringstream json_back;
    write_json(back, json_back);
    check_same(nlohmann::json::parse(json_back.str()), nlohmann::json::parse(json.str()));
    if (answer.choice) {
      CHECK(page.str().find(answer.choice->prices.front().until) != std::string::npos);  // the price's date
      for (const CandidateResultOfPlan& candidate : answer.front) CHECK_FALSE(candidate.reason.empty());
    }
  }
  std::istringstream other("{\"schema\": \"convoy.results/1\"}"), cut("{\"schema\": \"convoy.pl");
  CHECK_THROWS_WITH_AS(read_plan_answer(other, "plan.json"),
                       "plan.json: is no plan of `convoy plan`: schema: expected 'convoy.plan/1', not "
                       "'convoy.results/1'",
                       InputError);
  CHECK_THROWS_AS(read_plan_answer(cut, "plan.json"), InputError);
}

TEST_CASE("planner: a plan.json with a name too few, too many or of another kind is refused by its place") {
  std::stringstream json;
  write_json(answer_of(plans::spec_of("{epochs: 30}",
                                      "{servers: [aws-p3.2xlarge, aws-g4dn.xlarge], batch_per_device: [64]}"),
                       false),
             json);
  const nlohmann::json whole = nlohmann::json::parse(json.str());
  const auto error_of = [](const nlohmann::json& document) {
    std::istringstream in(document.dump());
    try {
      read_plan_answer(in, "plan.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  REQUIRE(error_of(whole) == "none");
  int refused = 0;
  const nlohmann::json flat = whole.flatten();
  for (const auto& [path, value] : flat.items()) {
    CAPTURE(path);
    // What is YAML, or a name that the document chooses, may be anything.
    if (path.find("/strategy/") != std::string::npos || path.find("/servers/") != std::string::npos ||
        path.starts_with("/pruned") || path.starts_with("/manifest/inputs"))
      continue;
    nlohmann::json broken = whole;
    broken[nlohmann::json::json_pointer(path)] = nlohmann::json::object();
    const std::string error = error_of(broken);
    CHECK(error.starts_with("plan.json: is no plan of `convoy plan`: "));
    refused += error != "none";
  }
  CHECK(refused > 100);
  nlohmann::json more = whole;
  more["choice"]["colour"] = "red";
  CHECK(error_of(more) == "plan.json: is no plan of `convoy plan`: choice: unknown name 'colour'");
  more = whole;
  more["choice"]["cost_usd"] = 5e-324;
  CHECK(error_of(more).find("a number that small is no result") != std::string::npos);
  more = whole;
  more["choice"].erase("market");
  CHECK(error_of(more) == "plan.json: is no plan of `convoy plan`: choice: 'market' is missing");
}

namespace {

/// Own machines that cost next to nothing beside rented ones that cost thousands of times as much, and the
/// other way round; few and very many epochs.
std::vector<std::pair<std::string, std::string>> lopsided_plans() {
  std::vector<std::pair<std::string, std::string>> plans;
  for (const char* const own : {"{name: lab-x, base: workstation-2-rtx-3090}",
                                "{name: lab-x, base: workstation-2-rtx-3090, price: "
                                "0.001USD/h}",
                                "{name: lab-x, base: workstation-2-rtx-3090, price: 90000USD/h}"})
    for (const char* const epochs : {"{epochs: 3}", "{epochs: 250000}"})
      for (const char* const objective : {"cost", "time", "front"})
        plans.emplace_back(epochs,
                           fmt::format("{{servers: [{}, aws-p3.2xlarge, aws-g4dn.xlarge], batch_per_device: "
                                       "[1, 512], electricity: 0.0002USD/kWh, objective: {}}}",
                                       own, objective));
  // A server of nobody's has no price.
  for (const char* const objective : {"time", "energy", "carbon"})
    for (const char* const servers : {"dgx1-v100", "dgx1-v100, aws-g4dn.xlarge"})
      plans.emplace_back(
          "{epochs: 30}",
          fmt::format("{{servers: [{}], batch_per_device: [64], objective: {}}}", servers, objective));
  return plans;
}

}  // namespace

TEST_CASE(
    "planner: no sentence has a number with an exponent or one that is none, or shows a sum above zero as "
    "zero") {
  const std::regex exponent("[0-9]e[+-]?[0-9]"), nothing("[^0-9.]0(\\.0+)? USD"),
      unknown("\\b(inf|nan)\\b|costs price not known|and price not known|price not known/h");
  for (const auto& [goal, plan] : lopsided_plans()) {
    CAPTURE(goal);
    CAPTURE(plan);
    const PlanAnswer answer = answer_of(plans::spec_of(goal, plan), false);
    std::ostringstream written;
    write_report(answer, written);
    // Without its style, its drawing and its script, which have colours, coordinates and units.
    std::string page = written.str();
    page.erase(0, page.find("</style>"));
    page.erase(std::min(page.size(), page.find("<script>")));
    if (const std::size_t drawing = page.find("<svg"); drawing != std::string::npos)
      page.erase(drawing, page.find("</svg>") - drawing);
    for (const std::string& text : {table(answer), page}) {
      std::smatch found;
      CHECK_MESSAGE(!std::regex_search(text, found, exponent), found.str());
      CHECK_MESSAGE(!std::regex_search(text, found, nothing), found.str());
      CHECK_MESSAGE(!std::regex_search(text, found, unknown), found.str());
    }
  }
}

TEST_CASE("planner: an hour of machines of one's own costs their electricity, in words as in the figures") {
  const auto runner_up = [](const std::string& price) {
    const PlanAnswer answer = answer_of(
        plans::spec_of("{epochs: 30}", "{servers: [{name: lab-x, base: workstation-2-rtx-3090" + price +
                                           "}, aws-p3.2xlarge], batch_per_device: [64], electricity: "
                                           "0.3USD/kWh}"),
        false);
    REQUIRE(answer.choice->order.front().first == "lab-x");
    const Figures& figures = answer.choice->figures;
    const double hours = figures.time_s / 3600;
    CHECK(*figures.electricity_usd == approx(0.3 * figures.energy_j / 3.6e6));
    const std::string of_an_hour = usd_text(0.3 * figures.energy_j / 3.6e6 / hours) + "/h of electricity";
    CHECK(answer.runners_up.front().reason.find((price.empty() ? "" : "0.10 USD/h and ") + of_an_hour) !=
          std::string::npos);
    return answer;
  };
  runner_up(", price: 0.1USD/h");
  const PlanAnswer own = runner_up("");
  // The page says whose the machines are, as the text does.
  std::ostringstream page;
  write_report(own, page);
  CHECK(page.str().find(html_card("machines", "1 lab-x", "", "one's own")) != std::string::npos);
  CHECK(table(own).find("\nuse 1 lab-x for ") != std::string::npos);
}

TEST_CASE("planner: the page's rows refer to their doubts by number, and each doubt is told once") {
  const PlanAnswer answer = answer_of(
      plans::spec_of(
          "{epochs: 30}",
          "{servers: [aws-p3.2xlarge, azure-nc24r, azure-nc6, lambda-gpu_1x_a6000], nodes: [1, 2, 4], "
          "batch_per_device: [128]}"),
      false);
  REQUIRE(answer.choice);
  const std::vector<std::string>& of_choice = answer.choice->doubts;
  std::ostringstream written;
  write_report(answer, written);
  const std::string page = written.str();
  std::set<std::string> doubts;
  const auto count_of = [&](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) ++count;
    return count;
  };
  std::size_t references = 0;
  const auto add = [&](const CandidateResultOfPlan& candidate) {
    for (const std::string& doubt : candidate.doubts)
      if (std::find(of_choice.begin(), of_choice.end(), doubt) == of_choice.end())
        doubts.insert(doubt), ++references;
  };
  for (const CandidateResultOfPlan& candidate : answer.runners_up) add(candidate);
  for (const CandidateResultOfPlan& candidate : answer.front) add(candidate);
  REQUIRE(doubts.size() > 1);
  std::size_t marks = 0;
  for (std::size_t i = 1; i <= doubts.size(); ++i) {
    CHECK(count_of(fmt::format(">[{}] ", i)) == 1);  // in the list
    marks += count_of(fmt::format(" [{}]", i));      // behind machines
  }
  CHECK(marks == references);
  for (const std::string& doubt : doubts) CHECK(count_of(escaped(doubt)) == 1);
}

TEST_CASE("planner: the front and the runners-up say their value of the objective and what bounded it") {
  for (const std::string objective : {"cost", "time", "energy"}) {
    CAPTURE(objective);
    const PlanAnswer answer =
        answer_of(plans::spec_of("{epochs: 30}",
                                 "{servers: [aws-p3.2xlarge, aws-p3.8xlarge, aws-g4dn.xlarge], nodes: "
                                 "[1, 2], batch_per_device: [64], objective: " +
                                     objective + "}"),
                  false);
    const auto value = [&](const CandidateResultOfPlan& candidate) {
      const Figures& figures = candidate.figures;
      return objective == "cost" ? figures.cost_usd : objective == "time" ? figures.time_s : figures.energy_j;
    };
    int best = 0;
    for (const auto* const list : {&answer.front, &answer.runners_up})
      for (const CandidateResultOfPlan& candidate : *list) {
        CHECK(candidate.value == value(candidate));
        REQUIRE(candidate.bound);
        CHECK(*candidate.bound <= *candidate.value * (1 + 1e-6));
        CHECK(*candidate.bound > 0);
        best += candidate.outcome == "best";
        CHECK((candidate.outcome == "best" || candidate.outcome == "beaten"));
      }
    CHECK(best <= 1);  // a choice of the least energy may be off the front of time and cost
    if (objective != "energy") CHECK(best == 1);
    CHECK_FALSE(answer.choice->compared);
  }
}

TEST_CASE("planner: the strategy's text names the algorithm that auto came to") {
  const PlanAnswer answer = answer_of(
      plans::spec_of("{epochs: 30}", "{servers: [aws-p3.8xlarge], nodes: [2], batch_per_device: [64]}"),
      false);
  REQUIRE(answer.choice);
  CHECK(answer.choice->label.starts_with("auto all-reduce ("));
  CHECK(answer.choice->label.ends_with(")"));
}

TEST_CASE("planner: machines that cost nothing, or as much as others, are said to, without a ratio") {
  const std::string own = "base: workstation-2-rtx-3090, price: 0USD/h";
  const auto asked = [&](const std::string& servers, const std::string& objective) {
    return answer_of(
        plans::spec_of("{epochs: 30}", fmt::format("{{servers: [{}], batch_per_device: [64], objective: {}}}",
                                                   servers, objective)),
        false);
  };
  // Rented machines beside one's own that are free, in the order of the objective.
  const PlanAnswer rented = asked("{name: mine, " + own + "}, aws-p3.16xlarge", "front");
  REQUIRE(rented.choice);
  REQUIRE(rented.front.size() == 2);
  const auto of = [&](const std::string& server) {
    for (const CandidateResultOfPlan& candidate : rented.front)
      if (candidate.order.front().first == server) return candidate;
    FAIL("not on the front: ", server);
    return CandidateResultOfPlan{};
  };
  CHECK(of("mine").figures.cost_usd == 0);
  REQUIRE(rented.choice->order.front().first == "mine");
  CHECK(of("aws-p3.16xlarge").reason.ends_with(" quicker, dearer"));
  // The same machine under two names.
  for (const std::string objective : {"cost", "time", "energy"}) {
    CAPTURE(objective);
    for (const std::string price : {"0USD/h", "2.5USD/h"}) {
      const std::string machine = "base: workstation-2-rtx-3090, price: " + price;
      const PlanAnswer twins =
          asked("{name: one, " + machine + "}, {name: other, " + machine + "}", objective);
      REQUIRE(twins.runners_up.size() == 1);
      const std::string& reason = twins.runners_up.front().reason;
      CHECK(reason.find(objective == "energy" ? "takes as much energy"
                        : objective == "time" ? "takes as much: "
                                              : "costs as much: ") == 0);
    }
  }
}
