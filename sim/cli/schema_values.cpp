// SPDX-License-Identifier: MIT
#include "sim/cli/schema_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "sim/base/spellings.h"

namespace convoy::inline cli {
namespace {

/// "[Gg][Bb][Pp][Ss]" where capitals make no difference, else the spellings one by one.
std::string unit_pattern(Dimension dimension) {
  std::map<std::string, std::vector<std::string>> alike;  // by their small letters
  for (const std::string& unit : unit_spellings(dimension))
    alike[boost::algorithm::to_lower_copy(unit)].push_back(unit);
  std::vector<std::string> patterns;
  for (const auto& [small, spellings] : alike) {
    const auto letters =
        std::count_if(small.begin(), small.end(), [](unsigned char c) { return std::isalpha(c); });
    if (spellings.size() < std::size_t{1} << letters || letters == 0) {
      patterns.insert(patterns.end(), spellings.begin(), spellings.end());
      continue;
    }
    patterns.push_back(any_capitals(small));
  }
  return fmt::format("({})", fmt::join(patterns, "|"));
}

}  // namespace

Json any_of(std::vector<Json> alternatives) {
  if (alternatives.size() == 1) return std::move(alternatives.front());
  return {{"anyOf", std::move(alternatives)}};
}

void add_if_new(std::vector<Json>& alternatives, Json alternative) {
  if (std::find(alternatives.begin(), alternatives.end(), alternative) == alternatives.end())
    alternatives.push_back(std::move(alternative));
}

Json plain_value(const std::string& name) {
  if (name == "true" || name == "false") return name == "true";
  if (const std::optional<double> number = parse_number(name); number && *number == std::floor(*number))
    return static_cast<std::int64_t>(*number);
  return name;
}

std::vector<Json> of_names(std::span<const std::string> names, std::span<const std::string> patterns) {
  Json values = Json::array();
  for (const std::string& name : names) {
    values.push_back(plain_value(name));
    if (values.back() != Json(name) && name != "true" && name != "false") values.push_back(name);
  }
  std::vector<Json> alternatives;
  alternatives.push_back(Json{{"enum", std::move(values)}});
  if (!patterns.empty())
    alternatives.push_back({{"type", "string"}, {"pattern", fmt::format("{}", fmt::join(patterns, "|"))}});
  return alternatives;
}

std::vector<Json> of_quantity(const ValueForm& form) {
  std::vector<Json> alternatives;
  if (form.dimension == Dimension::fraction) {
    Json number{{"type", "number"}, {form.above_min ? "exclusiveMinimum" : "minimum", 0}};
    if (form.max < std::numeric_limits<double>::max()) number["maximum"] = form.max;
    alternatives.push_back(std::move(number));
  }
  alternatives.push_back(
      {{"type", "string"},
       {"pattern", fmt::format("^\\+?{}([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)? *{}$",
                               form.above_min ? "(?=[0-9.]*[1-9])" : "", unit_pattern(form.dimension))}});
  return alternatives;
}

std::string quantity_name(const ValueForm& form) {
  const std::string text = forms::quantity(form.dimension).values;  // "a bandwidth"
  return text.substr(text.find(' ') + 1) + (form.above_min ? "-above-0" : "") +
         (form.max == 1 ? "-up-to-1" : "");
}

Json bounded(const char* type, const ValueForm& form) {
  const auto bound = [&](double value) {
    return form.kind == ValueForm::Kind::whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
  };
  Json schema{{"type", type}};
  schema[form.above_min ? "exclusiveMinimum" : "minimum"] = bound(form.min);
  if (form.max < std::numeric_limits<double>::max()) schema["maximum"] = bound(form.max);
  return schema;
}

}  // namespace convoy::cli
