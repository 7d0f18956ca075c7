// SPDX-License-Identifier: MIT
// study.json: its values as they are written, and their fields (sim/results/result_fields.h).
#include <optional>
#include <utility>

#include "sim/results/field_schema.h"
#include "sim/results/field_writer.h"
#include "sim/studies/regions/border.h"
#include "sim/studies/regions/write_study.h"

namespace convoy::inline studies {
namespace {

using InputsAt = std::vector<std::pair<std::string, YamlNode>>;

struct WrittenInput {
  std::string name;
  std::vector<std::string> sets;
  std::optional<YamlNode> range, values;  ///< one of them
  std::string scale;                      ///< of a range
  bool whole = false;                     ///< of a range
  std::string because;
};

struct WrittenBorder {
  std::string input;
  YamlNode holds, fails;
  InputsAt with;
  std::string text;
};

struct WrittenClaim {
  StudyClaim claim;
  ClaimRegion region;
  std::vector<std::pair<std::string, double>> first_order;
  std::string sentence;
  std::vector<WrittenBorder> borders;
};

struct WrittenTogether {
  StudyShare share;
  std::optional<InputsAt> set, nearest;
  bool searched = false;
  std::vector<double> values;
  std::string sentence;
};

struct WrittenOutcome {
  InputsAt inputs;
  StudyOutcome outcome;
};

struct WrittenReason {
  std::string reason;
  std::size_t points = 0;
};

struct WrittenStudy {
  std::string experiment;
  std::vector<WrittenInput> inputs;
  std::size_t tried = 0, possible = 0, experiments = 0;
  bool grid = false;
  std::int64_t seed = 0;
  std::vector<WrittenReason> impossible;
  std::vector<WrittenClaim> claims;
  WrittenTogether together;
  std::vector<WrittenOutcome> sample;
  Manifest manifest;
};

constexpr auto input_fields_of_study = [](auto& archive, const WrittenInput& input) {
  archive.field("name", input.name);
  archive.texts("sets", input.sets);
  archive.optional_yaml("range", input.range);
  archive.optional_yaml("values", input.values);
  archive.part("scale", input.range.has_value(), [&] {
    archive.field("scale", input.scale);
    archive.field("whole", input.whole);
  });
  archive.field("because", input.because);
};

constexpr auto share_fields = [](auto& archive, const StudyShare& share) {
  archive.field("count", std::uint64_t{share.count});
  archive.field("of", std::uint64_t{share.of});
  archive.field("share", share.share());
  archive.nullable("standard_error", share.standard_error);
};

constexpr auto border_fields = [](auto& archive, const WrittenBorder& border) {
  archive.field("input", border.input);
  archive.yaml("holds", border.holds);
  archive.yaml("fails", border.fails);
  archive.point("with", border.with);
  archive.field("text", border.text);
};

constexpr auto claim_fields_of_study = [](auto& archive, const WrittenClaim& written) {
  archive.field("claim", written.claim.claim);
  archive.field("value", written.claim.value.text);
  archive.nullable("at_least", written.claim.low);
  archive.nullable("at_most", written.claim.high);
  archive.nullable("published", written.claim.published);
  archive.object("share", written.region.share, share_fields);
  archive.object("values", written.region, [](auto& of_values, const ClaimRegion& region) {
    of_values.field("least", region.least);
    of_values.field("median", region.median);
    of_values.field("greatest", region.greatest);
  });
  archive.named_numbers("first_order", written.first_order);
  archive.object("where", written.region, [](auto& of_sentence, const ClaimRegion& region) {
    of_sentence.field("text", region.sentence.text);
    of_sentence.field("right", region.sentence.right);
    of_sentence.field("always_or_never_right", region.sentence.otherwise);
  });
  archive.field("sentence", written.sentence);
  archive.list("borders", written.borders, border_fields);
};

constexpr auto together_fields = [](auto& archive, const WrittenTogether& together) {
  archive.object("share", together.share, share_fields);
  archive.nullable_point("set", together.set);
  archive.field("searched_beside_the_sample", together.searched);
  archive.nullable_point("nearest", together.nearest);
  archive.numbers("values", together.values);
  archive.field("sentence", together.sentence);
};

constexpr auto outcome_fields = [](auto& archive, const WrittenOutcome& written) {
  archive.point("inputs", written.inputs);
  archive.part("values", written.outcome.possible,
               [&] { archive.numbers("values", written.outcome.values); });
  archive.part("impossible", !written.outcome.possible,
               [&] { archive.field("impossible", written.outcome.why_not); });
};

constexpr auto study_fields = [](auto& archive, const WrittenStudy& study) {
  archive.constant("schema", "convoy.study/1");
  archive.field("experiment", study.experiment);
  archive.blocks("inputs", study.inputs, input_fields_of_study);
  archive.object("points", study, [](auto& of_points, const WrittenStudy& all) {
    of_points.field("tried", std::uint64_t{all.tried});
    of_points.field("possible", std::uint64_t{all.possible});
    of_points.field("experiments", std::uint64_t{all.experiments});
    of_points.field("grid", all.grid);
    of_points.field("seed", all.seed);
  });
  archive.list("impossible", study.impossible, [](auto& of_reason, const WrittenReason& reason) {
    of_reason.field("reason", reason.reason);
    of_reason.field("points", std::uint64_t{reason.points});
  });
  archive.blocks("claims", study.claims, claim_fields_of_study);
  archive.block("together", study.together, together_fields);
  archive.list("sample", study.sample, outcome_fields);
  archive.object("manifest", study.manifest, [](auto& of_manifest, const Manifest& manifest) {
    of_manifest.field("version", manifest.version);
    of_manifest.field("config_sha256", manifest.config_sha256);
  });
};

InputsAt inputs_at(const StudySpec& spec, const StudyPoint& point) {
  InputsAt inputs;
  for (std::size_t d = 0; d < point.size(); ++d)
    inputs.emplace_back(spec.inputs[d].name, spec.inputs[d].value_at(point[d]));
  return inputs;
}

YamlNode sequence_of(std::vector<YamlNode> items) {
  YamlNode node;
  node.kind = YamlNode::Kind::sequence;
  node.items = std::move(items);
  return node;
}

WrittenInput written(const StudyInput& input) {
  WrittenInput out{input.name,   {input.sets.begin(), input.sets.end()}, {}, {}, {}, input.whole,
                   input.because};
  if (!input.is_range()) {
    out.values = sequence_of({input.values.begin(), input.values.end()});
    return out;
  }
  out.range = sequence_of({input.value_at(0.0), input.value_at(1.0)});
  out.scale = input.log ? "log" : "linear";
  return out;
}

WrittenClaim written_claim(const StudyResult& study, std::size_t c) {
  WrittenClaim out{study.spec.claims[c], study.regions[c], {}, sentence_of(study, c), {}};
  for (std::size_t d = 0; d < out.region.first_order.size(); ++d)
    out.first_order.emplace_back(study.spec.inputs[d].name, out.region.first_order[d]);
  for (const StudyBorder& border : out.region.borders) {
    const StudyInput& input = study.spec.inputs[border.input];
    out.borders.push_back({input.name, input.value_at(border.holds), input.value_at(border.fails),
                           inputs_at(study.spec, border.at), text_of(study.spec, border)});
  }
  return out;
}

WrittenStudy written(const StudyResult& study) {
  const StudySpec& spec = study.spec;
  WrittenStudy out;
  out.experiment = study.experiment;
  for (const StudyInput& input : spec.inputs) out.inputs.push_back(written(input));
  out.tried = study.outcomes.size(), out.possible = study.together.share.of;
  out.experiments = study.simulated, out.grid = spec.grid.has_value(), out.seed = spec.seed;
  for (const auto& [reason, count] : study.impossible) out.impossible.push_back({reason, count});
  for (std::size_t c = 0; c < spec.claims.size(); ++c) out.claims.push_back(written_claim(study, c));
  const StudyTogether& together = study.together;
  out.together = {together.share, {}, {}, together.searched, study.together_values, together_sentence(study)};
  if (together.set)
    out.together.set = inputs_at(spec, *together.set);
  else
    out.together.nearest = inputs_at(spec, together.nearest);
  for (std::size_t i = 0; i < study.outcomes.size(); ++i)
    out.sample.push_back({inputs_at(spec, study.sample.points[i]), study.outcomes[i]});
  out.manifest = study.manifest;
  return out;
}

}  // namespace

void write_json(const StudyResult& study, JsonWriter& json) {
  FieldWriter archive(json);
  json.begin_object();
  study_fields(archive, written(study));
  json.end_object();
}

void write_json(const StudyResult& study, std::ostream& out) {
  JsonWriter json(out);
  write_json(study, json);
  json.raw("\n");
}

std::string study_schema_text() { return schema_text<WrittenStudy>(study_fields); }

}  // namespace convoy::studies
