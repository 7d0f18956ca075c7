// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>

#include "sim/planning/answer.h"

namespace convoy::inline planning {

/// plan.json: schema convoy.plan/1 (docs/planning.md). What is not known is null.
void write_json(const PlanAnswer& answer, std::ostream& out);
/// JSON Schema of it.
std::string plan_schema_text();

/// The answer in words, with its tables.
std::string table(const PlanAnswer& answer);

// What table and report share.

/// "rent 8 aws-p3.16xlarge on demand for 3.1 h: 609 USD (488 to 731), 41.2 kWh"
std::string order_text(const CandidateResultOfPlan& candidate);
/// "ring all-reduce, fp16, 64 images a device, 4096 a step, 40 epochs"
std::string training_text(const CandidateResultOfPlan& candidate);
/// "aws-p3.16xlarge: 24.48 USD/h (on demand, us-east-1, 2022-06-23 to 2026-07-20)", and doubts.
/// @param newest day of the price table
std::vector<std::string> price_texts(const CandidateResultOfPlan& candidate, const std::string& newest);
/// "", or ", 0.9 years before the newest price": how old a price is.
std::string age_text(const Price& price, const std::string& newest);
/// Behind the machines of candidates that have a doubt of their own.
inline constexpr const char* doubtful_mark = " *";
/// "cheapest within 24 h and 500 USD"
std::string question_text(const PlanAnswer& answer);
/// "3456 candidates: 41 simulated; not simulated: 2,890 cannot be better (bound), ..."
std::string effort_text(const PlanAnswer& answer);
/// "609 USD", "0.034 USD", "price not known"; never 0 for a sum above it.
std::string usd_text(double usd);
/// What an hour of a candidate costs: "24.5 USD/h", "0.046 USD/h of electricity", or both.
std::string hour_text(const CandidateResultOfPlan& candidate);
/// What an hour of one of its servers costs by its price: "24.48 USD/h", "its electricity".
std::string hour_text(const CandidateResultOfPlan& candidate, const Price& price);
std::string hours_text(double seconds);

}  // namespace convoy::planning
