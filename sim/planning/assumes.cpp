// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity.h"
#include "sim/costs/input_pipeline.h"
#include "sim/costs/residuals.h"
#include "sim/page/text.h"
#include "sim/planning/answer.h"
#include "sim/planning/whole_runs.h"
#include "sim/planning/write_plan.h"
#include "topologies/price_age.h"
#include "topologies/typical_efficiency.h"

namespace convoy::inline planning {
namespace {

/// "another choice wins if ...", for the rows of sensitivity of this kind; `otherwise` where there are none.
std::string turning_points(const PlanAnswer& answer, const std::string& kind, const std::string& server,
                           const std::string& otherwise) {
  std::string text;
  for (const Change& change : answer.sensitivity)
    if (change.kind == kind && change.server == server)
      text += fmt::format("{}{}", text.empty() ? "another choice wins if " : ", or ", change.text);
  return text.empty() ? otherwise : text;
}

/// "21.3 h and 522 USD", "21.3 h" where prices are not known
std::string time_and_cost(double time_s, double cost_usd) {
  return hours_text(time_s) + (std::isfinite(cost_usd) ? " and " + usd_text(cost_usd) : "");
}

/// "21.3 h and 522 USD instead of 20.1 h and 493 USD"
std::string instead_of(const Figures& other, const Figures& figures) {
  return fmt::format("{} instead of {}", time_and_cost(other.time_s, other.cost_usd),
                     time_and_cost(figures.time_s, figures.cost_usd));
}

Assumption input_of(const Planner& planner, const Scenario& scenario, std::size_t choice,
                    const PlanAnswer& answer) {
  const std::optional<InputSpec>& given = planner.trials().spec().input;
  if (given && !given->synthetic)
    return {"input", given->label(), Grade::given,
            given->rate_given ? "its loader's rate is given exactly"
                              : "its loader's rate is in the interval of the time"};
  Scenario from_files = scenario;
  from_files.input = input_from_files();
  const InputLibrary& usual = from_files.input->library;
  return {"input", "synthetic: images are there when they are needed", given ? Grade::given : Grade::unstated,
          fmt::format(
              "read by {} at {:g} images/s of a core: {}; {}", usual.name, usual.core_images_per_s,
              instead_of(planner.figures(choice, from_files), answer.choice->figures),
              turning_points(answer, "input", "", "no rate from 1 image/s of a core on changes the choice"))};
}

Assumption evaluation_of(const Planner& planner, const Scenario& scenario, std::size_t choice,
                         const PlanAnswer& answer) {
  const Goal::Pause& given = planner.trials().spec().goal.evaluation();
  constexpr double minute_s = 60;
  Scenario longer = scenario;
  longer.evaluation_s = minute_s;
  return {"evaluation",
          given.time_s > 0
              ? fmt::format("{} after every {:g} epochs", format_time(given.time_s), given.every_epochs)
              : "none",
          given.time_s > 0 ? Grade::given : Grade::unstated,
          fmt::format("a minute more after every epoch: {}; {}",
                      instead_of(planner.figures(choice, longer), answer.choice->figures),
                      turning_points(answer, "evaluation", "", "no time up to a day changes the choice"))};
}

Assumption epochs_of(const Planner& planner, std::size_t choice, const PlanAnswer& answer) {
  const Goal& goal = planner.trials().spec().goal;
  const EpochsNeeded& needed =
      *planner.estimates().facts().epochs(planner.trials().space().candidates[choice].setup);
  const Goal::Evidence evidence = goal.evidence(static_cast<double>(answer.choice->global_batch));
  const Figures& figures = answer.choice->figures;
  const double start_up_usd = answer.choice->idle_usd_per_h * goal.start_up_s() / 3600;
  std::string value = digits_text(needed.epochs, 4);
  if (needed.least < needed.most)
    value += fmt::format(" ({} to {})", digits_text(needed.least, 4), digits_text(needed.most, 4));
  if (!evidence.text.empty()) value += " " + evidence.text;
  return {"epochs", value, evidence.grade,
          "one more is " + time_and_cost((figures.time_s - goal.start_up_s()) / needed.epochs,
                                         (figures.cost_usd - start_up_usd) / needed.epochs)};
}

/// "listed until 2026-07-20", "seen listed on 2025-09-03", "seen listed in 2025-09"
std::string listed_text(const Price& price) {
  if (!price.until.empty()) return "listed until " + price.until;
  const bool is_day = price.from.size() == std::string_view("2025-09-03").size();
  return fmt::format("seen listed {} {}", is_day ? "on" : "in", price.from);
}

Assumption price_of(const Planner& planner, const PlanAnswer& answer, const Price& price) {
  std::string value = fmt::format("{:g} USD/h", price.usd_per_hour);
  std::string moved;
  if (!price.region.empty()) {
    value += fmt::format(", {} (newest price of the table: {})", listed_text(price), answer.newest_price);
    const double reach = price_reach(price.market, planner.trials().spec().price_age_years(price));
    if (reach > 0)
      moved = fmt::format("four of five as old moved by less than a factor of {:.2f}; ", std::exp(reach));
  }
  return {"price of " + price.server, value, price.grade,
          moved + turning_points(answer, "price", price.server, "no factor up to 16 changes the choice")};
}

Assumption whole_run_of(const PlanAnswer& answer) {
  const WholeRunSpread spread = whole_run_spread(whole_runs());
  return {"whole runs",
          fmt::format(
              "those of {} teams took {:.2f} times as long as their steps predict; that is in the intervals, "
              "and not in the predicted time and cost",
              spread.teams, std::exp(spread.bias)),
          Grade::fitted,
          fmt::format("at 80 %: {} to {}", hours_text(answer.choice->run_time_interval.first),
                      hours_text(answer.choice->run_time_interval.second))};
}

/// How often machines of the spot market are taken away.
Assumption interruptions_of(const Planner& planner, std::size_t choice, const PlanAnswer& answer) {
  const auto [least, most] = planner.estimates().rate_factors(choice);
  return {
      "interruptions",
      least < most ? fmt::format("{:.2g} to {:.2g} times the rate that counts, at 80 %", least, most)
                   : "the rate of the record",
      least < most ? Grade::assumed : Grade::measured,
      fmt::format("{:.0f} to {:.0f} of them at 80 %, {} expected",
                  answer.choice->interruptions_interval.first, answer.choice->interruptions_interval.second,
                  digits_text(answer.choice->figures.interruptions, 3))};
}

Assumption electricity_of(const Planner& planner, std::size_t choice, const PlanAnswer& answer) {
  const double usd_per_j = *planner.trials().spec().electricity_usd_per_j;
  const double usd =
      answer.choice->figures.energy_j * planner.estimates().facts().electricity_usd_per_j(choice);
  return {"electricity", fmt::format("{:g} USD/kWh", usd_per_j * joules_a_kwh), Grade::given,
          fmt::format("twice as dear, it costs {} more", usd_text(usd))};
}

Assumption device_of(const PlanSpec& spec, const DeviceType& type, const PlanAnswer& answer) {
  const bool exact = type.evidence_spread == 0;
  const YamlNode* anchor = spec.training.find("anchor");
  const bool anchored = anchor != nullptr && anchor->kind != YamlNode::Kind::null;
  return {"speed of " + type.name,
          anchored                ? "as training.anchor measured it"
          : exact                 ? "exact"
          : !device_is_seen(type) ? unseen_device_text(type)
                                  : fmt::format("fitted to {} measured rows", type.evidence_rows),
          exact || anchored            ? Grade::given
          : states_no_efficiency(type) ? Grade::unstated
          : !device_is_seen(type)      ? Grade::assumed
                                       : Grade::fitted,
          fmt::format("at 80 %: {} to {}", hours_text(answer.choice->time_interval.first),
                      hours_text(answer.choice->time_interval.second))};
}

Assumption network_of(const PlanSpec& spec, const ServerSpec& server, const PlanAnswer& answer) {
  const Source* bandwidth = find_source(server.sources, "fabric.bandwidth");
  return {"network of " + server.host.server, server.fabric ? server.fabric->text() : "none",
          spec.own_servers.contains(server.host.server) ? Grade::given
          : bandwidth                                   ? bandwidth->grade
                                                        : Grade::unstated,
          turning_points(answer, "bandwidth", "", "no factor from 1/8 to 8 of all links changes the choice")};
}

}  // namespace

InputSpec input_from_files() {
  InputSpec input;
  input.synthetic = false;
  input.library = load_input_library("pil", {"plan", 0, 0});
  input.cached = true;
  return input;
}

std::vector<Assumption> assumptions_of(const Planner& planner, const Scenario& scenario, std::size_t choice,
                                       const PlanAnswer& answer) {
  std::vector<Assumption> all{input_of(planner, scenario, choice, answer),
                              evaluation_of(planner, scenario, choice, answer),
                              epochs_of(planner, choice, answer)};
  all.push_back(whole_run_of(answer));
  if (answer.choice->interruptible) all.push_back(interruptions_of(planner, choice, answer));
  for (const Price& price : answer.choice->prices)
    if (price.usd_per_hour > 0 || !answer.choice->figures.electricity_usd)  // which `electricity` is about
      all.push_back(price_of(planner, answer, price));
  const PlanSpec& spec = planner.trials().spec();
  const bool own = std::any_of(answer.choice->order.begin(), answer.choice->order.end(),
                               [&](const auto& kind) { return spec.own_servers.contains(kind.first); });
  if (own && spec.electricity_usd_per_j) all.push_back(electricity_of(planner, choice, answer));
  std::int64_t hosts = 0;
  for (const auto& [name, count] : answer.choice->order) hosts += count;
  for (const auto& [name, count] : answer.choice->order) {
    const ServerSpec& server = planner.trials().servers().at(name);
    for (const auto& [type, devices] : server.devices) all.push_back(device_of(spec, type, answer));
    if (hosts > 1) all.push_back(network_of(spec, server, answer));
  }
  return all;
}

std::vector<std::string> not_included_in(const PlanSpec& spec, const CandidateResultOfPlan& choice) {
  std::vector<std::string> all;
  const Figures& figures = choice.figures;
  const auto costs = [&](const std::string& what, const char* amount, double hours) {
    const double usd = choice.idle_usd_per_h * hours;
    all.push_back(std::isfinite(usd) ? fmt::format("{}: {} costs {}", what, amount, usd_text(usd)) : what);
  };
  if (spec.goal.start_up_s() == 0) costs("start-up (goal.start_up)", "each minute", 1.0 / 60);
  if (spec.goal.checkpoint().time_s == 0)
    costs("checkpoints (goal.checkpoint)", "a second after every epoch", figures.epochs / 3600);
  if (!choice.interruptible) {
    // In the mean half of what was done since the last checkpoint.
    const double every = spec.goal.checkpoint().every_epochs;
    const double share = std::min(1.0, every / figures.epochs) / 2;
    all.push_back(fmt::format(
        "hosts that fail (plan.failures): each loses {} where there is a checkpoint after every {}, half of "
        "the run where there is none",
        time_and_cost(share * figures.time_s, share * figures.cost_usd),
        every == 1 ? "epoch" : fmt::format("{:g} epochs", every)));
  }
  costs("staging the data set onto the machines", "each hour", 1);
  constexpr double month_s = 365.25 / 12 * 24 * 3600;
  // Not the price of a provider: one that is easy to scale.
  constexpr double stored_gb = 100, usd_per_gb = 0.1;
  all.push_back(
      fmt::format("storage of the data set and of checkpoints: {:g} GB at {:.2f} USD per GB and month cost "
                  "{} in this time",
                  stored_gb, usd_per_gb, usd_text(stored_gb * usd_per_gb * figures.time_s / month_s)));
  all.push_back(
      fmt::format("egress of the data set and of the trained model: {:g} GB at {:.2f} USD per GB cost {}",
                  stored_gb, usd_per_gb, usd_text(stored_gb * usd_per_gb)));
  costs("a provider's billing minimum and rounding", "up to an hour", 1);
  all.push_back("runs that are repeated, since the goal is reached once: each is " +
                time_and_cost(figures.time_s, figures.cost_usd));
  return all;
}

}  // namespace convoy::planning
