// SPDX-License-Identifier: MIT
#include "sim/studies/regions/write_study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "sim/results/json_writer.h"
#include "sim/results/text.h"
#include "sim/studies/regions/border.h"

namespace convoy::inline studies {
namespace {

void write_optional(JsonWriter& json, std::string_view name, const std::optional<double>& value) {
  json.key(name);
  if (value)
    json.value(*value);
  else
    json.null();
}

void write_inputs_at(JsonWriter& json, const StudySpec& spec, const StudyPoint& point) {
  json.begin_object(JsonWriter::Style::compact);
  for (std::size_t d = 0; d < point.size(); ++d)
    json.field(spec.inputs[d].name, spec.inputs[d].value_at(point[d]));
  json.end_object();
}

void write_input(JsonWriter& json, const StudyInput& input) {
  json.begin_object();
  json.field("name", input.name);
  json.key("sets");
  json.begin_array(JsonWriter::Style::compact);
  for (const std::string& path : input.sets) json.value(path);
  json.end_array();
  json.key(input.is_range() ? "range" : "values");
  json.begin_array(JsonWriter::Style::compact);
  if (input.is_range())
    for (const double end : {0.0, 1.0}) json.value(input.value_at(end));
  else
    for (const YamlNode& value : input.values) json.value(value);
  json.end_array();
  if (input.is_range()) {
    json.field("scale", input.log ? "log" : "linear");
    json.field("whole", input.whole);
  }
  json.field("because", input.because);
  json.end_object();
}

void write_share(JsonWriter& json, const StudyShare& share) {
  json.key("share");
  json.begin_object(JsonWriter::Style::compact);
  json.field("count", static_cast<std::int64_t>(share.count));
  json.field("of", static_cast<std::int64_t>(share.of));
  json.field("share", share.share());
  write_optional(json, "standard_error", share.standard_error);
  json.end_object();
}

void write_border(JsonWriter& json, const StudySpec& spec, const StudyBorder& border) {
  const StudyInput& input = spec.inputs[border.input];
  json.begin_object(JsonWriter::Style::compact);
  json.field("input", input.name);
  json.field("holds", input.value_at(border.holds));
  json.field("fails", input.value_at(border.fails));
  json.key("with");
  write_inputs_at(json, spec, border.at);
  json.field("text", text_of(spec, border));
  json.end_object();
}

void write_claim(JsonWriter& json, const StudyResult& study, std::size_t c) {
  const StudyClaim& claim = study.spec.claims[c];
  const ClaimRegion& region = study.regions[c];
  json.begin_object();
  json.field("claim", claim.claim);
  json.field("value", claim.value.text);
  write_optional(json, "at_least", claim.low);
  write_optional(json, "at_most", claim.high);
  write_optional(json, "published", claim.published);
  write_share(json, region.share);
  json.key("values");
  json.begin_object(JsonWriter::Style::compact);
  json.field("least", region.least);
  json.field("median", region.median);
  json.field("greatest", region.greatest);
  json.end_object();
  json.key("first_order");
  if (region.first_order.empty()) {
    json.null();
  } else {
    json.begin_object(JsonWriter::Style::compact);
    for (std::size_t d = 0; d < study.spec.inputs.size(); ++d)
      json.field(study.spec.inputs[d].name, region.first_order[d]);
    json.end_object();
  }
  json.key("where");
  json.begin_object(JsonWriter::Style::compact);
  json.field("text", region.sentence.text);
  json.field("right", region.sentence.right);
  json.field("always_or_never_right", region.sentence.otherwise);
  json.end_object();
  json.field("sentence", sentence_of(study, c));
  json.key("borders");
  json.begin_array();
  for (const StudyBorder& border : region.borders) write_border(json, study.spec, border);
  json.end_array();
  json.end_object();
}

void write_values(JsonWriter& json, const std::vector<double>& values) {
  json.begin_array(JsonWriter::Style::compact);
  for (const double value : values) json.value(value);
  json.end_array();
}

void write_together(JsonWriter& json, const StudyResult& study) {
  const StudyTogether& together = study.together;
  json.begin_object();
  write_share(json, together.share);
  json.key("set");
  if (together.set)
    write_inputs_at(json, study.spec, *together.set);
  else
    json.null();
  json.field("searched_beside_the_sample", together.searched);
  json.key("nearest");
  if (together.set)
    json.null();
  else
    write_inputs_at(json, study.spec, together.nearest);
  json.key("values");
  write_values(json, study.together_values);
  json.field("sentence", together_sentence(study));
  json.end_object();
}

void write_sample(JsonWriter& json, const StudyResult& study) {
  json.begin_array();
  for (std::size_t i = 0; i < study.outcomes.size(); ++i) {
    const StudyOutcome& outcome = study.outcomes[i];
    json.begin_object(JsonWriter::Style::compact);
    json.key("inputs");
    write_inputs_at(json, study.spec, study.sample.points[i]);
    if (outcome.possible) {
      json.key("values");
      write_values(json, outcome.values);
    } else {
      json.field("impossible", outcome.why_not);
    }
    json.end_object();
  }
  json.end_array();
}

std::string claim_text(const StudyResult& study, std::size_t c) {
  const StudyClaim& claim = study.spec.claims[c];
  const ClaimRegion& region = study.regions[c];
  std::string text =
      fmt::format("\n{}\n  {}\n  its value is {} to {}, {} in the median; accepted is {}", claim.claim,
                  sentence_of(study, c), number_text(region.least), number_text(region.greatest),
                  number_text(region.median), accepted_text(claim));
  text += claim.published ? fmt::format("; stated is {}\n", number_text(*claim.published)) : "\n";
  if (const std::string decides = deciding_text(study, c); !decides.empty())
    text += fmt::format("  decided by {} of the variance, each alone\n", decides);
  for (const StudyBorder& border : region.borders)
    text += fmt::format("  border: {}\n", text_of(study.spec, border));
  return text;
}

}  // namespace

std::string accepted_text(const StudyClaim& claim) {
  if (claim.low && claim.high)
    return fmt::format("{} to {}", number_text(*claim.low), number_text(*claim.high));
  return claim.low ? fmt::format("at least {}", number_text(*claim.low))
                   : fmt::format("at most {}", number_text(*claim.high));
}

std::string share_text(const StudyShare& share) {
  const std::string text = percent_text(share.share());
  return share.standard_error ? fmt::format("{} \u00b1 {}", text, percent_text(*share.standard_error)) : text;
}

std::string deciding_text(const StudyResult& study, std::size_t claim) {
  const std::vector<double>& indices = study.regions[claim].first_order;
  std::vector<std::size_t> order(indices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return indices[a] > indices[b]; });
  std::vector<std::string> texts;
  constexpr double least_told = 0.005;
  for (const std::size_t d : order) {
    if (indices[d] < least_told) break;
    texts.push_back(fmt::format("{} {}", study.spec.inputs[d].name, percent_text(indices[d])));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string sentence_of(const StudyResult& study, std::size_t claim) {
  const ClaimRegion& region = study.regions[claim];
  if (region.share.count == 0 || region.share.count == region.share.of)
    return fmt::format("holds {}: at {} of {} points", region.sentence.text, region.share.count,
                       region.share.of);
  const std::string& where = region.sentence.text;
  return fmt::format("holds in {} of the space{} {} (these words are right at {} of the points)",
                     share_text(region.share), where.starts_with("except") ? "," : ":", where,
                     percent_text(region.sentence.right));
}

std::string together_sentence(const StudyResult& study) {
  const StudyTogether& together = study.together;
  const std::string where = text_of(study.spec, together.set ? *together.set : together.nearest);
  std::vector<std::string> values;
  for (const double value : study.together_values) values.push_back(number_text(value));
  const std::string there = fmt::format("{}; the values are {} there", where, fmt::join(values, ", "));
  if (together.set && !together.searched)
    return fmt::format("all claims hold at once in {} of the space, nearest to its middle with {}",
                       share_text(together.share), there);
  if (together.set)
    return fmt::format(
        "all claims hold at once at none of {} points of the sample, but at one that was looked for: "
        "with {}",
        together.share.of, there);
  return fmt::format(
      "all claims hold at once at none of {} points, nor at any that was looked for beside them; the "
      "nearest miss is with {}",
      together.share.of, there);
}

void write_json(const StudyResult& study, JsonWriter& json) {
  const StudySpec& spec = study.spec;
  json.begin_object();
  json.field("schema", "convoy.study/1");
  json.field("experiment", study.experiment);
  json.key("inputs");
  json.begin_array();
  for (const StudyInput& input : spec.inputs) write_input(json, input);
  json.end_array();
  json.key("points");
  json.begin_object(JsonWriter::Style::compact);
  json.field("tried", static_cast<std::int64_t>(study.outcomes.size()));
  json.field("possible", static_cast<std::int64_t>(study.together.share.of));
  json.field("experiments", static_cast<std::int64_t>(study.simulated));
  json.field("grid", spec.grid.has_value());
  json.field("seed", spec.seed);
  json.end_object();
  json.key("impossible");
  json.begin_array();
  for (const auto& [reason, count] : study.impossible) {
    json.begin_object(JsonWriter::Style::compact);
    json.field("reason", reason);
    json.field("points", static_cast<std::int64_t>(count));
    json.end_object();
  }
  json.end_array();
  json.key("claims");
  json.begin_array();
  for (std::size_t c = 0; c < spec.claims.size(); ++c) write_claim(json, study, c);
  json.end_array();
  json.key("together");
  write_together(json, study);
  json.key("sample");
  write_sample(json, study);
  json.key("manifest");
  json.begin_object(JsonWriter::Style::compact);
  json.field("version", study.manifest.version);
  json.field("config_sha256", study.manifest.config_sha256);
  json.end_object();
  json.end_object();
}

void write_json(const StudyResult& study, std::ostream& out) {
  JsonWriter json(out);
  write_json(study, json);
  json.raw("\n");
}

std::string table(const StudyResult& study) {
  std::vector<std::string> names;
  for (const StudyInput& input : study.spec.inputs) names.push_back(input.name);
  std::string text = fmt::format("{}: {} points of {}, {} experiments simulated\n", study.experiment,
                                 study.outcomes.size(), fmt::join(names, ", "), study.simulated);
  constexpr std::size_t told = 3;
  for (std::size_t i = 0; i < std::min(told, study.impossible.size()); ++i)
    text +=
        fmt::format("not possible at {} points: {}\n", study.impossible[i].second, study.impossible[i].first);
  if (study.impossible.size() > told)
    text += fmt::format("not possible for {} other reasons, which study.json has\n",
                        study.impossible.size() - told);
  for (std::size_t c = 0; c < study.regions.size(); ++c) text += claim_text(study, c);
  if (study.regions.size() > 1) text += fmt::format("\n{}\n", together_sentence(study));
  return text;
}

}  // namespace convoy::studies
