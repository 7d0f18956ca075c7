// SPDX-License-Identifier: MIT
#include "sim/planning/read_plan_json.h"

#include <fmt/format.h>

#include <istream>
#include <limits>
#include <nlohmann/json.hpp>

#include "sim/base/input_error.h"
#include "sim/planning/write_plan.h"

namespace convoy::inline planning {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinity: what is not known is null.
double number_or_infinite(const Json& object, const char* name) {
  const Json& value = object.at(name);
  return value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>();
}

std::pair<double, double> pair_of(const Json& value) {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  if (value.is_null()) return {unknown, unknown};
  return {value.at(0).get<double>(), value.at(1).get<double>()};
}

template <class Enumeration>
Enumeration named(const Json& value, std::initializer_list<Enumeration> all) {
  for (const Enumeration each : all)
    if (to_string(each) == value.get<std::string>()) return each;
  throw std::invalid_argument(fmt::format("'{}' is not known", value.get<std::string>()));
}

Precision precision_of(const Json& value) {
  return named(value, {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16});
}

std::vector<Price> prices_of(const Json& list, Market market) {
  std::vector<Price> prices;
  for (const Json& item : list) {
    Price price;
    price.server = item.at("server").get<std::string>();
    price.region = item.at("region").get<std::string>();
    price.market = market;
    price.usd_per_hour = item.at("usd_per_h").get<double>();
    price.from = item.at("from").get<std::string>();
    price.until = item.at("until").get<std::string>();
    price.source = item.at("source").get<std::string>();
    prices.push_back(std::move(price));
  }
  return prices;
}

void read_figures(const Json& object, CandidateResultOfPlan& candidate) {
  candidate.figures.epochs = object.at("epochs").get<double>();
  candidate.figures.time_s = object.at("time_to_train_s").get<double>();
  candidate.figures.cost_usd = number_or_infinite(object, "cost_usd");
  candidate.figures.energy_j = object.at("energy_kwh").get<double>() * joules_a_kwh;
  candidate.figures.carbon_kg = number_or_infinite(object, "carbon_kg");
  candidate.usd_per_h = number_or_infinite(object, "usd_per_h");
  candidate.step_time_s = object.at("step_time_s").get<double>();
  candidate.peak_memory_bytes = object.at("peak_memory_bytes").get<double>();
  const Json& interval = object.at("interval");
  candidate.time_interval = pair_of(interval.at("time_to_train_s"));
  candidate.cost_interval = pair_of(interval.at("cost_usd"));
  if (!object.contains("on_interruption")) return;
  candidate.interruptible = true;
  candidate.figures.interruptions = object.at("interruptions").get<double>();
  candidate.reaction = named(object.at("on_interruption"), {OnInterruption::wait, OnInterruption::go_on});
}

CandidateResultOfPlan candidate_of(const Json& object) {
  CandidateResultOfPlan candidate;
  for (const auto& [name, count] : object.at("servers").items())
    candidate.order.emplace_back(name, count.get<std::int64_t>());
  candidate.devices = object.at("devices").get<std::int64_t>();
  candidate.market = named(object.at("market"), {Market::on_demand, Market::spot});
  candidate.own = object.value("own", false);
  if (const Json& region = object.at("region"); !region.is_null())
    candidate.region = region.get<std::string>();
  candidate.prices = prices_of(object.at("prices"), candidate.market);
  candidate.doubts = object.at("doubts").get<std::vector<std::string>>();
  candidate.precision = precision_of(object.at("precision"));
  candidate.batch_per_device = object.at("batch_per_device").get<std::int64_t>();
  candidate.global_batch = object.at("global_batch").get<std::int64_t>();
  candidate.label = object.at("strategy_text").get<std::string>();
  candidate.bottleneck = object.at("bottleneck").get<std::string>();
  read_figures(object, candidate);
  candidate.reason = object.value("reason", "");
  candidate.tie = object.value("tie", false);
  return candidate;
}

std::optional<CandidateResultOfPlan> candidate_or_nothing(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return candidate_of(value);
}

std::vector<CandidateResultOfPlan> candidates_of(const Json& list) {
  std::vector<CandidateResultOfPlan> candidates;
  for (const Json& item : list) candidates.push_back(candidate_of(item));
  return candidates;
}

template <class Number>
void read_limit(const Json& object, const char* name, std::optional<Number>& limit) {
  if (object.contains(name)) limit = object.at(name).get<Number>();
}

void read_constraints(const Json& object, PlanConstraints& limits) {
  read_limit(object, "deadline_s", limits.deadline_s);
  read_limit(object, "budget_usd", limits.budget_usd);
  read_limit(object, "max_devices", limits.max_devices);
  read_limit(object, "max_global_batch", limits.max_global_batch);
  limits.memory = object.at("memory").get<double>();
  limits.providers = object.at("providers").get<std::vector<std::string>>();
}

void read_sensitivity(const Json& list, std::vector<Change>& changes) {
  for (const Json& item : list)
    changes.push_back({item.at("change").get<std::string>(), item.at("kind").get<std::string>(),
                       item.value("server", ""), item.at("value").get<double>(),
                       candidate_or_nothing(item.at("choice"))});
}

/// Plans of before have none of these.
void read_doubts(const Json& document, PlanAnswer& answer) {
  for (const Json& item : document.value("assumes", Json::array()))
    answer.assumes.push_back({item.at("what").get<std::string>(), item.at("value").get<std::string>(),
                              named(item.at("grade"), {Grade::measured, Grade::fitted, Grade::data_sheet,
                                                       Grade::assumed, Grade::unstated, Grade::given}),
                              item.at("would_change").get<std::string>()});
  answer.not_included = document.value("not_included", std::vector<std::string>());
  for (const Json& item : document.value("scenarios", Json::array()))
    answer.scenarios.push_back({item.at("name").get<std::string>(),
                                item.at("set").get<std::vector<std::string>>(),
                                candidate_or_nothing(item.at("choice"))});
}

PlanAnswer answer_from(const Json& document) {
  if (document.at("schema") != "convoy.plan/1") throw std::invalid_argument("its schema is another one");
  PlanAnswer answer;
  answer.name = document.at("experiment").get<std::string>();
  answer.goal = document.at("goal").get<std::string>();
  answer.objective =
      named(document.at("objective"), {PlanObjective::cost, PlanObjective::time, PlanObjective::energy,
                                       PlanObjective::carbon, PlanObjective::front});
  read_constraints(document.at("constraints"), answer.constraints);
  answer.choice = candidate_or_nothing(document.at("choice"));
  answer.front = candidates_of(document.at("front"));
  answer.runners_up = candidates_of(document.at("runners_up"));
  answer.candidates = document.at("candidates").get<std::int64_t>();
  answer.planned = document.at("planned").get<std::int64_t>();
  answer.simulated = document.at("simulated").get<std::int64_t>();
  for (const auto& [reason, count] : document.at("pruned").items())
    answer.pruned[reason] = count.get<std::int64_t>();
  for (const Json& each : document.value("left_out", Json::array()))
    answer.left_out.push_back(
        {each.at("servers").get<std::vector<std::string>>(), each.at("why").get<std::string>()});
  read_sensitivity(document.at("sensitivity"), answer.sensitivity);
  read_doubts(document, answer);
  if (document.contains("nearest_constraint")) {
    const Json& nearest = document.at("nearest_constraint");
    answer.nearest =
        NearestConstraint{nearest.at("name").get<std::string>(), nearest.at("text").get<std::string>(),
                          candidate_or_nothing(nearest.at("candidate"))};
  }
  const Json& manifest = document.at("manifest");
  answer.manifest.version = manifest.at("version").get<std::string>();
  answer.manifest.simgrid = manifest.at("simgrid").get<std::string>();
  answer.manifest.config_sha256 = manifest.at("config_sha256").get<std::string>();
  return answer;
}

}  // namespace

PlanAnswer read_plan_answer(std::istream& in, const std::string& file) {
  try {
    return answer_from(Json::parse(in));
  } catch (const nlohmann::json::exception& error) {
    throw InputError({file, 0, 0}, fmt::format("is no plan of `convoy plan`: {}", error.what()));
  } catch (const std::invalid_argument& error) {
    throw InputError({file, 0, 0}, fmt::format("is no plan of `convoy plan`: {}", error.what()));
  }
}

}  // namespace convoy::planning
