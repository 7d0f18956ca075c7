// SPDX-License-Identifier: MIT
#include "sim/planning/write_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "sim/base/quantity.h"
#include "sim/planning/interval.h"
#include "sim/results/json_writer.h"
#include "sim/results/text.h"

namespace convoy::inline planning {
namespace {

using Style = JsonWriter::Style;

void number_or_null(JsonWriter& json, const char* name, double value) {
  json.key(name);
  std::isfinite(value) ? json.value(value) : json.null();
}

void pair_or_null(JsonWriter& json, const char* name, const std::pair<double, double>& pair) {
  json.key(name);
  if (!std::isfinite(pair.first) || !std::isfinite(pair.second)) return json.null();
  json.begin_array(Style::compact);
  json.value(pair.first);
  json.value(pair.second);
  json.end_array();
}

void write_prices(JsonWriter& json, const CandidateResultOfPlan& candidate) {
  json.key("prices");
  json.begin_array();
  for (const Price& price : candidate.prices) {
    json.begin_object(Style::compact);
    json.field("server", price.server);
    json.field("usd_per_h", price.usd_per_hour);
    json.field("region", price.region);
    json.field("from", price.from);
    json.field("until", price.until);
    json.field("source", price.source);
    json.end_object();
  }
  json.end_array();
  json.key("doubts");
  json.begin_array(Style::compact);
  for (const std::string& doubt : candidate.doubts) json.value(std::string_view(doubt));
  json.end_array();
}

void write(JsonWriter& json, const CandidateResultOfPlan& candidate) {
  json.begin_object();
  json.key("servers");
  json.begin_object(Style::compact);
  for (const auto& [name, count] : candidate.order) json.field(name, count);
  json.end_object();
  json.field("devices", candidate.devices);
  json.field("market", to_string(candidate.market));
  if (candidate.own) json.field("own", true);
  json.key("region");
  candidate.region.empty() ? json.null() : json.value(std::string_view(candidate.region));
  json.field("precision", to_string(candidate.precision));
  json.field("batch_per_device", candidate.batch_per_device);
  json.field("global_batch", candidate.global_batch);
  json.field("strategy", candidate.strategy);
  json.field("strategy_text", candidate.label);
  json.field("epochs", candidate.figures.epochs);
  json.field("step_time_s", candidate.step_time_s);
  json.field("time_to_train_s", candidate.figures.time_s);
  number_or_null(json, "usd_per_h", candidate.usd_per_h);
  number_or_null(json, "cost_usd", candidate.figures.cost_usd);
  write_prices(json, candidate);
  json.field("energy_kwh", candidate.figures.energy_j / joules_a_kwh);
  number_or_null(json, "carbon_kg", candidate.figures.carbon_kg);
  if (candidate.interruptible) {
    json.field("interruptions", candidate.figures.interruptions);
    json.field("on_interruption", to_string(candidate.reaction));
  }
  json.field("peak_memory_bytes", candidate.peak_memory_bytes);
  json.field("bottleneck", candidate.bottleneck);
  json.key("interval");
  json.begin_object(Style::compact);
  json.field("level", interval_level);
  pair_or_null(json, "time_to_train_s", candidate.time_interval);
  pair_or_null(json, "cost_usd", candidate.cost_interval);
  json.end_object();
  if (!candidate.reason.empty()) {
    json.field("reason", candidate.reason);
    json.field("tie", candidate.tie);
  }
  json.end_object();
}

void write_constraints(JsonWriter& json, const PlanConstraints& limits) {
  json.key("constraints");
  json.begin_object();
  if (limits.deadline_s) json.field("deadline_s", *limits.deadline_s);
  if (limits.budget_usd) json.field("budget_usd", *limits.budget_usd);
  if (limits.max_devices) json.field("max_devices", *limits.max_devices);
  if (limits.max_global_batch) json.field("max_global_batch", *limits.max_global_batch);
  json.field("memory", limits.memory);
  json.key("providers");
  json.begin_array(Style::compact);
  for (const std::string& provider : limits.providers) json.value(std::string_view(provider));
  json.end_array();
  json.end_object();
}

void write_or_null(JsonWriter& json, const char* name,
                   const std::optional<CandidateResultOfPlan>& candidate) {
  json.key(name);
  candidate ? write(json, *candidate) : json.null();
}

void write_list(JsonWriter& json, const char* name, const std::vector<CandidateResultOfPlan>& candidates) {
  json.key(name);
  json.begin_array();
  for (const CandidateResultOfPlan& candidate : candidates) write(json, candidate);
  json.end_array();
}

void write_left_out(JsonWriter& json, const std::vector<LeftOut>& left_out) {
  json.key("left_out");
  json.begin_array();
  for (const LeftOut& each : left_out) {
    json.begin_object();
    json.key("servers");
    json.begin_array(Style::compact);
    for (const std::string& server : each.servers) json.value(std::string_view(server));
    json.end_array();
    json.field("why", each.why);
    json.end_object();
  }
  json.end_array();
}

void write_sensitivity(JsonWriter& json, const std::vector<Change>& changes) {
  json.key("sensitivity");
  json.begin_array();
  for (const Change& change : changes) {
    json.begin_object();
    json.field("change", change.text);
    json.field("kind", change.kind);
    if (!change.server.empty()) json.field("server", change.server);
    json.field("value", change.value);
    write_or_null(json, "choice", change.choice);
    json.end_object();
  }
  json.end_array();
}

void write_texts(JsonWriter& json, const char* name, const std::vector<std::string>& texts) {
  json.key(name);
  json.begin_array();
  for (const std::string& text : texts) json.value(std::string_view(text));
  json.end_array();
}

void write_assumes(JsonWriter& json, const std::vector<Assumption>& assumes) {
  json.key("assumes");
  json.begin_array();
  for (const Assumption& each : assumes) {
    json.begin_object();
    json.field("what", each.what);
    json.field("value", each.value);
    json.field("grade", to_string(each.grade));
    json.field("would_change", each.would_change);
    json.end_object();
  }
  json.end_array();
}

void write_scenarios(JsonWriter& json, const std::vector<VariantChoice>& scenarios) {
  json.key("scenarios");
  json.begin_array();
  for (const VariantChoice& each : scenarios) {
    json.begin_object();
    json.field("name", each.name);
    write_texts(json, "set", each.set);
    write_or_null(json, "choice", each.choice);
    json.end_object();
  }
  json.end_array();
}

void write_manifest(JsonWriter& json, const Manifest& manifest) {
  json.key("manifest");
  json.begin_object();
  json.field("version", manifest.version);
  json.field("simgrid", manifest.simgrid);
  json.field("config_sha256", manifest.config_sha256);
  json.key("set");
  json.begin_array(Style::compact);
  for (const std::string& setting : manifest.set) json.value(std::string_view(setting));
  json.end_array();
  json.key("inputs");
  json.begin_object();
  for (const auto& [file, digest] : manifest.inputs) json.field(file, digest);
  json.end_object();
  json.end_object();
}

/// Columns as wide as they need; numbers are text here.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += fmt::format("{}{}{}", c ? "  " : "", row[c], std::string(widths[c] - width_of(row[c]), ' '));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::vector<std::string> cells(const CandidateResultOfPlan& candidate) {
  return {text_of(candidate.order),
          candidate.own                      ? "own"
          : candidate.market == Market::spot ? "spot"
                                             : "on demand",
          std::string(to_string(candidate.precision)),
          std::to_string(candidate.global_batch),
          candidate.label,
          fmt::format("{:.4g}", candidate.figures.epochs),
          hours_text(candidate.figures.time_s),
          usd_text(candidate.figures.cost_usd),
          fmt::format("{} kWh", number_text(candidate.figures.energy_j / joules_a_kwh))};
}

std::string candidates_table(const std::vector<CandidateResultOfPlan>& candidates) {
  std::vector<std::vector<std::string>> rows{
      {"machines", "market", "precision", "global batch", "strategy", "epochs", "time", "cost", "energy"}};
  for (const CandidateResultOfPlan& candidate : candidates) rows.push_back(cells(candidate));
  return aligned(rows);
}

std::string no_choice_text(const PlanAnswer& answer) {
  std::string text = "no candidate meets the constraints\n";
  if (answer.nearest) {
    text += fmt::format("nearest: {}: {}\n", answer.nearest->name, answer.nearest->text);
    if (answer.nearest->candidate)
      text += fmt::format("  {}\n  {}\n", order_text(*answer.nearest->candidate),
                          training_text(*answer.nearest->candidate));
  }
  return text;
}

std::string sensitivity_text(const std::vector<Change>& changes) {
  if (changes.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const Change& change : changes)
    rows.push_back({change.text + ":", change.choice
                                           ? fmt::format("{}, {}, {}", text_of(change.choice->order),
                                                         hours_text(change.choice->figures.time_s),
                                                         usd_text(change.choice->figures.cost_usd))
                                           : "nothing meets the constraints"});
  return "\nwhat would change it: another choice wins if\n" + aligned(rows);
}

}  // namespace

