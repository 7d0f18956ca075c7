// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <type_traits>

#include "sim/planning/answer.h"
#include "sim/planning/interval.h"
#include "sim/planning/write_plan.h"
#include "sim/results/result_fields.h"

// The fields of plan.json in their order, once for its writer and its reader (sim/results/result_fields.h says
// what archives understand). What a candidate has beside them is not in the document: what an hour without
// computing costs, which the sentences of `assumes` and `not_included` were made from.

namespace convoy::inline planning {

inline constexpr std::string_view plan_schema = "convoy.plan/1";

inline constexpr std::array all_objectives{PlanObjective::cost, PlanObjective::time, PlanObjective::energy,
                                           PlanObjective::carbon, PlanObjective::front};
inline constexpr std::array all_markets{Market::on_demand, Market::spot};
inline constexpr std::array all_reactions{OnInterruption::wait, OnInterruption::go_on};
inline constexpr std::array all_precisions{Precision::fp32, Precision::tf32, Precision::fp16,
                                           Precision::bf16};
inline constexpr std::array all_grades{Grade::measured, Grade::fitted,   Grade::data_sheet,
                                       Grade::assumed,  Grade::unstated, Grade::given};

inline constexpr auto constraint_fields = [](auto& archive, auto& limits) {
  archive.optional("deadline_s", limits.deadline_s);
  archive.optional("budget_usd", limits.budget_usd);
  archive.optional("max_devices", limits.max_devices);
  archive.optional("max_global_batch", limits.max_global_batch);
  archive.field("memory", limits.memory);
  archive.texts("providers", limits.providers);
};

inline constexpr auto price_fields = [](auto& archive, auto& price) {
  archive.field("server", price.server);
  archive.field("usd_per_h", price.usd_per_hour);
  archive.field("region", price.region);
  archive.field("from", price.from);
  archive.field("until", price.until);
  archive.field("source", price.source);
};

inline constexpr auto candidate_interval_fields = [](auto& archive, auto& candidate) {
  double level = interval_level;
  archive.field("level", level);
  archive.known("time_to_train_s", candidate.run_time_interval);
  archive.known("cost_usd", candidate.run_cost_interval);
  archive.part("interruptions", candidate.interruptible,
               [&] { archive.known("interruptions", candidate.interruptions_interval); });
};

inline constexpr auto plan_candidate_fields = [](auto& archive, auto& candidate) {
  archive.counts("servers", candidate.order);
  archive.field("devices", candidate.devices);
  archive.choice("market", candidate.market, all_markets);
  archive.truth("own", candidate.own);
  archive.nullable_text("region", candidate.region);
  archive.choice("precision", candidate.precision, all_precisions);
  archive.field("batch_per_device", candidate.batch_per_device);
  archive.field("global_batch", candidate.global_batch);
  archive.yaml("strategy", candidate.strategy);
  archive.field("strategy_text", candidate.label);
  archive.field("epochs", candidate.figures.epochs);
  archive.field("step_time_s", candidate.step_time_s);
  archive.field("time_to_train_s", candidate.figures.time_s);
  archive.known("usd_per_h", candidate.usd_per_h);
  archive.known("cost_usd", candidate.figures.cost_usd);
  archive.optional("electricity_usd", candidate.figures.electricity_usd);
  archive.list("prices", candidate.prices, price_fields);
  archive.texts("doubts", candidate.doubts);
  archive.truth("doubtful", candidate.doubtful);
  archive.scaled("energy_kwh", candidate.figures.energy_j, joules_a_kwh);
  archive.known("carbon_kg", candidate.figures.carbon_kg);
  archive.part("interruptions", candidate.interruptible, [&] {
    archive.field("interruptions", candidate.figures.interruptions);
    archive.choice("on_interruption", candidate.reaction, all_reactions);
  });
  archive.field("peak_memory_bytes", candidate.peak_memory_bytes);
  archive.field("bottleneck", candidate.bottleneck);
  archive.object("interval", candidate, candidate_interval_fields);
  archive.part("outcome", candidate.compared, [&] { why_not_fields(archive, candidate); });
  // A price was listed on the market that its machines are rented on.
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(candidate)>>)
    for (Price& price : candidate.prices) price.market = candidate.market;
};

inline constexpr auto left_out_fields = [](auto& archive, auto& out) {
  archive.texts("servers", out.servers);
  archive.field("why", out.why);
};

inline constexpr auto change_fields = [](auto& archive, auto& change) {
  archive.field("change", change.text);
  archive.field("kind", change.kind);
  archive.optional_text("server", change.server);
  archive.field("value", change.value);
  archive.nullable_block("choice", change.choice, plan_candidate_fields);
};

inline constexpr auto assumption_fields = [](auto& archive, auto& assumption) {
  archive.field("what", assumption.what);
  archive.field("value", assumption.value);
  archive.choice("grade", assumption.grade, all_grades);
  archive.field("would_change", assumption.would_change);
};

inline constexpr auto scenario_fields = [](auto& archive, auto& scenario) {
  archive.field("name", scenario.name);
  archive.lines("set", scenario.set);
  archive.nullable_block("choice", scenario.choice, plan_candidate_fields);
};

inline constexpr auto nearest_fields = [](auto& archive, auto& nearest) {
  archive.field("name", nearest.name);
  archive.field("text", nearest.text);
  archive.nullable_block("candidate", nearest.candidate, plan_candidate_fields);
};

inline constexpr auto plan_manifest_fields = [](auto& archive, auto& manifest) {
  program_fields(archive, manifest);
  input_files_fields(archive, manifest);
};

inline constexpr auto plan_fields = [](auto& archive, auto& answer) {
  archive.constant("schema", plan_schema);
  archive.field("experiment", answer.name);
  archive.field("goal", answer.goal);
  archive.choice("objective", answer.objective, all_objectives);
  archive.block("constraints", answer.constraints, constraint_fields);
  archive.nullable_block("choice", answer.choice, plan_candidate_fields);
  archive.blocks("front", answer.front, plan_candidate_fields);
  archive.blocks("runners_up", answer.runners_up, plan_candidate_fields);
  archive.field("candidates", answer.candidates);
  archive.field("planned", answer.planned);
  archive.field("simulated", answer.simulated);
  archive.counts("pruned", answer.pruned);
  archive.blocks("left_out", answer.left_out, left_out_fields);
  archive.optional_text("newest_price", answer.newest_price);
  archive.blocks("sensitivity", answer.sensitivity, change_fields);
  archive.blocks("assumes", answer.assumes, assumption_fields);
  archive.lines("not_included", answer.not_included);
  archive.blocks("scenarios", answer.scenarios, scenario_fields);
  archive.optional_block("nearest_constraint", answer.nearest, nearest_fields);
  archive.block("manifest", answer.manifest, plan_manifest_fields);
};

}  // namespace convoy::planning