std::string usd_text(double usd) {
  if (!std::isfinite(usd)) return "price not known";
  return fmt::format("{:.{}f} USD", usd, usd < 9.995 ? 2 : usd < 99.95 ? 1 : 0);
}

std::string hours_text(double seconds) {
  const double hours = seconds / 3600;
  return hours < 1 ? format_time(seconds) : fmt::format("{} h", number_text(hours));
}

std::string order_text(const CandidateResultOfPlan& candidate) {
  std::string text = candidate.own
                         ? fmt::format("use {}", text_of(candidate.order))
                         : fmt::format("rent {} {}", text_of(candidate.order),
                                       candidate.market == Market::spot ? "on the spot market" : "on demand");
  text += fmt::format(" for {}", hours_text(candidate.figures.time_s));
  if (!candidate.region.empty()) text += fmt::format(" in {}", candidate.region);
  if (std::isfinite(candidate.figures.cost_usd))
    text += fmt::format(": {} ({} to {} at 80 %)", usd_text(candidate.figures.cost_usd),
                        usd_text(candidate.cost_interval.first), usd_text(candidate.cost_interval.second));
  text += fmt::format(", {} kWh", number_text(candidate.figures.energy_j / joules_a_kwh));
  if (std::isfinite(candidate.figures.carbon_kg))
    text += fmt::format(", {} kg CO2", number_text(candidate.figures.carbon_kg));
  if (candidate.interruptible)
    text += fmt::format("; {} interruptions expected, {}", number_text(candidate.figures.interruptions),
                        candidate.reaction == OnInterruption::wait
                            ? "each waited out"
                            : "after each on with the machines that are left");
  return text;
}

std::vector<std::string> price_texts(const CandidateResultOfPlan& candidate) {
  std::vector<std::string> texts;
  for (const Price& price : candidate.prices) {
    const std::string origin = price.region.empty() ? price.source : price.origin();
    texts.push_back(fmt::format("{}: {:g} USD/h ({})", price.server, price.usd_per_hour, origin));
  }
  for (const std::string& doubt : candidate.doubts) texts.push_back("doubt: " + doubt);
  return texts;
}

std::string training_text(const CandidateResultOfPlan& candidate) {
  return fmt::format("{}, {}, {} images a device, {} a step of {}, {:.4g} epochs", candidate.label,
                     to_string(candidate.precision), candidate.batch_per_device, candidate.global_batch,
                     format_time(candidate.step_time_s), candidate.figures.epochs);
}

std::string question_text(const PlanAnswer& answer) {
  static const std::map<PlanObjective, const char*> words{{PlanObjective::cost, "at the least cost"},
                                                          {PlanObjective::time, "in the least time"},
                                                          {PlanObjective::energy, "with the least energy"},
                                                          {PlanObjective::carbon, "with the least carbon"},
                                                          {PlanObjective::front, "at the least time x cost"}};
  std::string text = words.at(answer.objective);
  const PlanConstraints& limits = answer.constraints;
  if (limits.deadline_s) text += fmt::format(", within {}", hours_text(*limits.deadline_s));
  if (limits.budget_usd) text += fmt::format(", for at most {}", usd_text(*limits.budget_usd));
  if (limits.max_devices) text += fmt::format(", on at most {} devices", *limits.max_devices);
  if (limits.max_global_batch) text += fmt::format(", global batch at most {}", *limits.max_global_batch);
  return text;
}

std::string effort_text(const PlanAnswer& answer) {
  std::string text = fmt::format("{} candidates, {} planned, {} simulated", answer.candidates, answer.planned,
                                 answer.simulated);
  for (const auto& [reason, count] : answer.pruned)
    text += fmt::format("; {} {}", count, meaning_of(reason, count));
  return text;
}

/// Doubts that some of these candidates have and the choice has not, each with how many have it.
std::string doubts_text(const std::vector<CandidateResultOfPlan>& candidates,
                        const CandidateResultOfPlan& choice) {
  std::map<std::string, int> having;
  for (const CandidateResultOfPlan& candidate : candidates)
    for (const std::string& doubt : candidate.doubts)
      if (std::find(choice.doubts.begin(), choice.doubts.end(), doubt) == choice.doubts.end())
        ++having[doubt];
  std::string text;
  for (const auto& [doubt, count] : having) text += fmt::format("  doubt of {} of these: {}\n", count, doubt);
  return text;
}

std::string assumes_text(const PlanAnswer& answer) {
  if (answer.assumes.empty()) return {};
  std::string text = "\nassumes\n";
  for (const Assumption& each : answer.assumes)
    text +=
        fmt::format("  {}: {} ({}); {}\n", each.what, each.value, to_string(each.grade), each.would_change);
  text += "\nnot included\n";
  for (const std::string& each : answer.not_included) text += fmt::format("  {}\n", each);
  return text;
}

std::string scenarios_text(const PlanAnswer& answer) {
  if (answer.scenarios.empty()) return {};
  std::string text = "\nscenarios\n";
  for (const VariantChoice& each : answer.scenarios)
    text += fmt::format("  {}: {}\n", each.name,
                        each.choice ? order_text(*each.choice) : "nothing meets the constraints");
  return text;
}

std::string left_out_texts(const PlanAnswer& answer) {
  std::string text;
  for (const LeftOut& each : answer.left_out) text += left_out_text(each) + "\n";
  return text;
}

std::string table(const PlanAnswer& answer) {
  std::string text = fmt::format("{}: {}, {}\n\n", answer.name, answer.goal, question_text(answer));
  const std::string effort =
      scenarios_text(answer) + "\n" + effort_text(answer) + "\n" + left_out_texts(answer);
  if (!answer.choice) return text + no_choice_text(answer) + effort;
  text += fmt::format("{}\n  {}\n  {}\n", order_text(*answer.choice), training_text(*answer.choice),
                      answer.choice->bottleneck);
  for (const std::string& price : price_texts(*answer.choice)) text += fmt::format("  {}\n", price);
  text += "\nwhat time costs (nothing is both quicker and cheaper)\n" + candidates_table(answer.front) +
          doubts_text(answer.front, *answer.choice);
  if (!answer.runners_up.empty()) {
    text += "\nthe best of other servers\n" + candidates_table(answer.runners_up) +
            doubts_text(answer.runners_up, *answer.choice);
    for (const CandidateResultOfPlan& runner : answer.runners_up)
      text += fmt::format("  {}: {}\n", text_of(runner.order), runner.reason);
  }
  return text + sensitivity_text(answer.sensitivity) + assumes_text(answer) + effort;
}

void write_json(const PlanAnswer& answer, std::ostream& out) {
  JsonWriter json(out);
  json.begin_object();
  json.field("schema", "convoy.plan/1");
  json.field("experiment", answer.name);
  json.field("goal", answer.goal);
  json.field("objective", to_string(answer.objective));
  write_constraints(json, answer.constraints);
  write_or_null(json, "choice", answer.choice);
  write_list(json, "front", answer.front);
  write_list(json, "runners_up", answer.runners_up);
  json.field("candidates", answer.candidates);
  json.field("planned", answer.planned);
  json.field("simulated", answer.simulated);
  json.key("pruned");
  json.begin_object();
  for (const auto& [reason, count] : answer.pruned) json.field(reason, count);
  json.end_object();
  write_left_out(json, answer.left_out);
  write_sensitivity(json, answer.sensitivity);
  write_assumes(json, answer.assumes);
  write_texts(json, "not_included", answer.not_included);
  write_scenarios(json, answer.scenarios);
  if (answer.nearest) {
    json.key("nearest_constraint");
    json.begin_object();
    json.field("name", answer.nearest->name);
    json.field("text", answer.nearest->text);
    write_or_null(json, "candidate", answer.nearest->candidate);
    json.end_object();
  }
  write_manifest(json, answer.manifest);
  json.end_object();
  out << '\n';
}

}  // namespace convoy::planning
